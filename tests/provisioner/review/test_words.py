"""Words do not matter: what a report finds, groups, orders, names and hides is the same whatever its sentences say."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base import messages as sentences
from provisioner.review.base.grouping import statements
from provisioner.review.base.record import to_record
from provisioner.review.output.entries import entries
from provisioner.review.rules import files, messages
from provisioner.values import Finding, Report
from tests.support.folders import ROOT
from tests.support.provisioner.cases import CASES, report_of
from tests.support.provisioner.corpus import content_of, named, pairs
from tests.support.sampling import EVERY
from tests.support.syntax_trees import trees_with

ROOMS = ("provisioner/review", "provisioner/pipeline", "approvals")
# What writes sentences, or shows them. All else takes what a finding says from its variant and its values.
RENDERERS = ("provisioner/review/base/messages.py", "provisioner/review/output/")
# These have messages that are no findings': errors of fields as the API server words them, and the health of objects.
OTHER_MESSAGES = ("provisioner/review/crds/object_fates.py", "approvals/steps/running/observe.py")
READING = frozenset(
    [
        "count",
        "endswith",
        "find",
        "index",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rpartition",
    ]
)
READING |= frozenset(
    ["rsplit", "search", "match", "fullmatch", "sub", "split", "splitlines", "startswith", "translate"]
)


def scrambled(text: str) -> str:
    """Other words for a part of a template; none stays as it is, and no two become the same."""
    return f" {hashlib.sha256(text.encode()).hexdigest()[:12]} "


@pytest.fixture
def other_words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def pieces(name: str, text: str) -> Iterator[str | messages.Placeholder]:
        for part in written(name, text):
            yield scrambled(part) if isinstance(part, str) else part

    def forget() -> None:
        files.messages_of.cache_clear()
        sentences._names_in.cache_clear()

    written = messages._pieces
    monkeypatch.setattr(messages, "_pieces", pieces)
    forget()
    yield
    monkeypatch.undo()
    forget()


def without_words(report: Report) -> list[Any]:
    """All that a report holds but its sentences and the phrases in its evidence."""
    record = to_record(report)
    kept = [
        {name: value for name, value in one.items() if name not in ("message", "serverWords", "evidence", "notes")}
        | {"values": sorted(one["evidence"]), "notes": [[note["file"], note["name"]] for note in one.get("notes", ())]}
        | {"has_server_words": bool(one["serverWords"])}
        for one in (*record["findings"], *record["private"])
    ]
    groups = [[one.fingerprint for one in statement.everything] for statement in statements(report.public)]
    short = [[one.fingerprint for one in statement.everything] for statement in statements(report.public, shortly=True)]
    told = [(entry.cause, [finding.fingerprint for finding in entry.findings]) for entry in entries(report.public)]
    return [kept, record["worst"], record["totals"], len(record["headline"]), groups, short, told]


def report_of_case(case: Path) -> list[Any]:
    return without_words(report_of(case))


@pytest.mark.parametrize(
    "cases", [CASES[::EVERY], pytest.param(CASES, marks=pytest.mark.thorough)], ids=["some", "all"]
)
def test_other_words_make_no_other_report(cases: list[Path], request: pytest.FixtureRequest) -> None:
    before = {case.name: report_of_case(case) for case in cases}
    request.getfixturevalue("other_words")
    assert {
        name: found for case in cases for name in [case.name] if (found := report_of_case(case)) != before[name]
    } == {}


@pytest.mark.thorough
def test_other_words_make_no_other_report_of_the_corpus(request: pytest.FixtureRequest) -> None:
    contents = {named(pair): (content_of(pair[1]), content_of(pair[0])) for pair in pairs()}
    before = {name: without_words(look_offline(*each, is_for_reader=False)) for name, each in contents.items()}
    request.getfixturevalue("other_words")
    found = {name: without_words(look_offline(*each, is_for_reader=False)) for name, each in contents.items()}
    assert [name for name in contents if found[name] != before[name]] == []


def reads_a_message(node: ast.AST) -> bool:
    """Whether a node takes a sentence apart, or looks for something in it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        asked = [node.func.value] if node.func.attr in READING else []
        asked += node.args if isinstance(node.func.value, ast.Name) and node.func.value.id == "re" else []
        return any(map(is_a_message, asked))
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return is_a_message(node.comparators[0])
    return isinstance(node, ast.Subscript) and is_a_message(node.value)


def is_a_message(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return is_a_message(node.args[0])
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value == "message"
    return isinstance(node, ast.Attribute) and node.attr == "message"


def test_no_code_but_what_writes_them_reads_sentences() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees_with(r"\.message\b|[\"']message[\"']", *(ROOT / room for room in ROOMS))
        if not str(path.relative_to(ROOT)).startswith((*RENDERERS, *OTHER_MESSAGES))
        for node in ast.walk(tree)
        if reads_a_message(node)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("a.message.partition(': ')", True),
        ("'holds' in one.message", True),
        ("str(record['message']).removeprefix('Deletes')", True),
        ("re.sub('a', 'b', one.message)", True),
        ("f'{one.message}; more'", False),
        ("one.message == other.message", False),
    ],
)
def test_what_reads_a_sentence_is_known_by_how_it_does(code: str, reads: bool) -> None:
    assert any(map(reads_a_message, ast.walk(ast.parse(code)))) == reads


def test_a_finding_made_before_is_told_in_its_own_words() -> None:
    """Where the file of its rule says it otherwise today."""
    (case,) = [one for one in CASES if one.name == "binding-to-cluster-admin"]
    (found,) = [finding for finding in report_of(case).findings if finding.rule == "RB-01"]
    assert isinstance(found, Finding)
    assert sentences.is_as_written(found)
