"""From seen specs to requests."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from approvals import services
from approvals.errors import Changed, TooMany
from approvals.ledger import pivots, rounds
from approvals.ledger.pivots import SpecWriter
from approvals.models import AuditEntry, BundleDeployment, InventoryItem, Request, Revision, VoidedRound
from approvals.selectors import lists
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting


def open_requests(env: World) -> list[Request]:
    return list(Request.objects.filter(deployment__cluster=env.cluster).order_by("number"))


def test_a_new_deployment_makes_one_request_however_often_it_is_seen(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    for _ in range(3):
        world.submit_spec(env.cluster, obj, env.rita)
    (request,) = open_requests(env)
    assert (request.number, request.state, request.is_requester_known) == (1, "preparing", True)
    assert [person["username"] for person in request.requesters] == ["rita"]


def test_a_new_pivot_supersedes_the_older_open_request_in_the_same_transaction(env: World) -> None:
    obj = world.seen("strimzi", world.spec("1"))
    world.submit_spec(env.cluster, obj)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("2"), uid=obj["metadata"]["uid"], generation=2))
    assert [request.state for request in open_requests(env)] == ["superseded", "preparing"]


def test_an_older_generation_that_comes_late_is_ignored(env: World) -> None:
    obj = world.seen("strimzi", world.spec("2"), generation=2)
    world.submit_spec(env.cluster, obj)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("1"), uid=obj["metadata"]["uid"], generation=1))
    (request,) = open_requests(env)
    assert request.spec == world.spec("2")


@pytest.mark.parametrize("change", [{"paused": True}, {"revisionHistoryLimit": 3}], ids=["paused", "history"])
def test_what_is_no_option_is_no_pivot(env: World, change: dict[str, object]) -> None:
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj)
    world.submit_spec(
        env.cluster, world.seen("strimzi", world.spec(**change), uid=obj["metadata"]["uid"], generation=2)
    )
    assert len(open_requests(env)) == 1


def test_a_request_that_is_being_applied_is_not_superseded_but_followed(env: World) -> None:
    obj = world.seen("strimzi", world.spec("1"))
    deployment = world.submit_spec(env.cluster, obj)
    request = world.in_review(Request.objects.get())
    Request.objects.filter(pk=request.pk).update(state="applying")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("2"), uid=obj["metadata"]["uid"], generation=2))
    assert [request.state for request in open_requests(env)] == ["applying"]
    Request.objects.filter(pk=request.pk).update(state="applied")
    deployment.refresh_from_db()
    with transaction.atomic():
        pivots.ensure_request(deployment)
    assert [request.state for request in open_requests(env)] == ["applied", "preparing"]


def test_the_same_name_made_again_is_another_deployment(env: World) -> None:
    first = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()))
    second = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()))
    first.refresh_from_db()
    assert first.gone_at is not None
    assert second.pk != first.pk
    assert [request.state for request in open_requests(env)] == ["withdrawn", "preparing"]


def test_S42_what_is_there_after_all_is_asked_for_again_as_it_was(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj, env.rita)
    pivots.forget(cluster=env.cluster, uid=obj["metadata"]["uid"])
    found = pivots.see(cluster=env.cluster, obj=obj, writer=None)
    assert found.gone_at is None
    assert [one.state for one in open_requests(env)] == ["withdrawn", "preparing"]
    assert [one["username"] for one in open_requests(env)[1].requesters] == ["rita"]


def test_S42_what_was_changed_while_it_was_called_gone_is_asked_for_as_it_is(env: World) -> None:
    obj = world.seen("strimzi", world.spec("1"))
    uid = obj["metadata"]["uid"]
    world.submit_spec(env.cluster, obj, env.rita)
    pivots.forget(cluster=env.cluster, uid=uid)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("2"), uid=uid, generation=2), env.rita)
    assert [(one.state, one.generation) for one in open_requests(env)] == [("withdrawn", 1), ("preparing", 2)]


def test_S05_who_wrote_the_spec_answers_for_no_return_to_what_others_wrote(env: World) -> None:
    """An approver annotated with kubectl to go back; whoever wrote today's spec was then asked to look again."""
    obj = world.seen("strimzi", world.spec("1"))
    uid = obj["metadata"]["uid"]
    deployment = world.submit_spec(env.cluster, obj, env.rita)
    first = world.in_review(Request.objects.get())
    Request.objects.update(state="applied")
    revision = Revision.objects.create(
        deployment=deployment,
        request=first,
        content=first.content,
        number=1,
        state="replaced",
        started_at=timezone.now(),
    )
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("2"), uid=uid, generation=2), env.rita)
    second = world.in_review(Request.objects.get(number=2))
    to_first = {"purpose": "rollback", "to_revision": revision, "is_requester_known": False, "requesters": []}
    Request.objects.filter(pk=second.pk).update(**to_first)
    asked = again(deployment, "1", world.spec("2"), generation=2)
    pivots.see(cluster=env.cluster, obj=asked, writer=None, asker=world.writer(env.rita))
    assert not Request.objects.get(number=2).is_requester_known


