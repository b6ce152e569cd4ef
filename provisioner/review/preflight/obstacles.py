"""What the least rights of an installer leave open: rules that nobody could name, and what no rule clears. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.review.preflight.answer import Preflight
from provisioner.values import Severity

# Of these a rule may be missing; all others are told of with the rule that clears them.
_INCOMPLETE = frozenset({"PRE-07", "PRE-12"})
_IN_THE_WAY = frozenset({"PRE-05", "PRE-08", "PRE-09"})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What else has to be done. `is_incomplete`: a rule may be missing, or could not be found out."""

    words: str
    is_incomplete: bool = False


def obstacles(found: Preflight) -> Iterator[Obstacle]:
    """What stands between the least rights and an installation."""
    for one in found.findings:
        if one.rule in _INCOMPLETE or (one.severity is Severity.UNKNOWN and one.rule not in _IN_THE_WAY):
            yield Obstacle(one.message, is_incomplete=True)
        elif one.rule in _IN_THE_WAY:
            yield Obstacle(one.message)
