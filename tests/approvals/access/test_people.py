"""Who is the same person, by all that may be known of them: names, uids, accounts, and what issuers call them (S05)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals import access, services
from approvals.access import Caller, Person
from approvals.errors import AlreadyReviewed, NotAllowed, SelfApproval
from approvals.models import BundleDeployment, KubernetesIdentity, Request, Review
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look

ISSUER, OTHER, PROXY = "https://sso.example.com", "https://other.example.com", "sso"


def person(username: str, uid: str = "", issuer: str = "", subject: str = "") -> Person:
    return Person(username, uid, subjects=frozenset({(issuer, subject)} if subject else ()))


# Two names, and whether they are one person's.
NAMES: dict[str, tuple[Person, Person, bool]] = {
    "the same name": (person("alice"), person("alice"), True),
    "the same name made again": (person("alice", "u-1"), person("alice", "u-2"), True),
    "another name": (person("alice"), person("bob"), False),
    "no names": (person(""), person(""), False),
    "capitals": (person("alice"), person("Alice"), True),
    "sharp s": (person("weiss"), person("WEIß"), True),
    "full-width letters": (person("alice"), person("\uff41lice"), True),
    "a ligature": (person("fiona"), person("\ufb01ona"), True),
    "composed otherwise": (person("zo\u00eb"), person("zoe\u0308"), True),
    "capitals by a proxy": (
        person("sso:alice", "", PROXY, "user:alice"),
        person("sso:Alice", "", PROXY, "user:Alice"),
        True,
    ),
    "capitals by a proxy, on another cluster": (
        person("", "", PROXY, "user:alice"),
        person("", "", PROXY, "user:Alice"),
        True,
    ),
    "capitals, one with a uid": (person("alice", "u-1"), person("Alice"), True),
    "capitals, one with a sub": (person("alice", "", ISSUER, "s-1"), person("Alice"), True),
    "capitals, proved by what cannot be compared": (person("alice", "u-1"), person("Alice", "", ISSUER, "s-1"), True),
    "capitals, two issuers": (person("alice", "", ISSUER, "s-1"), person("Alice", "", OTHER, "s-1"), True),
    "capitals, two uids": (person("alice", "u-1"), person("Alice", "u-2"), False),
    "capitals, two subs": (person("alice", "", ISSUER, "s-1"), person("Alice", "", ISSUER, "s-2"), False),
    "capitals, two uids of a proxy": (person("alice", "", PROXY, "uid:1"), person("Alice", "", PROXY, "uid:2"), False),
    "uids in capitals": (person("alice", "Alice"), person("Alice", "alice"), True),
    "uids in capitals, other names": (person("a", "u-a"), person("b", "U-A"), False),
    "one uid, other names": (person("a", "u-a"), person("b", "u-a"), True),
    "subs in capitals": (person("a", "", ISSUER, "s-a"), person("b", "", ISSUER, "S-A"), False),
    "subs of Dex, which are base64": (
        person("ann", "", ISSUER, "CgNhbm4SBWxvY2Fs"),
        person("bob", "", ISSUER, "CgNhbm4SBWxvY2FS"),
        False,
    ),
    "subs and names in capitals": (person("ann", "", ISSUER, "CgNh"), person("Ann", "", ISSUER, "CgNH"), False),
    "one sub": (person("ann", "", ISSUER, "CgNh"), person("bob", "", ISSUER, "CgNh"), True),
    "uids of one issuer's subs, in capitals": (
        person("ann", "CgNh", ISSUER, "CgNh"),
        person("bob", "CgNH", ISSUER, "CgNH"),
        False,
    ),
    "a proxy's uids in capitals": (
        person("sso:alice", "", PROXY, "uid:alice"),
        person("sso:Alice", "", PROXY, "uid:Alice"),
        True,
    ),
    "a proxy's uids in capitals, other names": (
        person("a", "", PROXY, "uid:Alice"),
        person("b", "", PROXY, "uid:alice"),
        True,
    ),
    "a proxy's uid and another's name": (person("a", "", PROXY, "uid:x"), person("b", "", PROXY, "user:x"), False),
    "a sub that looks like a proxy's name": (
        person("a", "", ISSUER, "user:x"),
        person("b", "", ISSUER, "user:X"),
        False,
    ),
    "a cluster that takes the sub as uid, in capitals": (person("a", "S-1"), person("b", "", ISSUER, "s-1"), False),
    "one sub, two issuers": (person("a", "", ISSUER, "s-1"), person("b", "", OTHER, "s-1"), False),
    "a cluster that takes the sub as uid": (person("a", "s-1"), person("b", "", ISSUER, "s-1"), True),
    "a cluster with another uid": (person("a", "s-2"), person("b", "", ISSUER, "s-1"), False),
}


@pytest.mark.parametrize(("one", "other", "is_same"), NAMES.values(), ids=NAMES)
def test_S12_who_is_the_same_person(one: Person, other: Person, is_same: bool) -> None:
    assert (one.is_same(other), other.is_same(one)) == (is_same, is_same)
    # As rows keep them, and read again.
    kept = [access.person_recorded(each.record()) for each in (one, other)]
    assert kept[0].is_same(kept[1]) is is_same
    account = 7
    assert replace(one, user_id=account).is_same(replace(other, user_id=account))


# Everything that may prove one name on one cluster: Kubernetes knows one user of that name.
PROVING: dict[str, dict[str, str]] = {
    "mapped": {"authenticator": "mapped"},
    "token": {"authenticator": "token-review"},
    "token with a uid": {"authenticator": "token-review", "uid": "u-1"},
    "oidc": {"authenticator": "oidc", "issuer": ISSUER, "subject": "s-1"},
    "proxy with a uid": {"authenticator": "proxy", "issuer": PROXY, "subject": "uid:7"},
    "proxy": {"authenticator": "proxy", "issuer": PROXY, "subject": "user:{name}"},
}
# In one order: `is_same` says the same of both (above).
PAIRS = [(one, other, "alice", "alice") for one, other in itertools.combinations(PROVING, 2)]
# Where one of both has nothing but a name, it may have been typed otherwise.
PAIRS += [(one, other, "alice", "Alice") for one in ("mapped", "token", "proxy") for other in PROVING]


@pytest.fixture(autouse=True)
def believed(settings: Any) -> None:
    """By age alone, as in a worker: which issuers and proxies there are is no matter here."""
    settings.PRATIQUE = {**settings.PRATIQUE, "ISSUERS_ELSEWHERE": True}


def comes(env: World, way: str, name: str) -> Caller:
    """Somebody who proves `name` on the cluster in this way, in an account of their own."""
    about = {key: value.format(name=name) for key, value in PROVING[way].items()}
    user = User.objects.create_user(f"account-{User.objects.count()}")
    KubernetesIdentity.objects.create(
        cluster=env.cluster, user=user, username=name, groups_seen_at=timezone.now(), **about
    )
    for verb in ("get", "approve", "impersonate"):
        env.kubernetes.allow(name, verb)
    return world.acting(user)


def approve(request: Request, caller: Caller, decision: str = "Approve") -> Review:
    return world.review(request, caller, decision)


@pytest.mark.parametrize(("one", "other", "asks", "approves"), PAIRS, ids=[" ".join(pair) for pair in PAIRS])
def test_S05_S12_one_user_of_a_cluster_is_one_person_however_they_come(
    env: World, settings: Any, one: str, other: str, asks: str, approves: str
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    first, second = comes(env, one, asks), comes(env, other, approves)
    assert first.user != second.user
    services.create_deployment(by=first, cluster=env.cluster, name="mine", spec=world.spec(), labels={}, via="browser")
    mine = world.in_review(Request.objects.get())
    with pytest.raises(SelfApproval):
        approve(mine, second)
    world.submit_spec(env.cluster, world.seen("theirs", world.spec()), env.rita)
    theirs = world.in_review(Request.objects.latest("pk"))
    approve(theirs, first)
    with pytest.raises(AlreadyReviewed):
        approve(theirs, second)
    # A no of theirs is none that anybody could gain by: it counts beside the first vote, and denies.
    assert approve(theirs, second, "Deny").pk
    assert look(theirs).state == "denied"


def test_S05_people_of_dex_whose_subs_differ_in_capitals_are_two_voters(env: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    world.submit_spec(env.cluster, world.seen("x", world.spec()), env.rita)
    request = world.in_review(Request.objects.get())
    for name, subject in (("ann", "CgNhbm4SBWxvY2Fs"), ("bob", "CgNhbm4SBWxvY2FS")):
        caller = comes(env, "oidc", name)
        caller.user.kubernetes_identities.update(subject=subject)
        approve(request, world.acting(caller.user))
    assert look(request).state == "approved"


def test_RBAC_still_tells_capitals_apart(env: World) -> None:
    request = world.in_review(world.submit_spec(env.cluster, world.seen("x", world.spec()), env.rita).requests.get())
    caller = comes(env, "proxy", "Alice")
    env.kubernetes.allowed = {(name.lower(), verb, rest) for name, verb, rest in env.kubernetes.allowed}
    with pytest.raises(NotAllowed, match="does not allow Alice to approve"):
        approve(request, caller)


# As Dex makes them: base64, so capitals are part of the value (OpenID Connect Core 1.0, section 2).
ANN, BOB = "CgNhbm4SBWxvY2Fs", "CgNhbm4SBWxvY2FS"


def test_S05_a_sub_that_differs_in_capitals_is_nobody_who_asked(env: World) -> None:
    ann, bob = (comes(env, "oidc", name) for name in ("ann", "bob"))
    ann.user.kubernetes_identities.update(subject=ANN)
    bob.user.kubernetes_identities.update(subject=BOB)
    first, second = world.acting(ann.user), world.acting(bob.user)
    services.create_deployment(by=first, cluster=env.cluster, name="anns", spec=world.spec(), labels={}, via="browser")
    request = world.in_review(Request.objects.get())
    with pytest.raises(SelfApproval):
        approve(request, first)
    assert approve(request, second).pk
    assert look(request).state == "approved"


def test_S25_a_sub_that_differs_in_capitals_does_not_lend_its_name_to_who_asked(env: World) -> None:
    """Whoever left the issuer is not known by the row of somebody else, whose rights are others."""
    bob = comes(env, "oidc", "bob")
    bob.user.kubernetes_identities.update(subject=BOB)
    request = Request(deployment=BundleDeployment(cluster=env.cluster))
    left = {"username": "ann", "user_id": None, "groups_at": "", "issuer": ISSUER, "subject": ANN}
    assert access.asker_of(left, request, now=timezone.now()).identity.username == "ann"
    ours = {**left, "subject": BOB}
    assert access.asker_of(ours, request, now=timezone.now()).identity.username == "bob"
