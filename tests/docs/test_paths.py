"""The pages for developers name files and folders of the repository: each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.folders import ROOT

PAGES = [*sorted((ROOT / "docs/contributing").glob("*.md")), *sorted((ROOT / "docs").glob("*/README.md"))]
PATH = re.compile(r"`((?:approvals|deploy|docs|provisioner|static|templates|tests)/[\w./-]+)`")
# Stands for the id of any rule.
MADE_UP = "provisioner/review/rules/ID.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    named = set(PATH.findall(page.read_text("utf-8"))) - {MADE_UP}
    assert {one for one in named if not (ROOT / one).exists()} == set()
