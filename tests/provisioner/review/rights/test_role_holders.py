"""A report is about the change: what others hold anyway is not in it, and who gets something by it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import Facts, Installer
from provisioner.review.frame import report
from provisioner.review.output.terminal import as_text
from provisioner.values import Action, Content, Finding, ObjectRef, Plan, Report, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, planned, web_workload
from tests.support.provisioner.corpus import content_of, named, pairs
from tests.support.provisioner.roles import (
    API,
    account,
    bound,
    cluster_role,
    group,
    of_kubernetes,
    role,
    rule,
    teams,
    user,
)

EMPTY, MANY = of_kubernetes(), teams(60)
SECRETS = rule("get list", "secrets")
COLLECTING = {"clusterRoleSelectors": [{"matchLabels": {"shop": "yes"}}]}
TO_EDIT, TO_VIEW = ({f"{API}/aggregate-to-{name}": "true"} for name in ("edit", "view"))
ORDERS = cluster_role("orders-edit", rule("create", "orders", group="shop.example.com"), labels=TO_EDIT)
ROBOT = an_object("v1", "ServiceAccount", "robot", "shop")
INSTALLER = Installer(RbacSubject("ServiceAccount", "installer", "shop"))
MAY_ALL = {**bound("cluster-admin", account("installer", "shop")), "metadata": {"name": "installer"}}
BUNDLES: dict[str, tuple[dict[str, Any], ...]] = {
    "an aggregated role without rules": (cluster_role("collected", aggregationRule=COLLECTING),),
    "a role that reads ConfigMaps": (role("shop", "reader", rule("get", "configmaps")),),
    "settings": (config_map(),),
    "a workload": (web_workload(),),
    "an account that reads Secrets": (ROBOT, cluster_role("r", SECRETS), bound("r", account("robot", "shop"))),
    "a role that adds to edit": (ORDERS,),
    "a role that has view read Secrets": (cluster_role("shop-view", SECRETS, labels=TO_VIEW),),
    "a group that is bound": (bound("view", group("sellers"), namespace="shop"),),
    "everybody with an account is bound": (bound("view", group("system:authenticated")),),
}
PAIRS = [pair for pair in pairs() if pair[0].family.startswith(("plain/", "bundles/"))][::9]


def on(live: tuple[dict[str, Any], ...], *objects: dict[str, Any], **rest: Any) -> Report:
    """The report on a first request for these objects."""
    return report(_facts(live, content_with(*objects), None, **rest))


def _facts(live: tuple[dict[str, Any], ...], content: Content, previous: Content | None, **rest: Any) -> Facts:
    actions = tuple(_planned(content, previous))
    return Facts(content, Plan(actions, "sha256:plan"), previous, live_rbac=live, bundle=Plan(actions, "x"), **rest)


def _planned(content: Content, previous: Content | None) -> Iterator[Any]:
    known = {manifest.ref.identity: manifest.body for manifest in (previous.manifests if previous else ())}
    for manifest in content.manifests:
        before = known.pop(manifest.ref.identity, None)
        action = Action.CREATE if before is None else Action.UPDATE
        yield planned(dict(manifest.body), action, before=before, uid="u" if before else "")
    for body in known.values():
        yield planned(dict(body), Action.DELETE, before=body, uid="u")


def of(found: Report, rule_id: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.rule == rule_id]


def lines(found: Report) -> list[int]:
    return [as_text(found, with_all=with_all).count("\n") for with_all in (False, True)]


def shown(found: Report) -> int:
    """The lines before the one that counts what is not shown."""
    text, _, _ = as_text(found).partition("Not shown:")
    return text.count("\n")


def assert_alike(empty: Report, many: Report) -> None:
    assert len(many.findings) == len(empty.findings)
    assert lines(many) == lines(empty)


# what others hold


@pytest.mark.parametrize("objects", BUNDLES.values(), ids=list(BUNDLES))
def test_what_60_teams_hold_adds_nothing_to_a_report(objects: tuple[dict[str, Any], ...]) -> None:
    assert_alike(on(EMPTY, *objects), on(MANY, *objects))


@pytest.mark.parametrize("objects", BUNDLES.values(), ids=list(BUNDLES))
def test_others_who_can_act_as_the_installer_are_one_finding_as_before(objects: tuple[dict[str, Any], ...]) -> None:
    empty, many = (on((*live, MAY_ALL), *objects, installer=INSTALLER) for live in (EMPTY, MANY))
    (others,) = of(many, "PRE-11")
    assert not of(empty, "PRE-11")
    assert (len(many.findings) - 1, others.is_new) == (len(empty.findings), False)
    assert shown(many) == shown(empty)
    assert not any("act as the installing" in sentence for sentence in many.headline)
    assert "others can get the permissions of `shop/installer`" in others.server_words
    assert others.evidence["left_out"] == others.evidence["count"] - len(others.evidence["users"]) > 0


def test_PRE_11_stays_the_same_finding_when_another_team_comes() -> None:
    fewer, more = (
        of(on((*teams(count), MAY_ALL), config_map(), installer=INSTALLER), "PRE-11")[0] for count in (60, 70)
    )
    assert fewer.evidence["count"] < more.evidence["count"]
    assert fewer.fingerprint == more.fingerprint


def test_labels_of_a_role_that_others_are_bound_to_change_nothing_for_them() -> None:
    old, new = (cluster_role("r", SECRETS, labels={"helm.sh/chart": version}) for version in ("1", "2"))
    live = (*MANY, old, bound("r", *(group(f"g-{number}") for number in range(30))))
    found = report(_facts(live, content_with(new), content_with(old)))
    assert not [finding for finding in found.findings if finding.rule.startswith("RB-1")]
    assert of(found, "RB-SAME")


def test_a_group_that_may_do_it_all_already_gains_nothing_and_keeps_its_powers_to_itself() -> None:
    live = (*EMPTY, bound("cluster-admin", group("admins")))
    found = on(live, role("shop", "reader", rule("get", "configmaps")), bound("reader", group("admins"), kind="Role"))
    assert not [finding for finding in found.findings if finding.severity is Severity.CRITICAL]


# who gets something


@pytest.mark.parametrize("live", [EMPTY, MANY], ids=["an empty cluster", "60 teams"])
def test_a_group_that_the_bundle_binds_is_told_with_all_that_it_gains(live: tuple[dict[str, Any], ...]) -> None:
    found = on(live, cluster_role("r", SECRETS), bound("r", group("sellers")))
    (risk,) = of(found, "RB-11")
    assert (str(risk.ref), risk.severity, risk.is_new) == (f"Group.{API} sellers", Severity.CRITICAL, True)
    assert [str(one.ref) for one in of(found, "RB-DIFF")] == [f"Group.{API} sellers"]


def test_what_an_account_held_before_is_as_before_where_its_rights_are_altered() -> None:
    live = (*MANY, cluster_role("r", SECRETS), bound("r", group("sellers")))
    found = on(live, cluster_role("nodes", rule("get", "nodes")), bound("nodes", group("sellers")))
    assert [(str(one.ref), one.is_new) for one in of(found, "RB-11")] == [(f"Group.{API} sellers", False)]
    assert "sellers" in of(found, "RB-DIFF")[0].message


def test_a_role_that_adds_to_edit_is_said_once_however_many_have_edit() -> None:
    (widened,) = of(on(MANY, ORDERS), "RB-09")
    assert "Everybody with the roles admin or edit can now create orders" in widened.message
    assert not of(on(MANY, ORDERS), "RB-DIFF")


def test_S24_a_danger_for_everybody_with_view_is_critical_once() -> None:
    found = on(MANY, cluster_role("shop-view", SECRETS, labels=TO_VIEW))
    (risk,) = of(found, "RB-11")
    assert (risk.severity, risk.is_new) == (Severity.CRITICAL, True)
    told = "Everybody with the role view can now read every Secret, wherever they have it"
    assert risk.server_words == told  # what admin and edit had before only the cluster knows (S09)
    assert risk.evidence["by"] == [
        {"role": f"ClusterRole.{API} view", "origin": f"ClusterRole.{API} shop-view", "rule": 0}
    ]
    (power,) = of(found, "OWN-PRATIQUE-03")
    assert (str(power.ref), power.severity) == (f"ClusterRole.{API} shop-view", Severity.CRITICAL)


def test_who_loses_a_right_of_edit_is_said_once() -> None:
    live = (*MANY, ORDERS)
    (less,) = of(report(_facts(live, content_with(config_map()), content_with(config_map(), ORDERS))), "RB-LESS")
    assert less.message.startswith("Everybody with the roles admin or edit loses 1 right, wherever they have it")


@pytest.mark.parametrize("count", [5, 6, 40])
def test_S24_a_role_of_the_bundle_that_others_bind_is_told_by_name_or_once(count: int) -> None:
    old, new = cluster_role("r", rule("get", "configmaps")), cluster_role("r", SECRETS)
    live = (*MANY, old, bound("r", *(group(f"g-{number}") for number in range(count))))
    found = report(_facts(live, content_with(new), content_with(old)))
    refs = {str(one.ref) for one in of(found, "RB-11")}
    named_ones = {f"Group.{API} g-{number}" for number in range(count)}
    assert refs == (named_ones if count <= 5 else {f"ClusterRole.{API} r"})
    assert {one.severity for one in of(found, "RB-11")} == {Severity.CRITICAL}
    assert any(one.severity is Severity.CRITICAL and one.is_new for one in of(found, "OWN-PRATIQUE-03"))


def test_a_role_that_is_held_in_namespaces_only_weighs_what_it_weighs_there() -> None:
    old, new = cluster_role("r", rule("get", "configmaps")), cluster_role("r", SECRETS)
    bindings = [bound("r", group(f"g-{number}"), namespace=f"n-{number}") for number in range(30)]
    elsewhere = report(_facts((*MANY, old, *bindings), content_with(new), content_with(old)))
    assert [one.severity for one in of(elsewhere, "RB-11")] == [Severity.DANGEROUS]
    at_home = bound("r", group("g-30"), namespace="kube-system")
    sensitive = report(_facts((*MANY, old, *bindings, at_home), content_with(new), content_with(old)))
    assert [one.severity for one in of(sensitive, "RB-11")] == [Severity.CRITICAL]


def test_S24_what_a_role_gives_together_with_what_its_holders_have_is_critical_and_names_them_all() -> None:
    """To bind roles takes two rights: one that all of them had, and one that the bundle gives to the role."""
    write = cluster_role("write", rule("create", "clusterrolebindings", group=API))
    old, new = cluster_role("r"), cluster_role("r", rule("bind", "clusterroles", group=API))
    those = [f"g-{number}" for number in range(30)]
    live = (*MANY, write, old, bound("r", *map(group, those)), bound("write", *map(group, those[:20])))
    found = report(_facts(live, content_with(new), content_with(old)))
    (risk,) = [
        finding for finding in found.findings if finding.evidence.get("accounts") and finding.rule.startswith("RB-")
    ]
    assert (risk.severity, risk.is_new) == (Severity.CRITICAL, True)
    assert sorted(map(str, risk.evidence["accounts"])) == sorted(f"Group {name}" for name in those[:20])


def test_S24_a_combination_weighs_what_it_weighs_in_the_namespace_where_it_is_held() -> None:
    """To get a token by a Secret takes two rights. It is critical in kube-system, where one of thirty holds both."""
    old, new = cluster_role("r"), cluster_role("r", rule("get", "secrets"))
    make = cluster_role("make", rule("create", "secrets"))
    places = {f"g-{number}": f"n-{number}" if number else "kube-system" for number in range(30)}
    bindings = (bound(name, group(who), namespace=at) for who, at in places.items() for name in ("r", "make"))
    found = report(_facts((*EMPTY, make, old, *bindings), content_with(new), content_with(old)))
    critical, dangerous = sorted(of(found, "RB-12"), key=lambda one: one.severity.rank)
    assert (critical.severity, list(map(str, critical.evidence["accounts"]))) == (Severity.CRITICAL, ["Group g-0"])
    assert (dangerous.severity, len(dangerous.evidence["accounts"])) == (Severity.DANGEROUS, 29)


def test_a_group_that_everybody_is_in_is_named_where_a_role_of_many_first_grants_something() -> None:
    those = [group("system:authenticated"), *(group(f"g-{number}") for number in range(30))]
    old, new = cluster_role("r"), cluster_role("r", rule("get", "pods"))
    found = report(_facts((*EMPTY, old, bound("r", *those)), content_with(new), content_with(old)))
    assert [one.variant for one in of(found, "RB-41")] == ["together-hold"]


@pytest.mark.parametrize(("count", "variant"), [(1, "undecided"), (30, "everybody-undecided")])
def test_S24_rights_that_are_too_many_to_compare_are_unknown(count: int, variant: str) -> None:
    lists = {axis: [f"{axis}{number}.io" for number in range(600)] for axis in ("apiGroups", "resources")}
    old, new = cluster_role("r"), cluster_role("r", {**lists, "verbs": [f"v{number}" for number in range(40)]})
    those = (group(f"g-{number}") for number in range(count))
    found = report(_facts((*EMPTY, old, bound("r", *those)), content_with(new), content_with(old)))
    assert [one.variant for one in of(found, "RB-00")] == [variant]


def test_an_account_that_the_bundle_runs_its_pods_as_is_told_by_name_among_many() -> None:
    old, new = cluster_role("r", rule("get", "configmaps")), cluster_role("r", SECRETS)
    others = (group(f"g-{number}") for number in range(30))
    live = (*MANY, old, bound("r", account("robot", "shop"), *others))
    found = report(_facts(live, content_with(new, web_workload(serviceAccountName="robot")), content_with(old)))
    assert {str(one.ref) for one in of(found, "RB-11")} == {"ServiceAccount shop/robot", f"ClusterRole.{API} r"}


def test_S28_power_over_pratique_by_a_role_that_many_have_is_said_once() -> None:
    collecting = cluster_role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"mine": "yes"}}]})
    live = (*MANY, collecting, bound("all", *(user(f"u-{number}") for number in range(30))))
    found = of(on(live, cluster_role("r", SECRETS, labels={"mine": "yes"})), "OWN-PRATIQUE-03")
    assert {str(one.ref) for one in found} == {f"ClusterRole.{API} r", f"ClusterRole.{API} all"}
    assert all(one.severity is Severity.CRITICAL and one.is_new for one in found)


def test_S28_power_that_few_get_with_what_they_hold_beside_a_role_names_them() -> None:
    """Who makes Secrets and reads them where a strong installer lives has that installer's token."""
    old, new = role("shop", "r"), role("shop", "r", rule("get", "secrets", names="mine"))
    make = cluster_role("make", rule("create", "secrets"))
    groups = [group(f"g-{number}") for number in range(30)]
    those = bound("r", *groups, namespace="shop", kind="Role")
    live = (*EMPTY, make, old, MAY_ALL, those, bound("make", *groups[:7], namespace="shop"))
    found = of(report(_facts(live, content_with(new), content_with(old), installer=INSTALLER)), "OWN-PRATIQUE-03")
    (named_ones,) = [one for one in found if "accounts" in one.evidence]
    assert named_ones.severity is Severity.CRITICAL
    assert sorted(map(str, named_ones.evidence["accounts"])) == sorted(f"Group g-{number}" for number in range(7))


# many


@pytest.mark.thorough
@pytest.mark.parametrize("objects", BUNDLES.values(), ids=list(BUNDLES))
def test_what_2000_bindings_give_to_others_adds_nothing_to_a_report(objects: tuple[dict[str, Any], ...]) -> None:
    assert_alike(on(EMPTY, *objects), on(teams(2_000), *objects))


@pytest.mark.thorough
@pytest.mark.corpus
@pytest.mark.parametrize("pair", PAIRS, ids=map(named, PAIRS))
def test_2000_bindings_of_others_add_nothing_to_the_report_on_a_real_bundle(pair: Any) -> None:
    old, new = map(content_of, pair)
    ours = tuple(dict(manifest.body) for manifest in old.manifests if ObjectRef.of(manifest.body).group == API)
    first = [report(_facts(live, new, None)) for live in (EMPTY, teams(2_000))]
    assert_alike(*first)
    upgrade = [report(_facts((*live, *ours), new, old)) for live in (EMPTY, teams(2_000))]
    assert_alike(*upgrade)
