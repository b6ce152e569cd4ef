"""Rules in words where people and programs read them: the command, reports, printed pages."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from provisioner.cli import main
from provisioner.pipeline import look_offline
from provisioner.review.output.html import as_html, rendered
from provisioner.review.rules import RuleText, explanations, rule_ids, rule_text
from provisioner.values import Section, Severity
from tests.support.provisioner.contents import content_of
from tests.support.provisioner.shapes import crd_of

CASE = Path(__file__).parents[1] / "cases" / "account-reads-every-secret" / "new"
PARAGRAPHS = RuleText(
    "XX-01", "A <b>title</b>", Section.PODS, (Severity.SAFE,), "A & B", "It `<means>` this.", "First.\n\nThen.", "Ask."
)


def words_of(rule: str) -> RuleText:
    words = rule_text(rule)
    assert words is not None
    return words


def test_the_command_explains_one_rule_in_lines_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "rb-18"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("RB-18: Account can reach the kubelet through nodes/proxy\n  What it means: The account can")
    assert "Source:" in out


def test_the_command_explains_everything_in_lines_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.partition(":")[0] for line in lines if line and line[0] != " "] == list(rule_ids())


def test_the_command_explains_a_family_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "AS", "-o", "json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)) == ["AS-01", "AS-02", "AS-03", "AS-04"]


def test_the_command_without_a_word_explains_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert tuple(found) == rule_ids()
    assert {frozenset(one) for one in found.values()} == {frozenset({"means", "matters", "do", "source"})}


def test_a_rule_that_nobody_knows_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RB-999"]) == 2
    assert "RB-999: no rule has this id" in capsys.readouterr().err


def test_text_explains_what_was_met_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["review", str(CASE), "--fail-on", "never"])
    assert "Why it matters" not in capsys.readouterr().out
    main(["review", str(CASE), "--fail-on", "never", "--explain"])
    assert words_of("RB-11").do.split()[0] in capsys.readouterr().out.split("RB-11")[-1]


def test_json_explains_every_rule_that_was_met(capsys: pytest.CaptureFixture[str]) -> None:
    main(["review", str(CASE), "--fail-on", "never", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["rules"]) == sorted({finding["rule"] for finding in found["findings"]})
    assert found["rules"]["RB-11"]["do"] == words_of("RB-11").do


def nullable(folder: Path, is_nullable: bool) -> str:
    spec = {"type": "object", "properties": {"size": {"type": "integer", "nullable": is_nullable}}}
    body = crd_of(spec)
    folder.mkdir()
    (folder / "crd.json").write_text(json.dumps(body))
    return str(folder)


@pytest.mark.parametrize(("before", "has_variant"), [(False, True), (True, False)], ids=["becomes", "ceases"])
def test_null_that_becomes_a_value_is_explained_apart(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, before: bool, has_variant: bool
) -> None:
    old, new = nullable(tmp_path / "old", before), nullable(tmp_path / "new", not before)
    main(["review", new, "--old", old, "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert "SCH-36" in {finding["rule"] for finding in found["findings"]}
    assert ("SCH-36a" in found["rules"]) is has_variant
    assert found["rules"]["SCH-36"]["means"] == words_of("SCH-36").means


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_printed_page_explains_each_rule_once() -> None:
    content = content_of(CASE)
    assert content is not None
    reader = Reader()
    reader.feed(as_html(look_offline(content, None), title="a bundle"))
    assert reader.text.count(words_of("OBJ-01").means) == 1
    assert words_of("RB-11").matters in reader.text


def test_html_shows_paragraphs_and_code_and_escapes_the_rest() -> None:
    page = rendered("rules.html", rules=explanations.explanations({"XX-01": PARAGRAPHS}))
    assert "<code>XX-01</code> A &lt;b&gt;title&lt;/b&gt;" in page
    assert "<p>What it means: It <code>&lt;means&gt;</code> this.</p>" in page
    assert "<p>Why it matters: First.</p>\n<p>Then.</p>" in page
    assert "<p>Source: A &amp; B</p>" in page


def test_text_shows_paragraphs() -> None:
    assert "  Why it matters: First.\n    Then.\n  What to do: Ask.\n" in explanations.as_text({"XX-01": PARAGRAPHS})


def test_one_paragraph_says_it_all() -> None:
    assert explanations.in_one_paragraph(PARAGRAPHS) == "It `<means>` this. First. Then. Ask. Source: A & B."
