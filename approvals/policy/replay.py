"""What a policy would have said of past requests, by what one reader may know of them. PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from approvals.policy.document import PolicyDocument
from approvals.policy.explanation import ReaderFacts, TermValue, value_terms
from approvals.policy.terms import ExpressionTerms
from provisioner.expressions import ExpressionAnswer, ExpressionOutcome, problem_words

OTHER_LABELS = "it reads labels, and the request had other ones before"


class ReplayResult(StrEnum):
    HELD = "held"  # a guard: it would have held the request back
    PASSED = "passed"  # a guard: it would not
    APPROVED = "approved"  # a grant
    SILENT = "silent"  # a grant: it would not have approved
    NOT_SELECTED = "not-selected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PastRequest:
    """One request as it was kept. `label_sets` are all that it had; None: more than are kept.

    `facts` is None where there is no report to read, which `why_unknown` says. `obstacle` is why no grant of this
    author may approve it, whatever is true.
    """

    cluster: str
    name: str
    label_sets: tuple[Mapping[str, str], ...] | None
    facts: ReaderFacts | None
    why_unknown: str = ""
    obstacle: str = ""

    def why_not_selected_by(self, document: PolicyDocument) -> str:
        return document.why_not_selected(cluster=self.cluster, name=self.name, label_sets=self.label_sets)


@dataclass(frozen=True, slots=True)
class Replayed:
    result: ReplayResult
    words: str = ""
    terms: tuple[TermValue, ...] = ()


def replay(
    document: PolicyDocument,
    past: PastRequest,
    terms: ExpressionTerms,
    answers: Sequence[ExpressionAnswer],
    *,
    reads_labels: bool = False,
) -> Replayed:
    """What the policy would have said; `answers` are to `terms.texts` and to the matchConditions on the facts, if there
    are any. `reads_labels`: any of these does, and the gate asks them with every set (S14)."""
    if words := past.why_not_selected_by(document):
        return Replayed(ReplayResult.NOT_SELECTED, words)
    had_others = past.label_sets is None or any(one != past.label_sets[0] for one in past.label_sets)
    if past.facts is None or (reads_labels and had_others):
        return Replayed(ReplayResult.UNKNOWN, past.why_unknown if past.facts is None else OTHER_LABELS)
    own, conditions = answers[: len(terms.texts)], answers[len(terms.texts) :]
    doubt = ""
    for condition, found in zip(document.match_conditions, conditions, strict=True):
        if found.is_bool and not found.is_true:
            return Replayed(ReplayResult.NOT_SELECTED, f"its match condition {condition.name} is false")
        if not found.is_bool:
            doubt = f"its match condition {condition.name} has no value"
    if doubt:
        return Replayed(ReplayResult.UNKNOWN, doubt)
    whole, values = own[0], value_terms(terms, own, past.facts)
    if not whole.is_bool:
        words = past.facts.why_unknown(terms.whole.reads)
        if words or whole.outcome is ExpressionOutcome.ENDED:
            return Replayed(ReplayResult.UNKNOWN, words or whole.words or "it was not evaluated in time", values)
    problem = "" if whole.is_bool else f"it could not be evaluated: {problem_words(terms.whole.text, whole)}"
    if not document.is_grant:
        return Replayed(ReplayResult.PASSED if whole.is_true else ReplayResult.HELD, problem, values)
    if whole.is_true and not past.obstacle:
        return Replayed(ReplayResult.APPROVED, "", values)
    return Replayed(ReplayResult.SILENT, problem or (past.obstacle if whole.is_true else ""), values)


def count_results(replayed: Iterable[Replayed]) -> dict[str, int]:
    """How many requests had each result; every result has an entry."""
    counted = Counter(one.result for one in replayed)
    return {str(result): counted[result] for result in ReplayResult}