def test_S42_an_event_of_a_former_object_that_comes_late_leaves_its_namesake(env: World) -> None:
    former, present = world.seen("strimzi", world.spec("1")), world.seen("strimzi", world.spec("2"))
    world.submit_spec(env.cluster, former)
    world.submit_spec(env.cluster, present)
    assert pivots.see(cluster=env.cluster, obj=former, writer=None).gone_at is not None
    there = BundleDeployment.objects.get(gone_at__isnull=True)
    assert there.uid == present["metadata"]["uid"]


def test_S05_all_who_wrote_since_what_runs_are_requesters(env: World) -> None:
    obj = world.seen("strimzi", world.spec("1"))
    uid = obj["metadata"]["uid"]
    world.submit_spec(env.cluster, obj, env.rita)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("2"), uid=uid, generation=2), env.bert)
    latest = open_requests(env)[-1]
    assert {person["username"] for person in latest.requesters} == {"rita", "bert"}


def test_S05_a_gap_in_the_generation_makes_the_requester_unknown(env: World) -> None:
    obj = world.seen("strimzi", world.spec("1"))
    uid = obj["metadata"]["uid"]
    world.submit_spec(env.cluster, obj, env.rita)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("2"), uid=uid, generation=3), env.rita)
    assert not open_requests(env)[-1].is_requester_known


def test_S15_deleting_a_deployment_that_owns_objects_makes_a_deletion_request(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    deployment = world.submit_spec(env.cluster, obj, env.rita)
    world.in_review(Request.objects.get())
    Request.objects.update(state="applied")
    deployment.inventory.create(version="v1", kind="ConfigMap", namespace="harbour", name="x", nonce="n", uid="u")
    leaving = world.seen(
        "strimzi", world.spec(), uid=obj["metadata"]["uid"], generation=2, deletionTimestamp="2026-01-01T00:00:00Z"
    )
    world.submit_spec(env.cluster, leaving, env.rita)
    assert [(it.purpose, it.state) for it in open_requests(env)] == [("deploy", "applied"), ("delete", "preparing")]
    # Called gone by mistake: it is Terminating still, and nobody has to ask for its deletion again (S42).
    pivots.forget(cluster=env.cluster, uid=obj["metadata"]["uid"])
    pivots.see(cluster=env.cluster, obj=leaving, writer=None)
    assert [(it.purpose, it.state) for it in open_requests(env)][1:] == [
        ("delete", "withdrawn"),
        ("delete", "preparing"),
    ]


def test_S15_another_deletion_policy_while_it_leaves_is_another_deletion_request(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    about = {"uid": obj["metadata"]["uid"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    deployment = world.submit_spec(env.cluster, obj, env.rita)
    deployment.inventory.create(version="v1", kind="ConfigMap", namespace="harbour", name="x", nonce="n", uid="u")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(), generation=2, **about), env.rita)
    orphaning = world.seen("strimzi", {**world.spec(), "deletionPolicy": "Orphan"}, generation=3, **about)
    for _ in range(2):  # also where nobody knows who asked, and once
        world.submit_spec(env.cluster, orphaning)
    found = [(it.purpose, it.state, it.spec.get("deletionPolicy")) for it in Request.objects.order_by("number")]
    assert found == [("deploy", "superseded", None), ("delete", "superseded", None), ("delete", "preparing", "Orphan")]


def test_two_open_requests_of_one_deployment_are_impossible(env: World) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()))
    request = Request.objects.get()
    request.pk, request.number, request.uid = None, 2, "6b3d2c5e-0000-4000-8000-000000000000"
    with pytest.raises(IntegrityError), transaction.atomic():
        request.save(force_insert=True)


