"""The page on which glass is broken, and what the other pages say after that."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from approvals.models import Request, Review
from approvals.selectors import debts
from approvals.steps import evaluate
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

DELETION = {
    "action": "delete",
    "ref": {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "old"},
    "before": {},
    "after": None,
    "uid": "u",
    "problem": "",
}


@pytest.fixture
def held(env: World, request_: Request, settings: Settings) -> Request:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    for name in ("ada", "bert", "rita"):
        env.kubernetes.allow(name, "get")
    env.kubernetes.allow("bert", "break-glass", "strimzi")
    report = request_.reports.get()
    report.body = {**report.body, "plan": {**report.body["plan"], "actions": [DELETION]}}
    report.save()
    return request_


def test_glass_is_broken_on_a_page_of_its_own_and_reviewed_on_the_requests(
    env: World, held: Request, browse: Browse
) -> None:
    page = f"/requests/{held.uid}"
    assert f"{page}/break-glass" in browse(env.bert).get(page).content.decode()
    client = browse(env.bert)
    text = text_of(client.get(f"{page}/break-glass"))
    assert "What it skips, and what it does not" in text and "delete Secret harbour/old" in text
    wish = {
        "subject_digest": held.subject_digest,
        "incident": "INC-<b>7",
        "reason": "the <registry> is down",
        "typed": "strimzi",
        "acknowledges": "delete Secret harbour/old",
    }
    moved = client.post(f"{page}/break-glass", {**wish, "subject_digest": "sha256:0"})
    assert (moved.status_code, "review it again" in text_of(moved)) == (422, True)
    for missing in ("incident", "reason", "typed", "acknowledges"):
        refused = client.post(f"{page}/break-glass", {**wish, missing: ""})
        assert refused.status_code == 422, missing
        if missing != "reason":
            assert "the &lt;registry&gt; is down" in refused.content.decode()
    assert not Review.objects.exists()
    assert client.post(f"{page}/break-glass", wish)["Location"] == page
    evaluate.run(Request.objects.select_related("deployment__cluster").get(pk=held.pk), "test")
    for address in (page, "/home", "/deployments/prod/strimzi"):
        shown = browse(env.ada).get(address).content.decode()
        assert "broke glass" in shown and "INC-&lt;b&gt;7" in shown, address
    for person in (env.bert, env.rita):  # who broke it, and who asked for the change
        assert "Your review" not in text_of(browse(person).get(page))
    assert "Your review" in text_of(browse(env.ada).get(page))
    answer = {"subject_digest": held.subject_digest, "decision": "Object", "reason": " "}
    refused = browse(env.ada).post(f"{page}/review-afterwards", answer)
    assert (refused.status_code, "The reason is missing" in text_of(refused)) == (422, True)
    answer["decision"] = "Accept"
    assert browse(env.ada).post(f"{page}/review-afterwards", answer)["Location"] == page
    assert not debts.owed().exists()
    assert "accepted it" in text_of(browse(env.ada).get(page))
    assert "Reviews owed after break-glass" not in text_of(browse(env.ada).get("/home"))


def test_who_may_not_is_told_why_and_given_no_form(env: World, held: Request, browse: Browse) -> None:
    client = browse(env.ada)
    shown = client.get(f"/requests/{held.uid}/break-glass").content.decode()
    assert "you cannot break glass here" in shown.lower() and 'name="incident"' not in shown
    env.kubernetes.allow("rita", "break-glass")
    own = browse(env.rita).get(f"/requests/{held.uid}/break-glass").content.decode()
    assert "you requested this change" in own.lower() and 'name="incident"' not in own
    wish = {"subject_digest": held.subject_digest, "incident": "INC-7", "reason": "x", "typed": "strimzi"}
    assert client.post(f"/requests/{held.uid}/break-glass", wish).status_code == 403
    assert not Review.objects.exists()
