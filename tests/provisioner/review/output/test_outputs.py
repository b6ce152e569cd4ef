from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.escaping import visible
from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.grouping import Statement, statements
from provisioner.review.base.messages import path_text
from provisioner.review.checks.own.power import ADVICE
from provisioner.review.output.entries import Cause, CauseKind, entries
from provisioner.review.output.evidence import EvidenceFact, facts_of
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text
from provisioner.review.rules import Phrase
from provisioner.values import Action, Finding, ObjectRef, Plan, PlannedAction, Report, Section, Severity
from tests.provisioner.review.output.hostile import HOSTILE, Tags
from tests.support.provisioner.cases import CASES, report_of

LIMIT_RIGHTS = "Limit these rights to the namespaces that the program works in"


def hostile_report() -> Report:
    ref = ObjectRef("a", "v1", HOSTILE, HOSTILE, HOSTILE)
    rule = ReviewRule("BAD-01", Section.CONTENT, Severity.CRITICAL)
    found = rule.at(ref, HOSTILE, path=(HOSTILE, 1), evidence={HOSTILE: [HOSTILE]})
    return Report((HOSTILE,), (found,), Plan((), HOSTILE))


def test_S24_no_hostile_text_reaches_a_terminal() -> None:
    text = as_text(hostile_report(), title=HOSTILE, with_diff=True)
    assert not [one for one in text if not one.isprintable() and one != "\n"]


def test_S24_no_hostile_text_reaches_a_page() -> None:
    html = as_html(hostile_report(), title=HOSTILE)
    tags = Tags()
    tags.feed(html)
    assert not {"script", "img"} & set(tags.tags)
    assert not [one for one in html if not one.isprintable() and one != "\n"]


def test_a_page_tells_names_in_sentences_from_words() -> None:
    rule = ReviewRule("BAD-01", Section.PERMISSIONS, Severity.CRITICAL)
    found = rule.at(ObjectRef("", "v1", "ServiceAccount", "shop", "app"), "`shop/<b>` may do it")
    html = as_html(Report(("`shop/app` may do it",), (found,), Plan((), "")), title="x")
    assert "<li><code>shop/app</code> may do it</li>" in html
    assert ("`shop/" in html, "<b>" in html) == (False, False)


def test_what_scrolls_on_a_page_can_be_reached_by_keys() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b" * 300}}
    planned = PlannedAction(ObjectRef("", "v1", "ConfigMap", "shop", "x"), Action.CREATE, after=body)
    assert '<pre tabindex="0">' in as_html(Report((), (), Plan((planned,), "")), title="x")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_output_has_every_finding_a_page_needs_nothing_else_and_text_fits_into_80_columns(case: Path) -> None:
    report, tags = report_of(case), Tags()
    short, text, html = (
        as_text(report, title="title"),
        as_text(report, with_all=True),
        as_html(report, title=case.name),
    )
    assert "Not shown" not in text
    for statement in statements(report.findings):
        assert all(" ".join(part.split()) in " ".join(text.split()) for part in told_of(statement))
    assert [finding.rule for finding in report.findings if finding.rule not in html] == []
    tags.feed(html)
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(tags.tags)
    assert not {"src", "href", "srcset", "action"} & set(tags.attributes)
    assert not [name for name in tags.attributes if name.startswith("on")]
    for line in short.splitlines():
        assert len(line) <= 80 or len(line.split()) <= 2 or max(map(len, line.split())) > 60  # but for names


