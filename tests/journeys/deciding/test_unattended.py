"""Work that goes on when nobody is there: grants whose author has left, and what nobody asked for just now (S07, S08, S13)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals import access, services
from approvals.errors import NotAllowed
from approvals.ledger import pivots
from approvals.models import BundleDeployment, KubernetesIdentity, Policy, Request, Review
from provisioner.values import Identity, ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite, approval_of, group, role
from tests.support.kubernetes.live import until_may
from tests.support.servers.registry import Registry


def known_by_token(site: DeployedSite, name: str) -> User:
    """The person is known by tokens of the cluster from now on, not by the operator's mapping, which does not age."""
    person = site.people[name]
    facts = {"authenticator": "token-review", "uid": f"u-{name}-{site.namespace}", "groups_seen_at": timezone.now()}
    person.kubernetes_identities.update(**facts)
    return person


def aged(person: User, *, hours: int = 13) -> None:
    person.kubernetes_identities.update(groups_seen_at=timezone.now() - timedelta(hours=hours))


def back(person: User, *groups: str) -> None:
    """Signed in again, in these groups."""
    person.kubernetes_identities.update(groups_seen_at=timezone.now(), **({"groups": list(groups)} if groups else {}))


def grant(site: DeployedSite, by: str = "alice", **changes: Any) -> Policy:
    wish = {"name": f"routine-{site.namespace}", **changes}
    return site.save_policy("grant", 'worst_new in ["safe", "notable"]', by=by, **wish)


def settings_map(site: DeployedSite, text: str) -> dict[str, Any]:
    """A bundle of one ConfigMap, in a ConfigMap that requesters may get."""
    name, namespace = "bundle", site.namespace
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: plain}}\ndata: {{text: {text}}}\n"
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"a.yaml": body},
    }
    site.api.apply(obj, field_manager="test")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]}
    for each in role("get-bundle", namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "configmaps", name=name)
    return {"kind": "configMap", "configMap": {"name": name}}


def text_of(site: DeployedSite) -> str | None:
    live = site.live("ConfigMap", "plain")
    return live["data"]["text"] if live else None


def mirror(site: DeployedSite, request: Request) -> Mapping[str, Any]:
    site.look_after(request.deployment)
    name = f"{request.deployment.name}-{request.number}"
    found: Mapping[str, Any] | None = site.api.get(
        ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeploymentRequest", "", name)
    )
    assert found
    return found


def messages(of: Mapping[str, Any]) -> str:
    return "\n".join(one["message"] for one in of["status"]["conditions"])


def looked_at(site: DeployedSite, deployment: BundleDeployment) -> Request:
    """After the workers have looked at what waits."""
    Request.objects.filter(deployment=deployment).update(look_again_at=None)
    site.work()
    return site.latest(deployment)


def set_paused(site: DeployedSite, deployment: BundleDeployment, by: User, *, is_paused: bool) -> None:
    """By somebody who is known by old groups before and after."""
    back(by)
    site.pause(deployment, is_paused=is_paused)
    aged(by)


def by_nobody(site: DeployedSite, deployment: BundleDeployment) -> Request:
    """What the machine does that asks once more, such as for an object whose API has appeared; and the workers."""
    assert pivots.ask_once_more(of=site.latest(deployment))
    site.work()
    return site.latest(deployment)


def test_S13_a_grant_goes_on_though_who_wrote_it_has_left(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-stays"
    policy = grant(site)
    own = f"pratique:policy:{policy.pk}"
    wished = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    request = site.latest(wished)
    assert (request.state, request.reviews.count()) == ("in_review", 0), "its own identity may not yet"
    site.let_approve(own, name)
    alice = site.people["alice"]
    alice.kubernetes_identities.update(groups=["nobody"])
    User.objects.filter(pk=alice.pk).update(is_active=False)
    site.withdraw(request)
    again = site.ask_again(wished)
    request = site.after_work(again)
    assert request.state == "applied", request.problem
    given = Review.objects.get(request=request)
    assert (given.username, given.access_reason) == (own, "Kubernetes allowed this policy's identity to approve")


@pytest.mark.proof
def test_S13_a_grant_whose_identity_loses_the_right_stops_at_the_gate(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-stops"
    policy = grant(site)
    own = f"pratique:policy:{policy.pk}"
    site.let_approve(own, name)
    wished = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")), paused=True)
    assert site.latest(wished).state == "approved"
    site.api.delete(ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "", f"approve-{name}"))
    until_may(site.api, Identity(own), approval_of(name), is_allowed=False)
    wished.refresh_from_db()
    site.resume(wished)
    Request.objects.update(look_again_at=None)
    request = site.after_work(wished)
    assert request.state == "approved"
    assert "some approvals no longer count" in request.problem
    assert site.live("Deployment", name) is None


def test_S13_who_may_not_approve_all_of_it_saves_no_policy(site: DeployedSite) -> None:
    with pytest.raises(NotAllowed, match="you need `approve` on every BundleDeployment of cluster journey"):
        grant(site, by="carol")
    assert not Policy.objects.exists()


@pytest.mark.proof
def test_S08_a_source_is_read_unattended_only_where_the_operator_says_so(site: DeployedSite, settings: Any) -> None:
    rita = known_by_token(site, "rita")
    wished = site.applied(f"{site.namespace}-polled", settings_map(site, "one"))
    settings_map(site, "two")
    aged(rita)
    request = by_nobody(site, wished)
    assert (request.state, request.problem_code, request.is_unattended) == ("failed", "groups-too-old", True)
    words = f"this request was created automatically; the spec names ConfigMap {site.namespace}/bundle"
    assert words in request.problem
    shown = mirror(site, request)
    assert shown["spec"]["requester"] | {"groups": []} == {"username": "rita", "via": "unattended", "groups": []}
    assert words in messages(shown)
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [f"journey/{wished.name}"]}
    request = by_nobody(site, wished)
    assert (request.state, text_of(site)) == ("in_review", "one"), request.problem
    assert request.read_unattended == [f"ConfigMap {site.namespace}/bundle"]
    listed = settings.PRATIQUE
    settings.PRATIQUE = {**listed, "UNATTENDED_READS": []}
    site.agree(wished)
    request = site.after_work(wished)
    assert (request.state, request.problem_code) == ("in_review", "reads-withdrawn"), request.problem
    assert "PRATIQUE_UNATTENDED_READS again" in request.remedy
    settings.PRATIQUE = listed
    set_paused(site, wished, rita, is_paused=True)
    assert looked_at(site, wished).problem_code == "paused"
    set_paused(site, wished, rita, is_paused=False)
    settings.PRATIQUE = {**listed, "UNATTENDED_READS": []}
    request = looked_at(site, wished)
    assert (request.state, request.problem_code) == ("approved", "reads-withdrawn"), request.problem
    assert request.problem in messages(mirror(site, request))
    assert text_of(site) == "one"
    settings.PRATIQUE = listed
    request = looked_at(site, wished)
    assert request.state == "applied", f"alice may use the account: {request.problem}"
    assert text_of(site) == "two"


