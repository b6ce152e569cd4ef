"""People whose name can be changed at their issuer: they are known by its `sub` as well (security-rules.md S05, S12)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from approvals import access, services
from approvals.access import Caller, Scope
from approvals.errors import AlreadyReviewed, SelfApproval
from approvals.ledger.pivots import SpecWriter
from approvals.models import BundleDeployment, ChatAccount, KubernetesIdentity, Policy, Proof, Request, Review
from approvals.oidc import ClusterRules, Issuer, Issuers
from approvals.oidc.issuers import Prefixed
from approvals.services import Browser
from approvals.services.sessions import SIGN_IN
from approvals.services.sign_ins import Proved
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save, words_of

ISSUER = "https://sso.example.com"
OIDC = KubernetesIdentity.Authenticator.OIDC
DEPLOYMENT = "strimzi"


@pytest.fixture(autouse=True)
def issuer(env: World, settings: Any) -> None:
    """It calls people by a claim that they can change; mallory and eve are the same person, at different times."""
    rules = ClusterRules(env.cluster.name, Prefixed("preferred_username", ""), Prefixed("groups", ""))
    known = Issuer("example", "Example", ISSUER, (rules,), None, ("pratique",))
    settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": Issuers((known,))}
    for name in ("mallory", "eve"):
        for verb in ("get", "approve", "impersonate"):
            env.kubernetes.allow(name, verb)


def signed_in(env: World, name: str, subject: str = "s-1") -> Caller:
    """What a sign-in at the issuer comes to: its own account, found by `sub` alone."""
    rows = KubernetesIdentity.objects.filter(authenticator=OIDC, issuer=ISSUER, subject=subject)
    known = rows.first()
    user = known.user if known else User.objects.create_user(services.sign_ins.free_name(name, subject))
    identity = Identity(name, ("platform",))
    row = services.sign_ins.keep(Proved(env.cluster, identity, timezone.now(), OIDC, ISSUER, subject), user)
    session = services.sign_ins.begin(user, Browser("192.0.2.1"), None)
    Proof.objects.create(sign_in=session, identity=row, groups=["platform"], proved_at=timezone.now())
    return access.of_sign_in(session)


def renamed(env: World, before: Caller, name: str = "eve") -> Caller:
    """The person comes back under another name, by another account here: the first one has let the identity go."""
    other = world.cluster(f"other-{name}")
    KubernetesIdentity.objects.create(
        user=before.user,
        cluster=other,
        authenticator="token-review",
        username="m",
        uid="m",
        groups_seen_at=timezone.now(),
    )
    services.unlink_identity(by=before, identity_id=before.proofs[0].identity_id)
    after = signed_in(env, name)
    assert after.user != before.user
    assert after.proofs[0].identity.username == name
    return after


def asked_by(env: World, caller: Caller) -> Request:
    services.create_deployment(
        by=caller, cluster=env.cluster, name=DEPLOYMENT, spec=world.spec(), labels={}, via="browser"
    )
    return world.in_review(Request.objects.get())


def approve(request: Request, caller: Caller, channel: str = "browser") -> Review:
    return world.review(request, caller, channel=channel)


def by_api_token(after: Caller, env: World) -> Caller:
    clusters = [env.cluster]
    row, _ = services.create_api_token(by=after, name="t", days=1, scopes=Scope.values, clusters=clusters)
    return access.of_token(row)


def by_chat(after: Caller, env: World) -> Caller:
    account = ChatAccount.objects.create(
        tool="slack", tenant="T1", account="U1", user=after.user, linked_at=timezone.now()
    )
    account.identities.set(after.identity_ids)
    return access.of_chat(account)


def by_id_token(after: Caller, env: World) -> Caller:
    row = KubernetesIdentity.objects.get(user=after.user)
    return access.of_issuer(after.user, [(row, row.groups, timezone.now())])


CHANNELS = {
    "browser": (lambda after, _: after, "browser"),
    "api token": (by_api_token, "rest"),
    "id token": (by_id_token, "rest"),
    "chat": (by_chat, "chat"),
}


@pytest.mark.parametrize(("comes", "channel"), CHANNELS.values(), ids=CHANNELS)
def test_S05_who_asked_does_not_approve_under_another_name(env: World, comes: Any, channel: str) -> None:
    before = signed_in(env, "mallory")
    request = asked_by(env, before)
    caller = comes(renamed(env, before), env)
    with pytest.raises(SelfApproval):
        approve(request, caller, channel)
    assert not Review.objects.exists()


def test_S05_the_page_says_to_the_renamed_person_that_they_asked(env: World) -> None:
    before = signed_in(env, "mallory")
    request = asked_by(env, before)
    after = renamed(env, before)
    client = Client()
    client.force_login(after.user)
    session = client.session
    session[SIGN_IN] = after.holder_id
    session.save()
    assert "You requested this change" in client.get(f"/requests/{request.uid}").content.decode()
    assert "you requested it" in client.get("/?tab=open").content.decode()
    sent = {"decision": "Approve", "subject_digest": request.subject_digest, "reason": "mine"}
    assert client.post(f"/requests/{request.uid}/review", sent).status_code == 403
    body = {**sent, "acknowledges": []}
    answer = client.post(f"/api/v1/requests/{request.uid}/reviews", body, content_type="application/json")
    assert answer.status_code == 403
    assert not Review.objects.exists()


def test_S24_what_an_issuer_calls_people_is_told_to_nobody(env: World) -> None:
    request = asked_by(env, signed_in(env, "mallory", "s-secret"))
    client = Client()
    world.enter(client, env.ada)
    for path in (f"/requests/{request.uid}", f"/api/v1/requests/{request.uid}"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "mallory" in answer.content.decode()
        assert "s-secret" not in answer.content.decode()


def test_S12_a_second_account_of_the_same_person_is_not_a_second_vote(env: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    request = asked_of_rita(env)
    before = signed_in(env, "mallory")
    approve(request, before)
    after = renamed(env, before)
    with pytest.raises(
        AlreadyReviewed, match="eve has already decided on this round from another account and as mallory"
    ):
        approve(request, after)
    assert look(request).state == "in_review"


def test_S12_the_same_uid_is_not_a_second_vote(env: World, settings: Any) -> None:
    """A cluster that has people's names from a claim that changes, and their uids from one that does not."""
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    env.kubernetes.tokens = {name: Identity(name, ("platform",), "u-1") for name in ("mallory", "eve")}
    request = asked_of_rita(env)
    approve(request, world.by_token("prod", "mallory"))
    with pytest.raises(AlreadyReviewed):
        approve(request, world.by_token("prod", "eve"))


