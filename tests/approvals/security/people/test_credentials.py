"""How long what somebody proved counts, what a token may do, and how sessions end (security-rules.md S25, S33)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals import access
from approvals.errors import ProofTooOld
from approvals.models import ChatAccount, Proof, Request, Review, SignIn
from provisioner.values import Identity
from tests.approvals.security.people.proofs import CARLA, made_old, rest, session
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import enter

READS = ["/", "/deployments", "/clusters", "/policies", "/audit", "/deployments/prod/lighthouse", "/requests/{uid}"]
READS += [
    f"/requests/{{uid}}/{part}" for part in ("findings", "changes", "report.html", "rights", "schemas", "progress")
]


@pytest.mark.parametrize("who", ["token", "password"])
@pytest.mark.parametrize("path", READS)
def test_S25_a_browser_is_led_to_proving_again_and_back(
    env: World, afternoon: dict[str, Any], carla: User, path: str, who: str
) -> None:
    client = Client()
    enter(client, carla if who == "token" else env.ada)
    path = path.format(uid=afternoon["serious"].uid)
    assert client.get(path).status_code == 200
    made_old()
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={path}")
    told = client.get(answer["Location"]).content.decode()
    assert "Sign in again to continue" in told
    assert f'name="next" value="{path}"' in told
    if who == "token":
        again = client.post("/sign-in", {"with": "token", "cluster": "prod", "token": "carla", "next": path})
        assert (again.status_code, again["Location"]) == (302, path)
        assert client.get(path).status_code == 200


def test_S25_a_fragment_leads_the_page_that_it_stands_in(env: World, afternoon: dict[str, Any], carla: User) -> None:
    client, uid = session(carla), afternoon["serious"].uid
    made_old()
    headers = {"HX-Request": "true", "HX-Current-URL": f"https://evil.example/requests/{uid}?x=1"}
    answer = client.get(f"/requests/{uid}/progress", headers=headers)
    assert (answer.status_code, answer["HX-Redirect"]) == (204, f"/sign-in?next=%2Frequests%2F{uid}%3Fx%3D1")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "clusters", None),
        ("GET", "requests", None),
        ("GET", "requests/{uid}", None),
        ("GET", "requests/{uid}/report", None),
        ("POST", "requests/{uid}/reviews", {"decision": "Approve", "subject_digest": "x", "reason": ""}),
        ("POST", "requests/{uid}/withdraw", {"reason": ""}),
        ("POST", "deployments", {"cluster": "prod", "name": "x", "spec": {}}),
        ("GET", "schema?format=json", None),
    ],
)
def test_S25_an_old_proof_is_a_401_that_says_what_to_do(
    env: World, afternoon: dict[str, Any], carla: User, method: str, path: str, body: object
) -> None:
    text = world.api_token(carla, days=90)[1]
    path = path.format(uid=afternoon["serious"].uid)
    made_old()
    answer = rest(text, method, path, body)
    told = json.loads(answer.content)
    assert (answer.status_code, told["code"], told["clusters"]) == (401, "proof-too-old", ["prod"])
    assert "POST /api/v1/tokens/current/prove" in told["detail"]
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert Review.objects.filter(request=afternoon["serious"]).count() == 0


def test_S25_no_door_decides_with_old_groups(env: World, carla: User) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = world.in_review(Request.objects.get())
    sign_in = world.session_of(carla)
    token = world.api_token(carla)[0]
    chat = ChatAccount.objects.create(user=carla, tool="slack", tenant="T", account="U", linked_at=timezone.now())
    chat.identities.set(carla.kubernetes_identities.all())
    made_old()
    sign_in.refresh_from_db()
    for caller in (access.of_sign_in(sign_in), access.of_token(token), access.of_chat(chat)):
        assert caller.proofs
        with pytest.raises(ProofTooOld):
            world.review(request, caller, channel="rest")


@pytest.mark.parametrize("hours", [11, 13])
def test_S25_a_chat_link_of_a_mapped_account_counts_from_its_password(env: World, hours: int) -> None:
    chat = ChatAccount.objects.create(user=env.ada, tool="slack", tenant="T", account="U", linked_at=timezone.now())
    chat.identities.set(env.ada.kubernetes_identities.all())
    env.ada.last_login = timezone.now() - timedelta(hours=hours)
    env.ada.save()
    assert (access.identity_of(access.of_chat(chat), env.cluster) is not None) == (hours == 11)


def test_S25_a_chat_link_follows_the_latest_sign_in_of_the_same_person(env: World, carla: User) -> None:
    chat = ChatAccount.objects.create(user=carla, tool="slack", tenant="T", account="U", linked_at=timezone.now())
    chat.identities.set(carla.kubernetes_identities.all())
    made_old()
    env.kubernetes.tokens["carla"] = Identity("carla", ("guests",), "c-1")
    world.by_token("prod", "carla")
    assert access.identity_of(access.of_chat(chat), env.cluster) == Identity("carla", ("guests",), "c-1")


def test_S25_groups_are_those_of_the_very_session(env: World, carla: User) -> None:
    first = world.by_token("prod", "carla")
    env.kubernetes.tokens["carla"] = Identity("carla", ("platform", "admins"), "c-1")
    world.by_token("prod", "carla")
    again = access.of_sign_in(SignIn.objects.get(pk=first.holder_id))
    assert access.identity_of(again, env.cluster) == CARLA


def test_S25_every_page_says_as_whom_one_acts_where_and_since_when(
    env: World, afternoon: dict[str, Any], carla: User
) -> None:
    client = session(carla)
    alone = ("report.html", "progress")
    for template in (*READS, "/me", "/deployments/new", "/policies/new"):
        path = template.format(uid=afternoon["serious"].uid)
        if path.endswith(alone):
            continue
        text = client.get(path).content.decode()
        assert '<strong class="mono">carla</strong> on <span class="mono">prod</span>' in text, path
        assert "Kubernetes token, verified" in text, path


def test_S25_one_cluster_too_old_among_others_is_named_with_the_way_to_prove_it(env: World, carla: User) -> None:
    world.cluster("other")
    env.kubernetes.tokens["other"] = Identity("carla", (), "o-1")
    client = session(carla)
    assert client.post("/me/identities", {"cluster": "other", "token": "other"}).status_code == 302
    Proof.objects.filter(identity__cluster=env.cluster).update(proved_at=timezone.now() - timedelta(hours=13))
    text = client.get("/").content.decode()
    assert "your sign-in on it has expired" in text
    assert client.get("/deployments/prod/x")["Location"].startswith("/sign-in?next=")