def test_promise_7_every_state_change_has_an_audit_row(env: World) -> None:
    obj = world.seen("strimzi", world.spec("1"))
    world.submit_spec(env.cluster, obj, env.rita)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec("2"), uid=obj["metadata"]["uid"], generation=2))
    verbs = list(AuditEntry.objects.order_by("number").values_list("verb", flat=True))
    assert verbs == ["deployment.seen", "request.made", "deployment.seen", "request.supersede", "request.made"]


def test_S25_a_cluster_takes_so_many_open_requests(env: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MAX_OPEN_REQUESTS": 1}
    wish = {"by": acting(env.rita), "cluster": env.cluster, "spec": world.spec(), "labels": {}, "via": "browser"}
    services.create_deployment(name="first", **wish)
    with pytest.raises(TooMany):
        services.create_deployment(name="second", **wish)


def again(deployment: BundleDeployment, value: str, wish: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """The deployment as it is in the cluster, with the annotation that asks once more."""
    annotations = {"core.rukpak.io/ask-again": value}
    return world.seen("strimzi", wish or world.spec(), uid=deployment.uid, annotations=annotations, **meta)


def test_what_failed_is_asked_for_again_by_an_annotation_and_only_once_for_each_value(env: World) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    world.submit_spec(env.cluster, again(deployment, "1"))
    assert Request.objects.count() == 1
    Request.objects.update(state="failed")
    world.submit_spec(env.cluster, again(deployment, "1"))
    assert Request.objects.count() == 1
    world.submit_spec(env.cluster, again(deployment, "2"))
    world.submit_spec(env.cluster, again(deployment, "2"))
    made = Request.objects.get(number=2)
    assert (made.state, [person["username"] for person in made.requesters]) == ("preparing", ["rita"])


@pytest.mark.parametrize(
    ("state", "code"),
    [
        *((state, "key-missing") for state in ("preparing", "in_review", "approved", "stale")),
        ("in_review", "digest-mismatch"),
        ("in_review", "undecipherable"),
    ],
)
def test_S30_what_cannot_be_read_is_asked_for_again_while_it_is_open(env: World, state: str, code: str) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    if state != "preparing":
        world.in_review(deployment.requests.get())
    Request.objects.update(state=state, problem_code=code, problem="its bytes")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec(), uid=deployment.uid))
    assert Request.objects.count() == 1, "nobody asked"
    world.submit_spec(env.cluster, again(deployment, "1"))
    world.submit_spec(env.cluster, again(deployment, "1"))
    ended, made = Request.objects.order_by("number")
    assert (ended.state, ended.problem_code, made.state) == ("superseded", code, "preparing")
    facts = AuditEntry.objects.get(verb="request.supersede").facts
    assert (facts["code"], facts["why"]) == (code, "its bytes")


