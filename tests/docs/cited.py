"""What the code cites, and what it shows to people: read from the files, so that nothing is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.support.folders import ROOT

# What is written by hand in this repository, but for what is listed here.
ROOMS = ("approvals", "provisioner", "templates", "static", "deploy", "docs", "tests", ".github")
TOP = ("Makefile", "manage.py", "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
ENDINGS = {".py", ".html", ".md", ".yaml", ".yml", ".css", ".js", ".conf", ".toml", ""}
# Data, and source code of others.
LEFT_OUT = ("tests/provisioner/review/cases/", "tests/controlplane/kubernetes/", "tests/controlplane/kwok/")


def files() -> Iterator[Path]:
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*")):
            if file.suffix in ENDINGS and file.is_file() and not _name(file).startswith(LEFT_OUT):
                yield file
    yield from (ROOT / name for name in TOP)


@cache
def text_of(file: Path) -> str:
    return file.read_text("utf-8", errors="replace")


def citations(pattern: re.Pattern[str], among: Iterable[Path]) -> dict[str, set[str]]:
    """Each text that the pattern's first group finds, with the files where it stands."""
    found: dict[str, set[str]] = {}
    for file in among:
        for match in pattern.finditer(text_of(file)):
            found.setdefault(match[1], set()).add(_name(file))
    return found


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()
