"""Rules in words as JSON, as text and as HTML: each rule once, however often it was found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from html import escape

from provisioner.review.base.text import with_names
from provisioner.review.rules import RuleText, rows_of, rule_text
from provisioner.values import Finding

_WIDTH = 80
_PARTS = (("What it means", "means"), ("Why it matters", "matters"), ("What to do", "do"), ("Source", "source"))


def rules_of(findings: Iterable[Finding]) -> dict[str, RuleText]:
    """The rules that were found, by id, in the order of the ids; variants too, where a finding is one."""
    known = {rule: rule_text(rule) for one in findings for rule in rows_of(one.rule, one.evidence)}
    return {rule: words for rule, words in sorted(known.items()) if words is not None}


def to_record(rules: dict[str, RuleText]) -> dict[str, dict[str, str]]:
    """As plain JSON values."""
    return {rule: {name: getattr(words, name) for _, name in _PARTS} for rule, words in rules.items()}


def as_text(rules: dict[str, RuleText]) -> str:
    """For a terminal of 80 columns."""
    return "\n".join(line for words in rules.values() for line in _lines(words))


def as_html(rules: dict[str, RuleText]) -> Iterator[str]:
    """As a folded section of a page; nothing where nothing is explained."""
    if not rules:
        return
    yield "<details><summary>What the rules mean</summary><dl>"
    for rule, words in rules.items():
        yield f"<dt><code>{escape(rule)}</code> {escape(words.title)}</dt><dd>"
        for name, part in _PARTS:
            first, *more = getattr(words, part).split("\n\n")
            yield f"<p>{escape(name)}: {with_names(escape(first))}</p>"
            yield from (f"<p>{with_names(escape(one))}</p>" for one in more)
        yield "</dd>"
    yield "</dl></details>"


def in_one_paragraph(words: RuleText) -> str:
    """Everything that is said of a rule, as a sentence of a report is written."""
    told = " ".join((words.means, words.matters, words.do)).replace("\n\n", " ")
    return f"{told} Source: {words.source}."


def _lines(words: RuleText) -> Iterator[str]:
    yield from textwrap.wrap(f"{words.id}: {words.title}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    for name, part in _PARTS:
        first, *more = getattr(words, part).split("\n\n")
        yield from _wrapped(f"{name}: {first}", "  ")
        for paragraph in more:
            yield from _wrapped(paragraph, "    ")
    yield ""


def _wrapped(paragraph: str, indent: str) -> list[str]:
    return textwrap.wrap(paragraph, _WIDTH, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False)
