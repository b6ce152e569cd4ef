"""Pages of objects that say how requests are decided: they write what kubectl writes, as the person."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache

from approvals.models import DecidingObject, Request
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

NEW = "/rules/approval-rules/new"
FOUR_EYES = "/rules/approval-rules/of/prod/four-eyes"
FORM = {
    "name": "four-eyes",
    "cluster": "prod",
    "names": "payments-*\nweb",
    "min_severity": "dangerous",
    "require": "- name: security\n  groups: [security]\n",
}


def create(env: World, browse: Browse, **changes: Any) -> Any:
    return browse(env.ada).post(NEW, {**FORM, **changes})


def test_a_rule_is_written_shown_changed_and_deleted(env: World, browse: Browse, request_: Request) -> None:
    assert create(env, browse)["Location"] == FOUR_EYES
    assert env.kubernetes.objects["four-eyes"]["spec"] == {
        "selector": {"names": ["payments-*", "web"], "minSeverity": "dangerous"},
        "require": [{"name": "security", "groups": ["security"]}],
    }
    assert "payments-*, web, dangerous or worse" in text_of(browse(env.ada).get("/rules/approval-rules"))
    needed = {"name": "four-eyes", "needed": ["1 of group security"], "problem": "", "note": ""}
    Request.objects.filter(pk=request_.pk).update(approval_rules=[needed])
    shown = text_of(browse(env.ada).get(FOUR_EYES))
    assert "strimzi #1" in shown
    assert "1 of group security" in shown
    assert "four-eyes: 1 of group security" in text_of(browse(env.ada).get(f"/requests/{request_.uid}"))

    version = DecidingObject.objects.get().version
    changed = {**FORM, "version": version, "require": "- {name: a, count: 2}"}
    assert browse(env.ada).post(f"{FOUR_EYES}/edit", changed).status_code == 302
    assert env.kubernetes.objects["four-eyes"]["spec"]["require"] == [{"name": "a", "count": 2}]
    stale = browse(env.ada).post(f"{FOUR_EYES}/edit", {**changed, "version": "0"})
    assert (stale.status_code, "What you typed is kept" in text_of(stale)) == (422, True)
    again = {**changed, "version": DecidingObject.objects.get().version}
    assert f'value="{again["version"]}"' in stale.content.decode(), "saving once more replaces it"
    assert browse(env.ada).post(f"{FOUR_EYES}/delete", {"version": version}).status_code == 412
    version = DecidingObject.objects.get().version
    assert browse(env.ada).post(f"{FOUR_EYES}/delete", {"version": version}).status_code == 302


def test_a_window_is_changed_with_its_boxes(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "delete")
    typed = {"name": "freeze", "cluster": "prod", "type": "Deny", "appliesTo": ["Apply", "Restore"]}
    page = browse(env.ada).post("/rules/change-windows/new", typed)["Location"]
    assert env.kubernetes.objects["freeze"]["spec"]["appliesTo"] == ["Apply", "Restore"]
    assert "are applied as soon as no other change window" in text_of(browse(env.ada).get(page))
    form = browse(env.ada).get(f"{page}/edit").content.decode()
    assert form.count("checked") == 2
    changed = {**typed, "appliesTo": ["Restore"], "version": DecidingObject.objects.get().version}
    assert browse(env.ada).post(f"{page}/edit", changed).status_code == 302
    assert env.kubernetes.objects["freeze"]["spec"]["appliesTo"] == ["Restore"]


def test_what_is_wrong_is_said_at_the_form_and_nothing_is_written(env: World, browse: Browse) -> None:
    for changes, words in (
        ({"require": ""}, "This field is required"),
        ({"require": "- {name: a, quorum: 2}"}, "which this version of Pratique does not know"),
        ({"when": "size(rules"}, "spec.when"),
        ({"name": "Four Eyes"}, "expected lowercase letters"),
        ({"names": "x" * 300}, "spec.selector.names"),
    ):
        refused = create(env, browse, **changes)
        assert f'href="#id_{next(iter(changes))}"' in refused.content.decode(), "it leads to the field"
        assert (refused.status_code, words in text_of(refused)) == (422, True), words
    assert env.kubernetes.objects == {}


def test_S02_whoever_may_not_get_rules_reads_none(env: World, browse: Browse) -> None:
    create(env, browse)
    cache.clear()
    env.kubernetes.closed.add("approvalrules")
    refused, absent = (browse(env.ada).get(address) for address in (FOUR_EYES, "/rules/approval-rules/of/prod/other"))
    assert (refused.status_code, absent.status_code) == (403, 403)
    assert "approvalrules" in text_of(refused)
    assert browse(env.ada).post(f"{FOUR_EYES}/delete", {"version": "1"}).status_code == 403
    assert "four-eyes" not in text_of(browse(env.ada).get("/rules/approval-rules"))
    assert browse(env.ada).get("/rules/nothing").status_code == 404
