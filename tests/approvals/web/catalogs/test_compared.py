"""What a page shows of a comparison: bounded, and never without what is critical or unknown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from approvals.web.catalogs.compared import MOST_FINDINGS, MOST_OBJECTS, shown_result, words_against
from provisioner.review.rules import rule_text
from provisioner.values import Section, Severity
from tests.support.provisioner.catalogs import (
    bundle,
    channel,
    chart,
    chart_index,
    deprecated,
    package,
    read,
    read_charts,
)


class Lone(dict[str, Any]):
    """A finding that nobody compares with others: that takes the square of their number."""

    __hash__ = None  # type: ignore[assignment]  # a test that puts findings in a set fails too

    def __eq__(self, other: object) -> bool:
        raise AssertionError("findings are compared with each other")


def of(severity: Severity, count: int, *, is_new: bool = True) -> list[dict[str, Any]]:
    of_all = {"section": Section.PODS, "severity": severity, "rule": "POD-01", "isNew": is_new}
    return [Lone(**of_all, message=f"{at}") for at in range(count)]


def shown(findings: list[dict[str, Any]]) -> Any:
    report = {"plan": {"actions": []}, "findings": findings}
    (section,) = shown_result({"report": report, "changed": {}, "images": []}).sections
    return section


def test_S24_what_is_critical_or_unknown_is_never_left_out() -> None:
    several = MOST_FINDINGS + 50
    findings = of(Severity.DANGEROUS, 7) + of(Severity.CRITICAL, several) + of(Severity.UNKNOWN, 1)
    section = shown(findings + of(Severity.SAFE, 3))
    assert [one["severity"] for one in section.findings] == [Severity.CRITICAL] * several + [Severity.UNKNOWN]
    assert (section.left, section.safe) == (7, 3)


def test_what_is_less_grave_fills_the_rest_in_its_order() -> None:
    section = shown(of(Severity.UNKNOWN, 1) + of(Severity.NOTABLE, MOST_FINDINGS + 4))
    assert [one["message"] for one in section.findings[1:]] == [f"{at}" for at in range(MOST_FINDINGS - 1)]
    assert section.left == 5


def test_of_the_same_severity_the_new_come_first_and_nothing_critical_is_left_out() -> None:
    known = of(Severity.CRITICAL, 3, is_new=False) + of(Severity.NOTABLE, MOST_FINDINGS, is_new=False)
    section = shown(known + of(Severity.NOTABLE, 2) + of(Severity.CRITICAL, 1))
    order = [(str(one["severity"]), one["isNew"]) for one in section.findings]
    first = [("critical", True), *[("critical", False)] * 3, *[("notable", True)] * 2]
    assert order == first + [("notable", False)] * (MOST_FINDINGS - len(first))
    assert section.left == 6


PORT = read(
    package(),
    *map(bundle, ("1.0.0", "1.1.0", "1.2.0")),
    channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"}),
    channel("fast", {"name": "harbour.v1.2.0"}),
    deprecated("olm.bundle", "harbour.v1.0.0"),
).packages["harbour"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("1.0.0", "1.1.0", []),
        ("1.1.0", "1.2.0", ["No edge of the catalog leads from `harbour.v1.1.0` (1.1.0) to `harbour.v1.2.0` (1.2.0)"]),
        ("1.2.0", "1.1.0", ["A downgrade: `harbour.v1.1.0` (1.1.0) is lower than `harbour.v1.2.0` (1.2.0)", "No edge"]),
        ("1.1.0", "1.0.0", ["A downgrade", "No edge", "Its publisher deprecates bundle harbour.v1.0.0"]),
        ("", "1.1.0", []),
        ("", "1.0.0", ["Its publisher deprecates bundle harbour.v1.0.0"]),
    ],
    ids=["by an edge", "no edge", "downgrade", "downgrade to a deprecated one", "first", "first, deprecated"],
)
def test_a_downgrade_and_what_leaves_the_edges_are_said_first(before: str, after: str, said: list[str]) -> None:
    bundles = PORT.bundles
    runs = bundles[f"harbour.v{before}"] if before else None
    found = words_against(PORT, runs, bundles[f"harbour.v{after}"])
    assert [one.words[: len(start)] for one, start in zip(found, said, strict=True)] == said


@pytest.mark.parametrize(
    ("before", "after", "rules"),
    [("1.1.0", "1.0.0", ["SRC-03", "CAT-01"]), ("1.1.0", "1.1.0+2", ["CAT-01"]), ("1.0.0", "1.1.0", [])],
    ids=["downgrade", "another build", "higher"],
)
def test_of_charts_it_is_said_that_a_version_is_not_higher_and_no_edge_is_named(
    before: str, after: str, rules: list[str]
) -> None:
    of = read_charts(chart_index(chart("1.0.0"), chart("1.1.0"), chart("1.1.0+2"))).packages["harbour"]
    found = words_against(of, of.bundles[f"harbour-{before}"], of.bundles[f"harbour-{after}"])
    assert [one.rule for one in found] == rules
    said = f"`harbour-{after}` ({after}) is not higher than `harbour-{before}` ({before}): a deployment takes it only"
    assert [one.words[: len(said)] for one in found if one.rule == "CAT-01"] == [said] * ("CAT-01" in rules)
    assert not any("edge" in one.words for one in found)


def test_what_is_said_against_a_bundle_names_its_rule_beside_the_sentence_as_findings_do() -> None:
    found = words_against(PORT, PORT.bundles["harbour.v1.1.0"], PORT.bundles["harbour.v1.0.0"])
    assert [one.rule for one in found] == ["SRC-03", "CAT-01", "CAT-02"]
    for one in found:
        assert not re.search(r"\b[A-Z]{2,5}-[0-9]{2}\b", one.words), one.words
        rule = rule_text(one.rule)
        assert rule is not None
        assert one.severity in rule.severities
        assert rule.do.partition("\n")[0][:40] in one.means


def action(name: str) -> dict[str, Any]:
    return {"action": "update", "ref": ref(name)}


def ref(name: str) -> dict[str, str]:
    return {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "a", "name": name}


def about(name: str, severity: Severity) -> dict[str, Any]:
    return Lone(section=Section.PODS, severity=severity, rule="POD-01", message="", ref=ref(name), isNew=True)


def test_the_objects_with_the_worst_findings_come_first_and_are_not_cut() -> None:
    actions = [action(f"{at}") for at in range(MOST_OBJECTS + 9)]
    last, late = f"{MOST_OBJECTS + 8}", f"{MOST_OBJECTS + 4}"
    findings = [
        about(late, Severity.NOTABLE),
        about(last, Severity.SAFE),
        about(last, Severity.CRITICAL),
        about("1", Severity.SAFE),
        *of(Severity.DANGEROUS, 1),
    ]
    changed = {last: [3, 1], "0": [0, 2]}
    result = {"report": {"plan": {"actions": actions}, "findings": findings}, "changed": changed, "images": []}
    (group,) = shown_result(result).objects
    shown = [(one.ref["name"], one.severity) for one in group.objects]
    assert shown[:4] == [(last, "critical"), (late, "notable"), ("0", ""), ("1", "")]
    assert (group.count, len(shown), group.left) == (MOST_OBJECTS + 9, MOST_OBJECTS, 9)
    lines = [(one.position, one.added, one.removed) for one in group.objects[:3]]
    assert lines == [(int(last), 3, 1), (int(late), 0, 0), (0, 0, 2)]