def test_colours_are_only_added() -> None:
    report = report_of(CASES[0])
    plain = as_text(report, with_diff=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", as_text(report, colours=True, with_diff=True)) == plain


def told_of(one: Statement) -> list[str]:
    """What a text says of a statement: its words, and every object and field."""
    words = one.words.rstrip(".:") if one.is_of_several else one.words
    places = [part for place in one.places for part in (place.of, path_text(place.path))]
    return [visible(part)[:60] for part in (words, *(places if one.is_of_several else ()))]


@pytest.mark.parametrize(
    ("evidence", "fact"),
    [
        pytest.param({"left_out": 3}, EvidenceFact("not listed", "3"), id="a number"),
        pytest.param({"keys": ["a", "b"]}, EvidenceFact("keys", "a, b"), id="a short list"),
        pytest.param(
            {"places": [["spec", "list", 0], ["kind"]]}, EvidenceFact("fields", "spec.list[0]\nkind"), id="paths"
        ),
        pytest.param({"path": "spec.size"}, EvidenceFact("path", "spec.size"), id="a path that is text already"),
        pytest.param({"counterexample": None}, EvidenceFact("example", "null"), id="null refutes as well"),
        pytest.param(
            {"all_places": [{"object": "CRD x", "path": ["spec", "list", "[]"], "version": "v1"}]},
            EvidenceFact("all places", columns=("path", "object", "version"), rows=(("spec.list[]", "CRD x", "v1"),)),
            id="all places in a table",
        ),
        pytest.param({"old": {"max": 3, "min": 1}}, EvidenceFact("before", "max: 3\nmin: 1"), id="a map in lines"),
        pytest.param(
            {"added": [{"verbs": ["get"], "scope": "", "apiGroups": [""], "resources": ["pods"]}]},
            EvidenceFact(
                "rights gained",
                "",
                ("where", "verbs", "API groups", "resources"),
                (("whole cluster", "get", "core", "pods"),),
            ),
            id="rules are a table",
        ),
        pytest.param(
            {"changes": [{"path": ["spec", "a"], "before": 1, "after": {"b": 2}}]},
            EvidenceFact("changes", "", ("path", "before", "after"), (("spec.a", "1", "b: 2"),)),
            id="changes are a table",
        ),
        pytest.param(
            {"changes": [{"path": ["rules"], "before": [{"a": [1]}, {"b": 2}], "after": []}]},
            EvidenceFact("changes", "", ("path", "before"), (("rules", "a: 1\nb: 2"),)),
            id="a list of maps has a line for each",
        ),
    ],
)
def test_evidence_is_told_in_words_lines_and_tables(evidence: dict[str, Any], fact: EvidenceFact) -> None:
    assert facts_of(evidence) == [fact]


def test_evidence_that_says_nothing_is_left_out() -> None:
    assert facts_of({"a": "", "b": [], "c": None, "table": {"Read": {}}}) == []


def test_what_was_there_before_is_folded_apart() -> None:
    severities = (Severity.CRITICAL, Severity.UNKNOWN, Severity.DANGEROUS)
    known = [
        Finding(f"A-{one}", Section.CONTENT, one, f"known {one}", None, (), {}, {}, False, str(one))
        for one in severities
    ]
    html = as_html(Report((), tuple(known), Plan((), "")), title="a")
    words = "Safe or as before: 1 critical, 1 unknown and 1 dangerous as before"
    shown, _, folded = html.partition(f"<summary>{words}</summary>")
    assert "known critical" not in shown
    assert all(f"known {one}" in folded for one in severities)


def test_S24_steps_are_lines_that_can_be_copied_whole_in_every_output() -> None:
    command = f"2. kubectl get {'x' * 50} -A -o json | kubectl replace -f -"
    rule = ReviewRule("BAD-01", Section.CRDS, Severity.BREAKING)
    found = rule.at(None, "a version goes", evidence={"steps": [command, f"3. {HOSTILE}"]})
    report = Report((), (found,), Plan((), ""))
    text = as_text(report)
    assert f"      {command}" in text.splitlines()
    assert not [one for one in text if not one.isprintable() and one != "\n"]
    assert command in as_html(report, title="a")


def test_of_a_hidden_object_the_page_says_only_that_it_exists() -> None:
    ref = ObjectRef("", "v1", "Secret", "shop", "key")
    planned = PlannedAction(ref, Action.UPDATE, "u", "1", {"data": {"a": "old"}}, {"data": {"a": "new"}})
    report = Report((), (), Plan((planned,), ""))
    html = as_html(report, title="a", hidden={ref})
    assert "Secret shop/key: exists, hidden from you" in html
    assert "update" not in html
    assert "update Secret shop/key" in as_html(report, title="a")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ((), ""),
        (("spec", "containers", 0, "image"), "spec.containers[0].image"),
        (("spec", "list", "[]", "name"), "spec.list[].name"),
        (("spec", "map", "{}", "[]"), "spec.map{}[]"),
    ],
    ids=["nowhere", "of an object", "of the items of a schema", "of the values of a map"],
)
def test_a_path_is_written_as_people_write_it(path: tuple[str | int, ...], words: str) -> None:
    assert path_text(path) == words


@pytest.mark.parametrize(
    ("value", "shown"),
    [("x\x1b", '"x\\u001b"'), (None, "null"), ("yz" * 250, "yz" * 99 + "y…"), ("y" * 500, '"y" 500 times in a row')],
    ids=["text", "null", "long", "one character"],
)
def test_a_terminal_shows_a_value_that_is_no_longer_accepted(value: object, shown: str) -> None:
    found = ReviewRule("SCH-30", Section.CRDS, Severity.BREAKING).at(None, "words", evidence={"counterexample": value})
    text = " ".join(as_text(Report((), (found,), Plan((), ""))).split())
    assert f"no longer accepted: {'' if shown[0] != 'y' else chr(34)}{shown}" in text
    assert "no longer accepted" not in as_text(Report((), (replace(found, evidence={}),), Plan((), "")))


def of_sections(sections: dict[Section, tuple[Severity, bool]]) -> Report:
    found = tuple(
        replace(ReviewRule("X-1", section, severity).at(None, f"words of {section}"), is_new=is_new)
        for section, (severity, is_new) in sections.items()
    )
    return Report((), found, Plan((), ""))


SECTIONS = {
    Section.OBJECTS: (Severity.SAFE, True),
    Section.PERMISSIONS: (Severity.CRITICAL, False),
    Section.CRDS: (Severity.NOTABLE, True),
    Section.IMAGES: (Severity.UNKNOWN, True),
    Section.WEBHOOKS: (Severity.BREAKING, False),
}


