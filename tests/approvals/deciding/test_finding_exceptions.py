"""Finding exceptions by themselves: what can be read, what is accepted, and since when one counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.deciding.finding_exceptions import LONGEST, FindingException
from approvals.deciding.spec_fields import UnreadableObject
from tests.support.approvals.waivers import finding

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "reason": "replaced in spring",
    "rule": "RB-01",
    "subject": "ClusterRole.rbac.authorization.k8s.io web-*",
    "expires": "2027-03-31T00:00:00+02:00",
}


def parsed(**changes: Any) -> FindingException:
    spec = {**SPEC, **changes}
    return FindingException.parse({name: value for name, value in spec.items() if value is not None})


def test_what_it_says_of_itself() -> None:
    found = parsed()
    assert found.expires == datetime(2027, 3, 30, 22, tzinfo=UTC)
    assert found.summary == (
        "RB-01 of ClusterRole.rbac.authorization.k8s.io web-*, dangerous at most, until 2027-03-30 22:00 UTC"
    )
    assert (found.description, found.next_change(NOW)) == (SPEC["reason"], found.expires)
    assert found.next_change(found.expires) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reason": None}, "spec.reason is missing"),
        ({"reason": " \u200b "}, "spec.reason says nothing"),
        ({"reason": "x" * 1001}, "at most 1000 characters"),
        ({"rule": None}, "spec.rule is missing"),
        ({"rule": ""}, "spec.rule is empty"),
        ({"rule": "OWN-PRATIQUE-03"}, "spec.rule is 'OWN-PRATIQUE-03': it affects Pratique itself"),
        ({"subject": None}, "spec.subject and spec.fingerprint are both missing"),
        ({"maxSeverity": "unknown"}, "spec.maxSeverity is 'unknown'; expected one of critical, breaking, dangerous"),
        ({"expires": None}, "spec.expires is missing"),
        ({"expires": "2027-03-31"}, "expected a time with its zone"),
        ({"expires": "2027-03-31T00:00:00"}, "expected a time with its zone"),
        ({"expires": "0001-01-01T00:00:00+14:00"}, "expected a time with its zone"),
        ({"expires": "never"}, "expected a time with its zone"),
        ({"confirmedBy": "ada"}, "which this version of Pratique does not know"),
    ],
)
def test_what_cannot_be_read_names_its_place(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreadableObject) as refused:
        parsed(**changes)
    assert words in str(refused.value)


def ref(kind: str, name: str, group: str = "rbac.authorization.k8s.io", namespace: str = "") -> dict[str, str]:
    return {"group": group, "version": "v1", "kind": kind, "namespace": namespace, "name": name}


WEB, SECRET = ref("ClusterRole", "web-admin"), ref("Secret", "web-token", "", "web")


@pytest.mark.parametrize(
    ("spec", "changes", "expected"),
    [
        pytest.param({}, {}, True, id="it"),
        pytest.param({}, {"rule": "RB-02"}, False, id="another rule"),
        pytest.param({}, {"ref": ref("ClusterRole", "api")}, False, id="another object"),
        pytest.param({}, {"ref": ref("Role", "web-admin")}, False, id="another kind"),
        pytest.param({}, {"ref": ref("ClusterRole", "web-a", "example.com")}, False, id="a kind of another group"),
        pytest.param({}, {"ref": None}, False, id="of no object"),
        pytest.param({}, {"severity": "critical"}, False, id="worse than it says"),
        pytest.param({"maxSeverity": "critical"}, {"severity": "critical"}, True, id="as bad as it says"),
        pytest.param({"maxSeverity": "notable"}, {}, False, id="worse than notable"),
        pytest.param({}, {"also": ["RB-03"]}, False, id="another rule beside it"),
        pytest.param({"fingerprint": "f1"}, {"also": ["RB-03"]}, True, id="another rule in exactly this finding"),
        pytest.param({"fingerprint": "f1"}, {}, True, id="exactly this finding"),
        pytest.param({"fingerprint": "f2"}, {}, False, id="exactly another finding"),
        pytest.param({"fingerprint": "f1", "subject": None}, {"ref": None}, True, id="a finding of no object"),
        pytest.param({"fingerprint": "f1"}, {"ref": ref("ClusterRole", "api")}, False, id="both have to fit"),
    ],
)
def test_a_finding_is_accepted_where_everything_fits(
    spec: dict[str, Any], changes: dict[str, Any], expected: bool
) -> None:
    assert parsed(**spec).accepts(finding(1, **{"ref": WEB, **changes})) is expected


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        pytest.param("RB-01", {"severity": "unknown"}, id="unknown"),
        pytest.param("RB-01", {"ref": SECRET}, id="about a Secret"),
        pytest.param("RB-01", {"sources": [WEB, SECRET]}, id="learned of a Secret"),
    ],
)
def test_S48_what_nobody_may_accept_is_never_accepted(rule: str, changes: dict[str, Any]) -> None:
    for spec in ({"subject": "*"}, {"fingerprint": "f1"}):
        exception = parsed(rule=rule, maxSeverity="critical", **{"subject": None, **spec})
        assert exception.accepts(finding(1, rule=rule, ref=WEB))
        assert not exception.accepts(finding(1, **{"rule": rule, "ref": WEB, **changes}))


@pytest.mark.parametrize(
    ("people", "expires", "expected"),
    [
        (["ada", "ben"], NOW + LONGEST, (True, "Confirmed")),
        (["ada"], NOW + LONGEST, (False, "NeedsSecondPerson")),
        ([], NOW + LONGEST, (False, "NeedsSecondPerson")),
        (["ada"], NOW + LONGEST + timedelta(seconds=1), (False, "EndsTooLate")),
        (["ada", "ben"], NOW + timedelta(seconds=1), (True, "Confirmed")),
        (["ada", "ben"], NOW, (False, "Expired")),
    ],
)
def test_S48_one_that_ended_accepts_nothing_from_that_second(
    people: list[str], expires: datetime, expected: tuple[bool, str]
) -> None:
    state = parsed(expires=expires.isoformat()).ready(people, NOW)
    assert (state.is_ready, state.reason) == expected


def test_nobody_confirms_one_that_ended_or_ends_too_late() -> None:
    assert parsed(expires=(NOW + LONGEST).isoformat()).why_not_confirmable(NOW) == ""
    assert "at most a year" in parsed(expires=(NOW + LONGEST * 2).isoformat()).why_not_confirmable(NOW)
    assert parsed(expires=NOW.isoformat()).why_not_confirmable(NOW) == "it ended on 2026-12-01"
