"""The words and shapes in which pages show severities, versions and facts."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.selectors.pages import version_words
from approvals.web import tags
from provisioner.values import SHAPES, Severity


def test_every_severity_has_a_word_and_a_shape_of_its_own() -> None:
    assert set(SHAPES) == set(Severity)
    assert len(set(SHAPES.values())) == len(Severity)
    assert all(word in tags.severity(word) and SHAPES[word] in tags.severity(word) for word in SHAPES)


def test_a_severity_that_nobody_knows_is_shown_as_unknown() -> None:
    assert 'class="severity severity-unknown"' in tags.severity("<b>")
    assert "<b>" not in tags.severity("<b>")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"kind": "image", "image": {"ref": "reg.example:5000/a/b:1.2"}}, "1.2"),
        ({"kind": "image", "image": {"ref": "reg.example:5000/a/b"}}, "latest"),
        ({"kind": "image", "image": {"ref": f"a/b@sha256:{'a' * 64}"}}, "sha256:aaaaaaaaaaaa"),
        ({"kind": "git", "git": {"repository": "https://x", "ref": {"tag": "v2"}}}, "v2"),
        ({"kind": "git", "git": {"repository": "https://x", "ref": {"commit": "b" * 40}}}, "b" * 12),
        ({"kind": "http", "http": {"url": "https://x/app-1.0.tar.gz?token=s"}}, "app-1.0"),
        ({"kind": "configMap", "configMap": {"name": "local"}}, "local"),
        ({}, ""),
    ],
    ids=["tag", "no tag", "digest", "git tag", "commit", "archive", "config map", "nothing"],
)
def test_a_version_is_what_people_call_it(source: dict[str, Any], words: str) -> None:
    assert version_words({"sources": [source]}) == words
    assert version_words({"sources": [source, source]}) == f"{words} +1"


@pytest.mark.parametrize(
    ("file", "words"),
    [("app-1.0.zip", "1.0"), ("app-v2.zip", "v2"), ("app-web-1.0.zip", "app-web-1.0"), ("other-1.0.zip", "other-1.0")],
)
def test_the_name_of_the_deployment_is_no_part_of_its_version(file: str, words: str) -> None:
    spec = {"sources": [{"kind": "http", "http": {"url": f"https://x/{file}"}}]}
    assert tags.version(spec, "app") == words


def test_a_fact_of_the_audit_is_told_in_words() -> None:
    assert (tags.fact_name("contentDigest"), tags.fact_name("groups_at")) == ("content digest", "groups at")
    assert (tags.fact_value("in_review"), tags.fact_value(["a", "b"])) == ("in review", "a, b")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("text", "text"),
        (3, "3"),
        (True, "true"),
        (["a", "b"], "a, b"),
        ([["spec", "x"], ["y"]], "spec, x\ny"),
        ([{"b": 1, "a": "x", "none": []}], "a x, b 1"),
    ],
    ids=str,
)
def test_a_fact_is_shown_in_words(value: Any, words: str) -> None:
    assert tags.facts(value) == words


def test_every_label_is_shown_apart_the_empty_ones_too() -> None:
    assert tags.label_words({"team": "harbour", "items": "1", "edge": ""}) == ["edge=", "items=1", "team=harbour"]
