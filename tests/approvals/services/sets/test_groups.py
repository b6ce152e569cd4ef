"""Change sets: who is alike for whom, and what one decision records."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals import services
from approvals.access import Caller
from approvals.errors import InvalidInput, NotFound, UnlikeMember
from approvals.models import Cluster, Finding, KubernetesIdentity, Request, Review
from approvals.policy import OWN_RULES_PREFIX
from approvals.selectors import sets
from approvals.services import ChangeSet, MemberResult
from approvals.services.sets.groups import HIDDEN, UNKNOWN
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.sets import DELETION, member
from tests.support.approvals.world import acting


def read(by: User | Caller, *clusters: Cluster, name: str = "spring") -> ChangeSet:
    caller = acting(by) if isinstance(by, User) else by
    return services.read_set(by=caller, clusters=clusters or tuple(Cluster.objects.all()), name=name)


def decide(by: User, shown: Request, *others: Request, decision: str = "Approve", **more: Any) -> list[MemberResult]:
    wish: dict[str, Any] = {
        "clusters": tuple(Cluster.objects.all()),
        "name": "spring",
        "members": {one.uid: one.subject_digest for one in (shown, *others)},
        "reason": "read it",
        "channel": "browser",
        **more,
    }
    return services.review_set(by=acting(by), decision=decision, shown=shown.uid, **wish)


def names_of(found: ChangeSet) -> list[list[str]]:
    return [[one.request.deployment.name for one in group.members] for group in found.groups]


def test_members_with_the_same_likeness_are_alike_and_the_largest_group_is_the_reference(env: World) -> None:
    for name, likeness in {"a": "rare", "b": "usual", "c": "usual", "d": "usual"}.items():
        member(env.cluster, name, env.rita, likeness)
    assert names_of(read(env.ada)) == [["b", "c", "d"], ["a"]]
    # Of groups of one size it is the one that was there first.
    member(env.cluster, "e", env.rita, "other")
    assert names_of(read(env.ada)) == [["b", "c", "d"], ["a"], ["e"]]


def test_what_is_not_in_review_belongs_to_the_set_and_to_no_group(env: World) -> None:
    one, other = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.rita)
    Request.objects.filter(pk=other.pk).update(state="denied", settled_at=timezone.now())
    found = read(env.ada)
    assert names_of(found) == [["a"]]
    assert [settled.request for settled in found.settled] == [other]
    assert sets.summaries(clusters=[env.cluster]) == [sets.SetSummary("spring", 2, 1, 1, "safe")]
    assert one.state == "in_review"


@pytest.mark.parametrize("name", ["autumn", "", "../x", "a b", "spring\n", "x" * 64, "<b>", "sp%ring"])
def test_a_name_that_no_set_has_is_not_found_whatever_it_is(env: World, name: str) -> None:
    member(env.cluster, "a", env.rita)
    with pytest.raises(NotFound):
        read(env.ada, name=name)


def test_S09_whoever_may_not_get_what_is_compared_is_not_told_who_is_alike(env: World) -> None:
    """Neither that they are alike nor that they differ: what the reader sees is the same."""
    env.kubernetes.allow("bert", "get", "bundledeploymentrequests /")
    pairs = []
    for second in ("a", "b"):
        where = world.cluster(f"c-{second}")
        for name, likeness in {"x": "a", "y": second}.items():
            member(where, name, env.ada, likeness)
        identity = {"username": "bert", "groups": ["developers"], "groups_seen_at": timezone.now()}
        KubernetesIdentity.objects.create(user=env.bert, cluster=where, authenticator="mapped", **identity)
        found = read(env.bert, where)
        pairs.append([(one.member.request.deployment.name, one.why) for one in found.alone])
        assert found.groups == ()
    assert pairs[0] == pairs[1] == [("x", HIDDEN), ("y", HIDDEN)]


def test_S09_a_cluster_that_cannot_be_asked_has_no_members_that_are_alike(env: World) -> None:
    member(env.cluster, "a", env.rita)
    caller = acting(env.ada)
    env.kubernetes.is_down = True
    assert [one.why for one in read(caller).alone] == [HIDDEN]


def test_a_report_of_an_earlier_version_is_compared_with_none(env: World) -> None:
    member(env.cluster, "a", env.rita, {})
    member(env.cluster, "b", env.rita, {})
    assert [one.why for one in read(env.ada).alone] == [UNKNOWN, UNKNOWN]


def test_one_decision_is_one_review_of_each_bound_to_its_own_subject(env: World) -> None:
    one, other = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.rita)
    assert [result.refusal for result in decide(env.ada, one, other)] == ["", ""]
    given = {(row.request, row.subject_digest, row.decision, row.username) for row in Review.objects.all()}
    assert given == {(row, row.subject_digest, "Approve", "ada") for row in (one, other)}
    assert [each.has_decided for each in read(env.ada).groups[0].members] == [True, True]
    # The same form once more changes nothing.
    decide(env.ada, one, other)
    assert Review.objects.count() == 2


def test_promise_3_each_member_is_asked_about_in_kubernetes(env: World) -> None:
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    env.kubernetes.allow("ada", "approve", "bundledeployments /a")
    one, other = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.rita)
    results = {result.request.deployment.name: result for result in decide(env.ada, one, other)}
    assert results["a"].refusal == "" and results["b"].code == "not-allowed"
    assert Review.objects.get().request == one


def test_S05_a_member_of_their_own_is_refused_alone(env: World) -> None:
    env.kubernetes.allow("ada", "impersonate")
    one, own = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.ada)
    assert [result.code for result in decide(env.ada, one, own)] == ["", "self-approval"]


def test_S03_a_member_that_moved_since_is_refused_alone(env: World) -> None:
    one, moved = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.rita)
    Request.objects.filter(pk=moved.pk).update(subject_digest="sha256:new")
    assert [result.code for result in decide(env.ada, one, moved)] == ["", "digest-moved"]


def test_S03_nothing_is_approved_by_a_report_that_is_no_longer_the_one_that_was_shown(env: World) -> None:
    shown, other = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.rita)
    Request.objects.filter(pk=shown.pk).update(subject_digest="sha256:new")
    with pytest.raises(UnlikeMember, match="has changed"):
        decide(env.ada, shown, other)
    assert not Review.objects.exists()


@pytest.mark.parametrize("likeness", ["other", {}, {"digest": "a", "needs": [["", "v1", "Secret", "vault"]]}])
def test_S03_what_is_not_alike_does_not_ride_along(env: World, likeness: Any) -> None:
    usual, dangerous = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.rita, likeness)
    results = decide(env.ada, usual, dangerous)
    assert [result.code for result in results] == ["", "unlike-member"]
    assert Review.objects.get().request == usual
    # Who wants to deny may deny all of them.
    assert [result.refusal for result in decide(env.ada, usual, dangerous, decision="Deny")] == ["", ""]


def test_S02_members_elsewhere_are_as_if_they_did_not_exist(env: World) -> None:
    elsewhere = member(world.cluster("moon"), "b", env.ada)
    one = member(env.cluster, "a", env.rita)
    results = decide(env.ada, one, elsewhere, clusters=(env.cluster,))
    assert [result.request for result in results] == [one]
    assert sets.summaries(clusters=[env.cluster])[0].members == 1
    outsider = member(env.cluster, "c", env.rita)
    outsider.deployment.labels = {}
    outsider.deployment.save(update_fields=["labels"])
    assert [result.request for result in decide(env.ada, one, outsider)] == [one]


def test_S15_what_an_approval_acknowledges_is_kept_with_each_review(env: World) -> None:
    pair = [member(env.cluster, name, env.rita, worst="dangerous", actions=[DELETION]) for name in ("a", "b")]
    assert [result.code for result in decide(env.ada, *pair)] == ["unacknowledged", "unacknowledged"]
    named = ["delete ConfigMap harbour/old"]
    assert [result.refusal for result in decide(env.ada, *pair, acknowledges=named)] == ["", ""]
    assert [review.acknowledges for review in Review.objects.all()] == [named, named]


def test_S22_what_affects_pratique_is_approved_on_its_own_page(env: World) -> None:
    """Also where the finding is one about a Secret, which is not compared."""
    one, other = member(env.cluster, "a", env.rita), member(env.cluster, "b", env.rita)
    kept = {"severity": "critical", "section": "objects", "message": "it grants approve", "fingerprint": "f"}
    Finding.objects.create(report=other.reports.get(), position=0, rule=f"{OWN_RULES_PREFIX}01", **kept)
    assert [result.code for result in decide(env.ada, one, other)] == ["", "unlike-member"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"decision": "RequestChanges"}, "decision"),
        ({"decision": "Deny", "reason": " "}, "reason"),
        ({"members": {}}, "members"),
        ({"members": {uuid4(): "" for _ in range(51)}}, "members"),
        ({"members": {uuid4(): ""}}, "shown"),
    ],
    ids=["decision", "reason", "none", "too many", "shown"],
)
def test_a_decision_that_is_not_whole_is_refused(env: World, change: dict[str, Any], field: str) -> None:
    one = member(env.cluster, "a", env.rita)
    with pytest.raises(InvalidInput) as refused:
        decide(env.ada, one, **change)
    assert refused.value.facts["field"] == field
    assert not Review.objects.exists()


def test_a_set_is_read_with_as_many_queries_however_many_its_members_are(env: World) -> None:
    caller = acting(env.ada)
    counts = []
    for start in (0, 2):
        for number in range(start, start * 10 + 2):
            member(env.cluster, f"m{number}", env.rita)
        with CaptureQueriesContext(connection) as counted:
            found = read(caller, env.cluster)
            services.read_groups(found)
        counts.append((len(found.in_review), len(counted)))
    assert [count for count, _ in counts] == [2, 22]
    assert counts[0][1] == counts[1][1]
