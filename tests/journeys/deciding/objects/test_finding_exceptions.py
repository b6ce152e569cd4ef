"""A finding exception on a real API server: written with kubectl, confirmed by two people, gone before the apply."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals import services
from approvals.deciding.finding_exceptions import FindingException
from approvals.errors import NotAllowed
from approvals.models import DecidingObject, KubernetesIdentity
from approvals.steps.mirroring.deciding_status import ShowDecidingObject
from approvals.watch.own_kinds import SeenDecidingObjects
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from provisioner.errors import InvalidObject
from provisioner.values import Identity, ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SEEDER, DeployedSite, binding, user_subject
from tests.support.kubernetes.live import once_answered
from tests.support.servers.registry import Registry


def exception(site: DeployedSite, **spec: Any) -> dict[str, Any]:
    until = (timezone.now() + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"reason": "as in the last release", "expires": until, **spec}
    meta = {"name": site.namespace}
    return {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "FindingException", "metadata": meta, "spec": about}


def hire(site: DeployedSite, name: str) -> None:
    """Somebody who may confirm the exception that is called as the namespace."""
    if name not in site.people:
        site.people[name] = User.objects.create_user(name)
        KubernetesIdentity.objects.create(
            user=site.people[name],
            cluster=site.cluster,
            authenticator=KubernetesIdentity.Authenticator.MAPPED,
            username=name,
            groups_seen_at=timezone.now(),
        )
    role = binding(f"{site.namespace}-{name}", "pratique-exception-confirmer", user_subject(name))
    site.api.apply(role, field_manager=SEEDER)
    site.until_may(Identity(name), "approve", "findingexceptions", OWN_GROUP, name=site.namespace)


def shown(site: DeployedSite) -> str:
    """What kubectl shows once the watch and the worker have looked."""
    watch = SeenDecidingObjects(cluster=site.cluster, kind="FindingException")
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))
    do(ShowDecidingObject(DecidingObject.objects.get(name=site.namespace).pk))
    return site.ctl("get", "findingexceptions", site.namespace, "--no-headers")


def confirm(site: DeployedSite, by: str) -> None:
    services.confirm_object(
        by=acting(site.people[by]),
        cluster=site.cluster,
        kind=FindingException,
        name=site.namespace,
        version=DecidingObject.objects.get(name=site.namespace, gone_at=None).version,
        via="rest",
    )


def test_S48_two_people_open_a_guard_until_the_exception_is_deleted(
    real_site: DeployedSite, registry: Registry
) -> None:
    site, name = real_site, real_site.namespace
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    found = next(
        one
        for one in site.latest(deployment).reports.get().body["findings"]
        if one["ref"] and one["severity"] in ("dangerous", "notable") and not one.get("also")
    )
    site.save_policy("guard", f'!("{found["rule"]}" in rules)', name="calm", names=[name])
    for spec, words in (
        ({"rule": found["rule"]}, "subject, fingerprint or both are needed"),
        ({"rule": "OWN-PRATIQUE-01", "subject": "*"}, "findings that touch Pratique itself cannot be accepted"),
    ):
        with pytest.raises(InvalidObject) as refused:
            site.api.apply(exception(site, **spec), field_manager="somebody")
        assert words in refused.value.in_full
    obj = exception(site, rule=found["rule"], subject=f"{str(ObjectRef(**found['ref'])).partition(' ')[0]} *")
    site.api.apply(obj, field_manager="somebody")
    assert shown(site).split()[-4:-1] == [obj["spec"]["expires"], "False", "NeedsSecondPerson"]

    with pytest.raises(NotAllowed):
        confirm(site, "alice")
    for person in ("alice", "sam"):
        hire(site, person)
    confirm(site, "alice")
    assert "NeedsSecondPerson" in shown(site)
    site.pause(deployment)
    assert site.approve(deployment).problem_code == "held-back"
    confirm(site, "sam")
    assert "True" in shown(site)
    request = site.latest(deployment)
    site.work(request)
    assert (request.state, request.problem_code) == ("approved", "paused"), request.problem
    site.look_after(deployment)
    assert site.get("bdr", f"{name}-1")["status"]["reviewsSummary"] == {"approvals": 1, "waivers": 1}

    site.api.delete(ObjectRef.of(obj))  # which the watch does not see
    site.resume(deployment)
    site.work(request)
    assert (request.state, request.problem_code) == ("approved", "guard-holds"), request.problem
    assert site.live("Deployment", name) is None
