"""Notification targets are for those who may see all that they are told (security-rules.md S53)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from approvals import access
from approvals.errors import Changed, CouldNotAsk, InvalidInput, NotAllowed, NotFound, NotOpen, Refused
from approvals.models import AuditEntry, NotificationDelivery, NotificationTarget, OutboxEvent
from approvals.services.notifications import targets
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting
from tests.support.notification_targets import target_row

URL = "https://hooks.example.com/pratique"
WISH: dict[str, Any] = {
    "name": "hook",
    "kind": "webhook",
    "address": URL,
    "event_types": [],
    "clusters": [],
    "labels": {},
    "min_severity": "",
    "is_active": True,
    "via": "browser",
    "version": 0,
}


def save(by: access.Caller, **changes: Any) -> tuple[NotificationTarget, str]:
    return targets.save_target(by=by, **{**WISH, **changes})


def test_a_target_has_a_secret_that_is_shown_once_and_stored_encrypted(env: World) -> None:
    target, secret = save(acting(env.ada))
    assert secret.startswith("whsec_")
    assert (target.granted, target.version, target.created_by) == (["prod"], 1, "ada")
    assert save(acting(env.ada), version=1, clusters=["prod"])[1] == ""
    kept = NotificationTarget.objects.get()
    assert (kept.secret, kept.version, kept.clusters) == (secret, 2, ["prod"])
    newer = targets.make_target_secret(by=acting(env.ada), target=kept, via="rest")
    kept = NotificationTarget.objects.get()
    assert (kept.secret, kept.earlier, newer != secret) == (newer, secret, True)
    entries = AuditEntry.objects.filter(verb__startswith="notification-target.").order_by("number")
    assert [entry.verb.partition(".")[2] for entry in entries] == ["created", "changed", "secret-made"]
    assert all(word not in str(entry.facts) for entry in entries for word in (secret, newer, URL))
    assert not OutboxEvent.objects.exists(), "what is done to targets is no event"


def test_S53_whoever_may_not_see_all_of_a_cluster_neither_makes_nor_sees_its_target(env: World) -> None:
    with pytest.raises(NotAllowed, match="every BundleDeployment"):
        save(acting(env.bert))
    env.kubernetes.allow("bert", "get")
    cache.clear()
    for clusters in ([], ["pr*"], ["prod"]):
        with pytest.raises(NotAllowed):
            save(acting(env.bert), clusters=clusters)
    target, _ = save(acting(env.ada))
    assert targets.visible_targets(by=acting(env.bert)) == []
    for act in (
        lambda: targets.delete_target(by=acting(env.bert), target=target, via="rest"),
        lambda: targets.make_target_secret(by=acting(env.bert), target=target, via="rest"),
        lambda: targets.send_test(by=acting(env.bert), target=target, via="rest"),
        lambda: targets.send_again(by=acting(env.bert), target=target, delivery_id=1, via="rest"),
        lambda: save(acting(env.bert), version=1),
    ):
        with pytest.raises(NotFound):
            act()
    assert targets.visible_targets(by=acting(env.ada)) == [target]


def test_S53_a_glob_grants_what_its_writer_may_see_and_another_writer_needs_all_of_it(env: World) -> None:
    other = world.cluster("staging")
    env.kubernetes.tokens["staging"] = Identity("ada", (), "s-1")
    target = target_row(URL, granted=["prod", "staging"])
    # Somebody on one of its clusters only.
    assert targets.visible_targets(by=acting(env.ada)) == []
    with pytest.raises(NotFound):
        save(acting(env.ada), version=1)
    assert targets.stoppable_targets(by=acting(env.ada)) == [target]
    with pytest.raises(InvalidInput, match="staging is no cluster that you may read"):
        save(acting(env.ada), name="mine", clusters=["staging"])
    assert save(acting(env.ada), name="mine", clusters=["*"])[0].granted == ["prod"]
    # A cluster that is gone is nobody's: what is left decides.
    other.removed_at = other.created_at
    other.save()
    assert targets.visible_targets(by=acting(env.ada)) == [target, NotificationTarget.objects.get(name="mine")]


def test_S53_whoever_may_see_all_of_one_of_its_clusters_stops_a_target_for_that_and_sees_no_more_of_it(
    env: World,
) -> None:
    world.cluster("staging")
    target, act = target_row(URL, granted=["prod", "staging"]), targets.stop_target
    for number, cluster in enumerate(("prod", "staging"), start=1):
        event = OutboxEvent.objects.create(
            number=10**6 + number, type="x", cluster=cluster, subject="a", at=timezone.now()
        )
        NotificationDelivery.objects.create(target=target, event=event, subject="a", send_at=event.at)
    with pytest.raises(NotFound):
        act(by=acting(env.bert), target=target, via="rest")
    assert targets.stoppable_targets(by=acting(env.ada)) == [target]
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    with pytest.raises(NotAllowed, match="need `approve`"):  # a kept answer shows it, Kubernetes says no by now
        act(by=acting(env.ada), target=target, via="rest")
    env.kubernetes.allow("ada", "approve")
    cache.clear()
    with pytest.raises(NotFound):
        targets.delete_target(by=acting(env.ada), target=target, via="rest")
    act(by=acting(env.ada), target=target, via="rest")
    target.refresh_from_db()
    assert (target.is_active, target.granted, target.version) == (True, ["staging"], 2)
    assert [each.event.cluster for each in target.deliveries.all()] == ["staging"]
    assert targets.visible_targets(by=acting(env.ada)) == targets.stoppable_targets(by=acting(env.ada)) == []
    NotificationTarget.objects.update(granted=["prod", "gone"])
    act(by=acting(env.ada), target=target, via="rest")
    target.refresh_from_db()
    assert (target.is_active, target.stopped_because) == (False, "ada switched it off")


def test_two_who_create_it_at_one_moment_are_not_both_refused(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    count = NotificationTarget.objects.count

    def count_while_another_creates_it() -> int:
        target_row(URL)
        return count()

    monkeypatch.setattr(NotificationTarget.objects, "count", count_while_another_creates_it)
    with pytest.raises(Changed, match="created by someone else"):
        save(acting(env.ada))


def test_S53_where_nobody_can_tell_who_may_see_what_nothing_is_saved(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = access.Permission(False, "it did not answer", could_ask=False)
    monkeypatch.setattr("approvals.access.read_answers", lambda _: [(env.cluster, silent)])
    with pytest.raises(CouldNotAsk):
        save(acting(env.ada))
    assert not NotificationTarget.objects.exists()


def test_S54_a_stored_address_is_kept_without_being_shown(env: World) -> None:
    hook = "https://hooks.slack.com/services/T0/B0/verysecret"
    target, secret = save(acting(env.ada), kind="slack", address=hook)
    assert secret == ""
    with pytest.raises(NotOpen, match="not signed"):
        targets.make_target_secret(by=acting(env.ada), target=target, via="rest")
    save(acting(env.ada), kind="slack", address="https://hooks.slack.com/…", version=1, clusters=["prod"])
    kept = NotificationTarget.objects.get()
    assert (kept.address, kept.version) == (hook, 2)
    with pytest.raises(InvalidInput):
        save(acting(env.ada), kind="mattermost", address="https://hooks.slack.com/…", version=2)
    assert all("verysecret" not in str(entry.facts) for entry in AuditEntry.objects.all())


def test_a_kind_that_is_told_of_some_events_only_has_no_others(env: World) -> None:
    pager: dict[str, Any] = {"name": "pager", "kind": "pagerduty", "address": "a" * 32}
    with pytest.raises(InvalidInput, match="pagerduty is told of request.failed"):
        save(acting(env.ada), **pager, event_types=["dev.pratique.request.created.v1"])
    target, _ = save(acting(env.ada), **pager)
    assert "dev.pratique.request.failed.v1" in target.event_types
    assert "dev.pratique.request.created.v1" not in target.event_types


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Hook"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"kind": "fax"}, "kind"),
        ({"address": "hooks"}, "address"),
        ({"address": "javascript:alert(1)"}, "address"),
        ({"address": "https://ada:secret@hooks.example.com/"}, "address"),
        ({"address": "https://hooks.example.com/\r\nx: y"}, "address"),
        ({"address": f"https://hooks.example.com/{'x' * 500}"}, "address"),
        ({"event_types": ["dev.pratique.test.v1"]}, "event_types"),
        ({"event_types": ["*"]}, "event_types"),
        ({"clusters": ["x"] * 51}, "clusters"),
        ({"clusters": [""]}, "clusters"),
        ({"clusters": ["prod", "moon"]}, "clusters"),
        ({"labels": {"": "x"}}, "labels"),
        ({"labels": {"team": "x" * 64}}, "labels"),
        ({"min_severity": "worse"}, "min_severity"),
    ],
)
def test_what_no_target_may_be(env: World, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        save(acting(env.ada), **changes)
    assert refused.value.facts["field"] == field
    assert not NotificationTarget.objects.exists()


def test_two_who_change_it_at_once_and_too_many_are_refused(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    save(acting(env.ada))
    for version, words in ((0, "choose another name"), (2, "changed by someone else")):
        with pytest.raises(Changed, match=words):
            save(acting(env.ada), version=version)
    monkeypatch.setattr(targets, "MOST_TARGETS", 1)
    with pytest.raises(Refused, match="1 notification targets already"):
        save(acting(env.ada), name="another")


def test_one_that_is_switched_off_drops_what_waits_and_is_not_tested(env: World) -> None:
    target, _ = save(acting(env.ada))
    targets.send_test(by=acting(env.ada), target=target, via="browser")
    save(acting(env.ada), version=1, is_active=False)
    row = NotificationDelivery.objects.get()
    assert (row.send_at, row.problem) == (None, "the target was switched off")
    for act in (
        lambda: targets.send_test(by=acting(env.ada), target=target, via="browser"),
        lambda: targets.send_again(by=acting(env.ada), target=target, delivery_id=row.pk, via="browser"),
    ):
        with pytest.raises(NotOpen, match="switched off"):
            act()
    save(acting(env.ada), version=2)
    assert targets.send_again(by=acting(env.ada), target=target, delivery_id=row.pk, via="browser").send_at
    with pytest.raises(NotOpen, match="only what was given up"):
        targets.send_again(by=acting(env.ada), target=target, delivery_id=row.pk, via="browser")
    with pytest.raises(NotFound):
        targets.send_again(by=acting(env.ada), target=target, delivery_id=row.pk + 1, via="browser")
    targets.delete_target(by=acting(env.ada), target=target, via="browser")
    assert not NotificationDelivery.objects.exists()
