"""Accepting findings over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.models import Report, Request, Review
from approvals.services.waivers import MAX_WAIVERS
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.waivers import finding, report


@pytest.fixture
def asked(here: World) -> Request:
    here.kubernetes.allow("ada", "override")
    world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    return report(Request.objects.get(), finding(1), finding(2, "unknown"))


def body(request: Request, *waives: Any, **changes: Any) -> dict[str, Any]:
    return {"decision": "Approve", "subject_digest": request.subject_digest, "waives": list(waives), **changes}


def test_a_waiver_is_kept_and_shown_with_the_review(here: World, asked: Request, call: Call) -> None:
    waiver = {"fingerprint": "f1", "reason": "known \u202esince May"}
    response = call(here.ada, "post", f"requests/{asked.uid}/reviews", body(asked, waiver))
    assert response.status_code == 201, response.content
    assert json.loads(response.content)["waives"] == [waiver]
    shown = json.loads(call(here.ada, "get", f"requests/{asked.uid}").content)
    assert shown["reviews"][0]["waives"] == [waiver]


@pytest.mark.parametrize(
    ("waives", "status", "code"),
    [
        pytest.param([{"fingerprint": "f9", "reason": "a"}], 422, "unknown-finding", id="foreign"),
        pytest.param([{"fingerprint": "f1"}], 422, "invalid-input", id="no reason"),
        pytest.param([{"fingerprint": "f1", "reason": " "}], 422, "invalid-input", id="a blank reason"),
        pytest.param([{"reason": "a"}], 422, "invalid-input", id="no fingerprint"),
        pytest.param([{"fingerprint": "f2", "reason": "a"}], 422, "not-waivable", id="promise 4 unknown"),
        pytest.param(["f1"], 422, "invalid-input", id="no object"),
        pytest.param("f1", 422, "invalid-input", id="no list"),
        pytest.param([{"fingerprint": "f1", "reason": "x" * 1001}], 422, "invalid-input", id="an endless reason"),
        pytest.param(
            [{"fingerprint": f"f{number}", "reason": "a"} for number in range(10_000)],
            422,
            "invalid-input",
            id="ten thousand",
        ),
        pytest.param([{"fingerprint": "f1", "reason": "a"}] * 2, 422, "invalid-input", id="twice"),
        pytest.param([{"fingerprint": "f1", "reason": "a\0b"}], 400, "parse-error", id="NUL"),
    ],
)
def test_what_is_no_waiver_changes_nothing(
    here: World, asked: Request, call: Call, waives: Any, status: int, code: str
) -> None:
    response = call(here.ada, "post", f"requests/{asked.uid}/reviews", {**body(asked), "waives": waives})
    assert (response.status_code, problem_of(response)["code"]) == (status, code)
    assert not Review.objects.exists()


def test_unknown_fingerprints_are_named(here: World, asked: Request, call: Call) -> None:
    waives = [{"fingerprint": one, "reason": "a"} for one in ("f9", "f1", "f8")]
    response = call(here.ada, "post", f"requests/{asked.uid}/reviews", body(asked, *waives))
    assert problem_of(response)["unknown"] == ["f8", "f9"]


def test_S12_without_the_right_it_says_what_would_allow_it(here: World, asked: Request, call: Call) -> None:
    here.kubernetes.allowed.discard(("ada", "override", "*"))
    response = call(
        here.ada, "post", f"requests/{asked.uid}/reviews", body(asked, {"fingerprint": "f1", "reason": "a"})
    )
    found = problem_of(response)
    assert (found["status"], found["code"]) == (403, "not-allowed")
    assert "override" in found["rule"]
    assert not Review.objects.exists()


def test_S03_a_waiver_of_another_subject_is_refused(here: World, asked: Request, call: Call) -> None:
    wish = body(asked, {"fingerprint": "f1", "reason": "a"}, subject_digest="sha256:old")
    assert problem_of(call(here.ada, "post", f"requests/{asked.uid}/reviews", wish))["code"] == "digest-moved"


def test_nobody_accepts_twice(here: World, asked: Request, call: Call) -> None:
    wish = body(asked, {"fingerprint": "f1", "reason": "a"})
    answers = [call(here.ada, "post", f"requests/{asked.uid}/reviews", wish).status_code for _ in range(2)]
    assert answers == [201, 201]
    assert Review.objects.count() == 1, "the same once more is one review"


def test_a_whole_long_report_is_accepted_at_once(here: World, asked: Request, call: Call) -> None:
    Report.objects.all().delete()
    report(asked, *(finding(number) for number in range(MAX_WAIVERS)))
    waives = [{"fingerprint": f"f{number}", "reason": "x" * 1000} for number in range(MAX_WAIVERS)]
    assert call(here.ada, "post", f"requests/{asked.uid}/reviews", body(asked, *waives)).status_code == 201
