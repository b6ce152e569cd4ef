"""The page that lists the rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from provisioner.review.rules import rule_ids
from provisioner.review.rules.index import main
from tests.support.folders import ROOT

PAGE = ROOT / "docs" / "rules" / "README.md"


def test_the_published_page_is_current() -> None:
    assert main([str(PAGE), "--check"]) == 0, "run `make docs` and commit the result"


def test_the_page_links_the_file_of_every_rule_once() -> None:
    found = re.findall(r"^\| \[(\S+)\]\((\S+)\) \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rule for rule, _ in found) == list(rule_ids())
    assert [
        link for rule, link in found if (PAGE.parent / link).stem != rule or not (PAGE.parent / link).is_file()
    ] == []


def test_a_page_that_is_not_current_is_said_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "README.md"
    assert main([str(page), "--check"]) == 1
    assert "is not current. Run `make docs`" in capsys.readouterr().err
    assert not page.exists()
    assert main([str(page)]) == 0
    assert main([str(page), "--check"]) == 0
    page.write_text(page.read_text().replace("WH-03", "WH-99", 1))
    assert main([str(page), "--check"]) == 1
