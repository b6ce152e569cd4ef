"""Pages of objects that say how requests are decided: they write what kubectl writes, as the person."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache

from approvals.ledger.deciding.deciding_objects import forget
from approvals.models import DecidingObject, Policy, Request
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.approvals.policies import look, save

NEW = "/rules/approval-rules/new"
FOUR_EYES = "/rules/approval-rules/of/prod/four-eyes"
FORM = {
    "name": "four-eyes",
    "cluster": "prod",
    "names": "payments-*\nweb",
    "minSeverity": "dangerous",
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
    assert (stale.status_code, "Your input is kept" in text_of(stale)) == (422, True)
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


POLICIES = "/rules/approval-policies"
POLICY = {
    "name": "calm",
    "cluster": "prod",
    "names": "web",
    "effect": "Guard",
    "validationActions": "Deny",
    "validations": "- {expression: unjudged == 0, message: read its lines}",
}


def test_a_policy_of_a_cluster_is_written_shown_with_what_it_said_and_listed(
    env: World, browse: Browse, request_: Request
) -> None:
    ada = browse(env.ada)
    assert ada.post(f"{POLICIES}/new", {**POLICY, "names": "", "effect": "Grant", "validationActions": "Approve"})
    spec = env.kubernetes.objects["calm"]["spec"]
    assert spec == {
        "effect": "Grant",
        "validationActions": ["Approve"],
        "validations": [{"expression": "unjudged == 0", "message": "read its lines"}],
    }
    look(request_)
    shown = text_of(ada.get(f"{POLICIES}/of/prod/calm"))
    for words in ("Grant: unjudged == 0", "pratique:policy:calm", "It cannot approve anything now", "strimzi #1"):
        assert words in shown, words
    listed = text_of(ada.get("/policies"))
    assert f'href="{POLICIES}/of/prod/calm"' in listed
    assert "the cluster" in listed
    assert f'href="{POLICIES}/of/prod/calm"' in text_of(ada.get(f"/requests/{request_.uid}"))


def test_S46_whoever_may_not_approve_writes_guards_and_no_grants(env: World, browse: Browse) -> None:
    for verb in ("get", "create"):
        env.kubernetes.allow("bert", verb)
    refused = browse(env.bert).post(f"{POLICIES}/new", {**POLICY, "effect": "Grant", "validationActions": "Approve"})
    assert (refused.status_code, env.kubernetes.objects) == (403, {})
    digits = browse(env.ada).post(f"{POLICIES}/new", {**POLICY, "name": "12"})
    assert (digits.status_code, "not digits alone" in text_of(digits)) == (422, True)
    wrong = browse(env.ada).post(f"{POLICIES}/new", {**POLICY, "validations": "- {expression: nothing > 0}"})
    assert (wrong.status_code, "spec.validations[0].expression: " in text_of(wrong)) == (422, True)
    assert browse(env.bert).post(f"{POLICIES}/new", POLICY).status_code == 302


def test_a_policy_of_the_service_moves_to_the_cluster_and_is_never_missing(env: World, browse: Browse) -> None:
    save(env, kind="guard", expression="unjudged == 0", message="read its lines", names=["web"])
    page, place = "/policies/of/routine", "/policies/of/routine/move"
    env.kubernetes.allow("ada", "create")
    assert f'action="{place}"' in browse(env.ada).get(page).content.decode()
    # Whoever may create the object and may not disable the policy leaves both in force.
    for verb in ("get", "create"):
        env.kubernetes.allow("bert", verb)
    assert browse(env.bert).post(place).status_code == 403
    assert [row.is_active for row in Policy.objects.filter(name="routine")] == [True, True]
    forget(cluster=env.cluster, uid=env.kubernetes.objects.pop("routine")["metadata"]["uid"])
    assert browse(env.ada).post(place)["Location"] == f"{POLICIES}/of/prod/routine"
    assert env.kubernetes.objects["routine"]["spec"] == {
        "effect": "Guard",
        "matchConstraints": {"names": ["web"]},
        "validations": [{"expression": "unjudged == 0", "message": "read its lines"}],
        "validationActions": ["Deny"],
    }
    rows = Policy.objects.filter(name="routine").order_by("-pk")
    assert [(bool(row.uid), row.is_active) for row in rows][:1] == [(True, True)]
    assert not rows.get(uid="").is_active


def test_S46_whoever_saves_again_what_somebody_unknown_wrote_is_not_its_author(env: World, browse: Browse) -> None:
    ada = browse(env.ada)
    assert ada.post(f"{POLICIES}/new", POLICY).status_code == 302
    DecidingObject.objects.update(authors=[{}])
    for changes, authors in (({}, 1), ({"description": "hers"}, 2)):
        version = DecidingObject.objects.get().version
        edited = {**POLICY, "allowKnownPowers": "", "version": version, **changes}
        assert ada.post(f"{POLICIES}/of/prod/calm/edit", edited).status_code == 302
        known = DecidingObject.objects.get().authors
        assert (len(known), known[0]) == (authors, {}), known
