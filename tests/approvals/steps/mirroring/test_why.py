"""Why a BundleDeployment is not ready, in its own conditions: `kubectl get bd` says it, without looking elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from approvals.ledger import retries
from approvals.models import BundleDeployment, InventoryItem, Request, Review, Revision
from approvals.steps.mirroring import conditions
from approvals.steps.mirroring.deployment_words import MAX_REASON, why
from approvals.steps.mirroring.mirror import look_after
from provisioner.errors import TryLater
from provisioner.values import ObjectRef
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.quay import Quay
from tests.support.folders import ROOT
from tests.support.kubernetes.live import until_served

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def request_(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("web", world.spec()), env.rita)
    return world.in_review(Request.objects.get())


def shown(request: Request, paused: str = "", **columns: Any) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message by type, with the request as `columns` say."""
    Request.objects.filter(pk=request.pk).update(**{"changed_at": NOON, **columns})
    request = Request.objects.get(pk=request.pk)
    deployment = BundleDeployment.objects.get(pk=request.deployment_id)
    found = conditions.of_readiness(deployment, request, why(deployment, request, paused))
    records = [one.record(generation=deployment.generation) for one in found]
    assert {one["observedGeneration"] for one in records} == {deployment.generation}
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in records}


def test_in_review_says_who_can_approve_it(request_: Request) -> None:
    found = shown(request_)
    words = "request web-1 waits for approval by someone who may `approve` BundleDeployment web"
    assert found["Ready"] == ("False", "WaitingForApproval", words)
    assert [found[one][0] for one in ("Reconciling", "Stalled")] == ["False", "False"]


def test_preparing_says_what_fails_and_since_when(request_: Request) -> None:
    Request.objects.update(state="preparing", subject_digest="")
    request = Request.objects.get()
    retries.postpone(request, TryLater("the registry does not answer"), NOON)
    since = request.problem_since
    retries.postpone(request, TryLater("the registry does not answer"), NOON)
    assert since is not None
    assert request.problem_since == since, "the first time counts"
    found = shown(request)
    words = f"request web-1 cannot be prepared since {conditions.instant(since)}: the registry does not answer."
    assert found["Ready"] == ("False", "TryLater", words)
    assert found["Reconciling"][0] == "True"


def test_what_waits_for_a_right_says_which_and_where_the_yaml_is(request_: Request) -> None:
    problem = "the ServiceAccount harbour/installer lacks permissions:\napiVersion: v1\nkind: Role"
    held = {"problem": problem, "problem_code": "missing-rights", "problem_since": NOON}
    status, reason, words = shown(request_, state="approved", remedy="Apply them.", **held)["Ready"]
    assert (status, reason) == ("False", "MissingRights")
    assert words == (
        "request web-1 is approved and waits since 2026-11-21T12:00:00Z: the ServiceAccount harbour/installer lacks "
        "permissions. Apply them. `kubectl get bdr web-1 -o yaml` shows what to apply."
    )


def test_what_introduces_the_yaml_is_not_said_where_none_follows(request_: Request) -> None:
    problem = "Kubernetes does not allow rita to get secrets db; this would allow it:\nkind: Role"
    held = {"problem": problem, "problem_code": "forbidden", "problem_since": NOON}
    words = shown(request_, state="preparing", remedy="Somebody grants it.", **held)["Ready"][2]
    assert words == (
        "request web-1 cannot be prepared since 2026-11-21T12:00:00Z: Kubernetes does not allow rita to get secrets db. "
        "Somebody grants it. `kubectl get bdr web-1 -o yaml` shows what to apply."
    )


def test_a_long_constraint_is_cut_and_the_request_has_all_of_it(request_: Request) -> None:
    constraint = f"the constraint {' && '.join(f'object.spec.count{at} < {at}' for at in range(20))} does not hold"
    assert len(constraint) > 400
    held = {"problem": constraint, "problem_code": "constraint", "problem_since": NOON}
    words = shown(request_, state="approved", remedy="Change the cluster.", **held)["Ready"][2]
    cause = words.partition(": ")[2]
    assert cause.startswith("the constraint object.spec.count0 < 0 && ")
    assert cause.index("…") <= MAX_REASON
    assert words.endswith("… Change the cluster. `kubectl get bdr web-1 -o yaml` shows all of it.")


def test_paused_says_by_whom(request_: Request) -> None:
    BundleDeployment.objects.update(is_paused=True)
    found = shown(request_, "by rita: holiday", state="approved", problem="it is paused", problem_code="paused")
    assert found["Ready"][:2] == ("False", "Paused")
    assert "is paused by rita: holiday" in found["Ready"][2]


