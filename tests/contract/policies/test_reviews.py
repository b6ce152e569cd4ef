"""Reviews by kubectl on a real API server, by people with tokens of their own: what is admitted, and what is refused."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from provisioner.values import AccessRequest, Identity
from tests.contract.conftest import MERGE, Reply, Request, Server, admin
from tests.contract.policies.conftest import CREATED, FORBIDDEN, INVALID, Prepare, cluster_rights, rule
from tests.support.kubernetes import live
from tests.support.kubernetes.endpoint import USERS

pytestmark = pytest.mark.controlplane

PATH = "/apis/core.rukpak.io/v1alpha2/bundledeploymentreviews"
DIGEST = "sha256:" + "a" * 64
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Door:
    """An API server with our CRD and policies; alice and carol may create reviews, alice may approve `target`."""

    server: Server
    target: str

    def review(self, **spec: Any) -> dict[str, Any]:
        said = {
            "requestRef": {"name": f"{self.target}-1"},
            "bundleDeploymentName": self.target,
            "decision": "Approve",
            "subjectDigest": DIGEST,
            "round": 1,
            "reviewer": who("alice"),
            **spec,
        }
        kept = {key: value for key, value in said.items() if value is not None}
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeploymentReview"}
        return {**about, "metadata": {"name": f"{self.target}-{next(_numbers)}"}, "spec": kept}

    def create(self, obj: dict[str, Any], user: str = "alice", query: str = "", **headers: str) -> Reply:
        strict = f"{PATH}?fieldValidation=Strict{query}"
        return self.server.send(Request("POST", strict, obj, user=user, headers=headers))

    def change(self, name: str, body: Any, user: str = "admin", below: str = "") -> Reply:
        return self.server.send(Request("PATCH", f"{PATH}/{name}{below}", body, MERGE, user))


def who(name: str, **other: Any) -> dict[str, Any]:
    """A user as the API server names them."""
    user = next(one for one in USERS if one.name == name)
    groups = [*user.groups, "system:authenticated"]
    return {"username": user.name, "uid": user.uid, "groups": groups, **other}


@pytest.fixture(scope="module")
def shared(prepare: Prepare) -> Iterator[Door]:
    mark, reviews = f"reviewed-{uuid.uuid4().hex[:8]}", "bundledeploymentreviews"
    approve = rule("bundledeployments", verbs=("approve",), resourceNames=[mark])
    create = [rule(reviews, verbs=("create", "get", "delete")), rule(f"{reviews}/status", verbs=("patch",))]
    rights = [
        *cluster_rights(f"{mark}-create", create, "alice", "carol", "rita"),
        *cluster_rights(f"{mark}-approve", [approve], "alice", "mallory", "rita"),
        *cluster_rights(f"{mark}-account", [rule(reviews, verbs=("create",)), approve], account=mark),
    ]
    files = ["crds/bundledeploymentreviews.yaml", "admission/reviews.yaml", "admission/review-stamp.yaml"]
    server = prepare(mark, files, rights)
    server.ctl("create", "namespace", mark)
    server.until_may("alice", "approve", "bundledeployments", "core.rukpak.io", mark)
    server.until_may("rita", "approve", "bundledeployments", "core.rukpak.io", mark)
    server.until_may("rita", "create", "bundledeploymentreviews", "core.rukpak.io")
    server.until_may("carol", "create", "bundledeploymentreviews", "core.rukpak.io")
    door = Door(server, mark)
    # A policy takes effect some seconds after it is there: until then, this would be admitted.
    forged = {**who("alice"), "username": "bob"}
    live.wait_until(lambda: door.create(door.review(reviewer=forged), query="&dryRun=All").code == FORBIDDEN)
    live.wait_until(lambda: door.create(door.review(reviewer=None), query="&dryRun=All").code == CREATED)
    live.wait_until(lambda: _status(door, "carol").code == FORBIDDEN)
    yield door
    server.ctl("delete", "namespace", mark, "--wait=false")


def _status(door: Door, user: str, name: str = "") -> Reply:
    """An attempt to say that a review was counted."""
    if not name:
        obj = door.review()
        assert door.create(obj).code == CREATED
        name = obj["metadata"]["name"]
    said = {"type": "Counted", "status": "True", "reason": "Counted", "message": ""}
    condition = {**said, "lastTransitionTime": "2026-11-24T00:00:00Z"}
    return door.change(name, {"status": {"conditions": [condition]}}, user, "/status")


@pytest.mark.parametrize("decision", ["Approve", "Deny", "RequestChanges"])
def test_whoever_may_approve_gives_each_decision(shared: Door, decision: str) -> None:
    made = shared.create(shared.review(decision=decision, reason="read it"))
    assert made.code == CREATED, made.message


@pytest.mark.parametrize(
    ("reviewer", "words"),
    [
        (who("alice", username="bob"), "spec.reviewer.username must be yours: alice"),
        (who("alice", uid="uid-bob"), "spec.reviewer.uid must be yours: uid-alice"),
        ({"username": "alice", "groups": who("alice")["groups"]}, "spec.reviewer.uid must be yours"),
        (who("alice", groups=["platform", "admins", "system:authenticated"]), "must be exactly your groups"),
        (who("alice", groups=["platform"]), "must be exactly your groups"),
        (who("alice", groups=["platform,system:authenticated"]), "must be exactly your groups"),
        (who("alice", groups=[]), "must be exactly your groups"),
        (who("alice", groups=[*who("alice")["groups"], "system:masters"]), "must be exactly your groups"),
    ],
    ids=["name", "uid", "no uid", "one group more", "one group less", "joined groups", "no groups", "masters"],
)
def test_S06_nobody_reviews_as_somebody_else(shared: Door, reviewer: dict[str, Any], words: str) -> None:
    refused = shared.create(shared.review(reviewer=reviewer))
    assert refused.code == FORBIDDEN
    assert words in refused.message


def test_who_is_left_out_is_filled_in_by_the_api_server(shared: Door) -> None:
    made = shared.create(shared.review(reviewer=None))
    assert made.code == CREATED, made.message
    assert made.body["spec"]["reviewer"] == who("alice")


def test_who_may_not_approve_the_target_is_refused(shared: Door) -> None:
    refused = shared.create(shared.review(reviewer=who("carol")), user="carol")
    assert refused.code == FORBIDDEN
    assert f"carol does not have the verb approve on BundleDeployment {shared.target}" in refused.message


def test_who_may_approve_one_deployment_is_refused_on_another(shared: Door) -> None:
    # Rita's groups hold nothing here; others give the platform team more on the cluster that they share.
    about_another = shared.review(bundleDeploymentName="other", requestRef={"name": "other-1"}, reviewer=who("rita"))
    refused = shared.create(about_another, user="rita")
    assert refused.code == FORBIDDEN
    assert "does not have the verb approve on BundleDeployment other" in refused.message


def test_the_right_to_approve_alone_creates_no_review(shared: Door) -> None:
    assert shared.create(shared.review(reviewer=who("mallory")), user="mallory").code == FORBIDDEN


def test_the_request_must_be_one_of_the_deployment_that_was_asked_about(shared: Door) -> None:
    refused = shared.create(shared.review(requestRef={"name": "other-1"}))
    assert refused.code == INVALID
    assert "must be a request of bundleDeploymentName" in refused.message


@pytest.mark.parametrize(
    "wrong",
    [
        {"decision": "Approved"},
        {"decision": None},
        {"subjectDigest": "sha256:abc"},
        {"subjectDigest": None},
        {"round": 0},
        {"round": None},
        {"requestRef": None},
        {"reason": "x" * 4001},
        {"decision": "RequestChanges"},
        {"decision": "RequestChanges", "reason": " \n"},
    ],
    ids=lambda wrong: "-".join(f"{key}={str(value)[:12]}" for key, value in wrong.items()),
)
def test_a_review_that_does_not_say_enough_is_invalid(shared: Door, wrong: dict[str, Any]) -> None:
    assert shared.create(shared.review(**wrong)).code == INVALID


def test_a_dry_run_answers_whether_one_may(shared: Door) -> None:
    assert shared.create(shared.review(), query="&dryRun=All").code == CREATED
    assert shared.create(shared.review(reviewer=who("carol")), "carol", "&dryRun=All").code == FORBIDDEN


@pytest.mark.parametrize("user", ["alice", "admin"])
def test_nobody_changes_a_review(shared: Door, user: str) -> None:
    obj = shared.review()
    assert shared.create(obj).code == CREATED
    changed = shared.change(obj["metadata"]["name"], {"spec": {"decision": "Deny"}}, user)
    assert changed.code in (FORBIDDEN, INVALID)
    found = shared.server.send(Request("GET", f"{PATH}/{obj['metadata']['name']}"))
    assert found.body["spec"] == obj["spec"]


def test_labels_of_a_review_may_change(shared: Door) -> None:
    obj = shared.review()
    assert shared.create(obj).code == CREATED
    assert shared.change(obj["metadata"]["name"], {"metadata": {"labels": {"team": "a"}}}).code == 200


def test_a_status_that_comes_with_a_review_is_dropped(shared: Door) -> None:
    condition = {"type": "Counted", "status": "True", "reason": "Counted", "message": ""}
    obj = {**shared.review(), "status": {"conditions": [{**condition, "lastTransitionTime": "2026-11-24T00:00:00Z"}]}}
    assert "status" not in shared.create(obj).body


@pytest.mark.parametrize("user", ["alice", "carol"])
def test_only_who_may_decide_on_requests_says_that_a_review_counted(shared: Door, user: str) -> None:
    refused = _status(shared, user)
    assert refused.code == FORBIDDEN
    assert "only Pratique writes the status of a review" in refused.message


def test_who_is_impersonated_is_the_reviewer(shared: Door) -> None:
    headers = {"Impersonate-User": "alice", "Impersonate-Uid": "uid-alice", "Impersonate-Group": "platform"}
    asked = Request("POST", PATH, shared.review(), headers=headers)
    assert shared.server.send(asked).code == CREATED
    assert shared.server.send(Request("POST", PATH, shared.review(reviewer=who("admin")), headers=headers)).code == 403


def test_a_service_account_reviews_as_itself_only(shared: Door) -> None:
    account = f"system:serviceaccount:{shared.target}:default"
    token = shared.server.ctl("create", "token", "default", "-n", shared.target).strip()
    identity = Identity.of_service_account(shared.target, "default")
    approval = AccessRequest("approve", "core.rukpak.io", "bundledeployments", name=shared.target)
    live.until_may(admin(shared.server.endpoint), identity, approval)
    made = shared.server.send(Request("POST", PATH, shared.review(reviewer=None), token=token))
    assert made.code == CREATED, made.message
    assert made.body["spec"]["reviewer"]["username"] == account
    assert shared.server.send(Request("POST", PATH, shared.review(), token=token)).code == FORBIDDEN
