"""Why an expression comes to what it does: the value of each of its terms, and the facts that each reads. PURE."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.policy.expression import Facts
from approvals.policy.terms import ExpressionTerms, Term
from provisioner.expressions import ExpressionAnswer, problem_words
from provisioner.sentences import and_more

MAX_ENTRIES, MAX_TEXT = 10, 200


@dataclass(frozen=True, slots=True)
class ReaderFacts:
    """The facts of a request that one reader may know. `hidden` says of the others, by name, why they are left out;
    of a map, entries may be."""

    known: Facts
    hidden: Mapping[str, str]

    def why_unknown(self, reads: Iterable[str]) -> str:
        """Why what reads these facts may have no value; "" where all are there."""
        told = sorted({f"{name} {self.hidden[name]}" for name in reads if name in self.hidden})
        return "; ".join(told)


@dataclass(frozen=True, slots=True)
class TermValue:
    """`value` is None where there is none; `words` says why. `facts` are those that it reads, as texts. `before` and
    `after` are as of the Term."""

    text: str
    value: bool | None
    words: str
    facts: tuple[tuple[str, str], ...]
    before: str = ""
    after: str = ""

    @property
    def value_words(self) -> str:
        return "unknown" if self.value is None else "true" if self.value else "false"


def value_term(term: Term, found: ExpressionAnswer, facts: ReaderFacts) -> TermValue:
    """What the evaluator's answer on a reader's facts says of one term."""
    shown = tuple((name, show_fact(facts.known[name])) for name in term.reads if name in facts.known)
    text = " ".join(term.text.split())
    if found.is_bool:
        return TermValue(text, found.is_true, "", shown, term.before, term.after)
    why = facts.why_unknown(term.reads) or problem_words(term.text, found) or f"it gives {found.type}; expected bool"
    return TermValue(text, None, why, shown, term.before, term.after)


def value_terms(terms: ExpressionTerms, found: Sequence[ExpressionAnswer], facts: ReaderFacts) -> tuple[TermValue, ...]:
    """`found` are the answers to `terms.texts`, of which the first is not needed here."""
    return tuple(value_term(term, answer, facts) for term, answer in zip(terms.parts, found[1:], strict=True))


def show_fact(value: Any) -> str:
    """A fact's value in at most MAX_TEXT characters: of a list the first entries, of counts those that are not 0."""
    if isinstance(value, Mapping):
        kept = {key: one for key, one in value.items() if one != 0}
        more = and_more(len(kept) - MAX_ENTRIES, "entries")
        text = ", ".join(f"{key}: {_plain(one)}" for key, one in list(kept.items())[:MAX_ENTRIES])
        return _cut(f"{{{text}}}") + (f" {more}" if more else "")
    if isinstance(value, list):
        more = and_more(len(value) - MAX_ENTRIES, "entries")
        return _cut(f"[{', '.join(map(_plain, value[:MAX_ENTRIES]))}]") + (f" {more}" if more else "")
    return _cut(_plain(value))


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
