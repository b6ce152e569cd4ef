"""A proxy whose people are an issuer's: who comes by both is one person, with two names on the cluster (S05, S12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings as current
from django.contrib.auth.models import User
from django.utils import timezone

from approvals import access, services
from approvals.access import Caller
from approvals.errors import AlreadyReviewed, SelfApproval
from approvals.gate.rights import askers_of
from approvals.ledger import pivots
from approvals.ledger.pivots import SpecWriter
from approvals.models import KubernetesIdentity, Proof, Request, Review
from approvals.networks import Proxies
from approvals.oidc import ClusterRules, Issuer, Issuers
from approvals.oidc.issuers import Prefixed
from approvals.proxies import ClusterNames, Headers, IdentityProxies, IdentityProxy, Said
from approvals.services import Browser
from approvals.services.sign_ins import Proved
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save, words_of

URL, SUB = "https://sso.example.com", "s-1"
OIDC = KubernetesIdentity.Authenticator.OIDC
BROWSER = Browser("192.0.2.1")
Way = Callable[[World], Caller]


def trust(settings: Any, env: World, issuer: str = URL) -> IdentityProxy:
    """The cluster counts an issuer and a proxy, whose uid is the issuer's `sub` where `issuer` says so."""
    name = env.cluster.name
    proxy = IdentityProxy(
        "sso",
        "SSO",
        Proxies.read("10.0.0.5/32"),
        (ClusterNames(name, "sso:", "sso:"),),
        Headers(uid="X-Remote-Uid"),
        issuer=issuer,
    )
    rules = ClusterRules(name, Prefixed("sub", "oidc:"), Prefixed("groups", "oidc:"))
    known = Issuers((Issuer("example", "Example", URL, (rules,), None, ("pratique",)),))
    settings.PRATIQUE = {
        **settings.PRATIQUE,
        "OIDC_FILE": known,
        "IDENTITY_PROXIES_FILE": IdentityProxies((proxy,)),
        "APPROVALS_NEEDED": 2,
    }
    return proxy


@pytest.fixture(autouse=True)
def proxy(env: World, settings: Any) -> IdentityProxy:
    for name in ("sso:ada", "oidc:ada"):
        for verb in ("get", "approve", "impersonate"):
            env.kubernetes.allow(name, verb)
    return trust(settings, env)


def by_proxy(env: World, uid: str = SUB) -> Caller:
    (proxy,) = current.PRATIQUE["IDENTITY_PROXIES_FILE"].every
    said = Said(proxy, "ada", ("platform",), uid)
    return access.of_sign_in(services.sign_in_by_proxy(said=said, browser=BROWSER))


def by_issuer(env: World, sub: str = SUB) -> Caller:
    """What a sign-in at the issuer comes to: an account found by `sub` alone."""
    known = KubernetesIdentity.objects.filter(authenticator=OIDC, issuer=URL, subject=sub).first()
    user = known.user if known else User.objects.create_user(f"{sub}@example")
    told = Proved(env.cluster, Identity("oidc:ada", ("oidc:platform",)), timezone.now(), OIDC, URL, sub)
    row = services.sign_ins.keep(told, user)
    session = services.sign_ins.begin(user, BROWSER, None)
    Proof.objects.create(sign_in=session, identity=row, groups=["oidc:platform"], proved_at=timezone.now())
    return access.of_sign_in(session)


def asked_by(env: World, caller: Caller) -> Request:
    services.create_deployment(
        by=caller, cluster=env.cluster, name="strimzi", spec=world.spec(), labels={}, via="browser"
    )
    return world.in_review(Request.objects.get())


def approve(request: Request, caller: Caller) -> Review:
    return world.review(request, caller)


WAYS: dict[str, tuple[Way, Way]] = {
    "proxy, then issuer": (by_proxy, by_issuer),
    "issuer, then proxy": (by_issuer, by_proxy),
}


@pytest.mark.parametrize(("first", "second"), WAYS.values(), ids=WAYS)
def test_S05_who_asked_by_one_does_not_approve_by_the_other(env: World, first: Way, second: Way) -> None:
    request = asked_by(env, first(env))
    caller = second(env)
    assert caller.user.pk != request.requesters[0]["user_id"]
    with pytest.raises(SelfApproval):
        approve(request, caller)


@pytest.mark.parametrize(("first", "second"), WAYS.values(), ids=WAYS)
def test_S12_who_comes_by_both_is_one_vote(env: World, first: Way, second: Way) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = world.in_review(Request.objects.get())
    approve(request, first(env))
    with pytest.raises(AlreadyReviewed):
        approve(request, second(env))


