"""Deciding in the browser: what an approval asks for, and who may not give one."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import KubernetesIdentity, Report, Review
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, decide, text_of

DELETED = [
    "delete ConfigMap shop/b",
    "delete CustomResourceDefinition.apiextensions.k8s.io orders.shop.example.com",
    "delete PersistentVolumeClaim shop/data",
]


def test_an_approval_is_kept_with_its_channel_and_digest(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    serious = afternoon["serious"]
    response = decide(browse(env.ada), serious, reason="we waited for it", typed="harbour")
    assert response["Location"] == f"/requests/{serious.uid}"
    review = Review.objects.get(request=serious)
    assert (review.decision, review.channel, review.user, review.reason) == (
        "Approve",
        "browser",
        env.ada,
        "we waited for it",
    )
    assert review.subject_digest == serious.subject_digest


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({"reason": "why not"}, "type the name harbour", id="no name typed"),
        pytest.param({"reason": "why not", "typed": "Harbour"}, "type the name harbour", id="another name typed"),
        pytest.param({"typed": "harbour"}, "enter why you approve it anyway", id="no reason"),
        pytest.param({"typed": "harbour", "reason": " \n"}, "enter why you approve it anyway", id="a blank reason"),
        pytest.param({"decision": "Maybe"}, "expected one of Approve, RequestChanges, Deny", id="no decision"),
    ],
)
def test_a_serious_approval_without_its_words_is_shown_again(
    form: dict[str, str], words: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    response = decide(browse(env.ada), afternoon["serious"], **form)
    assert response.status_code == 422
    told = text_of(response)
    assert words in told
    # At the field, for eyes and for screen readers.
    wrong = "typed" if "type the name" in words else "reason" if "why" in words else ""
    assert [one for one in ("reason", "typed") if f'aria-describedby="{one}_error"' in told] == [wrong][: bool(wrong)]
    assert form.get("reason", "").strip() in text_of(response)
    assert not Review.objects.filter(request=afternoon["serious"]).exists()


@pytest.mark.parametrize(
    ("worst", "is_serious"),
    [
        ("critical", True),
        ("breaking", True),
        ("unknown", True),
        ("dangerous", True),
        ("notable", False),
        ("safe", False),
    ],
)
def test_what_asks_for_the_name_is_dangerous_or_worse_and_unknown_is_worse(
    worst: str, is_serious: bool, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    """What is dangerous beside something unknown has the worst of `unknown`."""
    Report.objects.filter(request=afternoon["serious"]).update(worst=worst)
    response = decide(browse(env.ada), afternoon["serious"], reason="read")
    assert response.status_code == (422 if is_serious else 302)
    assert ("type the name harbour" in text_of(response)) is is_serious


def test_a_denial_needs_no_name_typed(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    assert decide(browse(env.ada), afternoon["serious"], decision="Deny", reason="too risky").status_code == 302
    assert Review.objects.get(request=afternoon["serious"]).decision == "Deny"


@pytest.mark.parametrize("again", [{"decision": "Deny", "reason": "too risky"}, {"decision": "DenyWithoutReason"}])
def test_a_denial_without_a_reason_is_asked_about_once(
    again: dict[str, str], env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client, request = browse(env.ada), afternoon["serious"]
    assert "Deny without a reason" not in text_of(client.get(f"/requests/{request.uid}"))
    asked = decide(client, request, decision="Deny", reason="  ")
    assert (asked.status_code, Review.objects.filter(request=request).count()) == (422, 0)
    assert "You gave no reason for the denial." in text_of(asked)
    assert "Deny without a reason" in text_of(asked)
    assert decide(client, request, **again).status_code == 302
    given = Review.objects.get(request=request)
    assert (given.decision, given.reason) == ("Deny", again.get("reason", ""))


def test_a_denial_of_what_was_not_on_the_screen_is_refused_not_asked_about(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    response = decide(browse(env.ada), afternoon["serious"], decision="Deny", subject_digest="sha256:old")
    assert (response.status_code, "You reviewed" in text_of(response)) == (409, True)


def test_who_may_not_decide_is_refused_before_a_reason_is_asked_for(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.allow("bert", "get")
    response = decide(browse(env.bert), afternoon["serious"], decision="Deny")
    assert (response.status_code, "You gave no reason" in text_of(response)) == (403, False)


def test_a_routine_approval_needs_neither_name_nor_reason(env: World, browse: Browse) -> None:
    request = world.in_review(scene.asked(env.cluster, "barge", env.rita))
    client = browse(env.ada)
    assert "To approve, type" not in text_of(client.get(f"/requests/{request.uid}"))
    assert decide(client, request).status_code == 302


@pytest.mark.parametrize("digest", ["", f"sha256:{'9' * 64}", "<b>"], ids=["none", "another", "markup"])
def test_a_decision_on_another_digest_says_what_moved(
    digest: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    serious = afternoon["serious"]
    response = decide(browse(env.ada), serious, subject_digest=digest, typed="harbour", reason="yes")
    assert response.status_code == 409
    text = text_of(response)
    assert serious.subject_digest in text
    assert f'href="/requests/{serious.uid}"' in text
    assert "<b>" not in text
    assert not Review.objects.filter(request=serious).exists()


def test_each_kind_of_loss_has_to_be_acknowledged(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    deleting, client = afternoon["deleting"], browse(env.ada)
    page = text_of(client.get(f"/requests/{deleting.uid}"))
    losses = re.findall(r'name="acknowledges"\s+value="([^"]+)"', page)
    assert len(losses) == len(set(losses)) > 1
    assert all(one.split(" ", 2)[2] in page for one in DELETED)
    form = {"typed": "buoy", "reason": "yes"}
    response = decide(client, deleting, acknowledges=losses[:1], **form)
    assert response.status_code == 422
    assert decide(client, deleting, acknowledges=losses, **form).status_code == 302
    assert Review.objects.get(request=deleting).acknowledges == DELETED


def test_very_many_deletions_are_ticked_together_shown_by_kind_and_kept_one_by_one(env: World, browse: Browse) -> None:
    body = scene.report_of("data-is-deleted")
    action = next(one for one in body["plan"]["actions"] if one["action"] == "delete")
    body["plan"]["actions"] = [
        {**action, "ref": {**action["ref"], "group": "", "kind": kind, "name": f"n{number}"}}
        for kind in ("ConfigMap", "Service")
        for number in range(400)
    ]
    request = scene.reported(scene.asked(env.cluster, "fleet", env.rita), body)
    client, form = browse(env.ada), {"typed": "fleet", "reason": "yes"}
    page = text_of(client.get(f"/requests/{request.uid}"))
    assert (page.count('name="acknowledges"'), page.count("all 400")) == (1, 2)
    assert "800 objects, deleted" in page
    assert decide(client, request, acknowledges=["data"], **form).status_code == 422
    assert decide(client, request, acknowledges=["objects"], **form).status_code == 302
    assert len(Review.objects.get(request=request).acknowledges) == 800


def test_what_goes_with_an_object_stands_beside_its_checkbox_as_text(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    report = afternoon["deleting"].reports.get()
    telling = next(one for one in report.body["findings"] if one["rule"] == "DEL-01" and ": " in one["message"])
    telling["message"] += ": 2 <b>Boats</b> at present"
    report.save()
    page = browse(env.ada).get(f"/requests/{afternoon['deleting'].uid}").content.decode()
    form = page[page.index("To approve, acknowledge these") : page.index("</fieldset>")]
    assert "2 &lt;b&gt;Boats&lt;/b&gt; at present" in form


def test_lost_data_namespaces_and_definitions_have_a_checkbox_of_their_own_among_very_many_deletions(
    env: World, browse: Browse
) -> None:
    body = scene.report_of("data-is-deleted")
    claim = next(
        one
        for one in body["plan"]["actions"]
        if one["action"] == "delete" and one["ref"]["kind"] == "PersistentVolumeClaim"
    )
    config = [{**claim, "ref": {**claim["ref"], "kind": "ConfigMap", "name": f"n{number}"}} for number in range(99)]
    space = {**claim, "ref": {**claim["ref"], "kind": "Namespace", "namespace": "", "name": "harbour"}}
    crd = {**space["ref"], "group": "apiextensions.k8s.io", "kind": "CustomResourceDefinition", "name": "a.example.com"}
    body["plan"]["actions"] = [claim, *config, space, {**space, "ref": crd}]
    request = scene.reported(scene.asked(env.cluster, "fleet", env.rita), body)
    client, form = browse(env.ada), {"typed": "fleet", "reason": "yes"}
    page = text_of(client.get(f"/requests/{request.uid}"))
    losses = re.findall(r'name="acknowledges"\s+value="([^"]+)"', page)
    assert losses == ["namespaces", "crds", "data", "objects"]
    for left_out in losses:
        others = [one for one in losses if one != left_out]
        assert decide(client, request, acknowledges=others, **form).status_code == 422
    assert decide(client, request, acknowledges=losses, **form).status_code == 302
    assert len(Review.objects.get(request=request).acknowledges) == 102


def test_who_asked_may_deny_but_not_approve(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    env.kubernetes.allow("rita", "approve")
    client = browse(env.rita)
    text = text_of(client.get(f"/requests/{afternoon['serious'].uid}"))
    assert "You requested this change" in text
    assert 'value="Approve"' not in text
    assert 'value="Deny"' in text
    response = decide(client, afternoon["serious"], typed="harbour", reason="mine")
    assert (response.status_code, Review.objects.filter(request=afternoon["serious"]).count()) == (403, 0)


def test_who_may_not_approve_sees_the_rule_that_would_allow_it(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.allow("bert", "get")
    text = text_of(browse(env.bert).get(f"/requests/{afternoon['serious'].uid}"))
    assert "verbs: [&quot;approve&quot;], resourceNames: [&quot;harbour&quot;]" in text
    assert 'name="decision"' not in text


def test_old_groups_decide_nothing(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    KubernetesIdentity.objects.update(authenticator=proved, groups_seen_at=timezone.now() - timedelta(days=3))
    client, page = browse(env.ada), f"/requests/{afternoon['serious'].uid}"
    for answer in (client.get(page), decide(client, afternoon["serious"], typed="harbour", reason="yes")):
        assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={page}")
    assert not Review.objects.filter(request=afternoon["serious"]).exists()


def test_who_has_decided_sees_it_and_may_decide_again(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client, quiet = browse(env.ada), afternoon["quiet"]
    page = text_of(client.get(f"/requests/{quiet.uid}"))
    assert "Your decision: Approve" in page
    assert "Change your decision" in page
    assert decide(client, quiet, decision="Deny", reason="on second thoughts").status_code == 302
    page = text_of(client.get(f"/requests/{quiet.uid}"))
    assert "Your decision: Deny" in page
    assert "replaced by a later review" in page
    assert "on second thoughts</textarea>" in page, "the form holds what was said last"


def test_a_requester_withdraws_and_nobody_else(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    path = f"/requests/{afternoon['serious'].uid}/withdraw"
    assert browse(env.ada).post(path).status_code == 403
    assert browse(env.rita).post(path, {"reason": "too early"}).status_code == 302
    afternoon["serious"].refresh_from_db()
    assert afternoon["serious"].state == "withdrawn"
