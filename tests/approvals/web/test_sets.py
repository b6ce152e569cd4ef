"""The pages of change sets."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
from django.test import Client

from approvals.models import Report, Request, Review
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, queries, text_of
from tests.support.approvals.sets import DELETION, member


def form_of(shown: Request, *others: Request, **more: Any) -> dict[str, Any]:
    named = [f"{one.uid}/{one.subject_digest}" for one in (shown, *others)]
    return {"shown": str(shown.uid), "member": named, "decision": "Approve", "reason": "", **more}


def test_the_list_names_sets_and_says_how_one_is_made(env: World, browse: Browse) -> None:
    ada = browse(env.ada)
    assert "core.rukpak.io/set" in text_of(ada.get("/sets"))
    member(env.cluster, "a", env.rita, worst="dangerous")
    assert "dangerous" in text_of(ada.get("/sets")) and "/sets/spring" in text_of(ada.get("/sets"))
    # Whoever may not read the cluster sees neither the set nor that there is one.
    bert = browse(env.bert)
    assert "spring" not in text_of(bert.get("/sets"))
    assert bert.get("/sets/spring").status_code == bert.get("/sets/autumn").status_code == 404


def test_the_page_says_who_is_alike_and_what_differs(env: World, browse: Browse) -> None:
    pair = [member(env.cluster, name, env.rita) for name in ("a", "b")]
    other = member(env.cluster, "c", env.rita, "other", worst="dangerous", actions=[DELETION])
    page = text_of(browse(env.ada).get("/sets/spring"))
    assert "2 alike" in page and "1 differs" in page
    assert "ConfigMap harbour/old" in page and "not in the plan" in page
    assert all(f"{one.uid}/{one.subject_digest}" in page for one in (*pair, other))


@pytest.mark.parametrize("is_stored", [False, True], ids=["new", "stored"])
def test_S38_of_a_stored_secret_only_the_severity_is_shown(is_stored: bool, env: World, browse: Browse) -> None:
    body = copy.deepcopy(scene.report_of("secret-in-the-bundle"))
    for action in body["plan"]["actions"]:
        action["before"] = action["after"] if is_stored else None
    made = member(env.cluster, "a", env.rita)
    report = Report.objects.get(request=made)
    report.body, report.worst = body, body["worst"]
    report.save()
    page = text_of(browse(env.ada).get("/sets/spring"))
    # Nobody approves here what the page does not show.
    assert ("SEC-01" in page, "about a Secret" in page, 'value="Approve"' in page) == (
        (False, True, False) if is_stored else (True, False, True)
    )


def test_a_serious_approval_asks_once_for_everything_that_each_request_would(env: World, browse: Browse) -> None:
    pair = [member(env.cluster, name, env.rita, worst="dangerous", actions=[DELETION]) for name in ("a", "b")]
    ada = browse(env.ada)
    refused = ada.post("/sets/spring/review", form_of(*pair))
    assert refused.status_code == 422
    for words in ("enter why you approve it", "type the name spring", "1 more to tick"):
        assert words in text_of(refused)
    assert not Review.objects.exists()
    whole = form_of(*pair, reason="read it", typed="spring", acknowledges=["objects"])
    assert "2 of 2 recorded" in text_of(ada.post("/sets/spring/review", whole))
    named = ["delete ConfigMap harbour/old"]
    assert [(row.acknowledges, row.reason) for row in Review.objects.all()] == [(named, "read it")] * 2


def test_the_results_say_which_was_refused_and_why(env: World, browse: Browse) -> None:
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    env.kubernetes.allow("ada", "approve", "bundledeployments /a")
    pair = [member(env.cluster, name, env.rita) for name in ("a", "b")]
    page = text_of(browse(env.ada).post("/sets/spring/review", form_of(*pair)))
    assert "1 of 2 recorded" in page and "does not allow ada to approve" in page


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"decision": "Deny"}, 422),
        ({"shown": "x"}, 422),
        ({"member": ["x", "/", "\0"]}, 422),
        ({"decision": "Ignore"}, 422),
    ],
    ids=["no reason", "nothing shown", "no members", "no decision"],
)
def test_a_form_that_is_not_whole_records_nothing(
    env: World, browse: Browse, form: dict[str, Any], status: int
) -> None:
    one = member(env.cluster, "a", env.rita)
    assert browse(env.ada).post("/sets/spring/review", {**form_of(one), **form}).status_code == status
    assert not Review.objects.exists()


def test_a_label_that_kubernetes_would_refuse_is_shown_nowhere(env: World, browse: Browse) -> None:
    made = member(env.cluster, "a", env.rita)
    for label in ("<script>", "a/b", "", 'x"y'):
        made.deployment.labels = {"core.rukpak.io/set": label}
        made.deployment.save(update_fields=["labels"])
        page = browse(env.ada).get("/sets")
        assert page.status_code == 200 and "No sets." in text_of(page)


def test_the_queries_of_both_pages_do_not_grow_with_members(env: World, browse: Browse) -> None:
    ada, counts = browse(env.ada), []
    for numbers in (range(2), range(2, 30)):
        for number in numbers:
            member(env.cluster, f"m{number}", env.rita)
        counts.append((queries(ada, "/sets"), queries(ada, "/sets/spring")))
    assert counts[0] == counts[1]


@pytest.mark.thorough
def test_a_set_of_500_opens_in_half_a_second(env: World, browse: Browse, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MAX_OPEN_REQUESTS": 1_000, "MAX_OPEN_REQUESTS_OF_ONE": 1_000}
    for number in range(500):
        member(env.cluster, f"m{number}", env.rita, str(number // 450))
    ada: Client = browse(env.ada)
    ada.get("/sets/spring")
    began = time.perf_counter()
    assert ada.get("/sets/spring").status_code == 200
    assert time.perf_counter() - began < 0.5
