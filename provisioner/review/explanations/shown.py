"""Explanations as JSON, as text and as HTML: of each rule once, however often it was found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from html import escape

from provisioner.review.explanations import Explanation, explanation, rows_of
from provisioner.values import Finding

_WIDTH = 80
_PARTS = (("What it means", "means"), ("Why it matters", "matters"), ("What to do", "do"), ("Source", "source"))


def rules_of(findings: Iterable[Finding]) -> dict[str, Explanation]:
    """The explanations of what was found, by rule, in the order of the ids; by variant too, where a finding is one."""
    known = {rule: explanation(rule) for one in findings for rule in rows_of(one.rule, one.evidence)}
    return {rule: words for rule, words in sorted(known.items()) if words is not None}


def to_record(rules: dict[str, Explanation]) -> dict[str, dict[str, str]]:
    """As plain JSON values."""
    return {rule: {name: getattr(words, name) for _, name in _PARTS} for rule, words in rules.items()}


def as_text(rules: dict[str, Explanation]) -> str:
    """For a terminal of 80 columns."""
    return "\n".join(line for rule, words in rules.items() for line in _lines(rule, words))


def as_html(rules: dict[str, Explanation]) -> Iterator[str]:
    """As a folded section of a page; nothing where nothing is explained."""
    if not rules:
        return
    yield "<details><summary>What the rules mean</summary><dl>"
    for rule, words in rules.items():
        yield f"<dt><code>{escape(rule)}</code></dt><dd>"
        yield from (f"<p>{escape(name)}: {escape(getattr(words, part))}</p>" for name, part in _PARTS)
        yield "</dd>"
    yield "</dl></details>"


def _lines(rule: str, words: Explanation) -> Iterator[str]:
    yield rule
    for name, part in _PARTS:
        text = f"{name}: {getattr(words, part)}"
        yield from textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    yield ""
