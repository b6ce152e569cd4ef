"""The rights in a whole cluster are told with the findings that a report has of a bundle that holds its roles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import Gap
from provisioner.review.cluster_rights import ChosenAccounts, cluster_rights
from provisioner.review.frame import report
from provisioner.values import Action, Report, Section, Severity
from tests.support.provisioner.contents import content_with, facts, planned
from tests.support.provisioner.roles import account, bound, cluster_role, group, of_kubernetes, role, rule, teams, user

SECRETS = rule("get list", "secrets")
SHOP = (
    cluster_role("r", SECRETS, {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*"]}),
    bound("r", group("sellers"), user("ann")),
    role("shop", "local", SECRETS),
    bound("local", account("robot", "shop"), namespace="shop", kind="Role"),
    bound("missing", account("robot", "shop"), namespace="shop"),
)
ACCOUNTS = ("User", "Group", "ServiceAccount")


def told(found: Report) -> set[tuple[str, Severity, str]]:
    return {(finding.rule, finding.severity, str(finding.ref)) for finding in found.findings}


def about(found: Report) -> set[str]:
    return {str(finding.ref) for finding in found.findings}


@pytest.mark.parametrize("objects", [SHOP, teams(60)], ids=["a shop", "60 teams"])
def test_a_cluster_has_the_findings_of_a_bundle_that_holds_its_roles(objects: tuple[dict[str, Any], ...]) -> None:
    content = replace(content_with(*objects), install_namespace="kube-system", service_account="")
    bundle = report(facts(*(planned(obj, Action.CREATE) for obj in objects), content=content, live_rbac=()))
    of_accounts = [
        {one for one in told(found) if one[0] != "RB-DIFF" and one[2].partition(".")[0].partition(" ")[0] in ACCOUNTS}
        for found in (bundle, cluster_rights(objects))
    ]
    assert of_accounts[0] == of_accounts[1]
    assert len(of_accounts[0]) >= 5


def test_each_of_60_teams_with_power_is_told_by_itself() -> None:
    found = cluster_rights(teams(60))
    everything = [finding for finding in found.findings if finding.rule == "RB-01"]
    assert len(everything) == 12
    assert all(one.is_new and one.severity is Severity.CRITICAL for one in everything)
    assert "can do everything (cluster-wide)" in everything[0].message


def test_the_headline_says_what_was_looked_at() -> None:
    found = cluster_rights(SHOP)
    assert "3 accounts looked at, by 2 roles and 3 bindings." in found.headline
    assert not any("object" in sentence for sentence in found.headline)


def test_one_account_is_told_without_the_others() -> None:
    found = cluster_rights(SHOP, chosen=ChosenAccounts(subjects=frozenset({RbacSubject("User", "ann")})))
    assert about(found) == {"User.rbac.authorization.k8s.io ann", "ClusterRole.rbac.authorization.k8s.io r"}
    assert "1 account looked at, by 2 roles and 3 bindings. 2 other accounts left out." in found.headline


def test_a_namespace_has_its_accounts_and_whom_its_bindings_name() -> None:
    objects = (*SHOP, bound("r", user("zoe"), namespace="shop"))
    found = cluster_rights(objects, chosen=ChosenAccounts(namespaces=frozenset({"shop"})))
    accounts = {ref for ref in about(found) if ref.startswith(("User", "Group", "ServiceAccount"))}
    assert accounts == {"ServiceAccount shop/robot", "User.rbac.authorization.k8s.io zoe"}


def test_accounts_of_kubernetes_can_be_left_out_and_wide_groups_stay() -> None:
    of_all = bound("r", group("system:authenticated"), account("controller", "kube-system"))
    found = cluster_rights((*of_kubernetes(), SHOP[0], of_all), chosen=ChosenAccounts(with_kubernetes=False))
    refs = about(found)
    assert "Group.rbac.authorization.k8s.io system:authenticated" in refs
    assert not {"Group.rbac.authorization.k8s.io system:masters", "ServiceAccount kube-system/controller"} & refs


def test_what_could_not_be_read_is_unknown() -> None:
    found = cluster_rights(SHOP, gaps=[Gap("what RoleBindings there are", "nobody said", Section.PERMISSIONS)])
    assert [finding.message for finding in found.findings if finding.severity is Severity.UNKNOWN] == [
        "Could not find out what RoleBindings there are: nobody said"
    ]