def test_two_people_of_the_issuer_are_two_votes(env: World) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = world.in_review(Request.objects.get())
    approve(request, by_proxy(env))
    approve(request, by_issuer(env, "s-2"))
    assert look(request).state == "approved"


@pytest.mark.parametrize(("first", "second"), WAYS.values(), ids=WAYS)
def test_S05_a_worker_that_is_told_of_no_issuer_knows_them_from_the_rows(
    env: World, settings: Any, first: Way, second: Way
) -> None:
    """The review was given before the door that made the change could say by whom."""
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 1}
    obj = world.seen("strimzi", world.spec())
    world.submit_spec(env.cluster, obj)
    request = world.in_review(Request.objects.get())
    asker = first(env)
    approve(request, second(env))
    pivots.see(cluster=env.cluster, obj=obj, writer=SpecWriter.of_proof(asker.proofs[0], "browser", asker.user))
    settings.PRATIQUE = {
        **settings.PRATIQUE,
        "OIDC_FILE": Issuers(),
        "IDENTITY_PROXIES_FILE": IdentityProxies(),
        "ISSUERS_ELSEWHERE": True,
    }
    assert look(request).state == "in_review"


@pytest.mark.parametrize(("first", "second"), WAYS.values(), ids=WAYS)
def test_S13_a_policy_does_not_approve_what_its_writer_asks_for_by_the_other_way(
    env: World, settings: Any, first: Way, second: Way
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 1}
    policy = save(env, expression="true", by=first(env))
    allow(env, policy)
    assert look(asked_by(env, second(env))).state == "in_review"
    assert "requested this change" in words_of(policy)[1]


@pytest.mark.parametrize(("first", "second"), WAYS.values(), ids=WAYS)
def test_S07_who_asked_is_asked_for_by_the_name_that_they_came_with(env: World, first: Way, second: Way) -> None:
    second(env)
    asker = first(env)
    request = asked_by(env, asker)
    (known,) = askers_of(request)
    assert (known.identity, known.is_current) == (asker.proofs[0].identity, True)


# Before and after the operator said that the proxy has the issuer's people.


def test_S05_who_asked_by_the_proxy_before_it_had_the_issuers_people_does_not_approve_after(
    env: World, settings: Any
) -> None:
    trust(settings, env, issuer="")
    request = asked_by(env, by_proxy(env))
    assert request.requesters[0]["subject"] == f"uid:{SUB}"
    trust(settings, env)
    for caller in (by_issuer(env), by_proxy(env)):
        with pytest.raises(SelfApproval):
            approve(request, caller)


def test_S13_a_policy_that_was_saved_before_does_not_approve_what_its_writer_asks_for_after(
    env: World, settings: Any
) -> None:
    trust(settings, env, issuer="")
    policy = save(env, expression="true", by=by_proxy(env))
    allow(env, policy)
    trust(settings, env)
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 1}
    assert look(asked_by(env, by_issuer(env))).state == "in_review"
    assert "requested this change" in words_of(policy)[1]


def test_who_comes_by_the_proxy_keeps_the_account_when_it_gets_the_issuers_people(env: World, settings: Any) -> None:
    trust(settings, env, issuer="")
    before = by_proxy(env)
    trust(settings, env)
    after = by_proxy(env)
    assert (after.user, after.identity_ids) == (before.user, before.identity_ids)
    row = KubernetesIdentity.objects.get(user=after.user)
    assert (row.authenticator, row.issuer, row.subject) == ("proxy", URL, SUB)
    assert by_proxy(env, "s-2").user != after.user


def test_S01_whom_the_proxy_no_longer_has_is_nobody(env: World, settings: Any) -> None:
    caller = by_proxy(env)
    assert access.acting_of(caller, env.cluster, timezone.now()).only is not None
    told = settings.PRATIQUE["IDENTITY_PROXIES_FILE"].every[0]
    for proxies in ((), (replace(told, clusters=()),), (replace(told, issuer="https://other.example.com"),)):
        settings.PRATIQUE = {**settings.PRATIQUE, "IDENTITY_PROXIES_FILE": IdentityProxies(proxies)}
        assert access.still_known_of(caller.user, env.cluster, now=timezone.now()) is None


def test_the_page_says_by_which_proxy_somebody_is_known(env: World) -> None:
    (acting,) = access.acting_of(by_proxy(env), env.cluster, timezone.now()).identities
    assert (acting.username, acting.proved_by) == ("sso:ada", "trusted proxy sso")