def test_two_people_of_an_issuer_are_two_votes(env: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    request = asked_of_rita(env)
    approve(request, signed_in(env, "mallory"))
    approve(request, signed_in(env, "eve", "s-2"))
    assert look(request).state == "approved"


def asked_of_rita(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen(DEPLOYMENT, world.spec()), env.rita)
    return world.in_review(Request.objects.get())


def test_S05_a_review_does_not_count_once_its_giver_turns_out_to_have_asked_under_another_name(env: World) -> None:
    obj = world.seen(DEPLOYMENT, world.spec())
    deployment = world.submit_spec(env.cluster, obj)
    request = world.in_review(Request.objects.get())
    before = signed_in(env, "mallory")
    proof = before.proofs[0]
    approve(request, renamed(env, before))
    # The watch saw the write before the door that made it could say by whom.
    services.deployments.pivots.see(
        cluster=deployment.cluster, obj=obj, writer=SpecWriter.of_proof(proof, "browser", before.user)
    )
    assert look(request).state == "in_review"


def test_S05_who_asks_again_under_a_name_that_was_somebody_elses_is_a_requester_too(env: World) -> None:
    """Else they would approve it as soon as they have changed their name once more."""
    before = signed_in(env, "mallory")
    request = asked_by(env, before)
    Request.objects.update(state="failed")
    renamed(env, before)
    taker = signed_in(env, "mallory", "s-2")
    services.ask_again(by=taker, deployment=request.deployment, via="browser")
    request = world.in_review(Request.objects.get(number=2))
    assert [one["subject"] for one in request.requesters] == ["s-1", "s-2"]
    env.kubernetes.allow("trudy", "approve")
    with pytest.raises(SelfApproval):
        approve(request, signed_in(env, "trudy", "s-2"))


@pytest.mark.parametrize("role", ["author", "editor"])
def test_S05_a_policy_does_not_approve_what_its_renamed_writer_asked_for(env: World, role: str) -> None:
    before = signed_in(env, "mallory")
    writes = {"author": (before, None), "editor": (None, before)}[role]
    for by in writes:
        policy = save(env, expression="true", **({"by": by} if by else {}))
    allow(env, policy)
    request = asked_by(env, renamed(env, before))
    assert look(request).state == "in_review"
    assert "requested this change" in words_of(policy)[1]


def test_S05_a_policy_from_before_that_was_kept_goes_by_its_writers_account(env: World) -> None:
    policy = save(env, expression="true")
    Policy.objects.update(author_known_as={}, editor_known_as={})
    allow(env, policy)
    world.submit_spec(env.cluster, world.seen(DEPLOYMENT, world.spec()), env.ada)
    assert look(world.in_review(Request.objects.get())).state == "in_review"


def subjects(rows: QuerySet[Any]) -> list[str]:
    return list(rows.values_list("subject", flat=True))


def test_what_is_kept_of_an_issuers_person(env: World) -> None:
    caller = signed_in(env, "mallory")
    request = asked_by(env, caller)
    person = request.requesters[0]
    assert (person["issuer"], person["subject"], person["groups_at"]) == (
        ISSUER,
        "s-1",
        caller.proofs[0].proved_at.isoformat(),
    )
    assert subjects(request.deployment.writes.all()) == ["s-1"]
    approve(request, signed_in(env, "eve", "s-2"))
    assert (Review.objects.get().issuer, Review.objects.get().subject) == (ISSUER, "s-2")


def test_S25_a_worker_is_told_of_no_issuer_and_goes_by_age_alone(env: World, settings: Any) -> None:
    """Only web has the issuers' file: approvals of their people count all the same where requests are decided."""
    caller, now = signed_in(env, "mallory"), timezone.now()
    request = Request(deployment=BundleDeployment(cluster=env.cluster))
    asker = {"username": "mallory", "groups": ["platform"], "issuer": ISSUER, "subject": "s-1"}
    told = settings.PRATIQUE["OIDC_FILE"]
    moved = Issuers((replace(told.every[0], url="https://other.example.com"),))
    cases = ((told, False, True), (Issuers(), False, False), (moved, False, False), (Issuers(), True, True))
    for known, elsewhere, counts in cases:
        settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": known, "ISSUERS_ELSEWHERE": elsewhere}
        assert bool(access.still_known_of(caller.user, env.cluster, now=now)) is counts
        assert access.asker_of(asker, request, now=now).is_current is counts
    assert access.still_known_of(caller.user, env.cluster, now=now + timedelta(hours=13)) is None
