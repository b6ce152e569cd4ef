"""A role that returns under another name is no deletion, where it gives the same to the same."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.record import action_from, to_record
from provisioner.review.frame import report
from provisioner.values import Action, Finding, Plan
from tests.support.provisioner.contents import an_object, content_with, facts, planned

API = "rbac.authorization.k8s.io/v1"
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


def role(name: str, kind: str = "ClusterRole", rules: Any = None, **labels: str) -> dict[str, Any]:
    made = an_object(API, kind, name, "" if kind == "ClusterRole" else "shop", rules=rules or RULES)
    return {**made, "metadata": {**made["metadata"], **({"labels": labels} if labels else {})}}


def binding(name: str, to: str, kind: str = "ClusterRole", account: str = "mesh") -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": "shop"}]
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to}
    place = "" if kind == "ClusterRole" else "shop"
    return an_object(API, f"{kind}Binding", name, place, roleRef=ref, subjects=subjects)


def upgraded(old: list[dict[str, Any]], new: list[dict[str, Any]], **rest: Any) -> tuple[dict[str, str], list[Finding]]:
    """What returns, by its old name, and what the report says of deletions."""
    rest = {"live_rbac": tuple(old), **rest}
    actions = [*(planned(one, Action.CREATE) for one in new), *(planned(one, Action.DELETE) for one in old)]
    found = report(facts(*actions, content=content_with(*new), previous=content_with(*old), **rest))
    kept = [action_from(one) for one in to_record(found)["plan"]["actions"]]
    assert [one.returns_as for one in kept] == [one.returns_as for one in found.plan.actions]
    told = {f"{one.ref.kind} {one.ref.name}": one.returns_as for one in kept if one.returns_as}
    assert found.plan.counts()[Action.DELETE] == len(old) - len(told)
    return told, [finding for finding in found.findings if finding.rule == "DEL-01"]


V1, V2 = "mesh.v1.34.0-abc", "mesh.v1.35.0-xyz"
OLD, NEW = [role(V1), binding(V1, V1)], [role(V2), binding(V2, V2)]


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
def test_roles_whose_names_carry_the_version_are_renamed_with_their_bindings(kind: str) -> None:
    old, new = ([role(one, kind), binding(one, one, kind)] for one in (V1, V2))
    told, deletions = upgraded(old, new)
    assert told == {f"{kind} {V1}": V2, f"{kind}Binding {V1}": V2}
    assert {deletion.message.split(" ")[0] for deletion in deletions} == {"Renames"}
    assert {str(deletion.severity) for deletion in deletions} == {"safe"}


OPS = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "ops"}


@pytest.mark.parametrize(
    "there",
    [
        pytest.param([*OLD, {**binding("leftover", V2), "subjects": [OPS]}], id="a binding names the new role already"),
        pytest.param(
            [OLD[0], {**OLD[1], "subjects": [*OLD[1]["subjects"], OPS]}], id="the binding was given to others"
        ),
        pytest.param(
            [role(V1, rules=[*RULES, {**RULES[0], "resources": ["nodes"]}]), OLD[1]], id="the role was extended"
        ),
    ],
)
def test_S22_where_somebody_gains_or_loses_by_it_nothing_is_renamed(there: list[dict[str, Any]]) -> None:
    told, deletions = upgraded(OLD, NEW, live_rbac=tuple(there))
    assert f"ClusterRole {V1}" not in told or f"ClusterRoleBinding {V1}" not in told
    assert any(deletion.message.startswith("Deletes") for deletion in deletions)


def test_what_is_found_of_a_renamed_role_or_binding_is_not_new() -> None:
    old, new = ([role(one), binding(one, one, account="default")] for one in (V1, V2))
    actions = [*(planned(one, Action.CREATE) for one in new), *(planned(one, Action.DELETE) for one in old)]
    before = {"content": content_with(*new), "previous": content_with(*old), "live_rbac": tuple(old)}
    (found,) = [finding for finding in report(facts(*actions, **before)).findings if finding.rule == "RB-43"]
    assert not found.is_new


def test_offline_the_bundles_alone_are_known() -> None:
    assert len(upgraded(OLD, NEW, live_rbac=None, is_offline=True)[0]) == 2


def test_of_several_alike_each_returns_once() -> None:
    told, _ = upgraded([role("a.v1"), role("b.v1"), role("c.v1")], [role("a.v2"), role("b.v2")])
    assert told == {"ClusterRole a.v1": "a.v2", "ClusterRole b.v1": "b.v2"}


NODES = {**RULES[0], "resources": ["nodes"]}
BASE = [role("mesh.base", rules=[NODES]), binding("mesh.base", "mesh.base")]


@pytest.mark.parametrize(
    ("rules", "is_renamed"),
    [([*RULES, NODES], True), ([*RULES, {**NODES, "verbs": ["list"]}], False), ([NODES], False)],
    ids=["what another role gives", "a new right", "a right less"],
)
def test_a_role_that_comes_with_other_rules_is_renamed_where_nobody_may_do_more_or_less(
    rules: Any, is_renamed: bool
) -> None:
    """The parts of operators give the same account several roles, and move rights between them."""
    new = [role(V2, rules=rules), binding(V2, V2)]
    actions = [*(planned(one, Action.CREATE) for one in new), *(planned(one, Action.DELETE) for one in OLD)]
    actions += [planned(one, Action.NONE, before=one) for one in BASE]
    before = {"content": content_with(*new, *BASE), "previous": content_with(*OLD, *BASE)}
    found = report(facts(*actions, **before, live_rbac=(*OLD, *BASE)))
    told = {one.ref.kind: one.returns_as for one in found.plan.actions if one.returns_as}
    assert told == ({"ClusterRole": V2, "ClusterRoleBinding": V2} if is_renamed else {})
    assert ("RB-DIFF" in {finding.rule for finding in found.findings}) is (rules[-1].get("verbs") == ["list"])


MORE = [*RULES, {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
OF_OTHERS = binding("theirs", V1, account="somebody")


@pytest.mark.parametrize(
    ("new", "live", "left"),
    [
        ([role(V2, rules=MORE), binding(V2, V2)], OLD, {}),
        ([role(V2, mesh="1"), binding(V2, V2)], OLD, {}),
        ([role(V2), binding(V2, V2, account="other")], OLD, {f"ClusterRole {V1}": V2}),
        ([role(V2), binding(V2, "cluster-admin")], OLD, {f"ClusterRole {V1}": V2}),
        (NEW, [*OLD, OF_OTHERS], {}),
        (NEW, None, {}),
        ([], OLD, {}),
    ],
    ids=["more rules", "other labels", "other subjects", "another role", "bound by others", "unread", "nothing comes"],
)
def test_what_gives_something_else_is_deleted(new: Any, live: Any, left: dict[str, str]) -> None:
    told, _ = upgraded(OLD, new, live_rbac=tuple(live) if live is not None else None)
    assert told == left


@pytest.mark.parametrize("account", ["mesh", "other"])
def test_S09_whether_a_role_is_renamed_tells_nothing_of_a_binding_of_somebody_else(account: str) -> None:
    """Who asks to adopt their binding would learn whether it is given to whom a guess names."""
    new = [role("mesh.pods"), binding("mesh.pods", "mesh.pods"), role(V2, rules=[NODES]), binding(V2, V2)]
    old = [role(V1, rules=[*RULES, NODES]), binding(V1, V1)]
    theirs = binding("mesh.pods", "mesh.pods", account=account)
    actions = [planned(one, Action.CREATE) for one in (new[0], *new[2:])]
    actions += [planned(one, Action.DELETE) for one in old]
    wished = Plan((*actions, planned(new[1], Action.CREATE)), "")
    actions.append(planned(new[1], Action.ADOPT, before=theirs, uid="u-1"))
    rest = {"content": content_with(*new), "previous": content_with(*old), "bundle": wished}
    found = report(facts(*actions, **rest, live_rbac=(*old, theirs)))
    assert [one.returns_as for one in found.plan.actions if one.returns_as] == []


@pytest.mark.parametrize(
    "more",
    [{"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, {"rule": {"clusterRoleSelectors": []}}],
)
def test_a_role_whose_rules_others_hold_or_that_holds_theirs_is_not_renamed_with_other_rules(more: Any) -> None:
    def aggregated(name: str, rules: Any) -> dict[str, Any]:
        made = role(name, rules=rules)
        made["metadata"] = {**made["metadata"], "labels": more.get("labels") or {}}
        return {**made, **({"aggregationRule": more["rule"]} if "rule" in more else {})}

    old = [aggregated(V1, [*RULES, NODES]), binding(V1, V1)]
    new = [aggregated(V2, RULES), binding(V2, V2)]
    base = [role("all", rules=[*RULES, NODES]), binding("all", "all")]
    told, _ = upgraded(old, new, live_rbac=(*old, *base))
    assert told == {}
