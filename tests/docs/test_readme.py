"""README.md is short, and every folder of docs/ can be looked through."""

from __future__ import annotations

import re

from tests.support.folders import ROOT

README = (ROOT / "README.md").read_text("utf-8")
MOST_FILES = 18


def test_the_readme_is_short_and_has_ten_words() -> None:
    assert len(README.splitlines()) <= 100
    words = README.split("## Ten words", 1)[1].split("\n## ", 1)[0]
    assert len(re.findall(r"^\| (?!word)[A-Za-z]", words, re.MULTILINE)) == 10


def test_the_readme_leads_to_every_section() -> None:
    linked = re.findall(r"\]\(docs/([\w-]+)", README)
    sections = {path.parent.name for path in (ROOT / "docs").glob("*/README.md")}
    assert sections <= set(linked)


def test_no_folder_of_docs_holds_more_than_can_be_looked_through() -> None:
    folders = [ROOT / "docs", *(it for it in (ROOT / "docs").rglob("*") if it.is_dir() and it.name != "__pycache__")]
    counted = {it.relative_to(ROOT).as_posix(): sum(file.is_file() for file in it.iterdir()) for it in folders}
    assert {folder: count for folder, count in counted.items() if count > MOST_FILES} == {}
