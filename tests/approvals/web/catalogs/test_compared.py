"""What a page shows of a comparison: bounded, and never without what is critical or unknown."""

from __future__ import annotations

from typing import Any

from approvals.web.catalogs.compared import MOST_FINDINGS, shown_result
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
