"""Risks of accounts in the words of their rules."""

from __future__ import annotations

from provisioner.rbac import HELD, Risk
from provisioner.review.rules.files import Phrase


def power_of(risk: Risk, place: str = "") -> Phrase:
    """What somebody can do or holds, in the words of the rule, with where that is: the scope, or as `place` says."""
    if risk.what == HELD:
        return Phrase.of(risk.id, "held.role", **dict(risk.details))
    place = place or ("bare" if risk.place is None else "namespace" if risk.place else "cluster")
    return Phrase.of(risk.id, f"power.{place}", what=risk.what, scope=risk.place, **dict(risk.details))


def sentence_of(risk: Risk) -> Phrase:
    """A risk as a sentence of its account."""
    return power_of(risk) if risk.what == HELD else Phrase.of(risk.id, "power.can", power=power_of(risk))