def test_S24_a_terminal_shows_what_is_new_and_counts_what_is_as_before() -> None:
    text = as_text(of_sections(SECTIONS))
    order = ["IMAGES  1 unknown", "CRDS  1 notable"]
    assert [text.index(words) for words in order] == sorted(text.index(words) for words in order)
    assert not any(f"words of {section}" in text for section in ("objects", "webhooks", "permissions"))
    assert text.endswith("Not shown: 1 safe, 1 critical and 1 breaking as before. --all shows them.\n")


def test_S24_what_an_account_may_newly_do_is_one_entry_with_a_line_for_each_critical_power() -> None:
    robot = ObjectRef("", "v1", "ServiceAccount", "shop", "robot")
    says = {"RB-04": "read roles", "RB-11": "read Secrets", "RB-12": "write"}
    by = [
        {"binding": "b", "role": "ClusterRole.rbac x", "origin": "ClusterRole.rbac x", "rule": at}
        for at in (0, 1, 2, 4, 5)
    ]
    found = [
        ReviewRule(rule, Section.PERMISSIONS, Severity.CRITICAL).finding(
            "can-newly", robot, power=power, by=by, **({ADVICE: LIMIT_RIGHTS} if rule == "RB-04" else {})
        )
        for rule, power in says.items()
    ]
    milder = [
        ReviewRule("RB-15", Section.PERMISSIONS, Severity.DANGEROUS).finding(
            "can-newly", robot, key=at, power=f"do {at}"
        )
        for at in range(9)
    ]
    text = as_text(Report((), (*found, *milder), Plan((), "")))
    lines = text.splitlines()
    assert "`shop/robot` can now, by ClusterRole x, rules 1 to 3, 5 and 6" in " ".join(text.split())
    powers = ["      ◆ read roles (RB-04)", "      ◆ read Secrets (RB-11)", "      ◆ write (RB-12)"]
    assert [line for line in lines if "◆" in line][1:] == powers
    assert "do 3 (RB-15); and 5 more" in " ".join(text.split())
    assert text.count("the namespaces that the program works in") == 1
    (entry,) = entries([*milder, *found])
    assert entry.cause == Cause(CauseKind.ACCOUNT, "ServiceAccount shop/robot")
    assert entry.words.endswith("read roles; read Secrets; write; and 9 more, by ClusterRole x, rules 1 to 3, 5 and 6")


def test_an_account_that_gains_rights_and_no_power_or_holds_a_role_has_sentences_of_their_own() -> None:
    robot = ObjectRef("", "v1", "ServiceAccount", "shop", "robot")
    rights = ReviewRule("RB-DIFF", Section.PERMISSIONS, Severity.NOTABLE).finding(
        "gains", robot, rights=2, rules=Phrase.of("RB-DIFF", "rules.first", first=["get pods", "list pods"], more=None)
    )
    power = ReviewRule("RB-15", Section.PERMISSIONS, Severity.DANGEROUS).finding("can-newly", robot, power="do it")
    held = ReviewRule("RB-03", Section.PERMISSIONS, Severity.CRITICAL).finding(
        "holds-newly", robot, held=Phrase.of("RB-03", "held.role", role="admin")
    )
    assert [one.words for one in entries([rights, held])] == [held.message, rights.message]
    holds, entry = entries([rights, held, power])
    assert holds.findings == (held,)
    assert entry.words == "`shop/robot` can now do it; use 2 rights in all"


def test_a_terminal_shows_all_sections_the_one_with_the_worst_new_finding_first() -> None:
    text = as_text(of_sections(SECTIONS), with_all=True)
    shown = sorted(SECTIONS, key=lambda section: text.index(section.upper()))
    assert shown == [Section.IMAGES, Section.CRDS, Section.OBJECTS, Section.PERMISSIONS, Section.WEBHOOKS]
    assert "Not shown" not in text


def test_a_terminal_names_a_rule_once_for_all_that_it_found() -> None:
    rule = ReviewRule("X-1", Section.CRDS, Severity.BREAKING)
    found = tuple(rule.at(None, f"field {name} removed", key=name) for name in ("a", "b"))
    text = as_text(Report((), found, Plan((), "")))
    assert text.endswith("CRDS  2 breaking\n  ■ breaking  X-1\n      field a removed\n      field b removed\n")


def test_a_terminal_says_an_advice_once_for_all_that_it_is_meant_for() -> None:
    rule = ReviewRule("BAD-01", Section.PERMISSIONS, Severity.CRITICAL)
    refs = [ObjectRef("", "v1", "ServiceAccount", "shop", name) for name in ("a", "b")]
    found = tuple(rule.at(one, f"{one.name} may do it", evidence={ADVICE: LIMIT_RIGHTS}) for one in refs)
    shown = Report((), found, Plan((), ""))
    words = " ".join(as_text(shown).split())
    assert words.count(LIMIT_RIGHTS) == 1
    assert words.index("b may do it") < words.index(LIMIT_RIGHTS)
    assert LIMIT_RIGHTS not in as_html(shown, title="x")
