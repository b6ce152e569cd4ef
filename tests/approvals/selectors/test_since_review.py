"""What differs since somebody reviewed, as they may know it."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.selectors.since_review import differences
from tests.support.approvals.waivers import finding


class Everything:
    """Sees all of a report but the objects named here."""

    def __init__(self, hidden: frozenset[str] = frozenset()) -> None:
        self.hidden = hidden

    def __call__(self, body: Any) -> Everything:
        return self

    def why_hidden(self, one: Any) -> str:
        return "hidden" if (one["ref"] or {}).get("name") in self.hidden else ""

    def action(self, planned: Any) -> Any:
        return {**planned, "hidden": "hidden"} if planned["ref"]["name"] in self.hidden else planned


def action(name: str, what: str, after: Any) -> dict[str, Any]:
    ref = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "harbour", "name": name}
    return {"ref": ref, "action": what, "before": {}, "after": after}


def body(findings: list[Any], *actions: Any) -> dict[str, Any]:
    return {"findings": findings, "plan": {"actions": list(actions)}}


def test_findings_are_new_worse_or_gone() -> None:
    kept, gone, new = finding(1), finding(2, rule="RB-02"), finding(3, rule="RB-03")
    worse = {**kept, "severity": "critical"}
    found = differences(body([kept, gone]), body([worse, new]), Everything())
    assert [(one.change, one.severity, one.was) for one in found.findings] == [
        ("worse", "critical", "dangerous"),
        ("new", "dangerous", ""),
        ("gone", "dangerous", ""),
    ]


def test_what_matters_is_named_before_what_is_many() -> None:
    gone = {**finding(1), "severity": "critical"}
    trifles = [{**finding(10 + at, rule=f"RB-{at}"), "severity": "safe"} for at in range(12)]
    found = differences(body([gone]), body(trifles), Everything())
    assert [(one.change, one.severity) for one in found.loud] == [("gone", "critical")]
    assert (found.findings[0], found.quiet_count, found.is_short) == (found.loud[0], 12, False)


def test_objects_with_another_action_or_other_content_are_named_and_no_others() -> None:
    before = body([], action("same", "update", 1), action("other", "update", 1), action("left", "create", 1))
    now = body([], action("same", "update", 1), action("other", "update", 2), action("more", "delete", None))
    found = differences(before, now, Everything())
    assert [(one.object, one.was, one.now, one.position) for one in found.objects] == [
        ("ConfigMap harbour/left", "create", "", None),
        ("ConfigMap harbour/more", "", "delete", 2),
        ("ConfigMap harbour/other", "update", "update", 1),
    ]


@pytest.mark.parametrize("name", ["other", "added"])
def test_S09_what_the_viewer_may_not_get_shows_nothing(name: str) -> None:
    before = body([], action("other", "update", 1))
    now = body([], action("other", "update", 2), action("added", "create", 1))
    found = differences(before, now, Everything(frozenset({name})))
    assert name not in str(found)
    assert len(found.objects) == 1


def test_S09_what_could_be_seen_while_the_cluster_did_not_hold_it_shows_nothing_now() -> None:
    class HiddenNow(Everything):
        def action(self, planned: Any) -> Any:
            return {**planned, "hidden": "hidden"} if planned["action"] == "update" else planned

    found = differences(body([], action("a", "create", 1)), body([], action("a", "update", 2)), HiddenNow())
    assert found.is_empty


def test_S09_hidden_findings_are_left_out_whole() -> None:
    told = finding(1, ref=action("a", "update", 1)["ref"])
    assert differences(body([]), body([told]), Everything(frozenset({"a"}))).is_empty
    assert not differences(body([]), body([told]), Everything()).is_empty


def test_many_are_counted() -> None:
    now = body([], *(action(f"c{number}", "create", 1) for number in range(25)))
    found = differences(body([]), now, Everything())
    assert (len(found.objects), found.more_objects) == (10, 15)
