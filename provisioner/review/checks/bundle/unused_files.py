"""Files of the sources that the bundle's format did not use: nothing in them is applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.base.text import visible
from provisioner.sentences import number, some, verb
from provisioner.values import Finding, Section, Severity, UnusedFiles

_READABLE = ReviewRule("SRC-01", Section.CONTENT, Severity.NOTABLE)
_OTHERS = ReviewRule("SRC-01", Section.CONTENT, Severity.SAFE)


def _changes(facts: Facts) -> Iterator[Finding]:
    unused = facts.content.unused
    if not unused.count:
        return
    rule = _READABLE if unused.readable_count else _OTHERS
    names = [visible(path) for path in unused.paths]
    evidence = {"count": unused.count, "yamlOrJson": unused.readable_count, "files": names}
    found = rule.at(None, _words(unused, names), evidence=evidence, key=[unused.count, *unused.paths])
    yield replace(found, is_new=facts.previous is None or facts.previous.unused != unused)


def _words(unused: UnusedFiles, names: list[str]) -> str:
    readable, others = unused.readable_count, unused.count - unused.readable_count
    if not readable:
        return f"{number(others, 'file')} of the sources {verb(others, 'are')} not used: {some(names, total=others)}"
    besides = f". {number(others, 'file')} of other kinds {verb(others, 'are')} not used either" if others else ""
    listed = some(names[:readable], total=readable)
    what = f"{number(readable, 'YAML or JSON file')} of the sources {verb(readable, 'are')} not used"
    return f"{what}, so no object in {'it' if readable == 1 else 'them'} is applied: {listed}{besides}"


CHECK = Check("unused files", changes=_changes)
