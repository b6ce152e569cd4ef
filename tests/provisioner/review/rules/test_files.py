"""Every rule that can be found has a file, every file is of such a rule, and no damaged file is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from provisioner.errors import BadRuleFile
from provisioner.review.rules import RuleText, rule_ids, rule_text
from provisioner.review.rules.files import parsed
from provisioner.values import Section, Severity
from tests.support.provisioner.rules_in_code import rules_in_code

SOUND = """\
---
id: XX-01
title: Something happens
section: pods
severities: [critical, safe]
source: 'Kubernetes, Pods: all of them'
---

## What it means

The pods do something, with
`hostPID: true`.

## Why it matters

It matters.

It also matters.

## What to do

Ask why.
"""
# Numbers of the rules of Pratique's own design, and the names of its pages: no reader has them.
INTERNAL = re.compile(r"\bS\d{2}\b|design\.md|security\.md S")


def texts() -> list[RuleText]:
    return [words for rule in rule_ids() if (words := rule_text(rule)) is not None]


def test_every_rule_that_the_code_can_find_has_a_file_and_every_file_is_of_such_a_rule() -> None:
    assert sorted(set(rules_in_code())) == list(rule_ids())


def test_the_rules_lie_in_this_folder_and_nothing_else_in_markdown() -> None:
    found = sorted(one.name for one in files("provisioner.review.rules").iterdir() if one.name.endswith(".md"))
    assert found == [f"{rule}.md" for rule in rule_ids()]


def test_a_rule_is_made_of_whole_sentences() -> None:
    assert {rule: faults for rule in rule_ids() if (faults := list(faults_of(rule_text(rule))))} == {}


def faults_of(words: RuleText | None) -> Iterator[str]:
    if words is None:
        yield "has no text"
        return
    for part in (words.means, words.matters, words.do):
        if not (part[0].isupper() or part[0] == "`") or part[-1] != ".":
            yield f"is no sentence: {part}"
        if INTERNAL.search(part):
            yield f"names what no reader has: {part}"
    for line in (words.title, words.source):
        if line[-1] in ".?!" or "\n" in line:
            yield f"is no title: {line}"
    if "\n" in words.means:
        yield "means more than one paragraph"


@pytest.mark.parametrize("part", ["title", "means"])
def test_no_two_rules_say_the_same(part: str) -> None:
    said = [getattr(words, part) for words in texts()]
    assert len(said) == len(set(said))


@pytest.mark.parametrize("rule", ["THEIRS-01", "", "../rules/WH-03", "wh-03", "__init__"])
def test_what_is_no_rule_of_ours_has_no_text(rule: str) -> None:
    assert rule_text(rule) is None


def test_a_file_is_read_once() -> None:
    assert rule_text("WH-03") is rule_text("WH-03")


def test_a_file_is_read_as_it_is_written() -> None:
    assert parsed("XX-01.md", SOUND) == RuleText(
        id="XX-01",
        title="Something happens",
        section=Section.PODS,
        severities=(Severity.CRITICAL, Severity.SAFE),
        source="Kubernetes, Pods: all of them",
        means="The pods do something, with `hostPID: true`.",
        matters="It matters.\n\nIt also matters.",
        do="Ask why.",
    )


HOSTILE = [
    ("id: XX-01\n", "", "the key id is missing"),
    ("source: 'Kubernetes, Pods: all of them'\n", "", "the key source is missing"),
    ("section: pods\n", "section: pods\nsection: crds\n", "the key section stands twice"),
    ("section: pods\n", "section: pods\nauthor: me\n", "the key author is unknown"),
    ("id: XX-01", "id: XX-02", "the id is XX-02, which belongs in XX-02.md"),
    ("section: pods", "section: pod", "section: pod is none of objects, availability"),
    ("[critical, safe]", "[critical, grave]", "severities: grave is none of critical, breaking"),
    ("[critical, safe]", "[safe, critical]", "each once, the worst first"),
    ("[critical, safe]", "[safe, safe]", "each once, the worst first"),
    ("[critical, safe]", "[]", "each once, the worst first"),
    ("[critical, safe]", "critical", "each once, the worst first"),
    ("[critical, safe]", "[[critical]]", "a severity is not plain text"),
    ("title: Something happens", "title:", "title is not plain text"),
    ("title: Something happens", "title: {a: b}", "title is not plain text"),
    ("title: Something happens", "title: Something `happens`", "title is not plain text"),
    ("title: Something happens", "title: [", "the front matter is not YAML"),
    ("title: Something happens", "title: !!python/object/apply:os.system [id]", "title is not plain text"),
    ("---\nid", "id", "a front matter between two lines of --- is missing"),
    ("them'\n---\n", "them'\n", "a front matter between two lines of --- is missing"),
    ("## Why it matters", "## Why", "the heading Why it matters is missing"),
    ("## Why it matters\n\nIt matters.", "It matters.", "the heading Why it matters is missing"),
    ("## What to do", "## Why it matters\n\nAgain.\n\n## What to do", "the heading Why it matters stands twice"),
    ("## What to do", "## Example\n\nOne.\n\n## What to do", "the heading Example is unknown"),
    ("## What it means", "Hello.\n\n## What it means", "text stands before the first heading"),
    ("Ask why.\n", "", "nothing stands below What to do"),
    ("Ask why.", "- Ask\n- why.", "only paragraphs and `code` are shown"),
    ("Ask why.", "1. Ask why.", "only paragraphs and `code` are shown"),
    ("Ask why.", "### Ask why.", "only paragraphs and `code` are shown"),
    ("Ask why.", "Ask `why.", "'`' below What to do"),
    ("Ask why.", "Ask <script>alert(1)</script>.", "'<' below What to do"),
    ("Ask why.", "Ask [why](https://x.example).", "'[' below What to do"),
    ("Ask why.", "Ask **why**.", "'*' below What to do"),
    ("Ask why.", "    Ask why.", "only paragraphs and `code` are shown"),
]


@pytest.mark.parametrize(
    ("old", "new", "words"), HOSTILE, ids=[f"{at}: {words}" for at, (_, _, words) in enumerate(HOSTILE)]
)
def test_a_damaged_file_is_refused_in_words_that_name_it(old: str, new: str, words: str) -> None:
    assert old in SOUND
    with pytest.raises(BadRuleFile, match=re.escape(words)) as refused:
        parsed("XX-01.md", SOUND.replace(old, new, 1))
    assert str(refused.value).startswith("XX-01.md: ")


def test_two_headings_in_another_order_are_refused() -> None:
    swapped = SOUND.replace("Why it matters", "_").replace("What to do", "Why it matters").replace("_", "What to do")
    with pytest.raises(BadRuleFile, match="not in the order"):
        parsed("XX-01.md", swapped)
