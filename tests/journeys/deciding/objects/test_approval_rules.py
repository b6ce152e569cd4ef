"""Approval rules from kubectl to the apply: who is still needed, and the ways round them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from approvals.ledger import pivots, rounds
from approvals.ledger.deciding import deciding_objects
from approvals.models import BundleDeployment, DecidingObject, KubernetesIdentity, Request
from approvals.steps.mirroring.deciding_status import ShowDecidingObject
from approvals.watch.own_kinds import SeenDecidingObjects
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import once_answered
from tests.support.servers.registry import Registry

SECURITY = {"name": "security", "groups": ["security"]}
NOBODY = "1 of group security; nobody who is known here is a member of security"
TWO_AND_ONE = [{"name": "platform", "count": 2, "groups": ["platform"]}, {**SECURITY, "distinctFrom": ["platform"]}]


def rule(site: DeployedSite, *require: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A rule about the deployment that is called as the namespace."""
    about = {"selector": {"names": [site.namespace]}, **spec}
    meta = {"name": site.namespace}
    spec = {**about, "require": list(require) or [SECURITY]}
    return {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "ApprovalRule", "metadata": meta, "spec": spec}


def watched(site: DeployedSite) -> None:
    """What the watch does when it starts."""
    watch = SeenDecidingObjects(cluster=site.cluster, kind="ApprovalRule")
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))


def write(site: DeployedSite, obj: dict[str, Any]) -> ObjectRef:
    site.api.apply(obj, field_manager="somebody", force=True)
    watched(site)
    return ObjectRef.of(obj)


def hire(site: DeployedSite, name: str, *groups: str) -> None:
    """Somebody more who may approve the deployment that is called as the namespace."""
    person = User.objects.create_user(name)
    KubernetesIdentity.objects.create(
        user=person,
        cluster=site.cluster,
        authenticator=KubernetesIdentity.Authenticator.MAPPED,
        username=name,
        groups=list(groups),
        groups_seen_at=timezone.now(),
    )
    site.people[name] = person
    if "platform" not in groups:
        site.let_approve(name, site.namespace)


def asked(site: DeployedSite, registry: Registry) -> BundleDeployment:
    name = site.namespace
    return site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))


def test_two_of_platform_and_another_person_of_security(
    real_site: DeployedSite, registry: Registry, tmp_path: Any
) -> None:
    site = real_site
    file = tmp_path / "rule.yaml"
    file.write_text(yaml.safe_dump(rule(site, *TWO_AND_ONE, carryOver=True)))
    site.ctl("apply", "-f", str(file))
    watched(site)
    do(ShowDecidingObject(DecidingObject.objects.get(name=site.namespace).pk))
    shown = site.ctl("get", "approvalrules", site.namespace)
    assert "2 of group platform; 1 of group security" in shown
    assert " True " in shown
    hire(site, "ben", "platform", "security")
    hire(site, "sam", "security")
    deployment = asked(site, registry)

    request = site.approve(deployment)
    assert request.state == "in_review"
    assert request.rules_left == [
        f"{site.namespace}: 1 of group platform; 1 of group security, not the same people as for platform"
    ]
    request = site.approve(deployment, by="ben")
    assert request.rules_left == [f"{site.namespace}: 1 of group security, not the same people as for platform"]
    site.look_after(deployment)
    mirror = json.loads(site.ctl("get", "bundledeploymentrequest", f"{deployment.name}-1", "-o", "json"))
    (told,) = [one for one in mirror["status"]["conditions"] if one["type"] == "RulesSatisfied"]
    assert (told["status"], told["message"]) == ("False", request.rules_left[0])

    # The same risk in another round needs only whoever has not approved it yet.
    with transaction.atomic():
        assert rounds.report_anew(deployment, "alice")
    again = site.after_work(deployment)
    assert (again.round, again.rules_left, again.earlier_approvals[0]["why_not"]) == (2, request.rules_left, "")
    assert again.reviews.filter(round=2).exclude(carries=None).count() == 2
    assert site.approve(deployment, by="sam").state == "applied"


