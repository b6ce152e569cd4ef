"""What an API token may do, for how long, and who proves it anew (security-rules.md S33)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals import access, services
from approvals.access import Scope
from approvals.api.urls import router
from approvals.errors import InvalidInput, NotAllowed
from approvals.models import ApiToken, KubernetesIdentity, Proof
from provisioner.values import Identity
from tests.approvals.security.people.proofs import made_old, rest, session
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

SCOPES = {
    ("GET", "requests/{uid}"): "read",
    ("GET", "requests/{uid}/report"): "read",
    ("GET", "deployments"): "read",
    ("GET", "audit"): "read",
    ("GET", "schema?format=json"): "read",
    ("POST", "deployments"): "request",
    ("PUT", "deployments/{deployment}"): "request",
    ("DELETE", "deployments/{deployment}"): "request",
    ("POST", "deployments/{deployment}/pause"): "request",
    ("POST", "deployments/{deployment}/ask-again"): "request",
    ("POST", "deployments/{deployment}/rollback"): "request",
    ("POST", "deployments/{deployment}/rotate"): "request",
    ("POST", "requests/{uid}/withdraw"): "request",
    ("POST", "requests/{uid}/dependencies"): "request",
    ("POST", "requests/{uid}/reviews"): "decide",
    ("POST", "requests/{uid}/reviews/1/dismiss"): "decide",
    ("POST", "requests/{uid}/apply-at"): "decide",
    ("POST", "requests/{uid}/external-checks/tickets/run"): "decide",
    ("POST", "sets/spring/review"): "decide",
    ("POST", "sets/spring/order"): "request",
    ("POST", "sets/spring/order/approve"): "decide",
    ("POST", "sets/spring/order/take-out"): "decide",
    ("POST", "sets/spring/order/end"): "decide",
    ("POST", "deployments/{deployment}/revoke"): "decide",
    ("POST", "deployments/{deployment}/reinstate"): "decide",
    ("POST", "policies"): "decide",
    ("PUT", "policies/routine"): "decide",
    ("DELETE", "policies/routine"): "decide",
    ("PUT", "clusters/prod/built-in-guards/hold-unknown"): "decide",
    ("POST", "notification-targets"): "decide",
    ("PUT", "notification-targets/hook"): "decide",
    ("DELETE", "notification-targets/hook"): "decide",
    ("POST", "notification-targets/hook/stop"): "decide",
    ("POST", "notification-targets/hook/secret"): "decide",
    ("POST", "notification-targets/hook/test"): "decide",
    ("POST", "notification-targets/hook/deliveries/1/send-again"): "decide",
}


def narrow(carla: User, *scopes: str) -> str:
    return world.api_token(carla, scopes=scopes)[1]


@pytest.mark.parametrize("scope", Scope.values)
@pytest.mark.parametrize(("method", "path"), SCOPES)
def test_S33_a_token_does_what_its_scope_says_and_names_the_one_that_is_missing(
    env: World, afternoon: dict[str, Any], carla: User, method: str, path: str, scope: str
) -> None:
    needed = SCOPES[method, path]
    path = path.format(uid=afternoon["serious"].uid, deployment=afternoon["deployment"].uid)
    deployment = afternoon["deployment"]
    env.kubernetes.objects[deployment.name] = world.seen(deployment.name, deployment.spec, uid=deployment.uid)
    answer = rest(narrow(carla, scope), method, path, {} if method != "GET" else None)
    if scope == needed:
        assert answer.status_code != 403 or b'"out-of-scope"' not in answer.content
        return
    told = json.loads(answer.content)
    assert (answer.status_code, told["code"], told["scope"]) == (403, "out-of-scope", needed)
    assert f"lacks the scope {needed}" in told["detail"]


def test_S33_every_write_of_the_api_is_in_the_table() -> None:
    writes = set()
    for route in router.urls:
        actions = getattr(route.callback, "actions", {})
        writes |= {(method.upper(), str(route.name)) for method in actions if method not in ("get", "head")}
    # What a token does about itself needs no scope, and who signs in has no token yet.
    own = {("POST", "api-token-prove"), ("DELETE", "api-token-current"), ("POST", "api-sign-in-exchange")}
    assert own <= writes
    assert len(writes - own) == len([one for one in SCOPES if one[0] != "GET"])


def test_S33_a_token_is_for_its_clusters_only(env: World, afternoon: dict[str, Any], carla: User) -> None:
    other = world.cluster("other")
    env.kubernetes.tokens["other"] = Identity("carla", (), "o-1")
    before = world.by_token("prod", "carla")
    services.link_identity(by=before, proved=services.prove(cluster="other", token="other", address="192.0.2.1"))
    text = world.api_token(carla, clusters=[other])[1]
    uid = afternoon["serious"].uid
    for path in ("clusters/prod", "requests?cluster=prod", f"requests/{uid}", f"requests/{uid}/report"):
        told = json.loads(rest(text, "GET", path).content)
        assert (told["status"], told["code"], told["cluster"]) == (403, "out-of-scope", "prod"), path
    wish = {"cluster": "prod", "name": "x", "spec": {}}
    assert json.loads(rest(text, "POST", "deployments", wish).content)["cluster"] == "prod"
    assert json.loads(rest(text, "GET", "requests").content)["results"] == []
    assert rest(text, "GET", "clusters/nowhere").status_code == 404
    env.cluster.identities.filter(user=carla).delete()
    assert rest(text, "GET", f"requests/{uid}").status_code == 404


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"days": 91}, "expected 1 to 90"),
        ({"days": 0}, "expected 1 to 90"),
        ({"scopes": []}, "the scopes are"),
        ({"scopes": ["admin"]}, "the scopes are"),
        ({"clusters": []}, "at least one cluster"),
        ({"name": " "}, "a name"),
    ],
)
def test_S33_what_no_token_is_made_for(env: World, wish: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        world.api_token(env.ada, **wish)
    assert not ApiToken.objects.exists()


def test_S33_the_operator_caps_the_end(env: World, carla: User, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "TOKEN_DAYS": 3}
    with pytest.raises(InvalidInput, match="expected 1 to 3"):
        world.api_token(carla, days=4)


def test_S33_no_token_is_made_for_a_cluster_that_is_not_proved(env: World, carla: User) -> None:
    other = world.cluster("other")
    with pytest.raises(InvalidInput, match="no token for cluster other"):
        world.api_token(carla, clusters=[other])


def test_S33_a_token_makes_no_token(env: World, carla: User) -> None:
    by = access.of_token(world.api_token(carla)[0])
    with pytest.raises(NotAllowed, match="a token cannot create tokens"):
        services.create_api_token(by=by, name="x", days=1, scopes=["read"], clusters=[env.cluster])


def test_S33_a_token_carries_the_proof_of_its_session_with_its_age(env: World, carla: User) -> None:
    made_old(hours=10)
    row = world.api_token(carla)[0]
    assert timezone.now() - row.proofs.get().proved_at >= timedelta(hours=10)


def test_S33_a_token_of_a_password_ends_with_it(env: World) -> None:
    row = world.api_token(env.ada, days=90)[0]
    assert row.expires_at <= timezone.now() + timedelta(hours=12)
    assert row.expires_at - timezone.now() > timedelta(hours=11)


def test_S33_a_token_is_proved_anew_by_a_token_of_the_same_person(
    env: World, afternoon: dict[str, Any], carla: User
) -> None:
    row, text = world.api_token(carla, days=90)
    made_old()
    assert rest(text, "GET", "requests").status_code == 401
    shown = json.loads(rest(text, "GET", "tokens/current").content)
    assert (shown["id"], shown["proofs"][0]["username"]) == (row.pk, "carla")
    env.kubernetes.tokens["carla"] = Identity("carla", ("guests",), "c-1")
    answer = rest(text, "POST", "tokens/current/prove", {"cluster": "prod", "token": "carla"})
    assert (answer.status_code, json.loads(answer.content)["proofs"][0]["groups"]) == (200, ["guests"])
    assert rest(text, "GET", "requests").status_code == 200
    assert access.identity_of(access.of_token(row), env.cluster) == Identity("carla", ("guests",), "c-1")


@pytest.mark.parametrize(
    "bearer", [Identity("carla", (), "c-2"), Identity("dora", (), "c-1")], ids=["made again", "somebody else"]
)
def test_S33_nobody_else_proves_it(env: World, carla: User, bearer: Identity) -> None:
    text = world.api_token(carla, days=90)[1]
    made_old()
    env.kubernetes.tokens["other"] = bearer
    answer = rest(text, "POST", "tokens/current/prove", {"cluster": "prod", "token": "other"})
    assert (answer.status_code, json.loads(answer.content)["code"]) == (403, "not-allowed")
    assert rest(text, "GET", "requests").status_code == 401
    assert not KubernetesIdentity.objects.filter(username=bearer.username, uid=bearer.uid).exists()


def test_S33_another_cluster_s_token_of_the_same_name_does_not_prove_it(env: World, carla: User) -> None:
    world.cluster("other")
    text = world.api_token(carla, days=90)[1]
    made_old()
    answer = rest(text, "POST", "tokens/current/prove", {"cluster": "other", "token": "carla"})
    assert answer.status_code == 403
    assert rest(text, "GET", "requests").status_code == 401


def test_S33_a_session_proves_no_token(env: World, carla: User) -> None:
    client = session(carla)
    body = {"cluster": "prod", "token": "carla"}
    answer = client.post("/api/v1/tokens/current/prove", body, content_type="application/json")
    assert answer.status_code == 403
    assert client.get("/api/v1/tokens/current").status_code == 404


def test_S33_use_is_written_at_most_once_a_minute(env: World, carla: User) -> None:
    row, text = world.api_token(carla)
    rest(text, "GET", "clusters")
    row.refresh_from_db()
    first = row.last_used_at
    rest(text, "GET", "clusters")
    row.refresh_from_db()
    assert first is not None
    assert row.last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    rest(text, "GET", "clusters")
    row.refresh_from_db()
    assert row.last_used_at > first - timedelta(seconds=1)


def test_S33_a_token_from_before_has_ended_and_says_so(env: World, carla: User) -> None:
    text = world.api_token(carla)[1]
    Proof.objects.all().delete()
    because = "it was made before tokens had scopes, clusters and a proof: make a new one on the account page"
    ApiToken.objects.update(scopes=[], clusters=[], ended_because=because)
    answer = rest(text, "GET", "clusters")
    assert (answer.status_code, "make a new one on the account page" in answer.content.decode()) == (401, True)
    assert "Ended: it was made before" in session(carla).get("/me").content.decode()
