"""What provisioner.cluster.plan.trials counts on: a creation is tried beside what is there, without a trace."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.conftest import APPLY, APPS, RBAC, Reply, Request, Server
from tests.contract.objects import binding, role, web

ABSENT = "1"


def moved(image: str = "example.com/web:1", name: str = "web", **meta: str) -> dict[str, Any]:
    """The Deployment with another selector, which no update may give it."""
    obj = web(image)
    labels = {"app": "moved"}
    obj["spec"] |= {"selector": {"matchLabels": labels}}
    obj["spec"]["template"]["metadata"] = {"labels": labels}
    return {**obj, "metadata": {"name": name, **meta}}


def tried(server: Server, obj: dict[str, Any], user: str = "admin") -> Reply:
    path = server.place("deployments", obj["metadata"]["name"], APPS)
    return server.send(Request("PATCH", f"{path}?fieldManager=one&dryRun=All", obj, APPLY, user))


def test_what_cannot_be_updated_can_be_created_beside_and_leaves_no_trace(server: Server) -> None:
    before = server.apply_to(server.place("deployments", "web", APPS), web())
    refused = tried(server, moved())
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert "immutable" in refused.message
    beside = tried(server, moved(name="wex", resourceVersion=ABSENT))
    assert (beside.code, beside.body["metadata"]["name"]) == (201, "wex"), beside.message
    (live,) = server.get("deployments", api=APPS)["items"]
    assert live["metadata"]["uid"] == before.body["metadata"]["uid"]


def test_a_trial_under_a_name_that_is_taken_is_a_conflict(server: Server) -> None:
    server.apply_to(server.place("deployments", "web", APPS), web())
    assert tried(server, moved(resourceVersion=ABSENT)).code == 409


def test_what_is_wrong_with_the_object_itself_is_said_of_the_trial_too(server: Server) -> None:
    wrong = moved(name="wex", resourceVersion=ABSENT)
    wrong["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    answer = tried(server, wrong)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        pytest.param([{"verbs": ["patch"]}], "create", id="no right to create"),
        pytest.param([{"verbs": ["create"]}, {"verbs": ["patch"], "resourceNames": ["web"]}], "patch", id="by name"),
        pytest.param([{"verbs": ["create", "patch"]}], "", id="both"),
    ],
)
def test_a_trial_tells_a_missing_right_to_create_from_rights_by_name(
    server: Server, rules: list[dict[str, Any]], missing: str
) -> None:
    wide = [{"apiGroups": ["apps"], "resources": ["deployments"], **rule} for rule in rules]
    server.create("roles", role("some", *wide), RBAC)
    server.create("rolebindings", binding("some", "carol", "Role"), RBAC)
    server.until_may("carol", rules[-1]["verbs"][-1], "deployments", "apps", "web")
    answer = tried(server, moved(name="wex", resourceVersion=ABSENT), user="carol")
    if missing:
        assert (answer.code, f'User "carol" cannot {missing} resource "deployments"' in answer.message) == (403, True)
    else:
        assert answer.code == 201, answer.message
