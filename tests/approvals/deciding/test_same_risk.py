"""The same risk again, or less of it: what another report may say, and whose approval still stands (S51)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.deciding.same_risk import EarlierReview, is_covered, last_approvals, new_rules
from tests.support.approvals.changes import action
from tests.support.approvals.waivers import finding

Body = dict[str, Any]
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def obj(kind: str, name: str, **data: Any) -> Body:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "harbour"}, "data": data}


def approved() -> Body:
    """A report with an update, an object that is new, one that stays, one that goes, and a new Secret."""
    actions = [
        action(obj("ConfigMap", "updated", a="2", b="2"), obj("ConfigMap", "updated", a="1", b="2"), uid="u1"),
        action(obj("ConfigMap", "new", a=1)),
        action(obj("ConfigMap", "same", a="1"), obj("ConfigMap", "same", a="1"), uid="u3", action="none"),
        action(None, obj("ConfigMap", "old", a="1"), uid="u4"),
        action(obj("Secret", "login", key="hidden")),
    ]
    actions[0] |= {"warnings": ["it is deprecated"], "notes": ["helm has it"], "serverWords": "beware"}
    return {
        "version": 3,
        "findings": [finding(1), finding(2, "notable", "POD-02", isNew=False, evidence={"ports": [80]})],
        "private": [finding(3)],
        "plan": {"digest": "sha256:p", "actions": actions},
    }


def changed(change: Callable[[Body, list[Body]], object]) -> Body:
    body = copy.deepcopy(approved())
    change(body, body["plan"]["actions"])
    return body


LESS: dict[str, Callable[[Body, list[Body]], object]] = {
    "nothing at all": lambda body, plan: None,
    "a finding is gone": lambda body, plan: body["findings"].pop(),
    "findings in another order": lambda body, plan: body["findings"].reverse(),
    "a private finding is gone": lambda body, plan: body["private"].clear(),
    "an object goes no more": lambda body, plan: plan.pop(3),
    "actions in another order": lambda body, plan: plan.reverse(),
    "a warning less": lambda body, plan: plan[0].update(warnings=[], notes=[], serverWords=""),
    "somebody made the update": lambda body, plan: plan[0].update(action="none", before=plan[0]["after"]),
    "somebody made half of it": lambda body, plan: plan[0]["before"]["data"].update(a="2"),
    "another version of the object": lambda body, plan: plan[0].update(resourceVersion="99"),
}
MORE: dict[str, Callable[[Body, list[Body]], object]] = {
    "a finding is new": lambda body, plan: body["findings"].append(finding(4)),
    "the same finding twice": lambda body, plan: body["findings"].append(finding(1)),
    "a finding is graver": lambda body, plan: body["findings"][1].update(severity="critical"),
    "a finding became new": lambda body, plan: body["findings"][1].update(isNew=True),
    "another value of a finding": lambda body, plan: body["findings"][1]["evidence"].update(ports=[80, 22]),
    "another sentence": lambda body, plan: body["findings"][1].update(message="more"),
    "one more source of a finding": lambda body, plan: body["findings"][1].update(sources=[{"kind": "Pod"}]),
    "a private finding is new": lambda body, plan: body["private"].append(finding(4)),
    "a private one became public": lambda body, plan: body["findings"].append(body["private"].pop()),
    "one object more": lambda body, plan: plan.append(action(obj("ConfigMap", "more"))),
    "the same name in another namespace": lambda body, plan: plan[1]["ref"].update(namespace="kube-system"),
    "another version of the kind": lambda body, plan: plan[1]["ref"].update(version="v2"),
    "two actions on one object": lambda body, plan: plan.append(copy.deepcopy(plan[1])),
    "an object was made again": lambda body, plan: plan[0].update(uid="u9"),
    "an update became a replacement": lambda body, plan: plan[0].update(action="replace"),
    "what stays is updated now": lambda body, plan: plan[2].update(action="update"),
    "what was new is there already": lambda body, plan: plan[1].update(action="none", before=plan[1]["after"]),
    "what was to go stays": lambda body, plan: plan[3].update(action="none"),
    "what was to go is let go": lambda body, plan: plan[3].update(action="orphan"),
    "another value will stand there": lambda body, plan: plan[0]["after"]["data"].update(a="3"),
    "1 became true": lambda body, plan: plan[1]["after"]["data"].update(a=True),
    "somebody's field stays there": lambda body, plan: [
        plan[0][part]["data"].update(c="x") for part in ("before", "after")
    ],
    "another value is overwritten": lambda body, plan: plan[0]["before"]["data"].update(a="7"),
    "a field of somebody is taken away": lambda body, plan: plan[0]["before"]["data"].update(c="x"),
    "more goes with what is deleted": lambda body, plan: plan[3]["before"]["data"].update(b="2"),
    "an empty value is overwritten": lambda body, plan: plan[0]["before"].update(data={}),
    "one more warning": lambda body, plan: plan[0]["warnings"].append("it is gone soon"),
    "one more note": lambda body, plan: plan[0]["notes"].append("taken over"),
    "the API server says something else": lambda body, plan: plan[0].update(serverWords="no"),
    "it is in the way of somebody's": lambda body, plan: plan[0].update(problem="it is foreign", problemCode="x"),
    "it could not be tried": lambda body, plan: plan[0].update(isProved=False),
    "somebody else owns it": lambda body, plan: plan[0].update(owner="helm"),
    "it returns under another name": lambda body, plan: plan[3].update(returnsAs="new"),
    "a report of another version": lambda body, plan: body.update(version=2),
    "a report without a version": lambda body, plan: body.pop("version"),
}


@pytest.mark.parametrize("what", LESS)
def test_the_same_or_less_is_covered(what: str) -> None:
    assert is_covered(changed(LESS[what]), approved())


@pytest.mark.parametrize("what", MORE)
def test_S51_what_nobody_saw_is_not_covered(what: str) -> None:
    assert not is_covered(changed(MORE[what]), approved())


def test_S51_a_report_of_another_version_covers_nothing() -> None:
    assert not is_covered(approved(), {**approved(), "version": 2})
    old = {**approved(), "version": 2}
    assert not is_covered(old, old)


def test_S51_what_was_approved_of_two_actions_on_one_object_nobody_can_tell() -> None:
    twice = changed(lambda body, plan: plan.append({**plan[0], "action": "delete"}))
    assert not is_covered(approved(), twice)


@pytest.mark.parametrize(
    ("what", "is_same"), [("create", True), ("none", True), ("update", False), ("replace", False), ("delete", False)]
)
def test_S51_of_a_secret_that_exists_nobody_can_tell_what_is_overwritten(what: str, is_same: bool) -> None:
    secret = obj("Secret", "login", key="changed")
    body = changed(lambda body, plan: plan.append(action(secret, {**secret, "data": {"key": "hidden"}}, action=what)))
    body["plan"]["actions"].pop(4)
    assert is_covered(body, body) is is_same


def test_only_rules_that_every_reader_is_told_of_are_named() -> None:
    secret = {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "login"}
    body = changed(lambda body, plan: body["findings"].extend([finding(8, rule="RB-09"), finding(9, ref=secret)]))
    body["findings"][1]["evidence"] = {"ports": [22]}  # whose live value may be nobody's business
    body["private"].append(finding(7, rule="OWN-02"))
    assert new_rules(body, approved()) == ["RB-09"]
    body["findings"][1]["severity"] = "critical"
    assert new_rules(body, approved()) == ["POD-02", "RB-09"]


def said(key: int, voter: str, decision: str = "Approve", **more: Any) -> EarlierReview:
    """The review that was given so many minutes after the first one."""
    return EarlierReview(key, voter, decision, NOW + timedelta(minutes=key), **more)


NO = "somebody denied it, objected, or requested changes"


@pytest.mark.parametrize(
    ("reviews", "expected"),
    [
        ([], {}),
        ([said(1, "ada"), said(2, "ben")], {1: "", 2: ""}),
        ([said(1, "ada"), said(2, "ada")], {2: ""}),
        ([said(1, "ada", is_persons=False)], {}),
        ([said(1, "ada"), said(2, "ada", is_persons=False)], {}),
        ([said(1, "ada"), said(2, "ada", "BreakGlass")], {}),
        ([said(1, "ada", "Accept")], {}),
        ([said(1, "ada"), said(2, "ada", "Deny")], {}),
        ([said(1, "ada"), said(2, "ben", "Deny")], {1: NO}),
        ([said(1, "ada"), said(2, "ben", "RequestChanges")], {1: NO}),
        ([said(1, "ada"), said(2, "ben", "Object")], {1: NO}),
        ([said(1, "ben", "RequestChanges"), said(2, "ada")], {2: NO}),
        ([said(1, "ben", "RequestChanges"), said(2, "ben"), said(3, "ada")], {2: "", 3: ""}),
        ([said(1, "ada"), said(2, "ben", "RequestChanges"), said(3, "ben")], {1: NO, 3: ""}),
        ([said(1, "ada"), said(2, "ben", "Deny", is_persons=False)], {1: NO}),
        ([said(1, "ben", "Deny"), said(1, "ada")], {1: NO}),
        ([said(3, "ada"), said(1, "ada", "Deny")], {3: ""}),
    ],
    ids=[
        "nobody",
        "two people",
        "the last one of a person",
        "a policy or a machine",
        "a later one by a machine of theirs",
        "broke glass since",
        "accepted a break-glass",
        "took it back",
        "somebody denied it since",
        "somebody asked for changes since",
        "somebody objected since",
        "somebody asked for changes before, and still does",
        "who asked for changes approved then",
        "what was approved before that is over",
        "also a machine's no",
        "at the same moment",
        "in any order",
    ],
)
def test_S51_a_no_ends_every_approval_before_it(reviews: list[EarlierReview], expected: dict[int, str]) -> None:
    assert last_approvals(reviews, NOW + timedelta(hours=1)) == expected


def test_S51_what_was_to_be_applied_later_is_not_applied_sooner_by_a_new_round() -> None:
    later = said(1, "ada", apply_at=NOW + timedelta(hours=9))
    assert last_approvals([later], NOW + timedelta(hours=1))[1].startswith(
        "it was to be applied at 2026-11-30 18:00 UTC"
    )
    assert last_approvals([later], NOW + timedelta(hours=9)) == {1: ""}