@pytest.mark.parametrize("by", ["kubectl", "browser"])
@pytest.mark.parametrize(
    ("state", "after"), [("in_review", "stale"), ("approved", "stale"), ("preparing", "preparing"), ("stale", "stale")]
)
def test_what_is_open_is_reported_again_where_somebody_asks(env: World, by: str, state: str, after: str) -> None:
    """The page said what to do first, it was done, and asking again did nothing: the report stayed as it was."""
    made = services.create_deployment(
        by=acting(env.rita), cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    world.in_review(made.requests.get())
    Request.objects.update(state=state, problem_code="cluster-away", look_again_at=timezone.now() + timedelta(hours=1))
    if by == "browser":
        services.ask_again(by=acting(env.rita), deployment=made, via="browser")
    else:
        world.submit_spec(env.cluster, again(made, "1"))
        world.submit_spec(env.cluster, again(made, "1"))
    request = Request.objects.get()
    assert (request.state, request.look_again_at, request.is_requester_known) == (after, None, True)
    assert [one["username"] for one in request.requesters] == ["rita"]
    voided = [(one.code, one.words) for one in VoidedRound.objects.all()]
    who = "rita" if by == "browser" else "somebody"
    is_voided = state in ("in_review", "approved")
    assert voided == ([("asked-again", f"{who} asked for a new report: a new review is needed")] if is_voided else [])
    assert rounds.made_by_itself(Request(pk=request.pk, round=2)) == 0, "people may ask as often as they like"


def by_kubectl(person: User) -> SpecWriter:
    """Stamped by the API server, with a uid that the operator's mapping lacks."""
    return replace(
        world.writer(person), via="kubectl", identity=Identity(person.username, (), f"uid-{person.username}")
    )


@pytest.mark.parametrize("state", ["failed", "in_review"])
@pytest.mark.parametrize(
    ("wrote_last", "asks", "is_known"),
    [
        pytest.param("rita", "rita", True, id="who wrote it as it stands"),
        pytest.param("rita", "bert", False, id="somebody else"),
        pytest.param("rita", "", False, id="nobody can tell who"),
        pytest.param("", "rita", False, id="nobody can tell who wrote last"),
    ],
)
def test_S05_who_wrote_a_spec_and_asks_for_it_again_answers_for_it(
    env: World, state: str, wrote_last: str, asks: str, is_known: bool
) -> None:
    """One unknown write made a deployment a dead end: whatever a known person did, its requester stayed unknown."""
    obj = world.seen("strimzi", world.spec("1"))
    uid = obj["metadata"]["uid"]
    world.submit_spec(env.cluster, obj)
    people = {"rita": env.rita, "bert": env.bert}
    changed = world.seen("strimzi", world.spec("2"), uid=uid, generation=2)
    writer = by_kubectl(env.rita) if wrote_last else None
    deployment = pivots.see(cluster=env.cluster, obj=changed, writer=writer)
    assert not Request.objects.get(number=2).is_requester_known, "nobody knows who wrote the first generation"
    world.in_review(Request.objects.get(number=2))
    Request.objects.filter(number=2).update(state=state)
    asked = again(deployment, "1", world.spec("2"), generation=2)
    pivots.see(cluster=env.cluster, obj=asked, writer=None, asker=world.writer(people[asks]) if asks else None)
    request = Request.objects.order_by("-number")[0]
    assert (request.number, request.state) == ((3, "preparing") if state == "failed" else (2, "stale"))
    assert request.is_requester_known is is_known
    assert [one.generation for one in pivots.unknown_writes(request)] == ([1] if wrote_last else [1, 2]), (
        "doubted still"
    )
    if is_known:
        later = world.seen("strimzi", world.spec("3"), uid=uid, generation=3)
        world.submit_spec(env.cluster, later, env.rita)
        assert Request.objects.order_by("-number")[0].is_requester_known, "what she answered for stays hers"
        unknown = world.seen("strimzi", world.spec("4"), uid=uid, generation=4)
        world.submit_spec(env.cluster, unknown)
        assert not Request.objects.order_by("-number")[0].is_requester_known


def test_a_round_that_was_denied_is_not_taken_back_by_asking_again(env: World) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    world.review(world.in_review(deployment.requests.get()), acting(env.ada), decision="Deny")
    world.submit_spec(env.cluster, again(deployment, "1"))
    assert Request.objects.get().state == "in_review"


def test_what_is_at_work_is_asked_for_again_when_it_has_ended(env: World) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    world.in_review(deployment.requests.get())
    Request.objects.update(state="applying", problem_code="key-missing")
    world.submit_spec(env.cluster, again(deployment, "1"))
    assert [one.state for one in Request.objects.all()] == ["applying"]
    with pytest.raises(Changed, match="being applied"):
        services.ask_again(by=acting(env.rita), deployment=deployment, via="browser")
    Request.objects.update(state="applied", problem_code="")
    world.submit_spec(env.cluster, again(deployment, "1"))
    assert [one.state for one in Request.objects.order_by("number")] == ["applied", "preparing"]


@pytest.mark.parametrize(("code", "count"), [("key-missing", 3), ("", 2)])
def test_S30_a_deletion_that_cannot_be_read_is_asked_for_again(env: World, code: str, count: int) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    place = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "harbour", "name": "tide"}
    InventoryItem.objects.create(deployment=deployment, uid="u", nonce="n", **place)
    for value in ("", "1"):
        obj = again(deployment, value)
        meta = {**obj["metadata"], "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        world.submit_spec(env.cluster, {**obj, "metadata": meta})
        Request.objects.filter(number=2, purpose="delete").exclude(state="superseded").update(problem_code=code)
    assert Request.objects.count() == count


@pytest.mark.parametrize("state", ["failed", "expired", "withdrawn"])
def test_a_deletion_that_ended_is_asked_for_again_by_the_annotation(env: World, state: str) -> None:
    """As its remedy says: `kubectl delete` of what is Terminating is no news to anybody."""
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    place = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "harbour", "name": "tide"}
    InventoryItem.objects.create(deployment=deployment, uid="u", nonce="n", **place)

    def going(value: str) -> dict[str, Any]:
        obj = again(deployment, value)
        meta = {**obj["metadata"], "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        return {**obj, "metadata": meta}

    world.submit_spec(env.cluster, going(""))
    world.submit_spec(env.cluster, going("1"))
    assert [one.purpose for one in Request.objects.order_by("number")] == ["deploy", "delete"], "it is open"
    Request.objects.filter(number=2).update(state=state)
    for value in ("1", "2", "2"):
        world.submit_spec(env.cluster, going(value))
    made = Request.objects.get(number=3)
    assert (made.purpose, made.state, made.is_requester_known) == ("delete", "preparing", False)


def test_asking_again_in_the_browser_writes_the_annotation_as_the_person(env: World) -> None:
    made = services.create_deployment(
        by=acting(env.rita), cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    Request.objects.update(problem_code="key-missing")
    services.ask_again(by=acting(env.rita), deployment=made, via="browser")
    Request.objects.update(state="expired")
    services.ask_again(by=acting(env.rita), deployment=made, via="browser")
    assert [request.state for request in Request.objects.order_by("number")] == ["expired", "expired", "preparing"]


def test_a_write_that_the_watch_saw_first_gets_its_writer_later_and_the_history_says_so(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj)
    assert not Request.objects.get().is_requester_known
    world.submit_spec(env.cluster, obj, env.rita)
    request = Request.objects.get()
    assert (request.is_requester_known, request.requesters[0]["username"]) == (True, "rita")
    entry = AuditEntry.objects.get(verb="request.requester-known")
    assert (entry.actor, entry.request_uid) == ("rita", str(request.uid))


def test_a_request_that_failed_before_its_writer_was_known_is_made_again(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj)
    Request.objects.update(state="failed", problem_code="forbidden")
    world.submit_spec(env.cluster, obj, env.rita)
    latest = Request.objects.get(number=2)
    assert (latest.state, latest.is_requester_known) == ("preparing", True)


@pytest.mark.parametrize(("conflicts", "is_written"), [(4, True), (5, False)], ids=["passing", "for ever"])
def test_a_status_written_in_between_does_not_stop_a_change(env: World, conflicts: int, is_written: bool) -> None:
    made = services.create_deployment(
        by=acting(env.rita), cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    env.kubernetes.conflicts = conflicts
    change = {"by": acting(env.rita), "deployment": made, "spec": world.spec("2.0.0"), "via": "browser"}
    with nullcontext() if is_written else pytest.raises(Changed):
        services.change_deployment(generation=1, **change)
    assert (env.kubernetes.objects["strimzi"]["spec"] == world.spec("2.0.0")) is is_written


def test_a_spec_that_somebody_else_changed_is_not_overwritten(env: World) -> None:
    made = services.create_deployment(
        by=acting(env.rita), cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    change = {"by": acting(env.rita), "deployment": made, "via": "browser"}
    services.change_deployment(generation=1, spec=world.spec("2.0.0"), **change)
    with pytest.raises(Changed, match="since you opened this page"):
        services.change_deployment(generation=1, spec=world.spec("3.0.0"), **change)


def test_who_paused_with_kubectl_is_said_to_be_unknown_with_the_reason_given(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj, env.rita)
    paused = world.seen(
        "strimzi",
        world.spec(paused=True),
        uid=obj["metadata"]["uid"],
        generation=2,
        annotations={"core.rukpak.io/pause-reason": "storm"},
    )
    deployment = world.submit_spec(env.cluster, paused)
    assert lists.pause_words(deployment=deployment) == "by an unknown user: storm"
    assert world.submit_spec(env.cluster, paused, env.rita)
    assert lists.pause_words(deployment=deployment) == "by rita: storm"
    resumed = world.seen("strimzi", world.spec(), uid=obj["metadata"]["uid"], generation=3)
    assert lists.pause_words(deployment=world.submit_spec(env.cluster, resumed)) == ""
