"""What did not succeed of an apply, in words: each reason once, with the objects that it stopped."""

from __future__ import annotations

from collections.abc import Sequence

from provisioner.sentences import number, some
from provisioner.values import ObjectOutcome, OutcomeState

TOLD = 5
NAMED = 3


def words_of(failed: Sequence[ObjectOutcome]) -> str:
    """The reasons for which objects failed, then how many were not tried and why; at most TOLD of each."""
    wrong = [one for one in failed if one.state is OutcomeState.FAILED]
    left = [one for one in failed if one.state is OutcomeState.SKIPPED]
    told = [f"{some(names, NAMED, noun='objects')}: {words}" for words, names in list(_by_reason(wrong).items())[:TOLD]]
    told += [
        f"{number(len(names), 'object')} {words or 'not tried'}"
        for words, names in list(_by_reason(left).items())[:TOLD]
    ]
    return "; ".join(told)


def _by_reason(outcomes: Sequence[ObjectOutcome]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in outcomes:
        found.setdefault(one.message, []).append(str(one.ref))
    return found