def test_S27_a_denial_says_what_comes_next_and_nothing_of_what_reviewers_wrote(env: World, request_: Request) -> None:
    about = {"round": 1, "decision": "Deny", "subject_digest": request_.subject_digest, "given_at": NOON}
    who = {"voter": "user:alice", "username": "alice", "channel": "browser", "access_reason": "yes"}
    Review.objects.create(request=request_, reason="you leak the password hunter2", **about, **who)
    found = shown(request_, state="denied")
    assert [found[one][:2] for one in ("Ready", "Reconciling", "Stalled")] == [
        ("False", "Denied"),
        ("False", "Denied"),
        ("True", "Denied"),
    ]
    assert found["Stalled"][2].startswith("request web-1 was denied; nothing of it runs. To request it again")
    assert "hunter2" not in str(found)


def test_S27_a_failure_says_its_cause_without_the_servers_words(request_: Request) -> None:
    said = [{"ref": {}, "words": "the server says hunter2"}]
    failed = {"problem": "the API server refused a ConfigMap", "problem_code": "objects-refused", "server_words": said}
    found = shown(request_, state="failed", **failed)
    assert found["Stalled"][:2] == ("True", "ObjectsRefused")
    assert found["Ready"][2].startswith("request web-1 failed: the API server refused a ConfigMap. To request it again")
    assert "hunter2" not in str(found)


def test_a_deletion_says_that_it_waits_then_what_is_left(env: World, request_: Request) -> None:
    BundleDeployment.objects.update(deletion_requested_at=NOON)
    place = {"version": "v1", "kind": "ConfigMap", "namespace": "harbour"}
    deployment = BundleDeployment.objects.get()
    for name in ("a", "b", "c", "d"):
        InventoryItem.objects.create(deployment=deployment, name=name, nonce=name, uid=name, **place)
    assert shown(request_)["Ready"][1] == "DeletionRequested"
    waits = shown(request_, purpose="delete")["Ready"]
    assert waits[1] == "WaitingForApproval"
    assert waits[2].startswith("deletion request web-1 waits for approval by")
    assert waits[2].endswith("its objects stay until then")
    words = "4 objects left to delete: ConfigMap harbour/a, ConfigMap harbour/b, ConfigMap harbour/c and 1 more"
    assert shown(request_, state="applying")["Ready"] == ("False", "Deleting", f"deletion request web-1: {words}")


def test_a_quota_says_itself_before_there_is_a_request(env: World, request_: Request) -> None:
    BundleDeployment.objects.update(waiting_since=NOON, waiting_words="20 of 20 requests are open")
    assert shown(request_)["Ready"] == ("False", "QuotaExceeded", "20 of 20 requests are open")


@pytest.mark.parametrize(
    ("health", "ready"),
    [
        ("Current", ("True", "Applied", "revision 1 runs, and all its objects are healthy")),
        ("Failed", ("False", "Unhealthy", "revision 1: 0 of 1 objects are ready")),
        ("Unknown", ("Unknown", "HealthUnknown", "revision 1: 0 of 1 objects are ready")),
    ],
)
def test_what_runs_is_ready_as_its_objects_are(quay: Quay, health: str, ready: tuple[str, str, str]) -> None:
    deployment = quay.deployment()
    words = "0 of 1 objects are ready\nConfigMap harbour/a: broken"
    BundleDeployment.objects.update(health=health, health_message=words)
    assert shown(deployment.requests.get())["Ready"] == ready
    assert Revision.objects.count() == 1


def test_the_cluster_shows_why_a_deletion_is_stuck(quay: Quay) -> None:
    """Before, a deletion that waits for approval left the conditions as they were: Terminating, and no word why."""
    for file in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        quay.api.apply(yaml.safe_load(file.read_text()), field_manager="test")
    until_served(quay.api, "core.rukpak.io", "v1alpha2", "BundleDeployment")
    spec = world.spec(installNamespace=quay.namespace)
    name = f"{quay.namespace}-web"
    ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", name)
    quay.api.create({"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"name": name}, "spec": spec})
    seen = quay.api.get(ref)
    assert seen
    deployment = world.submit_spec(quay.env.cluster, seen, quay.env.rita)
    look_after(deployment.pk)
    quay.own(deployment, "sail")
    quay.api.delete(ref)
    seen = quay.api.get(ref)
    assert seen, "the finalizer holds it"
    world.submit_spec(quay.env.cluster, seen, quay.env.rita)
    look_after(deployment.pk)
    live = quay.api.get(ref)
    assert live
    shown = {one["type"]: one for one in live["status"]["conditions"]}
    assert shown["Ready"]["message"] == f"deletion request {name}-2 is being prepared"
    InventoryItem.objects.all().delete()
    Request.objects.update(state="applied", subject_digest="sha256:1")
    look_after(deployment.pk)
    assert quay.api.get(ref) is None
