"""What policies see of findings that only hold if a stored object is as they say."""

from __future__ import annotations

from approvals.gate.policies import facts_of
from approvals.models import Report, Request
from approvals.selectors.pages import depending
from tests.support.approvals.fixtures import World


def told(report: Report, name: str, severity: str, *, live: bool, basis: str = "") -> None:
    evidence = {"live": live, **({"basis": basis} if basis else {})}
    columns = {"rule": "SCH-25", "severity": severity, "fingerprint": name}
    report.body["findings"].append({**columns, "evidence": evidence})
    report.findings.create(section="crds", message="m", position=report.findings.count(), **columns)


def test_a_policy_tells_proved_findings_from_those_that_depend_on_objects(env: World, asked: Request) -> None:
    report = Report.objects.get()
    report.body["findings"] = []
    report.findings.all().delete()
    told(report, "open", "breaking", live=True)
    told(report, "lowered", "dangerous", live=True, basis="objects")
    told(report, "plain", "notable", live=False)
    report.save()
    assert depending(report) == {"open"}
    facts = facts_of(asked, report)
    assert (facts["worst_new"], facts["worst_new_proved"]) == ("breaking", "dangerous")
    assert {name: count for name, count in facts["new_depends_on_objects"].items() if count} == {"breaking": 1}
    assert facts_of(asked, report, {"open"})["depends_on_objects"]["breaking"] == 0
