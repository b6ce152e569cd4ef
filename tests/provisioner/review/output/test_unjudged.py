"""Fields that no rule judges, in few words."""

from __future__ import annotations

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.grouping import statements
from provisioner.review.output.entries import few_words
from tests.support.provisioner.contents import an_object, config_map, content_with

LINES = [f"key{number}: value" for number in range(40)]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a", "b", "data.file: a → b"),
        ("\n".join(LINES), "\n".join([*LINES[:-1], "key39: other"]), "data.file: - key39: value + key39: other"),
        ("\n".join(LINES), "\n".join([*LINES[:-2], "x: 1"]), "data.file: - key38: value + x: 1 (1 more line)"),
        ("\n".join(LINES), "\n".join(LINES[::-1]), "data.file: its lines stand in another order"),
        ("a: 1\n", f"a: {'2' * 100}\n", f"data.file: - a: 1 + a: {'2' * 55}…"),
    ],
    ids=["one line", "one line of many", "fewer lines", "another order", "a long line"],
)
def test_a_text_of_many_lines_is_told_by_those_that_differ(old: str, new: str, words: str) -> None:
    report = look_offline(content_with(config_map(file=new)), content_with(config_map(file=old)))
    told = statements([one for one in report.findings if one.rule == "UNJUDGED"])
    assert few_words(list(told)) == ([("ConfigMap shop/settings", [words])], 0)


def test_new_objects_are_one_entry_by_kind_and_field() -> None:
    maps = [config_map(name, a="b") for name in ("one", "two")]
    made = [an_object("v1", "Service", "web", "shop", spec={"sessionAffinity": "ClientIP"})]
    made += [{**one, "metadata": {**one["metadata"], "labels": {"team": "x"}}} for one in maps]
    report = look_offline(content_with(*made), None)
    found = [one for one in report.findings if one.rule == "UNJUDGED"]
    words = ["ConfigMap: metadata.labels.team", "Service: spec.sessionAffinity"]
    assert few_words(statements(found)) == ([("3 fields of 3 objects that are new", words)], 3)
