"""Every rule that can be met is explained, and nothing is explained that cannot be met."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import provisioner
from provisioner.cli import main
from provisioner.pipeline import look_offline
from provisioner.review.explanations import EXPLANATIONS, explanation
from provisioner.review.output.html import as_html
from tests.provisioner.review.bundles import content_of
from tests.provisioner.schema.shapes import crd_of

ROOT = Path(provisioner.__file__).parent
CASE = Path(__file__).parent / "cases" / "account-reads-every-secret" / "new"
FAMILIES = "AS|API|CRD|DEL|HIS|IMG|IMM|LIV|NP|OBJ|OWN|OWN-PRATIQUE|POD|PRE|RB|SCH|SEC|SRV|SV|TXT|WH"
RULE = re.compile(rf"(?:{FAMILIES})-(?:\d+[a-z]*|RULES|DIFF|LESS|SAME)|GAP|CRASHED|UNCLAIMED")
# Described by the catalogue, kept by the engine for one that it says under SCH-49.
MERGED = {"SCH-50"}


def rules_in_code() -> Iterator[str]:
    """Every text in the library's code that is the id of a rule."""
    for file in ROOT.rglob("*.py"):
        if "explanations" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and RULE.fullmatch(node.value):
                yield node.value


def test_every_rule_that_the_code_can_emit_is_explained() -> None:
    assert sorted(set(rules_in_code()) - set(EXPLANATIONS)) == []


def test_no_explanation_is_of_a_rule_that_nothing_emits() -> None:
    assert sorted(set(EXPLANATIONS) - set(rules_in_code()) - MERGED) == []


@pytest.mark.parametrize("rule", sorted(EXPLANATIONS))
def test_an_explanation_is_made_of_whole_sentences(rule: str) -> None:
    words = EXPLANATIONS[rule]
    for part in (words.means, words.matters, words.do):
        assert part[-1] in ".?"
        assert "  " not in part
    assert words.source
    assert words.source[-1] != "."


def test_no_two_rules_are_explained_in_the_same_words() -> None:
    texts = [words.means for words in EXPLANATIONS.values()]
    assert len(texts) == len(set(texts))


def test_a_rule_of_another_package_has_no_explanation() -> None:
    assert explanation("THEIRS-01") is None


def test_the_command_explains_one_rule_in_lines_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "rb-18"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("RB-18\n  What it means: The account may reach the kubelet")
    assert "Source:" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_command_explains_a_family_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "AS", "-o", "json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)) == ["AS-01", "AS-02", "AS-03", "AS-04"]


def test_the_command_without_a_word_explains_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-o", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(EXPLANATIONS)


def test_a_rule_that_nobody_knows_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RB-999"]) == 2
    assert "RB-999: no rule of that id" in capsys.readouterr().err


def test_text_explains_what_was_met_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["review", str(CASE), "--fail-on", "never"])
    assert "Why it matters" not in capsys.readouterr().out
    main(["review", str(CASE), "--fail-on", "never", "--explain"])
    assert EXPLANATIONS["RB-11"].do.split()[0] in capsys.readouterr().out.split("RB-11")[-1]


def test_json_explains_every_rule_that_was_met(capsys: pytest.CaptureFixture[str]) -> None:
    main(["review", str(CASE), "--fail-on", "never", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["rules"]) == sorted({one["rule"] for one in found["findings"]})
    assert found["rules"]["RB-11"]["do"] == EXPLANATIONS["RB-11"].do


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
    assert "SCH-36" in {one["rule"] for one in found["findings"]}
    assert ("SCH-36a" in found["rules"]) is has_variant
    assert found["rules"]["SCH-36"]["means"] == EXPLANATIONS["SCH-36"].means


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
    assert reader.text.count(EXPLANATIONS["OBJ-01"].means) == 1
    assert EXPLANATIONS["RB-11"].matters in reader.text
