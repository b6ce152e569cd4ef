"""The templates of the pages: few in a folder, each used, and each name that is written leads to one."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from tests.support.folders import ROOT

MAX_TEMPLATES = 20
FOLDER = ROOT / "templates"


def stored() -> set[str]:
    return {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.html")}


@cache
def named() -> set[tuple[str, str]]:
    """(file, name) of every template that a page or a view of the service names."""
    writers = [
        *FOLDER.rglob("*.html"),
        *(ROOT / "approvals/web").rglob("*.py"),
        *(ROOT / "approvals/project").rglob("*.py"),
        *(ROOT / "approvals/events").rglob("*.py"),
    ]
    return {
        (str(path.relative_to(ROOT)), name)
        for path in writers
        for name in re.findall(r"""["']([\w/]+\.html)["']""", path.read_text())
    }


def test_no_folder_holds_more_templates_than_a_reader_can_take_in() -> None:
    held = Counter(name.rpartition("/")[0] for name in stored())
    assert {folder: count for folder, count in held.items() if count > MAX_TEMPLATES} == {}


def test_every_name_of_a_template_leads_to_one() -> None:
    """A wrong name in a branch that is seldom taken would be an error of a page that somebody needs."""
    assert {(where, name) for where, name in named() if name not in stored()} == set()


def test_every_template_is_used() -> None:
    assert stored() - {name for _, name in named()} == set()
