"""Two versions of a CRD compared, each change as a finding with its sentence."""

from __future__ import annotations

from provisioner.review.base.messages import with_message
from provisioner.review.rules import Phrase
from provisioner.review.rules.messages import LEAF, PLACE, SUBJECT, WHERE
from provisioner.schema import compare
from provisioner.schema.verdicts import shown
from provisioner.values import Finding, JsonObject


def compare_crds(old: JsonObject, new: JsonObject, *, is_accepted: bool = False) -> list[Finding]:
    """Every change from `old` to `new`, worst first (`schema.compare`)."""
    return [with_message(found) for found in compare(old, new, is_accepted=is_accepted)]


def phrase_of(change: Finding) -> Phrase:
    """The sentence of one change, as a value for the sentence of another finding."""
    leaf = change.path[-1] if change.path else ""
    params = {SUBJECT: change.ref, WHERE: shown(change.path), LEAF: leaf, PLACE: None, **change.evidence}
    return Phrase.of(change.rule, change.variant, **params)
