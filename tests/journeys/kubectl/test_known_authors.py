"""BundleDeployments written with kubectl on a real API server: whose requests they become, and when nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.utils import timezone

from approvals import admission, services
from approvals.controllers import read_controllers
from approvals.errors import Refused
from approvals.models import AuthorAdmission, BundleDeployment
from provisioner.values import Identity, ObjectRef
from tests.journeys.kubectl.authors import POLICIES, Seen, change, let_time_pass, look, put_in_force
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SEEDER, DeployedSite, binding, user_subject
from tests.support.kubernetes.live import wait_until
from tests.support.servers.registry import Registry


def test_S05_who_wrote_it_with_kubectl_is_the_requester(seen: Seen) -> None:
    seen.write("rita")
    seen.watch()
    assert seen.asked() == (["rita kubectl"], True)
    (person,) = seen.latest().requesters
    assert (person["uid"], person["groups"]) == ("uid-rita", ["requesters", "system:authenticated"])
    assert person["groups_at"]


def test_S05_everybody_who_wrote_it_since_is_a_requester(seen: Seen) -> None:
    seen.write("rita")
    seen.write("carol", "2")
    seen.watch()
    assert seen.asked() == (["rita kubectl", "carol kubectl"], True)


def test_S05_labels_of_somebody_else_make_no_requester(seen: Seen) -> None:
    seen.write("rita")
    change(seen.site, "label", "bd", seen.name, "team=b", user="carol")
    seen.watch()
    assert seen.asked() == (["rita kubectl"], True)


def test_S05_nobody_approves_what_they_wrote_with_kubectl(seen: Seen, registry: Registry, settings: Any) -> None:
    seen.write("rita", sources=[bundles.image(registry, seen.name, bundles.app("app", "1"), "1")])
    seen.watch()
    seen.site.work()
    request = seen.latest()
    assert (request.state, request.is_requester_known) == ("in_review", True), request.problem
    seen.site.let_approve("rita", seen.name)
    with pytest.raises(Refused) as refused:
        services.review(
            by=acting(seen.site.people["rita"]),
            request_id=request.pk,
            decision="Approve",
            subject_digest=request.subject_digest,
            reason="mine",
            channel="browser",
        )
    assert refused.value.code == "self-approval"


@pytest.mark.thorough
def test_a_write_while_nobody_watched_is_known_if_it_came_after_what_the_row_knows(seen: Seen) -> None:
    seen.write("rita")
    seen.watch()
    seen.write("carol", "2")
    seen.list()
    assert seen.asked() == (["rita kubectl", "carol kubectl"], True)


def test_S05_two_writes_while_nobody_watched_leave_one_unknown(seen: Seen) -> None:
    seen.write("rita")
    seen.watch()
    seen.write("carol", "2")
    seen.write("rita", "3")
    seen.list()
    assert seen.asked() == (["rita kubectl"], False)


def _bind_otherwise(site: DeployedSite) -> None:
    """Nobody is stamped any more, and everything is back at once."""
    changed = {**POLICIES[1], "metadata": {**POLICIES[1]["metadata"], "labels": {"x": "y"}}}
    resource = {"matchResources": {"resourceRules": [{**_rule(), "resources": ["nothings"]}]}}
    site.api.apply({**changed, "spec": {**changed["spec"], **resource}}, field_manager=SEEDER, force=True)
    site.api.apply(POLICIES[1], field_manager=SEEDER, force=True)


def _rule() -> dict[str, Any]:
    return {"apiGroups": ["core.rukpak.io"], "apiVersions": ["*"], "operations": ["CREATE"], "scope": "*"}


def _make_again(site: DeployedSite) -> None:
    site.api.delete(ObjectRef.of(POLICIES[2]))
    wait_until(lambda: site.api.get(ObjectRef.of(POLICIES[2])) is None, "the policy is gone")
    site.api.apply(POLICIES[2], field_manager=SEEDER, force=True)


@pytest.mark.parametrize(
    "meddle",
    [
        pytest.param(_make_again, id="made again", marks=pytest.mark.thorough),
        pytest.param(_bind_otherwise, id="changed and changed back"),
    ],
)
def test_S05_a_policy_that_was_touched_in_between_makes_the_author_unknown(
    seen: Seen, meddle: Callable[[DeployedSite], None]
) -> None:
    meddle(seen.site)
    seen.write("rita")
    seen.watch()
    assert seen.asked() == ([], False)
    # What stands for ten seconds again counts again, for what is written from then on.
    look(seen.site)
    let_time_pass(seen.site)
    assert look(seen.site).sure_from
    seen.write("carol", "2")
    seen.watch()
    assert seen.asked() == (["carol kubectl"], False)


def test_S05_a_stamp_from_before_the_policies_stood_is_nobodys(seen: Seen) -> None:
    """It may have been written by hand: the policies are the shipped ones, and have been seen for too short a time."""
    AuthorAdmission.objects.filter(cluster=seen.site.cluster).update(sure_from=None, since=timezone.now())
    look(seen.site)
    seen.write("rita")
    seen.watch()
    assert seen.asked() == ([], False)
    let_time_pass(seen.site)
    assert look(seen.site).sure_from
    seen.list()
    assert seen.asked() == ([], False)


def test_S05_what_was_deleted_was_asked_for_by_nobody_known(seen: Seen) -> None:
    seen.write("rita")
    seen.watch()
    change(
        seen.site, "patch", "bd", seen.name, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}'
    )
    change(seen.site, "delete", "bd", seen.name, "--wait=false", user="carol")
    seen.watch()
    deployment = BundleDeployment.objects.get(cluster=seen.site.cluster, name=seen.name)
    assert [(one.generation, one.username) for one in deployment.writes.order_by("generation")] == [
        (1, "rita"),
        (2, ""),
    ]
    change(seen.site, "patch", "bd", seen.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def _listed(site: DeployedSite, **changes: Any) -> Any:
    one = {
        "account": f"{site.namespace}/argocd",
        "cluster": site.cluster.name,
        "deployments": {"matchNames": [f"{site.namespace}-app"]},
        "installers": [f"{site.namespace}/installer"],
        **changes,
    }
    return read_controllers({"controllers": [one]})


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        pytest.param(None, ([], False), id="no list", marks=pytest.mark.thorough),
        pytest.param({}, (["system:serviceaccount:{}:argocd gitops"], True), id="listed"),
        pytest.param({"cluster": "other"}, ([], False), id="another cluster", marks=pytest.mark.thorough),
        pytest.param({"deployments": {"matchNames": ["other"]}}, ([], False), id="another deployment"),
        pytest.param(
            {"installers": ["other/installer"]}, ([], False), id="another installer", marks=pytest.mark.thorough
        ),
    ],
)
def test_S34_a_controller_is_known_where_the_operator_lists_it(
    seen: Seen, settings: Any, changes: dict[str, Any] | None, asked: tuple[list[str], bool]
) -> None:
    site = seen.site
    if changes is not None:
        settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": _listed(site, **changes)}
    account = f"system:serviceaccount:{site.namespace}:argocd"
    site.api.apply(binding(f"{site.namespace}-argocd", "cluster-admin", user_subject(account)), field_manager=SEEDER)
    site.until_may(Identity(account), "create", "bundledeployments", "core.rukpak.io")
    _sync(seen, account)
    seen.watch()
    assert seen.asked() == ([one.format(site.namespace) for one in asked[0]], asked[1])


def _sync(seen: Seen, account: str) -> None:
    """As Argo CD's controller does: server-side apply, with its own field manager."""
    source = {"kind": "http", "http": {"url": "http://127.0.0.1:1/a.tar.gz"}}
    spec = {"installNamespace": seen.site.namespace, "serviceAccountName": "installer", "sources": [source]}
    about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": seen.name}}
    path = seen.site.kubeconfig.parent / "synced.yaml"
    path.write_text(yaml.safe_dump({**about, "spec": spec}))
    how = ("--server-side", "--field-manager=argocd-controller", "--as", account)
    seen.site.ctl("apply", *how, "-f", str(path))


