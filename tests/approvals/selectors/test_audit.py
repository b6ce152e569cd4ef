"""Who sees which entries of the audit: of clusters their readers, of accounts these themselves, and operators (S01, S02)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from approvals import access, audit, services
from approvals.audit import Actor
from approvals.models import AuditEntry, Cluster, KubernetesIdentity, Review, SignIn
from approvals.selectors.audit import AuditReader, audit_entries
from approvals.services import Browser
from approvals.services.sessions import SIGN_IN
from approvals.web.audit import CHANNELS
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.approvals.policies import save

Facts = dict[str, Any]


def entry(verb: str, actor: str, via: str, facts: Facts | None = None) -> AuditEntry:
    with transaction.atomic():
        return audit.record(verb=verb, actor=Actor(actor, via), facts=facts or {})


def seen_by(reader: AuditReader) -> list[str]:
    return [f"{one.verb} {one.actor}" for one in audit_entries(reader)]


OWN: list[tuple[str, str, str, Facts]] = [
    ("session.began", "ada", "password", {"address": "192.0.2.1"}),
    ("session.ended", "ada", "browser", {"session": 1}),
    ("token.created", "ada", "browser", {"name": "ci"}),
    ("chat.linked", "ada", "browser", {"account": "slack T/U"}),
    ("identity.mapped", "root", "shell", {"user": "ada", "cluster": "prod"}),
    ("identity.proved", "carol", "token", {"account": "ada", "cluster": "prod"}),
    ("identity.proved", "ada", "oidc", {"subject": "x"}),
    ("identity.proved", "ada", "proxy", {"subject": "x"}),
]
# Names that a cluster, an issuer or a chat gave, and what is everybody's.
OTHERS: list[tuple[str, str, str, Facts]] = [
    ("session.began", "bert", "password", {"address": "192.0.2.2"}),
    ("token.proved", "ada", "rest", {"cluster": "hostile"}),
    ("identity.proved", "ada", "token", {"account": "ada@hostile", "cluster": "hostile"}),
    ("identity.ended", "ada", "oidc", {"subject": "ada"}),
    ("session.ended", "ada", "issuer", {"subjects": ["bert"]}),
    ("chat.linked", "bert", "browser", {"account": "ada"}),
    ("keys.rotated", "ada", "browser", {"key": "k"}),
    ("identity.mapped", "root", "shell", {"user": "bert", "cluster": "prod"}),
]


@pytest.mark.parametrize(("verb", "actor", "via", "facts"), OWN, ids=[f"{one[0]} {one[2]}" for one in OWN])
def test_an_account_sees_what_was_done_with_it(verb: str, actor: str, via: str, facts: Facts, env: World) -> None:
    entry(verb, actor, via, facts)
    assert seen_by(AuditReader([], env.ada)) == [f"{verb} {actor}"]
    assert seen_by(AuditReader([], env.rita)) == []
    assert seen_by(AuditReader([env.cluster])) == []


def test_S38_entries_about_the_drift_of_a_secret_are_for_operators(env: World, afternoon: Facts) -> None:
    for kind in ("Secret", "ConfigMap"):
        with transaction.atomic():
            told = {"deployment": afternoon["deployment"], "facts": {"object": f"{kind} shop/db"}}
            audit.record(verb="drift.over", actor=audit.MACHINE, **told)
    assert seen_by(AuditReader([env.cluster], env.ada)).count("drift.over pratique") == 1
    assert seen_by(AuditReader([env.cluster], env.rita, is_operator=True)).count("drift.over pratique") == 2


@pytest.mark.parametrize(("verb", "actor", "via", "facts"), OTHERS, ids=[f"{one[0]} {one[2]}" for one in OTHERS])
def test_S02_nobody_but_operators_sees_what_others_did(
    verb: str, actor: str, via: str, facts: Facts, env: World
) -> None:
    entry(verb, actor, via, facts)
    assert seen_by(AuditReader([env.cluster], env.ada)) == []
    assert seen_by(AuditReader([], env.rita, is_operator=True)) == [f"{verb} {actor}"]


@pytest.mark.parametrize("verb", ["policy.saved", "cluster.registered"])
def test_S02_what_concerns_a_cluster_is_seen_by_its_readers(verb: str, env: World) -> None:
    entry(verb, "root", "shell", {"cluster": "prod"})
    other = world.cluster("other")
    assert seen_by(AuditReader([env.cluster])) == [f"{verb} root"]
    assert seen_by(AuditReader([other], env.ada)) == []
    # Nor by operators who may not read that cluster.
    assert seen_by(AuditReader([other], env.ada, is_operator=True)) == []


def test_S01_an_account_of_the_same_name_does_not_see_what_was_before_it(env: World) -> None:
    entry("session.began", "again", "password")
    User.objects.create_user("again").delete()
    later = User.objects.create_user("again")
    assert seen_by(AuditReader([], later)) == []
    entry("session.began", "again", "password")
    assert len(seen_by(AuditReader([], later))) == 1


def test_S02_an_operator_sees_no_entries_of_a_cluster_that_they_may_not_read(env: World) -> None:
    world.submit_spec(env.cluster, world.seen("harbour", world.spec()), env.rita)
    assert AuditEntry.objects.filter(cluster="prod").exists()
    assert seen_by(AuditReader([], env.ada, is_operator=True)) == []


def shown_to(client: Client) -> str:
    return " ".join(text_of(client.get("/audit")).split())


def test_the_page_tells_how_many_entries_one_sees_and_which_others_there_are(env: World, browse: Browse) -> None:
    for name in ("ada", "bert", "bert"):
        entry("session.began", name, "password")
    text = shown_to(browse(env.ada))
    assert "<strong>1</strong> of 3 entries." in text
    assert "the sign-ins, tokens and chat accounts of your own account" in text
    assert text.count("signed in") == 1
    env.ada.is_staff = True
    env.ada.save()
    text = shown_to(browse(env.ada))
    assert "<strong>3</strong> of 3 entries." in text
    assert "You are an operator" in text


def test_S02_operators_see_no_policy_of_a_cluster_that_they_may_not_read(env: World) -> None:
    save(env, expression="true", message="of-prod")
    assert "policy.saved ada" in seen_by(AuditReader([env.cluster]))
    found = audit_entries(AuditReader([world.cluster("other")], env.rita, is_operator=True))
    assert "of-prod" not in json.dumps([one.facts for one in found])


def test_every_channel_that_the_audit_tells_of_can_be_chosen(env: World) -> None:
    """Those of actors in our own code; `web.audit.CHANNELS` is what the page offers."""
    written = {
        via
        for path in Path(audit.__file__).parent.rglob("*.py")
        for via in re.findall(r"""\bActor\([^()]*(?:\([^()]*\)[^()]*)*"([a-z]+)"\)""", path.read_text())
    }
    assert {"browser", "oidc", "proxy", "issuer", "machine", "shell"} <= written
    assert {*written, *Review.Channel.values} <= set(CHANNELS)


def by_token_of(name: str, before: Client | None = None) -> Client:
    client = before or Client()
    row = services.sign_in(
        proved=services.prove(cluster=name, token=name, address="192.0.2.1"), browser=Browser("192.0.2.1")
    )
    client.force_login(row.user)
    session = client.session
    session[SIGN_IN] = row.pk
    session.save()
    return client


@pytest.fixture
def two(env: World) -> Callable[[str], Client]:
    """carol of prod, and of the cluster `second`, whose owner can make her tokens there."""
    world.cluster("second")
    for name in ("prod", "second"):
        env.kubernetes.tokens[name] = Identity("carol", (), f"of-{name}")
    return by_token_of


def test_S01_a_cluster_to_which_an_account_is_linked_learns_nothing_of_its_sign_ins(
    env: World, two: Callable[[str], Client]
) -> None:
    assert "proved an identity" in shown_to(two("prod"))
    who = access.of_sign_in(SignIn.objects.get())
    services.link_identity(by=who, proved=services.prove(cluster="second", token="second", address="192.0.2.9"))
    text = shown_to(two("second"))
    assert "identity proved" not in text
    assert "only operators see its sign-ins and tokens" in text
    # Unlinked again, the account's past stays that of both.
    identity = who.user.kubernetes_identities.get(cluster__name="prod")
    by_both = access.of_sign_in(SignIn.objects.filter(proofs__identity__cluster__name="second").latest("pk"))
    services.unlink_identity(by=by_both, identity_id=identity.pk)
    assert "identity proved" not in shown_to(two("second"))


def test_S01_an_account_with_an_identity_that_the_session_did_not_prove_is_left_to_operators(
    env: World, two: Callable[[str], Client]
) -> None:
    """As earlier versions left them, which wrote no entry of the link."""
    client = two("prod")
    KubernetesIdentity.objects.create(
        user=SignIn.objects.get().user,
        cluster=Cluster.objects.get(name="second"),
        authenticator=KubernetesIdentity.Authenticator.TOKEN_REVIEW,
        username="carol",
        uid="of-second",
        groups_seen_at=timezone.now(),
    )
    assert "identity proved" not in shown_to(client)


def test_S01_a_token_makes_nobody_an_operator(env: World, two: Callable[[str], Client]) -> None:
    entry("keys.rotated", "root", "shell")
    client = two("prod")
    User.objects.filter(username="carol@prod").update(is_staff=True)
    assert "keys rotated" not in text_of(client.get("/audit", follow=True))
