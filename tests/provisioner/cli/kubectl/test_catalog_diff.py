"""What `catalog diff` prints of a comparison: bounded, and never without what is critical or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cli.kubectl.catalog_diff import MOST_LINES, catalog_differences, comparison_lines
from provisioner.values import Severity


def found(severity: Severity, count: int) -> list[dict[str, Any]]:
    return [{"severity": severity, "rule": "POD-01", "message": f"{severity} {at}"} for at in range(count)]


def account(name: str, *risks: Severity, gained: int = 0) -> dict[str, Any]:
    return {
        "account": f"ServiceAccount shop/{name}",
        "sentence": f"`shop/{name}` can do more",
        "risks": [{"severity": one, "sentence": f"{name} is {one} {at}"} for at, one in enumerate(risks)],
        "gained": [f"get {name} {at}" for at in range(gained)],
        "gained_count": gained,
        "lost": [],
        "lost_count": 0,
    }


def printed(
    findings: list[dict[str, Any]] | None = None,
    *accounts: dict[str, Any],
    everybody: list[dict[str, Any]] | None = None,
    problems: list[str] | None = None,
    actions: list[dict[str, Any]] | None = None,
) -> list[str]:
    permissions = {"accounts": accounts, "everybody": everybody or [], "problems": problems or []}
    result = {
        "install_namespace": "shop",
        "hidden": [],
        "report": {"headline": [], "findings": findings or [], "plan": {"actions": actions or []}},
        "permissions": permissions,
        "images": [],
        "installer": None,
    }
    return list(comparison_lines({"result": result}))


def test_S24_no_finding_that_is_critical_or_unknown_is_left_out() -> None:
    several = MOST_LINES + 50
    lines = printed(found(Severity.CRITICAL, several) + found(Severity.UNKNOWN, 1) + found(Severity.DANGEROUS, 3))
    assert sum(" critical POD-01 " in one for one in lines) == several
    assert "  ? unknown POD-01 unknown 0" in lines
    assert lines[-1] == "  and 3 more findings (3 dangerous); -o json has all"


def test_what_is_left_is_told_by_severity_and_the_worst_stands_first() -> None:
    lines = printed(
        found(Severity.NOTABLE, MOST_LINES)
        + found(Severity.BREAKING, 4)
        + found(Severity.DANGEROUS, MOST_LINES)
        + found(Severity.SAFE, 2)
    )
    start = lines.index("findings:") + 1
    assert [one.split()[1] for one in lines[start : start + MOST_LINES]] == ["breaking"] * 4 + ["dangerous"] * 196
    assert lines[start + MOST_LINES :] == [
        "  and 204 more findings (4 dangerous, 200 notable); -o json has all",
        "  and 2 safe findings",
    ]


def test_S24_no_right_hides_what_is_new_and_critical_or_not_known() -> None:
    many = [account(f"many{at}", gained=MOST_LINES) for at in range(3)]
    grave = account("grave", *[Severity.CRITICAL] * (MOST_LINES + 1), Severity.NOTABLE)
    everybody = [{"role": "edit", "sentence": "Everybody who has edit can read Secrets"}]
    lines = printed(None, *many, grave, everybody=everybody, problems=["a role cannot be read"])
    assert sum("◆ grave is critical" in one for one in lines) == MOST_LINES + 1
    assert "  `shop/grave` can do more" in lines
    assert "  not known: a role cannot be read" in lines
    assert "  Everybody who has edit can read Secrets" in lines
    assert lines.index("rights:") > lines.index("  not known: a role cannot be read")


def test_an_account_stands_above_its_own_risks_and_the_worst_first() -> None:
    lines = printed(None, account("mild", Severity.NOTABLE), account("grave", Severity.UNKNOWN, gained=1))
    start = lines.index("permissions:") + 1
    assert lines[start:] == [
        "  `shop/grave` can do more",
        "    ? grave is unknown 0",
        "  `shop/mild` can do more",
        "    ● mild is notable 0",
        "",
        "rights:",
        "  ServiceAccount shop/grave",
        "    + get grave 0",
    ]


def test_accounts_that_are_not_printed_are_counted() -> None:
    accounts = [account(f"mild{at}", Severity.NOTABLE) for at in range(MOST_LINES)]
    lines = printed(None, *accounts, account("grave", Severity.CRITICAL))
    assert lines[lines.index("permissions:") + 2] == "    ◆ grave is critical 0"
    assert lines[-1] == "  and 202 more lines (101 notable); -o json has all"


def ref(name: str) -> dict[str, str]:
    return {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": name}


def test_S24_objects_with_the_worst_findings_come_first_and_those_that_are_critical_are_not_left_out() -> None:
    names = [f"a{at}" for at in range(2 * MOST_LINES)]
    grave, notable = names[-MOST_LINES - 9 :], names[-MOST_LINES - 10]
    findings = [
        {**one, "ref": ref(name)} for name, one in zip(grave, found(Severity.CRITICAL, len(grave)), strict=True)
    ]
    findings += [{**one, "ref": ref(notable)} for one in found(Severity.SAFE, 1) + found(Severity.NOTABLE, 1)]
    lines = printed(findings, actions=[{"action": "update", "ref": ref(name)} for name in names])
    start = lines.index("objects:") + 1
    assert lines[start : start + len(grave)] == [f"  ~ Deployment.apps shop/{name}" for name in grave]
    left = len(names) - len(grave)
    assert lines[start + len(grave)] == f"  and {left} more lines (1 notable); -o json has all"


@pytest.mark.parametrize(("before", "is_direct"), [("1.0.0", True), ("0.9.0", False)])
def test_a_bundle_may_follow_by_the_skip_range_of_its_entry(before: str, is_direct: bool) -> None:
    about = {"image": "", "url": "", "checksum": "", "deprecation": None, "apis": [], "needs": []}
    old, new = ({"name": f"harbour.v{one}", "version": one, **about} for one in (before, "1.2.0"))
    entry = {"name": new["name"], "replaces": "", "skips": [], "skip_range": ">=1.0.0 <1.2.0"}
    lines = list(catalog_differences({"channels": [{"name": "stable", "entries": [entry]}]}, old, new))
    assert ("may follow directly in stable" in lines) is is_direct