def test_S08_what_was_read_in_time_does_not_end_because_time_passes(site: DeployedSite) -> None:
    """Unattended, too: nothing is read again. The account is used on the word of an approver who may."""
    rita = known_by_token(site, "rita")
    wished = site.applied(f"{site.namespace}-kept", settings_map(site, "one"))
    settings_map(site, "two")
    site.let_approve("carol", wished.name)
    site.pause(wished)
    assert by_nobody(site, wished).is_unattended
    site.agree(wished, "carol")
    request = site.after_work(wished)
    assert (request.state, request.problem_code) == ("approved", "paused")
    site.resume(wished)
    aged(rita)
    Request.objects.update(look_again_at=None)
    site.work(request)
    assert (request.state, request.problem_code) == ("approved", "no-longer-approved")
    assert text_of(site) == "one"
    back(rita)
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    site.work(request)
    assert request.state == "applied", request.problem
    assert text_of(site) == "two"


def test_S08_whom_kubernetes_does_not_let_read_it_any_more_stops_it_also_there(
    site: DeployedSite, settings: Any
) -> None:
    rita = known_by_token(site, "rita")
    wished = site.submit_spec(f"{site.namespace}-left", settings_map(site, "one"))
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [f"journey/{wished.name}"]}
    site.work()
    assert site.approve(wished).state == "applied"
    aged(rita)
    site.api.delete(ObjectRef("rbac.authorization.k8s.io", "v1", "RoleBinding", site.namespace, "get-bundle"))
    site.until_may(Identity("rita", ("requesters",)), "get", "configmaps", name="bundle", is_allowed=False)
    request = by_nobody(site, wished)
    assert (request.state, request.problem_code) == ("preparing", "forbidden")
    assert "does not allow rita to get" in request.problem


def test_S07_a_grant_approves_unattended_work_where_its_own_identity_may_use_the_account(
    site: DeployedSite, registry: Registry
) -> None:
    name = f"{site.namespace}-vouched"
    rita = known_by_token(site, "rita")
    source = bundles.image(registry, name, bundles.app(name, "1"))
    wished = site.applied(name, source)
    policy = grant(site)
    own = f"pratique:policy:{policy.pk}"
    site.let_approve(own, name)
    aged(rita)
    request = by_nobody(site, wished)
    assert request.state == "in_review"
    words = (
        "the identity of rita, who requested the change, has expired: rita must sign in again, or one approver must be"
    )
    assert words in request.problem
    assert words in messages(mirror(site, request))
    site.let_use_installer(own)
    Policy.objects.filter(pk=policy.pk).update(is_active=False)
    back(rita)
    services.withdraw(by=acting(rita), request_id=request.pk, reason="", via="browser")
    aged(rita)
    Policy.objects.filter(pk=policy.pk).update(is_active=True)
    applied = Request.objects.filter(deployment=wished, state="applied").latest("number")
    assert pivots.ask_once_more(of=applied)
    request = site.after_work(wished)
    assert (request.state, request.number) == ("applied", 3), request.problem
    assert Review.objects.get(request=request).may_use_account


def test_S07_what_people_ask_for_waits_at_the_gate_once_their_groups_are_too_old(
    site: DeployedSite, registry: Registry
) -> None:
    name = f"{site.namespace}-waits"
    rita = known_by_token(site, "rita")
    site.let_approve("carol", name)
    wished = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    request = site.agree(wished, "carol")
    aged(rita)
    site.work(request)
    assert (request.state, request.problem_code) == ("in_review", "held-back")
    back(rita)
    site.work(request)
    assert request.state == "applied", request.problem


def test_S07_a_group_that_who_asked_has_lost_since_stops_it_in_words(site: DeployedSite, registry: Registry) -> None:
    """The groups of the writing would still allow it."""
    name = f"{site.namespace}-lost"
    rita = known_by_token(site, "rita")
    wished = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.agree(wished)
    back(rita, "leavers")
    request = site.after_work(wished)
    assert (request.state, request.problem_code) == ("approved", "forbidden")
    assert "does not allow rita to impersonate" in request.problem
    assert "does not allow rita to impersonate" in messages(mirror(site, request))
    assert site.live("Deployment", name) is None
    back(rita, "requesters")
    Request.objects.update(look_again_at=None)
    site.work()
    assert site.latest(wished).state == "applied"
    assert KubernetesIdentity.objects.get(user=rita).groups == ["requesters"]
    assert not access.no_longer_current(site.latest(wished))
