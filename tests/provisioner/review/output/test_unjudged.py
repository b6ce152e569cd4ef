"""Fields that no rule judges, in few words."""

from __future__ import annotations

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.statements import statements
from provisioner.review.output.unjudged import few_words
from tests.support.provisioner.contents import config_map, content_with

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
