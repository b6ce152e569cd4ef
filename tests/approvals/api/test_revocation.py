"""Revoking a revision over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.models import BundleDeployment, Revision
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World


def test_a_revocation_is_taken_shown_and_taken_back(here: World, twice: BundleDeployment, call: Call) -> None:
    at = f"deployments/{twice.uid}"
    response = call(here.ada, "post", f"{at}/revoke", {"revision": 1, "reason": "leaks keys"})
    assert response.status_code == 200, response.content
    listed = {row["number"]: row for row in json.loads(call(here.ada, "get", f"{at}/revisions").content)["results"]}
    assert (listed[1]["revoked_by"], listed[1]["revoked_reason"]) == ("ada", "leaks keys")
    assert (listed[1]["revoked_at"], listed[2]["revoked_at"]) == (json.loads(response.content)["revoked_at"], None)
    refused = problem_of(call(here.ada, "post", f"{at}/rollback", {"revision": 1}))
    assert (refused["code"], refused["revision"]) == ("revoked", 1)
    assert refused["detail"] == "revision 1 was revoked by ada: leaks keys"
    assert call(here.ada, "post", f"{at}/reinstate", {"revision": 1}).status_code == 200
    assert not Revision.objects.exclude(revoked_at=None).exists()
    again = call(here.ada, "post", f"{at}/reinstate", {"revision": 1})
    assert (again.status_code, problem_of(again)["code"]) == (409, "changed")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"revision": 1}, id="no reason"),
        pytest.param({"revision": 1, "reason": ""}, id="an empty reason"),
        pytest.param({"revision": 1, "reason": "x" * 1001}, id="a reason without end"),
        pytest.param({"reason": "x"}, id="no revision"),
        pytest.param({"revision": 7, "reason": "x"}, id="no such revision"),
    ],
)
def test_what_is_no_revocation_changes_nothing(
    here: World, twice: BundleDeployment, call: Call, body: dict[str, Any]
) -> None:
    response = call(here.ada, "post", f"deployments/{twice.uid}/revoke", body)
    assert (response.status_code, problem_of(response)["code"]) == (422, "invalid-input")
    assert not Revision.objects.exclude(revoked_at=None).exists()


def test_who_may_only_read_is_told_what_would_allow_it(here: World, twice: BundleDeployment, call: Call) -> None:
    here.kubernetes.allow("bert", "get")
    response = call(here.bert, "post", f"deployments/{twice.uid}/revoke", {"revision": 1, "reason": "leaks keys"})
    found = problem_of(response)
    assert (response.status_code, found["code"]) == (403, "not-allowed")
    assert 'verbs: ["approve"]' in found["rule"]
