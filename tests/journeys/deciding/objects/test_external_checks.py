"""External checks of a deployment until it is applied: what is asked when, and what a late or missing answer holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from approvals import services
from approvals.clock import database_now
from approvals.ledger.deciding import check_runs
from approvals.models import BundleDeployment, CheckRun, CheckSecret, DecidingObject, Request
from approvals.steps.external_checks import SendCheckRun
from approvals.steps.mirroring.deciding_status import ShowDecidingObject
from approvals.watch.own_kinds import SeenDecidingObjects
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from provisioner.values import ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import once_answered
from tests.support.servers.http import FileServer
from tests.support.servers.registry import Registry


@pytest.fixture
def receiver(http_server: FileServer) -> Iterator[FileServer]:
    http_server.serve("/tickets")
    yield http_server
    http_server.forget()


def watched(site: DeployedSite) -> None:
    watch = SeenDecidingObjects(cluster=site.cluster, kind="ExternalCheck")
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))


def write(site: DeployedSite, receiver: FileServer, name: str, **spec: Any) -> ObjectRef:
    """A check of this name about the deployment that is called as the namespace, with a secret."""
    about = {"selector": {"names": [site.namespace]}, "url": f"{receiver.url}/tickets", **spec}
    meta = {"name": f"{site.namespace}-{name}"}
    obj = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "ExternalCheck", "metadata": meta, "spec": about}
    site.api.apply(obj, field_manager="somebody", force=True)
    watched(site)
    row = DecidingObject.objects.get(name=meta["name"], gone_at=None)
    CheckSecret.objects.get_or_create(
        cluster=site.cluster,
        check_uid=row.uid,
        defaults={"secret": "whsec_" + "c2VjcmV0" * 4, "made_by": "alice", "made_at": database_now()},
    )
    return ObjectRef.of(obj)


def asked(site: DeployedSite, registry: Registry) -> BundleDeployment:
    name = site.namespace
    return site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))


def answer(site: DeployedSite, run: CheckRun, outcome: str) -> Request:
    services.answer_check(
        run=run.uid, token=check_runs.token_of(run), outcome=outcome, subject_digest=run.subject_digest
    )
    return site.after_work(run.request.deployment)


def test_a_request_is_applied_once_checks_have_passed_after_the_report_and_before_the_apply(
    real_site: DeployedSite, registry: Registry, receiver: FileServer
) -> None:
    site = real_site
    write(site, receiver, "report")
    write(site, receiver, "apply", stage="BeforeApply")
    do(ShowDecidingObject(DecidingObject.objects.get(name=f"{site.namespace}-report").pk))
    shown = site.ctl("get", "externalchecks", f"{site.namespace}-report")
    assert "AfterReport   Mandatory     True" in shown
    deployment = asked(site, registry)
    (first,) = CheckRun.objects.all()
    do(SendCheckRun(first.pk))
    (event,) = [json.loads(one.body) for one in receiver.asked]
    assert event["data"]["subjectDigest"] == first.subject_digest

    assert site.approve(deployment).state == "in_review"
    site.look_after(deployment)
    mirror = json.loads(site.ctl("get", "bundledeploymentrequest", f"{deployment.name}-1", "-o", "json"))
    (told,) = [one for one in mirror["status"]["conditions"] if one["type"] == "ChecksSatisfied"]
    assert (told["status"], told["reason"]) == ("False", "NotPassed")
    assert f"{site.namespace}-report: it was asked at" in told["message"]

    request = answer(site, first, "passed")
    assert (request.state, request.problem_code) == ("approved", "external-check")
    second = CheckRun.objects.exclude(pk=first.pk).get()
    assert (second.stage, second.subject_digest) == ("BeforeApply", first.subject_digest)
    request = answer(site, second, "passed")
    assert (request.state, request.problem) == ("applied", "")
    assert site.live("ConfigMap", deployment.name)["data"]["version"] == "1"


def test_what_nobody_answers_is_held_until_it_is_run_again_and_an_answer_before_the_apply_ages(
    site: DeployedSite, registry: Registry, receiver: FileServer
) -> None:
    write(site, receiver, "apply", stage="BeforeApply")
    deployment = asked(site, registry)
    assert not CheckRun.objects.exists()
    request = site.approve(deployment)
    run = CheckRun.objects.get()
    do(SendCheckRun(run.pk))
    run.refresh_from_db()
    with time_machine.travel(run.due_at + timedelta(seconds=1)):
        site.work(request)
        assert (request.state, request.problem_code) == ("approved", "external-check-failed")
        assert "did not answer within 600 s" in request.problem
        again = services.run_check_again(
            by=acting(site.people["alice"]), request_id=request.pk, name=run.check_name, via="browser"
        )
    site.pause(deployment)
    request = answer(site, again, "passed")
    assert (request.state, request.problem_code) == ("approved", "paused")
    # Too old by the time that it is resumed: it is asked anew, and only then.
    with time_machine.travel(database_now() + timedelta(minutes=61)):
        site.work(request)
        assert CheckRun.objects.count() == 2
        site.resume(deployment)
        site.work(request)
        assert (request.state, request.problem_code, CheckRun.objects.count()) == ("approved", "external-check", 3)
        assert answer(site, CheckRun.objects.latest("pk"), "passed").state == "applied"


def test_S49_a_check_that_fails_after_it_passed_holds_and_another_subject_is_asked_anew(
    sandbox_site: DeployedSite, registry: Registry, receiver: FileServer
) -> None:
    site = sandbox_site
    ref = write(site, receiver, "report")
    deployment = asked(site, registry)
    first = CheckRun.objects.get()
    assert answer(site, first, "passed").state == "in_review"
    site.agree(deployment)
    assert answer(site, first, "failed").state == "in_review"
    image = bundles.image(registry, deployment.name, bundles.app(deployment.name, "2"))
    deployment = site.prepare(deployment.name, image)
    second = CheckRun.objects.latest("pk")
    assert second.subject_digest != first.subject_digest
    request = site.approve(deployment)
    assert (request.state, request.external_checks[0]["state"]) == ("in_review", "waiting")
    # The check goes, and so does what it held.
    site.api.delete(ref)
    watched(site)
    assert site.after_work(deployment).state == "applied"
