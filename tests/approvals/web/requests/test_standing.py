"""How a request stands, on its page: what holds it back, what became of it, and what differs since the viewer's review."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction

from approvals.chat import sending
from approvals.ledger import rounds
from approvals.ledger.moves import locked
from approvals.models import Dismissal, Request, Review
from approvals.steps import evaluate
from tests.support.approvals import world
from tests.support.approvals.chat import Listener
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, decide, opened


def page_of(request: Request) -> str:
    return f"/requests/{request.uid}"


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def looked_at(request: Request) -> None:
    evaluate.run(Request.objects.get(pk=request.pk), "w")


def new_round(request: Request) -> None:
    with transaction.atomic():
        rounds.void(locked(request.pk), code="plan-changed", words="the cluster changed", facts={})
    Request.objects.filter(pk=request.pk).update(round=request.round + 1)
    request.refresh_from_db()
    created = {
        "action": "create",
        "ref": {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "harbour", "name": "added"},
        "before": None,
        "after": {"kind": "ConfigMap"},
        "serverWords": "",
        "warnings": [],
        "problem": "",
        "problemCode": "",
        "notes": [],
        "isProved": True,
    }
    world.in_review(request, actions=[created])
    Request.objects.filter(pk=request.pk).update(problem="", problem_code="")


def test_changes_are_requested_with_a_reason_and_dismissed_with_one(
    env: World, request_: Request, browse: Browse
) -> None:
    ada = browse(env.ada)
    refused = decide(ada, request_, decision="RequestChanges")
    assert refused.status_code == 422
    assert "Give a reason" in refused.content.decode()
    assert decide(ada, request_, decision="RequestChanges", reason="pin the image").status_code == 302
    looked_at(request_)
    shown = opened(ada, page_of(request_))
    assert "This request needs changes, requested by ada" in words(shown)
    assert "Pin the image." in shown
    assert "RBAC rule that would allow you to dismiss it" in shown
    asked = Review.objects.get()
    address = f"{page_of(request_)}/reviews/{asked.pk}/dismiss"
    assert ada.post(address, {"reason": "agreed"}).status_code == 403
    env.kubernetes.allow("ada", "override")
    assert "Dismiss this review" in opened(ada, page_of(request_))
    assert ada.post(address, {"reason": " "}).status_code == 422
    assert not Dismissal.objects.exists()
    assert ada.post(address, {"reason": "agreed"}).status_code == 302
    assert "dismissed by ada" in words(opened(ada, page_of(request_)))


def test_a_voided_approval_is_said_to_its_giver_with_what_differs(
    env: World, request_: Request, browse: Browse
) -> None:
    ada = browse(env.ada)
    decide(ada, request_, reason="read it")
    new_round(request_)
    shown = words(opened(ada, page_of(request_)))
    assert "Your approval no longer counts" in shown
    assert "because the cluster changed" in shown
    assert "ConfigMap harbour/added : reviewed as not in the plan, now create" in shown
    env.kubernetes.allow("bert", "get")
    assert "Since your review" not in opened(browse(env.bert), page_of(request_))


def test_a_denied_request_tells_its_requester_why_and_what_next(env: World, request_: Request, browse: Browse) -> None:
    decide(browse(env.ada), request_, decision="Deny", reason="not on a Friday")
    looked_at(request_)
    env.kubernetes.allow("rita", "get")
    rita = browse(env.rita)
    shown = opened(rita, page_of(request_))
    assert "This request was denied by ada" in words(shown)
    assert "Not on a Friday." in shown
    assert "Ask again" not in shown
    assert "Someone who may update the deployment can change it or ask for it again." in shown
    assert "can be changed or asked for again" in words(opened(rita, "/?tab=mine"))
    env.kubernetes.allow("rita", "update")
    cache.clear()  # what Kubernetes said of a right is kept for seconds
    offered = opened(rita, page_of(request_))
    assert "Change it" in offered
    assert "/ask-again" in offered
    assert "Someone who may update" not in offered


@pytest.mark.parametrize("is_back", [False, True])
def test_S05_the_page_of_a_request_offers_to_ask_again_only_for_the_spec_that_it_shows(
    env: World, request_: Request, browse: Browse, settings: Any, is_back: bool
) -> None:
    """Who asks again answers for the whole spec. Somebody may have written another one, whose request waits for room."""
    settings.PRATIQUE = {**settings.PRATIQUE, "MAX_OPEN_REQUESTS_OF_ONE": 0, "MAX_OPEN_REQUESTS_OF_UNKNOWN": 0}
    for verb in ("get", "update"):
        env.kubernetes.allow("rita", verb)
    name, uid = request_.deployment.name, request_.deployment.uid
    Request.objects.update(state="failed")
    for generation, wish in enumerate([world.spec("6.6.6"), *([request_.spec] if is_back else [])], 2):
        world.submit_spec(env.cluster, world.seen(name, wish, uid=uid, generation=generation), by=env.rita)
    shown = opened(browse(env.rita), page_of(request_))
    assert Request.objects.count() == 1
    assert ("/ask-again" in shown, f"/deployments/prod/{name}/edit" in shown) == (is_back, True)


@pytest.mark.parametrize("state", ["failed", "expired", "withdrawn", "superseded", "denied"])
def test_what_has_ended_never_says_that_a_report_is_being_made(
    env: World, request_: Request, browse: Browse, state: str
) -> None:
    Request.objects.update(state=state, problem="the image does not exist")
    shown = opened(browse(env.ada), page_of(request_))
    assert "being prepared" not in shown
    assert "is waiting" not in shown


def test_chat_tells_of_requested_changes_and_of_voided_approvals(
    env: World, asked: Request, listener: Listener, browse: Browse
) -> None:
    ada: Any = browse(env.ada)
    decide(ada, asked, decision="RequestChanges", reason="pin <it>")
    sending.tell(asked.pk, "changes_requested")
    decide(ada, asked, reason="fine now")
    with transaction.atomic():
        rounds.void(locked(asked.pk), code="plan-changed", words="the cluster changed", facts={})
    sending.tell(asked.pk, "voided")
    told = [one["text"] for one in listener.received]
    assert "changes requested by ada: Pin &lt;it&gt;." in told[0]
    assert "the approval by ada no longer counts, because the cluster changed" in told[1]
