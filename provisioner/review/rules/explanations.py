"""Rules in words as JSON, as text and for a page: each rule once, however often it was found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.review.rules import RuleText, rows_of, rule_text
from provisioner.values import Finding

_WIDTH = 80
_PARTS = (("What it means", "means"), ("Why it matters", "matters"), ("What to do", "do"), ("Source", "source"))


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rule in words: `parts` are headings, each with the paragraphs below it."""

    id: str
    title: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]


def rules_of(findings: Iterable[Finding]) -> dict[str, RuleText]:
    """The rules that were found, by id, in the order of the ids; variants too, where a finding is one."""
    found = [rule for finding in findings for rule in (*rows_of(finding.rule, finding.evidence), *finding.also)]
    known = {rule: rule_text(rule) for rule in found}
    return {rule: words for rule, words in sorted(known.items()) if words is not None}


def to_record(rules: dict[str, RuleText]) -> dict[str, dict[str, str]]:
    """As plain JSON values."""
    return {rule: {name: getattr(words, name) for _, name in _PARTS} for rule, words in rules.items()}


def as_text(rules: dict[str, RuleText]) -> str:
    """For a terminal of 80 columns."""
    lines = []
    for words in rules.values():
        lines += textwrap.wrap(f"{words.id}: {words.title}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        for name, part in _PARTS:
            first, *more = _paragraphs(words, part)
            lines += _wrapped(f"{name}: {first}", "  ")
            for paragraph in more:
                lines += _wrapped(paragraph, "    ")
        lines.append("")
    return "\n".join(lines)


def explanations(rules: dict[str, RuleText]) -> list[Explanation]:
    """What a page says of each."""
    return [
        Explanation(rule, words.title, tuple((name, _paragraphs(words, part)) for name, part in _PARTS))
        for rule, words in rules.items()
    ]


def in_one_paragraph(words: RuleText) -> str:
    """Everything that is said of a rule, as a sentence of a report is written."""
    told = " ".join((words.means, words.matters, words.do)).replace("\n\n", " ")
    return f"{told} Source: {words.source}."


def _paragraphs(words: RuleText, part: str) -> tuple[str, ...]:
    return tuple(getattr(words, part).split("\n\n"))


def _wrapped(paragraph: str, indent: str) -> list[str]:
    return textwrap.wrap(paragraph, _WIDTH, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False)
