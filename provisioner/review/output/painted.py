"""Lines of a terminal: how wide they are, which severity has which colour, and how long texts go on."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable

from provisioner.review.base.text import visible
from provisioner.values import SHAPES, Finding, Severity

WIDTH = 80
MAX_EXAMPLE = 200
MAX_REPEATED = 20
Paint = Callable[[str, str], str]
COLOURS = {
    Severity.CRITICAL: "1;31",
    Severity.BREAKING: "31",
    Severity.UNKNOWN: "35",
    Severity.DANGEROUS: "33",
    Severity.NOTABLE: "36",
    Severity.SAFE: "2",
}


def plain(text: str, _: str) -> str:
    return text


def painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def severity_mark(severity: Severity, paint: Paint) -> str:
    """What a line about a finding begins with."""
    return paint(f"  {SHAPES[severity]} {severity}", COLOURS[severity])


def wrapped(text: str, indent: str, further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def example(finding: Finding) -> str:
    """The value that a schema no longer takes, "" where a finding has none."""
    if "counterexample" not in finding.evidence:
        return ""
    return f"no longer accepted: {visible(_short(finding.evidence['counterexample']))}"


def _short(value: object) -> str:
    if isinstance(value, str) and len(value) > MAX_REPEATED and len(set(value)) == 1:
        return f"{json.dumps(value[0], ensure_ascii=False)} {len(value):,} times in a row"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= MAX_EXAMPLE else f"{text[:MAX_EXAMPLE]}…"
