"""Which findings the library itself makes while tests run: (rule, severity, section), and the variants of their messages.

What a test makes by hand proves nothing about a rule, and what is read from a stored report was made before: neither is
counted. With PRATIQUE_FINDINGS_MADE=FILE the run writes what was made to that file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from provisioner.review import output
from provisioner.review.base import facts, grouping, messages, record
from provisioner.review.crds import live_findings
from provisioner.review.rules import messages_of, rows_of, rule_ids, rule_text
from provisioner.values import Finding, Section, Severity

FILE = "PRATIQUE_FINDINGS_MADE"
Made = tuple[str, Severity, Section]

made: set[Made] = set()
variants_made: set[tuple[str, str]] = set()
# Whoever calls these makes the finding, or they say again what was found.
_FOR_OTHERS = {dataclasses.__name__, *(one.__name__ for one in (facts, messages, grouping, live_findings))}
# Reports have gaps in every section.
_ANY_SECTION = {"GAP"}


def watch() -> None:
    """From now on each finding is noted."""
    Finding.__init__ = _noting(Finding.__init__)  # type: ignore[method-assign, assignment]  # every finding passes through it


def write() -> None:
    """To the file that was asked for, if any."""
    if path := os.environ.get(FILE):
        Path(path).write_text(json.dumps({"made": sorted(made), "variants": sorted(variants_made)}))


def listed() -> set[tuple[str, Severity]]:
    """What the files of the rules say."""
    rules = [words for rule in rule_ids() if (words := rule_text(rule)) is not None]
    return {(one.id, severity) for one in rules for severity in one.severities}


def listed_variants() -> set[tuple[str, str]]:
    """The messages in the files of the rules, those that several share as of none; what is only part of a message has a
    dot in its name."""
    known = ((rule, messages_of(rule)) for rule in rule_ids())
    return {
        ("" if name in messages.shared else rule, name)
        for rule, messages in known
        for name in messages.templates
        if "." not in name
    }


def not_as_written(found: set[Made]) -> list[str]:
    """In words, what was made otherwise than the file of its rule says. Rules of other packages have no file."""
    known = [(one, words) for one in sorted(found) if (words := rule_text(one[0])) is not None]
    return [
        f"{rule} was found as {severity} in the section {section}: provisioner/review/rules/{rule}.md says otherwise"
        for (rule, severity, section), words in known
        if severity not in words.severities or (section is not words.section and rule not in _ANY_SECTION)
    ]


def _noting(construct: Callable[..., None]) -> Callable[..., None]:
    def init(finding: Finding, *args: Any, **kwargs: Any) -> None:
        construct(finding, *args, **kwargs)
        if _is_ours(sys._getframe(1)):
            for rule in rows_of(finding.rule, finding.evidence):
                made.add((rule, finding.severity, finding.section))
            variants_made.update({(finding.rule, finding.variant), ("", finding.variant)})
            variants_made.update((rule, note.name) for note in finding.notes for rule in (note.file, ""))

    return init


def _is_ours(frame: FrameType | None) -> bool:
    while frame is not None and _module(frame) in _FOR_OTHERS:
        frame = frame.f_back
    module = _module(frame) if frame is not None else ""
    return module.startswith("provisioner.") and module != record.__name__ and not module.startswith(output.__name__)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