def test_a_group_that_vanishes_after_the_approval_takes_the_approval_with_it(
    site: DeployedSite, registry: Registry
) -> None:
    write(site, rule(site))
    hire(site, "sam", "security")
    deployment = asked(site, registry)
    site.pause(deployment)
    site.approve(deployment)
    assert site.approve(deployment, by="sam").state == "approved"
    KubernetesIdentity.objects.filter(user=site.people["sam"]).update(groups=[])
    site.resume(deployment)
    request = site.after_work(deployment)
    assert (request.state, request.voided_rounds.get().code) == ("in_review", "approval-rule")
    assert NOBODY in request.voided_rounds.get().words
    assert site.live("ConfigMap", deployment.name) is None
    KubernetesIdentity.objects.filter(user=site.people["sam"]).update(groups=["security"])
    assert site.approve(deployment).state == "in_review"
    assert site.approve(deployment, by="sam").state == "applied"


def test_S45_lowering_a_rule_approves_nothing_that_is_open(sandbox_site: DeployedSite, registry: Registry) -> None:
    site = sandbox_site
    ref = write(site, rule(site))
    deployment = asked(site, registry)
    assert site.approve(deployment).rules_left == [f"{site.namespace}: {NOBODY}"]
    # By two changes, of which the second one hides the first, and a deletion.
    write(site, rule(site, {"name": "anybody"}))
    write(site, rule(site, {"name": "anybody"}, selector={"names": ["another"]}))
    site.api.delete(ref)
    watched(site)
    request = site.after_work(deployment)
    assert (request.state, request.problem_code) == ("in_review", "approval-rule-changed")
    request = site.approve(deployment)
    assert request.state == "applied", (request.problem, request.rules_left, list(request.reviews.values()))


def test_S45_labels_that_stop_matching_and_rules_that_nobody_can_read_or_evaluate_hold(
    sandbox_site: DeployedSite, registry: Registry
) -> None:
    site = sandbox_site
    deployment = asked(site, registry)
    ref = ObjectRef(OWN_GROUP, "v1alpha2", "BundleDeployment", "", deployment.name)

    def label(team: str) -> None:
        site.edit(ref, lambda live: live["metadata"].update(labels={"team": team}), manager="mallory")
        pivots.see(cluster=site.cluster, obj=site.api.get(ref), writer=None)
        site.work()

    label("payments")
    by_label = {"matchLabels": {"team": "payments"}}
    write(site, rule(site, selector=by_label))
    label("mine")
    assert site.approve(deployment).rules_left == [f"{site.namespace}: {NOBODY}"]

    # It selects where its condition is true, and where nobody can tell.
    write(site, rule(site, {"name": "a", "groups": ["nobodys"]}, when="name == 'another'"))
    assert "nobodys" not in str(site.after_work(deployment).rules_left)
    write(site, rule(site, {"name": "a", "groups": ["nobodys"]}, when="rules[99] == 'x'"))
    (left,) = site.after_work(deployment).rules_left
    assert "1 of group nobodys; nobody who is known here is a member of nobodys" in left
    assert "could not be evaluated" in left

    meta = {"name": site.namespace, "uid": "unreadable", "generation": 1, "resourceVersion": "1"}
    spec = {"selector": {"names": [site.namespace]}, "require": [{"name": "a", "quorum": 3}]}
    obj = {"metadata": meta, "spec": spec}
    deciding_objects.observe(cluster=site.cluster, kind="ApprovalRule", obj=obj, is_listed=True)
    assert any("it cannot be read, so it holds the request" in one for one in site.after_work(deployment).rules_left)
    obj["metadata"]["uid"], spec["selector"] = "elsewhere", {"names": ["another"]}
    deciding_objects.observe(cluster=site.cluster, kind="ApprovalRule", obj=obj, is_listed=True)
    assert not any("cannot be read" in one for one in site.after_work(deployment).rules_left)


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen by the watch", "not seen yet"])
def test_a_rule_that_is_new_stops_what_is_approved_and_not_begun(
    sandbox_site: DeployedSite, registry: Registry, is_seen: bool
) -> None:
    site = sandbox_site
    deployment = asked(site, registry)
    site.pause(deployment)
    assert site.approve(deployment).state == "approved"
    if is_seen:
        write(site, rule(site))
    else:
        site.api.apply(rule(site), field_manager="somebody")
    Request.objects.update(look_again_at=None)
    request = site.after_work(deployment)
    assert (request.state, request.round) == ("in_review", 2)
    assert request.voided_rounds.get().code == "approval-rule"
    watched(site)
    hire(site, "sam", "security")
    site.resume(deployment)
    assert site.approve(deployment).state == "in_review"
    assert site.approve(deployment, by="sam").state == "applied"
