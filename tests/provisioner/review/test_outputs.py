from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.as_html import as_html
from provisioner.review.as_text import as_text
from provisioner.review.facts import Rule
from provisioner.values import Finding, ObjectRef, Plan, Report, Section, Severity
from tests.provisioner.review.bundles import content_of
from tests.provisioner.review.test_cases import CASES

HOSTILE = "</pre><script>alert(1)</script>\x1b[2J\u202e\u200b<img src=x onerror=y>"


def hostile_report() -> Report:
    ref = ObjectRef("a", "v1", HOSTILE, HOSTILE, HOSTILE)
    rule = Rule("BAD-01", Section.CONTENT, Severity.CRITICAL)
    found = rule.at(ref, HOSTILE, path=(HOSTILE, 1), evidence={HOSTILE: [HOSTILE]})
    return Report((HOSTILE,), (found,), Plan((), HOSTILE))


def of_case(case: Path) -> Report:
    content = content_of(case / "new")
    assert content is not None
    return look_offline(content, content_of(case / "old"))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_S24_no_hostile_text_reaches_a_terminal() -> None:
    text = as_text(hostile_report(), title=HOSTILE, with_diff=True)
    assert not [one for one in text if not one.isprintable() and one != "\n"]


def test_S24_no_hostile_text_reaches_a_page() -> None:
    html = as_html(hostile_report(), title=HOSTILE)
    tags = Tags()
    tags.feed(html)
    assert not {"script", "img"} & set(tags.tags)
    assert not [one for one in html if not one.isprintable() and one != "\n"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_page_needs_nothing_else(case: Path) -> None:
    tags = Tags()
    tags.feed(as_html(of_case(case), title=case.name))
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(tags.tags)
    assert not {"src", "href", "srcset", "action"} & set(tags.attributes)
    assert not [one for one in tags.attributes if one.startswith("on")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_text_fits_into_80_columns_but_for_names(case: Path) -> None:
    for line in as_text(of_case(case), title="title").splitlines():
        assert len(line) <= 80 or len(line.split()) <= 2 or max(map(len, line.split())) > 60


def test_colours_are_only_added() -> None:
    report = of_case(CASES[0])
    plain = as_text(report, with_diff=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", as_text(report, colours=True, with_diff=True)) == plain


def test_every_finding_is_in_every_output() -> None:
    for case in CASES:
        report = of_case(case)
        text, html = as_text(report), as_html(report, title="a")
        assert text.count("\n      at ") <= len(report.findings)
        for finding in report.findings:
            assert _is_in(finding, text)
            assert finding.rule in html


def _is_in(finding: Finding, text: str) -> bool:
    words = " ".join(text.split())
    return " ".join(finding.message.split())[:60] in words
