"""Pages of notification targets: made, tested, looked at, and shown to nobody else."""

from __future__ import annotations

import re

from approvals.clock import database_now
from approvals.models import NotificationDelivery, NotificationTarget
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.notification_targets import target_row

HOOK = "/notifications/of/hook"
FORM = {
    "name": "hook",
    "kind": "webhook",
    "address": "https://hooks.example.com/T0/verysecretpartofthis",
    "version": "0",
}


def test_a_target_is_made_shown_with_its_secret_once_tested_and_deleted(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    assert "Create a target" in text_of(client.get("/notifications"))
    made = client.post(
        "/notifications/new", {**FORM, "is_active": "on", "event_types": "dev.pratique.request.denied.v1"}
    )
    target = NotificationTarget.objects.get()
    assert target.secret in text_of(made)
    shown = text_of(client.get(HOOK))
    assert "whsec_" not in shown
    assert "request.denied" in shown

    assert client.post(f"{HOOK}/test").status_code == 302
    waiting = text_of(client.get(HOOK))
    assert "waits</span> to be sent" in waiting
    assert 'hx-trigger="every 2s' in waiting
    NotificationDelivery.objects.update(
        send_at=None, dead_at=database_now(), attempts=1, problem="hooks.example.com cannot be resolved"
    )
    fragment = text_of(client.get(f"{HOOK}/deliveries"))
    assert "hooks.example.com cannot be resolved" in fragment
    assert "hx-trigger" not in fragment
    row = NotificationDelivery.objects.get()
    assert f"{HOOK}/deliveries/{row.pk}/again" in fragment
    assert client.post(f"{HOOK}/deliveries/{row.pk}/again").status_code == 302

    edited = {**FORM, "version": "1", "address": "https://hooks.example.com/b"}
    assert client.post(f"{HOOK}/edit", edited)["Location"] == HOOK
    assert "Nothing is sent: ada switched it off" in text_of(client.get(HOOK))
    stale = client.post(f"{HOOK}/edit", edited)
    assert stale.status_code == 422
    assert "changed by someone else" in text_of(stale)
    secret = text_of(client.post(f"{HOOK}/secret"))
    assert NotificationTarget.objects.get().secret in secret
    assert client.post(f"{HOOK}/delete")["Location"] == "/notifications"
    assert client.get(HOOK).status_code == 404


def test_S54_a_chat_has_an_address_that_is_not_shown_and_no_secret(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    slack = {**FORM, "kind": "slack", "is_active": "on"}
    assert "expected https and hooks.slack.com" in text_of(client.post("/notifications/new", slack))
    hook = "https://hooks.slack.com/services/T0/B0/verysecret"
    assert client.post("/notifications/new", {**slack, "address": hook})["Location"] == HOOK
    for address in (HOOK, "/notifications", f"{HOOK}/edit"):
        shown = text_of(client.get(address))
        assert "https://hooks.slack.com/…" in shown
        assert "verysecret" not in shown
        assert "secret" not in shown.replace("no secret part", ""), address


def test_S53_who_may_not_see_a_cluster_sees_no_target_of_it(env: World, browse: Browse) -> None:
    browse(env.ada).post("/notifications/new", {**FORM, "is_active": "on"})
    client = browse(env.bert)
    listed = text_of(client.get("/notifications"))
    assert "you need <code>approve</code> on every BundleDeployment" in listed
    assert not re.search("hook|example.com", listed.replace("notification", ""))
    refused = client.post("/notifications/new", {**FORM, "name": "mine", "is_active": "on"})
    assert refused.status_code == 422
    assert "you need `approve` on every BundleDeployment" in text_of(refused)
    for address in (HOOK, f"{HOOK}/edit", f"{HOOK}/deliveries"):
        assert client.get(address).status_code == 404, address
    assert NotificationTarget.objects.count() == 1


def test_S53_a_target_of_other_clusters_as_well_is_stopped_by_its_name_and_host(env: World, browse: Browse) -> None:
    world.cluster("staging")
    target_row(FORM["address"], granted=["prod", "staging"])
    client = browse(env.ada)
    listed = text_of(client.get("/notifications"))
    assert "Targets that you can stop" in listed and "hooks.example.com" in listed
    assert "verysecret" not in listed and "staging" not in listed
    assert client.get(HOOK).status_code == 404
    assert client.post(f"{HOOK}/stop")["Location"] == "/notifications"
    assert NotificationTarget.objects.get().granted == ["staging"]
    assert "Targets that you can stop" not in text_of(client.get("/notifications"))
    assert client.post(f"{HOOK}/delete").status_code == client.post(f"{HOOK}/stop").status_code == 404
