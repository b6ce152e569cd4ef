"""Who somebody is and what they may see: tokens, impersonation, kinds that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.conftest import RBAC, Reply, Request, Server
from tests.contract.objects import binding, config, role
from tests.support.kubernetes.live import wait_until

AUTHENTICATION = "/apis/authentication.k8s.io/v1"


def _review(server: Server, token: str, *audiences: str) -> Any:
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    return server.ask("POST", f"{AUTHENTICATION}/tokenreviews", review).body["status"]


def _minted(server: Server, *audiences: str) -> str:
    server.create("serviceaccounts", {"metadata": {"name": "robot"}})
    return server.here("create", "token", "robot", *(f"--audience={audience}" for audience in audiences)).strip()


def test_the_token_of_a_user_counts_for_this_api(server: Server) -> None:
    status = _review(server, server.endpoint.tokens["alice"])
    assert status["authenticated"]
    assert status["user"]["username"] == "alice"
    assert set(status["user"]["groups"]) == {"platform", "system:authenticated"}
    assert _review(server, server.endpoint.tokens["alice"], "pratique")["audiences"] == ["pratique"]


def test_the_token_of_a_user_does_not_count_for_strangers(server: Server) -> None:
    status = _review(server, server.endpoint.tokens["alice"], "somebody-else")
    assert not status.get("authenticated")
    assert status["user"] == {}


def test_a_token_for_one_audience_counts_for_no_other(server: Server) -> None:
    token = _minted(server, "pratique")
    status = _review(server, token, "pratique")
    assert status["authenticated"]
    assert status["user"]["username"] == f"system:serviceaccount:{server.namespace}:robot"
    assert _review(server, token, "other", "pratique")["audiences"] == ["pratique"]
    assert not _review(server, token, "other").get("authenticated")


def test_a_token_for_a_stranger_opens_nothing(server: Server) -> None:
    refused = server.send(Request("GET", server.place(), token=_minted(server, "somebody-else")))
    assert (refused.code, refused.message) == (401, "Unauthorized")


def test_a_token_that_nobody_gave_counts_for_nothing(server: Server) -> None:
    assert not _review(server, "made-up").get("authenticated")
    assert server.send(Request("GET", server.place(), token="made-up")).code == 401


def test_a_token_is_not_given_for_a_moment(server: Server) -> None:
    _minted(server)
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 60}}
    refused = server.ask("POST", server.place("serviceaccounts", "robot") + "/token", wish)
    assert refused.code == 422
    assert "may not specify a duration less than 10 minutes" in refused.message


def test_subject_access_reviews_know_groups_and_masters(server: Server) -> None:
    def is_allowed(*groups: str) -> bool:
        attributes = {"verb": "approve", "group": "core.rukpak.io", "resource": "bundledeployments", "name": "x"}
        spec = {"user": "nobody", "groups": list(groups), "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = server.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer.body["status"]["allowed"])

    assert not is_allowed()
    assert is_allowed("system:masters")


def test_nobody_grants_what_they_do_not_have(server: Server) -> None:
    roles = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["get", "patch", "create"]}
    server.grant("carol", roles)
    greedy = role("greedy", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})
    refused = server.send(Request("POST", server.place("roles", api=RBAC), greedy, user="carol"))
    assert refused.code == 403
    assert "attempting to grant RBAC permissions not currently held" in refused.message


def _who(server: Server, user: str = "admin", **headers: str) -> Reply:
    named = {f"Impersonate-{name}": value for name, value in headers.items()}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return server.send(Request("POST", f"{AUTHENTICATION}/selfsubjectreviews", review, user=user, headers=named))


def test_a_master_is_whom_they_want(server: Server) -> None:
    seen = _who(server, User="zoe", Group="poets", Uid="u-1", **{"Extra-Scopes": "read"})
    assert seen.code == 201, seen.message
    assert seen.body["status"]["userInfo"] == {
        "username": "zoe",
        "uid": "u-1",
        "groups": ["poets", "system:authenticated"],
        "extra": {"scopes": ["read"]},
    }


def test_a_service_account_brings_its_groups(server: Server) -> None:
    seen = _who(server, User=f"system:serviceaccount:{server.namespace}:robot").body["status"]["userInfo"]
    assert seen["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{server.namespace}",
        "system:authenticated",
    ]


@pytest.mark.parametrize("header", ["Group", "Uid", "Extra-Scopes"])
def test_nobody_is_only_a_part_of_somebody(server: Server, header: str) -> None:
    refused = _who(server, **{header: "x"})
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")
    assert refused.message.endswith("without impersonating a user name")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("User", 'cannot impersonate resource "users" in API group ""'),
        ("Group", 'cannot impersonate resource "groups" in API group ""'),
        ("Uid", 'cannot impersonate resource "uids" in API group "authentication.k8s.io"'),
        ("Extra-Scopes", 'cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io"'),
    ],
)
def test_each_part_of_somebody_needs_its_own_right(server: Server, header: str, said: str) -> None:
    name = f"{server.namespace}-as-zoe"
    users = {"apiGroups": [""], "resources": ["users"], "resourceNames": ["zoe"], "verbs": ["impersonate"]}
    cluster_role = {**role(name, users), "kind": "ClusterRole"}
    cluster_binding = {**binding(name, "carol"), "kind": "ClusterRoleBinding"}
    server.ask("POST", f"{RBAC}/clusterroles", cluster_role)
    server.ask("POST", f"{RBAC}/clusterrolebindings", cluster_binding)
    try:
        # The authorizer learns of a binding a moment after it is stored.
        wait_until(lambda: _who(server, "carol", User="zoe").code == 201, "the right to be zoe")
        refused = _who(server, "carol", **{"User": "zoe", header: "else"})
    finally:
        server.ask("DELETE", f"{RBAC}/clusterrolebindings/{name}-carol")
        server.ask("DELETE", f"{RBAC}/clusterroles/{name}")
    assert refused.code == 403
    assert said in refused.message


@pytest.mark.parametrize("user", ["mallory", "admin"])
@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/x/unicorns", "/apis/apps/v1/unicorns", "/apis/none.example.com/v1/x"]
)
def test_only_who_may_see_a_kind_is_told_that_it_is_not_there(server: Server, user: str, path: str) -> None:
    answer = server.send(Request("GET", path, user=user))
    assert answer.code == (404 if user == "admin" else 403)
    if user == "mallory":
        assert 'User "mallory" cannot list resource' in answer.message


def test_whether_an_object_is_there_is_not_told_to_strangers(server: Server) -> None:
    server.ask("POST", server.place(), config(a="1"))
    for name in ("settings", "nothing"):
        refused = server.send(Request("GET", server.place(name=name), user="mallory"))
        assert refused.code == 403
        assert f'configmaps "{name}" is forbidden: User "mallory" cannot get resource "configmaps"' in refused.message


def test_a_method_that_makes_no_sense_is_not_allowed(server: Server) -> None:
    assert server.ask("POST", server.place(name="settings"), config(a="1")).code == 405
    assert server.ask("PUT", server.place(), config(a="1")).code == 405


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"apiGroups": [""], "resources": ["pods"], "verbs": []}, "rules[0].verbs: Required value"),
        ({"apiGroups": [], "resources": ["pods"], "verbs": ["get"]}, "rules[0].apiGroups: Required value"),
        ({"apiGroups": [""], "resources": [], "verbs": ["get"]}, "rules[0].resources: Required value"),
        ({"nonResourceURLs": ["/x"], "verbs": ["get"]}, "namespaced rules cannot apply to non-resource URLs"),
    ],
    ids=["verbs", "groups", "resources", "paths"],
)
def test_a_rule_that_grants_nothing_is_invalid(server: Server, rule: dict[str, list[str]], said: str) -> None:
    refused = server.ask("POST", server.place("roles", api=RBAC), role("some", rule))
    assert refused.code == 422
    assert said in refused.message


def test_a_binding_keeps_its_role(server: Server) -> None:
    server.ask("POST", server.place("rolebindings", api=RBAC), binding("view", "zoe"))
    other = {**binding("edit", "zoe"), "metadata": {"name": "view-zoe"}}
    refused = server.ask("PUT", server.place("rolebindings", "view-zoe", RBAC), other)
    assert refused.code == 422
    assert "cannot change roleRef" in refused.message
