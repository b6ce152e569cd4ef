"""Who may give a set its order, and who may let it go on sooner (S50)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from approvals import services
from approvals.audit import Actor
from approvals.errors import InvalidInput, NotAllowed, NotAsExpected, NotFound, NotOpen, SelfApproval
from approvals.ledger import rollouts
from approvals.models import AuditEntry, BundleDeployment, Cluster, Request, RingApproval, Rollout
from approvals.selectors.sets import LABEL, summaries
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.rollouts import asked, known_on, order, set_state, silence
from tests.support.approvals.world import acting

APPROVED = [{"name": "canary", "clusters": ["prod"], "requiresApproval": True}, {"name": "rest"}]


@pytest.fixture
def moon(env: World) -> Cluster:
    """A second cluster. bert may write on both and approve on none."""
    where = world.cluster("moon")
    known_on(where, env.ada, env.bert, env.rita)
    env.kubernetes.allow("bert", "update")
    env.kubernetes.allow("bert", "get")
    return where


@pytest.fixture
def pair(env: World, moon: Cluster) -> tuple[Request, Request]:
    """Of the first ring and of the second; the first one is healthy."""
    first, second = asked(env.cluster, "quay", env.rita), asked(moon, "quay", env.rita)
    return first, second


def let_go(by: Any, how: str = "approve", **more: Any) -> None:
    about: dict[str, Any] = {"by": acting(by), "clusters": list(Cluster.objects.all()), "name": "spring"}
    about["reason"] = "seen on staging"
    if how == "approve":
        shown = services.read_order(clusters=about["clusters"], name="spring")
        assert shown is not None
        services.approve_ring(**about, ring="canary", channel="browser", **{"version": shown.rings[0].version, **more})
    elif how == "take out":
        services.take_out(**about, cluster="moon", deployment="quay", via="browser", **more)
    else:
        services.end_order(**about, via="browser", **more)


def test_an_order_is_made_by_whoever_may_update_every_member(env: World, pair: tuple[Request, Request]) -> None:
    with pytest.raises(NotAllowed, match="update"):
        order(env.ada, *pair)
    order(env.bert, *pair)
    shown = services.read_order(clusters=list(Cluster.objects.all()), name="spring")
    assert shown is not None
    assert [(one.ring.name, [each.cluster for each in one.members]) for one in shown.rings] == [
        ("canary", ["prod"]),
        ("rest", ["moon"]),
    ]
    assert [row.deployment for row in AuditEntry.objects.filter(verb="set.joined")] == ["quay", "quay"]
    # What was chosen is a set, without a label.
    assert [(one.name, one.members) for one in summaries(clusters=Cluster.objects.all())] == [("spring", 2)]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "a b"}, "name"),
        ({"name": "spring"}, "name"),
        ({"rings": [{"name": "canary", "clusters": ["prod"]}]}, "rings"),
        ({"rings": [{"name": "canary", "clusters": ["mars"]}, {"name": "rest"}]}, "rings"),
        ({"rings": [{"name": "canary", "soak": 1}]}, "rings"),
        ({"on_failure": "Explode"}, "on_failure"),
        ({"on_failure": "PutBack"}, "on_failure"),
        ({"members": [], "name": "unlabelled"}, "members"),
        ({}, "members"),
    ],
    ids=["name", "taken", "no ring", "empty ring", "unknown field", "on failure", "put back", "label", "two orders"],
)
def test_what_is_no_order_is_refused_with_its_field(
    env: World, pair: tuple[Request, Request], change: dict[str, Any], field: str
) -> None:
    order(env.bert, *pair)
    wish: dict[str, Any] = {"name": "autumn", "members": [("prod", "quay"), ("moon", "quay")], "on_failure": "Stop"}
    wish |= {"rings": [{"name": "canary", "clusters": ["prod"]}, {"name": "rest"}], **change}
    with pytest.raises(InvalidInput) as refused:
        services.make_order(by=acting(env.bert), clusters=list(Cluster.objects.all()), via="rest", **wish)
    assert refused.value.facts["field"] == field
    assert Rollout.objects.count() == 1


def test_a_deployment_is_in_one_order_at_a_time(env: World, pair: tuple[Request, Request]) -> None:
    """In two with other rings, each would wait for the other."""
    back = [{"name": "canary", "clusters": ["moon"]}, {"name": "rest"}]
    order(env.bert, *pair)
    with pytest.raises(InvalidInput, match="quay is in the order of set spring"):
        order(env.bert, *pair, name="autumn", rings=back)
    let_go(env.ada, "end")
    order(env.bert, *pair, name="autumn", rings=back)


def test_a_member_that_is_not_there_or_cannot_be_read_is_not_found(env: World, pair: tuple[Request, Request]) -> None:
    wish: dict[str, Any] = {"name": "autumn", "rings": [{"name": "all"}], "on_failure": "Stop", "via": "rest"}
    for clusters, place in ((list(Cluster.objects.all()), ("prod", "nothing")), ([env.cluster], ("moon", "quay"))):
        with pytest.raises(NotFound):
            services.make_order(by=acting(env.bert), clusters=clusters, members=[place], **wish)


def test_without_members_those_with_the_label_and_an_open_request_are_ordered(
    env: World, pair: tuple[Request, Request]
) -> None:
    idle = asked(env.cluster, "idle", env.rita)
    Request.objects.filter(pk=idle.pk).update(state="denied", settled_at=timezone.now())
    BundleDeployment.objects.update(labels={LABEL: "spring"})
    made = services.make_order(
        by=acting(env.bert),
        clusters=list(Cluster.objects.all()),
        name="spring",
        members=[],
        rings=[{"name": "all"}],
        on_failure="Stop",
        via="rest",
    )
    assert {row.deployment.name for row in made.members.all()} == {"quay"}


def test_rings_go_by_the_labels_of_clusters(env: World, moon: Cluster, pair: tuple[Request, Request]) -> None:
    services.label_cluster(cluster=moon, changes=["ring=canary"], by=Actor("root", "shell"))
    order(env.bert, *pair, rings=[{"name": "canary", "matchLabels": {"ring": "canary"}}, {"name": "rest"}])
    assert [row.deployment.cluster.name for row in Rollout.objects.get().members.all()] == ["moon", "prod"]


@pytest.mark.parametrize("how", ["approve", "take out", "end"])
def test_S50_what_lets_a_set_go_on_takes_approve_on_all_that_waits(
    env: World, pair: tuple[Request, Request], how: str
) -> None:
    first, second = pair
    order(env.bert, *pair, rings=APPROVED)
    set_state(first, "applied", health="Current")
    set_state(second, "approved")
    before = list(Rollout.objects.values()), list(Rollout.objects.get().members.values())
    with pytest.raises(NotAllowed, match="approve"):
        let_go(env.bert, how)
    # Who may approve the healthy one alone may not let the others go.
    env.kubernetes.allow("bert", "approve", "bundledeployments /other")
    with pytest.raises(NotAllowed):
        let_go(env.bert, how)
    assert (list(Rollout.objects.values()), list(Rollout.objects.get().members.values())) == before
    let_go(env.ada, how)
    assert (
        rollouts.orders_of(second) == ()
        or rollouts.orders_of(second)[0].hold_of("moon", "quay", timezone.now()) is None
    )


@pytest.mark.parametrize("how", ["approve", "take out", "end"])
def test_S05_nobody_lets_their_own_change_go_on(env: World, pair: tuple[Request, Request], how: str) -> None:
    order(env.bert, *pair, rings=APPROVED)
    set_state(pair[0], "applied", health="Current")
    env.kubernetes.allow("rita", "approve")
    env.kubernetes.allow("rita", "get")
    with pytest.raises(SelfApproval):
        let_go(env.rita, how)
    assert not RingApproval.objects.exists() and Rollout.objects.get().ended_at is None


def test_S02_of_members_elsewhere_only_that_there_are_some_is_told(env: World, pair: tuple[Request, Request]) -> None:
    order(env.bert, *pair, rings=APPROVED)
    set_state(pair[0], "applied", health="Current")
    for do in (
        lambda about: services.approve_ring(**about, ring="canary", version="", channel="browser"),
        lambda about: services.end_order(**about, via="browser"),
    ):
        with pytest.raises(NotAllowed) as refused:
            do({"by": acting(env.ada), "clusters": [env.cluster], "name": "spring", "reason": "because"})
        assert "moon" not in str(refused.value)
    shown = services.read_order(clusters=[env.cluster], name="spring")
    assert shown is not None and [(len(one.members), one.hidden) for one in shown.rings] == [(1, 0), (0, 1)]
    assert services.read_order(clusters=[world.cluster("mars")], name="spring") is None
    with pytest.raises(NotFound):
        services.end_order(by=acting(env.ada), clusters=[], name="spring", reason="because", via="browser")


def test_a_ring_is_approved_once_it_is_healthy_and_for_what_was_seen_of_it(
    env: World, pair: tuple[Request, Request]
) -> None:
    first, second = pair
    order(env.bert, *pair, rings=APPROVED)
    with pytest.raises(NotOpen, match="0 of 1 member healthy"):
        let_go(env.ada)
    set_state(first, "applied", health="Current")
    let_go(env.ada)
    with pytest.raises(NotOpen, match="nobody is waited for"):
        let_go(env.ada)
    (found,) = rollouts.orders_of(second)
    assert found.hold_of("moon", "quay", timezone.now()) is None
    # Other content in the ring: nobody has approved what follows that.
    later = Request.objects.get(pk=first.pk)
    later.pk, later.number, later.uid = None, 2, uuid4()
    later.save(force_insert=True)
    set_state(later, "applied", health="Current")
    (found,) = rollouts.orders_of(second)
    assert found.approved == frozenset()


def test_S50_what_follows_a_ring_is_approved_as_it_was_seen_and_for_no_more(
    env: World, pair: tuple[Request, Request]
) -> None:
    first, second = pair
    third = asked(env.cluster, "dock", env.rita)
    order(env.bert, *pair, third, rings=APPROVED)
    set_state(first, "applied", health="Current")
    BundleDeployment.objects.filter(pk=third.deployment_id).update(is_paused=True)
    shown = services.read_order(clusters=list(Cluster.objects.all()), name="spring")
    assert shown is not None
    let_go(env.ada)
    assert rollouts.orders_of(second)[0].approved == {0}
    # Nobody has seen how the other one is.
    BundleDeployment.objects.filter(pk=third.deployment_id).update(is_paused=False)
    set_state(third, "applied", health="Current")
    assert rollouts.orders_of(second)[0].approved == frozenset()
    with pytest.raises(NotAsExpected, match="ring canary is not as it was"):
        let_go(env.ada, version=shown.rings[0].version)
    let_go(env.ada)
    assert rollouts.orders_of(second)[0].approved == {0}
    # Nor that one of them is left out.
    BundleDeployment.objects.filter(pk=third.deployment_id).update(deletion_requested_at=timezone.now())
    assert rollouts.orders_of(second)[0].approved == frozenset()


def test_an_approval_of_a_ring_in_which_nothing_became_healthy_ends_when_something_does(
    env: World, pair: tuple[Request, Request]
) -> None:
    first, second = pair
    order(env.bert, *pair, rings=APPROVED)
    BundleDeployment.objects.filter(pk=first.deployment_id).update(is_paused=True)
    let_go(env.ada)
    assert rollouts.orders_of(second)[0].approved == {0}
    BundleDeployment.objects.update(is_paused=False)
    set_state(first, "applied", health="Current")
    assert rollouts.orders_of(second)[0].approved == frozenset()


def test_nothing_is_looked_up_by_what_cannot_be_a_name(env: World, django_assert_num_queries: Any) -> None:
    """PostgreSQL refuses a NUL with an error."""
    clusters, ada = [env.cluster], acting(env.ada)
    with django_assert_num_queries(0):
        assert services.read_order(clusters=clusters, name="a\0b") is None
        with pytest.raises(NotFound):
            services.end_order(by=ada, clusters=clusters, name="a\0b", reason="because", via="rest")


def test_a_silent_cluster_is_not_asked_who_may_let_the_set_go_on(env: World, pair: tuple[Request, Request]) -> None:
    third = asked(env.cluster, "dock", env.rita)
    order(env.bert, *pair, third, rings=[{"name": "canary", "clusters": ["moon"]}, {"name": "rest"}])
    silence(pair[1].cluster)
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    env.kubernetes.allow("ada", "approve", "bundledeployments /dock")
    with pytest.raises(NotAllowed):
        let_go(env.ada)
    env.kubernetes.allow("ada", "approve")
    let_go(env.ada)
    (found,) = rollouts.orders_of(third)
    assert "is applied when all its members are approved" in str(found.hold_of("prod", "dock", timezone.now()))


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001])
def test_a_reason_is_kept(env: World, pair: tuple[Request, Request], reason: str) -> None:
    order(env.bert, *pair)
    with pytest.raises(InvalidInput, match="reason"):
        services.end_order(
            by=acting(env.ada), clusters=list(Cluster.objects.all()), name="spring", reason=reason, via="browser"
        )
