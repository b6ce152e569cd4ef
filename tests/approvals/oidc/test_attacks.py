"""Attacks on people of issuers that once worked: each is a rule of security.md with its number."""

from __future__ import annotations

import base64
import json
import secrets
import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NoReturn
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone

from approvals import access, services
from approvals.models import AuditEntry, ChatAccount, IssuerGrant, KubernetesIdentity, Proof, SignIn
from approvals.oidc import Issuers, IssuerSilent, Verified, renew
from approvals.project.middleware import STRANGER
from approvals.rate_limits import counters
from approvals.services import issuers
from approvals.tasks import forget_ended
from provisioner.values import Identity
from tests.approvals.oidc.visits import PEOPLE, come_back, leave, logout_token, new_token, rest, signed_in
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.servers.issuer import RunningIssuer

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def encoded(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("header", [{"typ": 1}, {"typ": None}, {"typ": ["at+jwt"]}, {"alg": ["RS256"]}], ids=str)
def test_S29_a_token_with_a_header_of_strange_types_is_refused_in_words(
    issuer: RunningIssuer, header: dict[str, Any]
) -> None:
    text = f"{encoded({'alg': 'RS256', 'kid': 'x', **header})}.{encoded({'iss': issuer.url})}.c2ln"
    assert rest(text).status_code == 401
    assert Client().post("/oidc/example/back-channel", {"logout_token": text}).status_code == 400


def test_S29_strangers_write_nothing_into_the_audit(issuer: RunningIssuer) -> None:
    signed_in(issuer)
    before = AuditEntry.objects.count()
    for session in ("made-up", "x" * 5000, "nul\0"):
        query = urlencode({"iss": issuer.url, "sid": session})
        assert Client().get(f"/oidc/example/front-channel?{query}").status_code in (200, 400)
    assert AuditEntry.objects.count() == before


def test_S29_a_logout_token_that_is_sent_again_writes_nothing(issuer: RunningIssuer) -> None:
    signed_in(issuer)
    token = logout_token(issuer)
    for _ in range(3):
        Client().post("/oidc/example/back-channel", {"logout_token": token})
    assert AuditEntry.objects.filter(verb="session.ended").count() == 1


def test_S29_strangers_keep_no_long_text_in_their_session(issuer: RunningIssuer) -> None:
    leave(Client(), next="/" + secrets.token_hex(500_000))
    assert max(len(row.session_data) for row in Session.objects.all()) < 20_000


@pytest.mark.parametrize("wanted", ["inbox-of-nobody", "sign-out", "a:b"])
def test_S24_a_target_that_is_no_path_leads_home(issuer: RunningIssuer, wanted: str) -> None:
    assert come_back(Client(), issuer, next=wanted)["Location"] == "/"
    assert Client().post("/theme", {"theme": "dark", "next": wanted})["Location"] == "/"


def test_S25_an_older_id_token_does_not_bring_old_groups_back(issuer: RunningIssuer, env: World) -> None:
    client = signed_in(issuer)
    old = IssuerGrant.objects.get().id_token
    time.sleep(1.1)  # so that the next one is newer: tokens tell whole seconds
    issuer.set_people({**PEOPLE, "ada": {"sub": "u-ada", "groups": ["guests"]}})
    me = client.get("/me").content.decode()
    assert ("oidc:guests" in me, "oidc:platform" in me) == (True, False)
    known = KubernetesIdentity.objects.get(subject="u-ada")
    assert known.groups == ["oidc:guests"]
    assert rest(old).status_code == 200
    after = KubernetesIdentity.objects.get(subject="u-ada")
    assert (after.groups, after.groups_seen_at) == (known.groups, known.groups_seen_at)


def test_S33_an_account_that_becomes_the_operators_ends_what_an_issuer_began(issuer: RunningIssuer, env: World) -> None:
    """Being asked anew is refused in words, not by a failure."""
    client = signed_in(issuer)
    text = new_token(client, env)
    user = User.objects.get(kubernetes_identities__subject="u-ada")
    user.set_password("a long password")
    user.save()
    assert rest(text).status_code == 401
    assert not SignIn.objects.exists()
    assert client.get("/me").status_code == 302


@pytest.mark.parametrize("has_refresh_token", [True, False])
def test_S33_an_issuer_that_is_taken_away_counts_no_longer_anywhere(
    issuer: RunningIssuer, env: World, settings: Any, has_refresh_token: bool
) -> None:
    """Not even until its sessions without a refresh token would end."""
    client = signed_in(issuer)
    if not has_refresh_token:
        grant = IssuerGrant.objects.get()
        grant.refresh_token = ""
        grant.save()
    assert client.get("/me").status_code == 200
    settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": Issuers()}
    assert client.get("/me").status_code == 302
    assert client.get("/oidc/example/callback?code=a&state=b").status_code == 404


def test_S33_a_session_by_token_keeps_no_word_of_an_issuer_that_nobody_asks(issuer: RunningIssuer, env: World) -> None:
    """A linked person signs in by a token in the same browser: what the issuer said is carried over with its grant."""
    client = signed_in(issuer)
    second = world.cluster("second")
    env.kubernetes.tokens["ada-there"] = Identity("ada-there", ("here",), "uid-1")
    linked = client.post("/me/identities", {"cluster": second.name, "token": "ada-there"})
    assert linked.status_code == 302, linked.content
    entered = client.post("/sign-in", {"with": "token", "cluster": second.name, "token": "ada-there"})
    assert entered.status_code == 302, entered.content
    assert Proof.objects.filter(identity__subject="u-ada").exists()
    issuer.set_people({"bert": PEOPLE["bert"]})
    client.get("/me")
    assert not Proof.objects.filter(identity__subject="u-ada").exists()


def test_S25_what_an_issuer_says_no_longer_is_not_carried_over(
    issuer: RunningIssuer, env: World, settings: Any
) -> None:
    """The person signs in anew; by then the issuer says nothing of them for one of two clusters."""
    second = world.cluster("second")
    known = settings.PRATIQUE["OIDC_FILE"].every[0]
    there = replace(known.clusters[0], cluster=second.name, required=(("team", "a"),))
    two = replace(known, clusters=(*known.clusters, there))
    settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": Issuers((two,)), "RENEW_MINUTES": 60}
    issuer.set_people({"ada": {**PEOPLE["ada"], "team": "a"}})
    client = signed_in(issuer)
    assert Proof.objects.count() == 2
    issuer.set_people(PEOPLE)
    assert come_back(client, issuer).status_code == 302
    assert [row.identity.cluster for row in Proof.objects.all()] == [env.cluster]


def test_S33_what_was_unlinked_is_not_linked_again_by_the_issuer(issuer: RunningIssuer, env: World) -> None:
    client = signed_in(issuer)
    second = world.cluster("second")
    env.kubernetes.tokens["ada-there"] = Identity("ada-there", ("here",), "uid-1")
    client.post("/me/identities", {"cluster": second.name, "token": "ada-there"})
    row = KubernetesIdentity.objects.get(subject="u-ada")
    assert client.post(f"/me/identities/{row.pk}/unlink").status_code == 302
    assert client.get("/me").status_code == 200
    assert not KubernetesIdentity.objects.filter(subject="u-ada").exists()


def test_S33_a_chat_link_ends_where_the_issuer_says_no(issuer: RunningIssuer, env: World) -> None:
    client = signed_in(issuer)
    user = User.objects.get(kubernetes_identities__subject="u-ada")
    account = ChatAccount.objects.create(tool="slack", tenant="t", account="a", user=user, linked_at=timezone.now())
    account.identities.set(user.kubernetes_identities.all())
    assert access.of_chat(account).proofs
    issuer.set_people({"bert": PEOPLE["bert"]})
    assert client.get("/me").status_code == 302
    assert not access.of_chat(account).proofs


def test_S29_who_is_nobody_here_learns_no_names_of_clusters(issuer: RunningIssuer, env: World, settings: Any) -> None:
    """Where an issuer knows everybody, such as Google's, its people are strangers."""
    known = settings.PRATIQUE["OIDC_FILE"].every[0]
    rules = replace(known.clusters[0], required=(("hd", "secret.example"),))
    settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": Issuers((replace(known, clusters=(rules,)),))}
    answer = come_back(Client(), issuer)
    assert answer.status_code == 403
    text = answer.content.decode()
    assert env.cluster.name not in text
    assert "the claim hd" not in text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("header", [{"Accept": "text/nothing"}, {"Authorization": "Bearer a b"}], ids=str)
def test_S29_a_token_that_nobody_looks_at_is_counted(
    env: World, header: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine would be allowed more than those of one window.
    now = time.monotonic()
    monkeypatch.setattr(counters, "time", SimpleNamespace(monotonic=lambda: now))
    wish = {"Authorization": "Bearer made-up", **header}
    codes = [Client().get("/api/v1/requests", headers=wish).status_code for _ in range(STRANGER.most + 1)]
    assert codes[-1] == 429


def test_S30_nothing_of_ended_sessions_is_kept(issuer: RunningIssuer, env: World) -> None:
    """Strangers' sessions and refresh tokens that nobody uses would pile up without end."""
    client, other = signed_in(issuer), signed_in(issuer)
    leave(Client())
    client.post("/me/sessions/end-others")
    assert IssuerGrant.objects.count() == 2
    forget_ended()
    assert IssuerGrant.objects.count() == 1
    assert client.get("/me").status_code == 200
    assert other.get("/me").status_code == 302
    Session.objects.update(expire_date=timezone.now() - timedelta(minutes=1))
    SignIn.objects.update(began_at=timezone.now() - timedelta(days=9))
    forget_ended()
    assert not (Session.objects.exists() or SignIn.objects.exists() or IssuerGrant.objects.exists())


def test_S29_sessions_do_not_all_wait_for_an_issuer_that_does_not_answer(
    issuer: RunningIssuer, env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [signed_in(issuer) for _ in range(4)]
    asked = []

    def hang(*_: Any, **__: Any) -> NoReturn:
        asked.append(1)
        raise IssuerSilent("it does not answer")

    monkeypatch.setattr("approvals.services.issuers.renew", hang)
    monkeypatch.setattr(services.DISCOVERY, "_silent", {})
    assert [client.get("/me").status_code for client in clients] == [200] * 4
    assert len(asked) == 1


def test_S30_a_sign_out_while_the_issuer_is_asked_leaves_no_refresh_token(
    issuer: RunningIssuer, env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(issuer)

    def renew_slowly(*args: Any, **named: Any) -> Any:
        tokens = renew(*args, **named)
        SignIn.objects.all().delete()
        IssuerGrant.objects.all().delete()
        return tokens

    monkeypatch.setattr("approvals.services.issuers.renew", renew_slowly)
    assert client.get("/me").status_code == 302
    assert not IssuerGrant.objects.exists()


@pytest.mark.parametrize("name", ["\uff41da", "a\0da", "\u202eada", "a" * 149, "\ufdfa" * 20], ids=ascii)
def test_S24_a_name_of_strange_letters_is_neither_a_failure_nor_somebody_else(
    issuer: RunningIssuer, env: World, settings: Any, name: str
) -> None:
    """Most issuers let people choose what they are called."""
    local = User.objects.create_user("ada@example")
    known = settings.PRATIQUE["OIDC_FILE"].every[0]
    claims = {"sub": "u-ada", "preferred_username": name, "groups": []}
    now = timezone.now()
    entered = services.caller_of_id_token(Verified(known, "u-ada", claims, now, now)).user
    assert entered != local
    assert entered.username.isprintable()
    assert len(entered.username) <= 150


@pytest.mark.parametrize("claims", [{"groups": ["a\0b"]}, {"sub": "u\0"}, {"sub": "u\u202e"}], ids=ascii)
def test_S24_claims_that_nobody_can_see_or_keep_are_refused_in_words(
    issuer: RunningIssuer, env: World, claims: dict[str, Any]
) -> None:
    issuer.set_people({"ada": {**PEOPLE["ada"], **claims}})
    assert come_back(Client(), issuer).status_code == 403


def test_S29_two_first_calls_at_once_are_one_new_person(
    issuer: RunningIssuer, env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in(issuer)
    text = IssuerGrant.objects.get().id_token
    failures = [IntegrityError("somebody else was faster")]

    def account_of(verified: Any) -> User:
        if failures:
            raise failures.pop()
        return find_account(verified)

    find_account = issuers._account_of
    monkeypatch.setattr(issuers, "_account_of", account_of)
    assert rest(text).status_code == 200


def test_S33_a_chat_link_stands_on_what_its_session_has_proved_of_late(issuer: RunningIssuer, env: World) -> None:
    """A session whose proof is too old gets nothing more by a link than it has."""
    client = signed_in(issuer)
    second = world.cluster("second")
    env.kubernetes.tokens["ada-there"] = Identity("ada-there", ("here",), "uid-1")
    client.post("/me/identities", {"cluster": second.name, "token": "ada-there"})
    IssuerGrant.objects.update(tried_at=timezone.now() + timedelta(seconds=1))
    Proof.objects.filter(identity__subject="u-ada").update(proved_at=timezone.now() - timedelta(days=9))
    code = services.issue_link_code(tool="slack", tenant="t", account="a", name="a")
    assert client.post("/me/chat", {"code": code}).status_code == 302
    account = ChatAccount.objects.get()
    assert [row.cluster for row in account.identities.all()] == [second]