def test_S05_where_a_webhook_stamps_the_validating_policy_proves_it(seen: Seen) -> None:
    """As on Kubernetes 1.30 to 1.35; what the webhook would have written is written here."""
    site = seen.site
    for obj in POLICIES[:2]:
        site.api.delete(ObjectRef.of(obj))
    stamp = admission.stamp_for(["rita", "uid-rita", "requesters", "system:authenticated"])
    wait_until(lambda: "nothing writes down" in look(site).problem, "nobody stamps any more")
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    webhook = {**about, "metadata": {"name": "pratique-authors"}}
    site.api.apply(webhook, field_manager=SEEDER)
    try:
        put_in_force(site)
        seen.list()
        seen.write("rita", annotations={admission.ANNOTATION: stamp})
        seen.watch()
        assert seen.asked() == (["rita kubectl"], True)
        with pytest.raises(AssertionError, match="names who wrote the spec"):
            seen.write("carol", "2", annotations={admission.ANNOTATION: stamp})
    finally:
        site.api.delete(ObjectRef.of(webhook))


def test_the_authors_of_a_cluster_without_policies_are_unknown_and_why_is_kept(seen: Seen) -> None:
    seen.site.api.delete(ObjectRef.of(POLICIES[3]))
    row = look(seen.site)
    assert row.sure_from is None
    assert row.problem.startswith("the cluster has no ValidatingAdmissionPolicyBinding pratique-authors. Apply it:")
    seen.write("rita")
    seen.watch()
    assert seen.asked() == ([], False)
    assert admission.REMEDY in row.problem
