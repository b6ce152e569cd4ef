"""What a page shows of a comparison: bounded, and never without what is critical or unknown."""

from __future__ import annotations

from typing import Any

from approvals.web.catalogs.compared import MOST_FINDINGS, MOST_OBJECTS, shown_result
from provisioner.values import Section, Severity


class Lone(dict[str, Any]):
    """A finding that nobody compares with others: that takes the square of their number."""

    __hash__ = None  # type: ignore[assignment]  # a test that puts findings in a set fails too

    def __eq__(self, other: object) -> bool:
        raise AssertionError("findings are compared with each other")


def of(severity: Severity, count: int) -> list[dict[str, Any]]:
    return [Lone(section=Section.PODS, severity=severity, rule="POD-01", message=f"{at}") for at in range(count)]


def shown(findings: list[dict[str, Any]]) -> Any:
    report = {"plan": {"actions": []}, "findings": findings}
    (section,) = shown_result({"report": report, "images": []}).sections
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


def action(name: str) -> dict[str, Any]:
    return {"action": "update", "ref": ref(name)}


def ref(name: str) -> dict[str, str]:
    return {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "a", "name": name}


def about(name: str, severity: Severity) -> dict[str, Any]:
    return Lone(section=Section.PODS, severity=severity, rule="POD-01", message="", ref=ref(name))


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
    result = {"report": {"plan": {"actions": actions}, "findings": findings}, "images": []}
    (group,) = shown_result(result).objects
    shown = [(one.ref["name"], one.severity) for one in group.objects]
    assert shown[:4] == [(last, "critical"), (late, "notable"), ("0", ""), ("1", "")]
    assert (group.count, len(shown), group.left) == (MOST_OBJECTS + 9, MOST_OBJECTS, 9)
