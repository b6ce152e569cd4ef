"""How long what somebody proved counts, what a token may do, and how sessions end (security.md S25, S33)."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals import access, services
from approvals.access import Scope
from approvals.api.urls import router
from approvals.errors import InvalidInput, NotAllowed, ProofTooOld
from approvals.models import ApiToken, ChatAccount, KubernetesIdentity, Proof, Request, Review, SignIn
from approvals.services.sessions import SIGN_IN
from provisioner.values import Identity
from tests.approvals import world
from tests.approvals.conftest import World
from tests.approvals.web import scene
from tests.approvals.world import enter

TOKEN_REVIEW = KubernetesIdentity.Authenticator.TOKEN_REVIEW
CARLA = Identity("carla", ("platform",), "c-1")


@pytest.fixture
def afternoon(here: World) -> dict[str, Any]:
    return scene.afternoon(here.cluster, here.ada, here.rita)


@pytest.fixture
def carla(here: World) -> User:
    """Somebody of prod who signs in with a token, and may do everything."""
    here.kubernetes.tokens["carla"] = CARLA
    for verb in ("get", "approve", "create", "update", "delete"):
        here.kubernetes.allow("carla", verb)
    return world.by_token("prod", "carla").user


def session(carla: User) -> Client:
    client = Client(headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"})
    answer = client.post("/sign-in", {"with": "token", "cluster": "prod", "token": "carla"})
    assert answer.status_code == 302
    return client


def made_old(hours: float = 13) -> None:
    """As if everything had been proved so long ago; a mapping's groups stay the operator's word of now."""
    before = timezone.now() - timedelta(hours=hours)
    Proof.objects.update(proved_at=before)
    KubernetesIdentity.objects.filter(authenticator=TOKEN_REVIEW).update(groups_seen_at=before)
    SignIn.objects.exclude(password_at=None).update(password_at=before)
    ApiToken.objects.exclude(password_at=None).update(password_at=before)
    User.objects.update(last_login=before)


def rest(text: str, method: str, path: str, body: object = None) -> Any:
    data = json.dumps(body) if body is not None else ""
    headers = {"authorization": f"Bearer {text}"}
    return Client().generic(method, f"/api/v1/{path}", data, content_type="application/json", headers=headers)


def narrow(carla: User, *scopes: str) -> str:
    return world.api_token(carla, scopes=scopes)[1]


# How long it counts.

READS = ["/", "/deployments", "/clusters", "/policies", "/audit", "/deployments/prod/lighthouse", "/requests/{uid}"]
READS += [
    f"/requests/{{uid}}/{part}" for part in ("findings", "objects", "report.html", "rights", "schemas", "progress")
]


@pytest.mark.parametrize("who", ["token", "password"])
@pytest.mark.parametrize("path", READS)
def test_S25_a_browser_is_led_to_proving_again_and_back(
    here: World, afternoon: dict[str, Any], carla: User, path: str, who: str
) -> None:
    client = Client()
    enter(client, carla if who == "token" else here.ada)
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


def test_S25_a_fragment_leads_the_page_that_it_stands_in(here: World, afternoon: dict[str, Any], carla: User) -> None:
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
    here: World, afternoon: dict[str, Any], carla: User, method: str, path: str, body: object
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


def test_S25_no_door_decides_with_old_groups(here: World, carla: User) -> None:
    world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
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
            services.review(
                by=caller,
                request_id=request.pk,
                decision="Approve",
                subject_digest=request.subject_digest,
                reason="",
                channel="rest",
            )


@pytest.mark.parametrize("hours", [11, 13])
def test_S25_a_chat_link_of_a_mapped_account_counts_from_its_password(here: World, hours: int) -> None:
    chat = ChatAccount.objects.create(user=here.ada, tool="slack", tenant="T", account="U", linked_at=timezone.now())
    chat.identities.set(here.ada.kubernetes_identities.all())
    here.ada.last_login = timezone.now() - timedelta(hours=hours)
    here.ada.save()
    assert (access.identity_of(access.of_chat(chat), here.cluster) is not None) == (hours == 11)


def test_S25_a_chat_link_follows_the_latest_sign_in_of_the_same_person(here: World, carla: User) -> None:
    chat = ChatAccount.objects.create(user=carla, tool="slack", tenant="T", account="U", linked_at=timezone.now())
    chat.identities.set(carla.kubernetes_identities.all())
    made_old()
    here.kubernetes.tokens["carla"] = Identity("carla", ("guests",), "c-1")
    world.by_token("prod", "carla")
    assert access.identity_of(access.of_chat(chat), here.cluster) == Identity("carla", ("guests",), "c-1")


def test_S25_groups_are_those_of_the_very_session(here: World, carla: User) -> None:
    first = world.by_token("prod", "carla")
    here.kubernetes.tokens["carla"] = Identity("carla", ("platform", "admins"), "c-1")
    world.by_token("prod", "carla")
    again = access.of_sign_in(SignIn.objects.get(pk=first.holder_id))
    assert access.identity_of(again, here.cluster) == CARLA


# What a token may do.

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
    ("POST", "requests/{uid}/withdraw"): "request",
    ("POST", "requests/{uid}/reviews"): "decide",
    ("POST", "deployments/{deployment}/revoke"): "decide",
    ("POST", "deployments/{deployment}/reinstate"): "decide",
}


@pytest.mark.parametrize("scope", Scope.values)
@pytest.mark.parametrize(("method", "path"), SCOPES)
def test_S33_a_token_does_what_its_scope_says_and_names_the_one_that_is_missing(
    here: World, afternoon: dict[str, Any], carla: User, method: str, path: str, scope: str
) -> None:
    needed = SCOPES[method, path]
    path = path.format(uid=afternoon["serious"].uid, deployment=afternoon["deployment"].uid)
    deployment = afternoon["deployment"]
    here.kubernetes.objects[deployment.name] = world.seen(deployment.name, deployment.spec, uid=deployment.uid)
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
    assert len(writes - {("POST", "api-token-prove")}) == len([one for one in SCOPES if one[0] != "GET"])


def test_S33_a_token_is_for_its_clusters_only(here: World, afternoon: dict[str, Any], carla: User) -> None:
    other = world.cluster("other")
    here.kubernetes.tokens["other"] = Identity("carla", (), "o-1")
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
    here.cluster.identities.filter(user=carla).delete()
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
def test_S33_what_no_token_is_made_for(here: World, wish: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        world.api_token(here.ada, **wish)
    assert not ApiToken.objects.exists()


def test_S33_the_operator_caps_the_end(here: World, carla: User, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "TOKEN_DAYS": 3}
    with pytest.raises(InvalidInput, match="expected 1 to 3"):
        world.api_token(carla, days=4)


def test_S33_no_token_is_made_for_a_cluster_that_is_not_proved(here: World, carla: User) -> None:
    other = world.cluster("other")
    with pytest.raises(InvalidInput, match="no token for cluster other"):
        world.api_token(carla, clusters=[other])


def test_S33_a_token_makes_no_token(here: World, carla: User) -> None:
    by = access.of_token(world.api_token(carla)[0])
    with pytest.raises(NotAllowed, match="a token cannot create tokens"):
        services.create_api_token(by=by, name="x", days=1, scopes=["read"], clusters=[here.cluster])


def test_S33_a_token_carries_the_proof_of_its_session_with_its_age(here: World, carla: User) -> None:
    made_old(hours=10)
    row = world.api_token(carla)[0]
    assert timezone.now() - row.proofs.get().proved_at >= timedelta(hours=10)


def test_S33_a_token_of_a_password_ends_with_it(here: World) -> None:
    row = world.api_token(here.ada, days=90)[0]
    assert row.expires_at <= timezone.now() + timedelta(hours=12)
    assert row.expires_at - timezone.now() > timedelta(hours=11)


def test_S33_a_token_is_proved_anew_by_a_token_of_the_same_person(
    here: World, afternoon: dict[str, Any], carla: User
) -> None:
    row, text = world.api_token(carla, days=90)
    made_old()
    assert rest(text, "GET", "requests").status_code == 401
    shown = json.loads(rest(text, "GET", "tokens/current").content)
    assert (shown["id"], shown["proofs"][0]["username"]) == (row.pk, "carla")
    here.kubernetes.tokens["carla"] = Identity("carla", ("guests",), "c-1")
    answer = rest(text, "POST", "tokens/current/prove", {"cluster": "prod", "token": "carla"})
    assert (answer.status_code, json.loads(answer.content)["proofs"][0]["groups"]) == (200, ["guests"])
    assert rest(text, "GET", "requests").status_code == 200
    assert access.identity_of(access.of_token(row), here.cluster) == Identity("carla", ("guests",), "c-1")


@pytest.mark.parametrize(
    "bearer", [Identity("carla", (), "c-2"), Identity("dora", (), "c-1")], ids=["made again", "somebody else"]
)
def test_S33_nobody_else_proves_it(here: World, carla: User, bearer: Identity) -> None:
    text = world.api_token(carla, days=90)[1]
    made_old()
    here.kubernetes.tokens["other"] = bearer
    answer = rest(text, "POST", "tokens/current/prove", {"cluster": "prod", "token": "other"})
    assert (answer.status_code, json.loads(answer.content)["code"]) == (403, "not-allowed")
    assert rest(text, "GET", "requests").status_code == 401
    assert not KubernetesIdentity.objects.filter(username=bearer.username, uid=bearer.uid).exists()


def test_S33_another_cluster_s_token_of_the_same_name_does_not_prove_it(here: World, carla: User) -> None:
    world.cluster("other")
    text = world.api_token(carla, days=90)[1]
    made_old()
    answer = rest(text, "POST", "tokens/current/prove", {"cluster": "other", "token": "carla"})
    assert answer.status_code == 403
    assert rest(text, "GET", "requests").status_code == 401


def test_S33_a_session_proves_no_token(here: World, carla: User) -> None:
    client = session(carla)
    body = {"cluster": "prod", "token": "carla"}
    answer = client.post("/api/v1/tokens/current/prove", body, content_type="application/json")
    assert answer.status_code == 403
    assert client.get("/api/v1/tokens/current").status_code == 404


def test_S33_use_is_written_at_most_once_a_minute(here: World, carla: User) -> None:
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


def test_S33_a_token_from_before_has_ended_and_says_so(here: World, carla: User) -> None:
    text = world.api_token(carla)[1]
    Proof.objects.all().delete()
    ApiToken.objects.update(scopes=[], clusters=[])
    import_module("approvals.migrations.0027_end_unproved").end_unproved(apps, None)
    answer = rest(text, "GET", "clusters")
    assert (answer.status_code, "make a new one on the account page" in answer.content.decode()) == (401, True)
    assert "Ended: it was made before" in session(carla).get("/me").content.decode()


def test_S01_migrating_keeps_no_identity_that_entered_a_local_account(here: World, carla: User) -> None:
    other = world.cluster("other")
    facts = {"username": "ada", "groups": [], "groups_seen_at": timezone.now(), "authenticator": TOKEN_REVIEW}
    KubernetesIdentity.objects.create(user=here.ada, cluster=other, **facts)
    import_module("approvals.migrations.0027_end_unproved").end_unproved(apps, None)
    assert [row.authenticator for row in here.ada.kubernetes_identities.all()] == ["mapped"]
    assert carla.kubernetes_identities.count() == 1


# Sessions.


def test_a_session_ends_when_nothing_was_asked_for_too_long(here: World, carla: User) -> None:
    client = session(carla)
    SignIn.objects.update(seen_at=timezone.now() - timedelta(minutes=121))
    assert client.get("/me").status_code == 302
    assert not SignIn.objects.filter(pk=client.session.get(SIGN_IN, 0)).exists()


def test_a_session_ends_for_good_whatever_it_does(here: World, carla: User) -> None:
    client = session(carla)
    SignIn.objects.update(began_at=timezone.now() - timedelta(hours=12, minutes=1))
    assert client.get("/me").status_code == 302


def test_that_somebody_was_there_is_written_once_a_minute(here: World, carla: User) -> None:
    client = session(carla)
    row = SignIn.objects.latest("pk")
    client.get("/me")
    assert SignIn.objects.get(pk=row.pk).seen_at == row.seen_at
    SignIn.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
    client.get("/me")
    assert timezone.now() - SignIn.objects.get(pk=row.pk).seen_at < timedelta(minutes=1)


def test_signing_in_gives_another_cookie_and_ends_the_session_before(here: World, carla: User) -> None:
    client = session(carla)
    key, row = client.session.session_key, client.session[SIGN_IN]
    client.post("/sign-in", {"with": "token", "cluster": "prod", "token": "carla"})
    assert client.session.session_key != key
    assert client.session[SIGN_IN] != row
    assert not SignIn.objects.filter(pk=row).exists()
    stale = Client()
    stale.cookies["sessionid"] = key or ""
    assert stale.get("/me").status_code == 302


def test_signing_out_ends_it_on_the_server(here: World, carla: User) -> None:
    client = session(carla)
    cookie, row = client.cookies["sessionid"].value, client.session[SIGN_IN]
    client.post("/sign-out")
    thief = Client()
    thief.cookies["sessionid"] = cookie
    assert thief.get("/me").status_code == 302
    assert not SignIn.objects.filter(pk=row).exists()


def test_one_s_sessions_are_listed_in_words_and_ended(here: World, carla: User) -> None:
    here_, there = session(carla), session(carla)
    page = here_.get("/me").content.decode()
    assert page.count("Firefox on Linux") >= 2
    assert "(this one)" in page
    other = there.session[SIGN_IN]
    assert here_.post(f"/me/sessions/{other}/end").status_code == 302
    assert there.get("/me").status_code == 302
    assert here_.get("/me").status_code == 200


def test_all_others_end_at_once_and_this_one_stays(here: World, carla: User) -> None:
    mine, others = session(carla), [session(carla) for _ in range(3)]
    assert mine.post("/me/sessions/end-others").status_code == 302
    assert [one.get("/me").status_code for one in others] == [302, 302, 302]
    assert mine.get("/me").status_code == 200


def test_nobody_ends_the_session_of_somebody_else(here: World, carla: User) -> None:
    hers, row = Client(), session(carla).session[SIGN_IN]
    enter(hers, here.ada)
    assert hers.post(f"/me/sessions/{row}/end").status_code == 404
    hers.post("/me/sessions/end-others")
    assert SignIn.objects.filter(pk=row).exists()


def test_a_session_whose_cookie_names_no_row_is_nobodys(here: World) -> None:
    client = Client()
    client.force_login(here.ada)
    assert client.get("/me").status_code == 302
    assert client.get("/api/v1/clusters").status_code in (401, 403)


def test_a_session_cannot_name_the_row_of_somebody_else(here: World, carla: User) -> None:
    client = Client()
    client.force_login(here.ada)
    kept = client.session
    kept[SIGN_IN] = world.session_of(carla).pk
    kept.save()
    assert client.get("/me").status_code == 302


# As whom one acts.


def test_S25_every_page_says_as_whom_one_acts_where_and_since_when(
    here: World, afternoon: dict[str, Any], carla: User
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


def test_S25_one_cluster_too_old_among_others_is_named_with_the_way_to_prove_it(here: World, carla: User) -> None:
    world.cluster("other")
    here.kubernetes.tokens["other"] = Identity("carla", (), "o-1")
    client = session(carla)
    assert client.post("/me/identities", {"cluster": "other", "token": "other"}).status_code == 302
    Proof.objects.filter(identity__cluster=here.cluster).update(proved_at=timezone.now() - timedelta(hours=13))
    text = client.get("/").content.decode()
    assert "your sign-in on it has expired" in text
    assert client.get("/deployments/prod/x")["Location"].startswith("/sign-in?next=")
