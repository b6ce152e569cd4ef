"""What is known of those who asked ages, and what nobody asked for just now stands on who wrote it (S07, S08, S25)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, cast

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals import gate, services
from approvals.access import no_longer_current
from approvals.gate.plan_options import plan_options
from approvals.gate.rights import askers_of
from approvals.ledger import pivots
from approvals.ledger.pivots import SpecWriter
from approvals.models import AuditEntry, Request
from approvals.policy import Lapse, Lapsed, why_nobody_vouches
from approvals.rights.known_names import registered
from approvals.steps import prepare
from provisioner.values import AccessAnswer, Identity, ObjectRef
from tests.approvals.security.people.asking import NAME, PULL, applied, approve, ask, by_token, unattended
from tests.support.approvals import world
from tests.support.approvals.asked_gate import check_requesters
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting, enter


def groups_asked(env: World) -> list[tuple[str, ...]]:
    """The groups that Kubernetes is asked about from now on."""
    found: list[tuple[str, ...]] = []
    ask_it = env.kubernetes.ask

    def ask_and_note(cluster: Any, identity: Identity, question: Any) -> AccessAnswer:
        found.append(identity.groups)
        return ask_it(cluster, identity, question)

    env.kubernetes.ask = ask_and_note  # type: ignore[method-assign] # to see the groups
    return found


@pytest.mark.parametrize(
    ("changes", "is_current"),
    [
        pytest.param({}, True, id="by a token of now"),
        pytest.param({"hours": 11.9}, True, id="within the limit"),
        pytest.param({"hours": 12.1}, False, id="past the limit"),
        pytest.param({"hours": 1000, "authenticator": "mapped"}, True, id="mapped: the operator's word of now"),
        pytest.param({"username": "rita-made-again"}, False, id="the account is another person now"),
    ],
)
def test_S25_who_asked_is_known_by_the_latest_proof_of_that_very_person(
    env: World, changes: dict[str, Any], is_current: bool
) -> None:
    by_token(env.rita)
    request = ask(env, env.rita)
    by_token(env.rita, **changes)
    (asker,) = askers_of(request)
    assert (asker.identity.username, asker.is_current) == ("rita", is_current)


@pytest.mark.parametrize(
    ("written", "mapped", "is_current"),
    [
        pytest.param("uid-rita", "", True, id="a mapping without a uid takes the one that the cluster proves"),
        pytest.param("", "uid-rita", True, id="nobody proved a uid when it was written"),
        pytest.param("uid-rita", "uid-rita", True, id="the same uid"),
        pytest.param("uid-rita", "uid-of-another", False, id="the name was given to somebody else"),
    ],
)
def test_S01_who_wrote_with_kubectl_is_the_account_that_the_name_is_mapped_to(
    env: World, written: str, mapped: str, is_current: bool
) -> None:
    """Seconds after a write that the API server proved, and after every sign-in, she was told to sign in again."""
    env.rita.kubernetes_identities.update(uid=mapped)
    proved_at = timezone.now() - timedelta(hours=100)
    writer = SpecWriter(Identity("rita", (), written), "kubectl", env.rita, proved_at)
    pivots.see(cluster=env.cluster, obj=world.seen(NAME, world.spec()), writer=writer)
    request = Request.objects.get()
    (asker,) = askers_of(request)
    assert (asker.identity.uid or "uid-rita", asker.is_current) == ("uid-rita", is_current)
    lapsed = [] if is_current else [Lapsed("rita", Lapse.UNLINKED)]
    assert no_longer_current(request) == lapsed
    what, remedy = why_nobody_vouches([Lapsed("rita", Lapse.UNLINKED)])
    assert "expired" not in what
    assert remedy == "rita must request it again"


def test_S01_a_name_without_an_account_is_not_joined_to_one_that_came_later(env: World) -> None:
    """Who was called rita when it was written may be somebody else than who is mapped to the name now."""
    proved_at = timezone.now() - timedelta(hours=100)
    writer = SpecWriter(Identity("rita", (), "uid-rita"), "kubectl", None, proved_at)
    pivots.see(cluster=env.cluster, obj=world.seen(NAME, world.spec()), writer=writer)
    request = Request.objects.get()
    assert no_longer_current(request) == [Lapsed("rita", Lapse.UNCONFIRMED)]
    assert "or request it again" in why_nobody_vouches(no_longer_current(request))[1]
    request.requesters.append({**request.requesters[0], "uid": "", "user_id": env.rita.pk, "via": "browser"})
    assert no_longer_current(request) == [], (
        "she requested it again by her account, and Kubernetes knows both by the name"
    )
    request.requesters[1]["uid"] = "uid-of-another"
    env.rita.kubernetes_identities.update(uid="uid-of-another")
    assert no_longer_current(request) == [Lapsed("rita", Lapse.UNCONFIRMED)]


@pytest.mark.parametrize("end", ["switched off", "forgotten"])
def test_S33_who_asked_and_is_nobody_any_more_is_known_by_what_is_too_old(env: World, end: str) -> None:
    request = ask(env, env.rita)
    if end == "switched off":
        User.objects.filter(pk=env.rita.pk).update(is_active=False)
    else:
        env.rita.kubernetes_identities.all().delete()
    assert not askers_of(request)[0].is_current
    (lapsed,) = no_longer_current(request)
    assert lapsed.why is (Lapse.DISABLED if end == "switched off" else Lapse.UNLINKED)


def test_who_was_renamed_at_the_issuer_is_asked_for_by_the_name_of_now(env: World) -> None:
    identity = {"authenticator": "oidc", "issuer": "https://sso.example.com", "subject": "s-1"}
    env.rita.kubernetes_identities.update(**identity)
    writer = SpecWriter(Identity("rita"), "browser", None, timezone.now(), identity["issuer"], "s-1")
    pivots.see(cluster=env.cluster, obj=world.seen(NAME, world.spec()), writer=writer)
    env.rita.kubernetes_identities.update(username="rita-married")
    assert askers_of(Request.objects.get())[0].identity.username == "rita-married"


@pytest.mark.parametrize(("hours", "is_current"), [(1, True), (13, False), (None, False)])
def test_whom_no_account_stands_for_is_known_by_the_writing(env: World, hours: int | None, is_current: bool) -> None:
    proved_at = None if hours is None else timezone.now() - timedelta(hours=hours)
    writer = SpecWriter(Identity("stamped", ("requesters",)), "kubectl", None, proved_at)
    pivots.see(cluster=env.cluster, obj=world.seen(NAME, world.spec()), writer=writer)
    (asker,) = askers_of(Request.objects.get())
    assert (asker.identity.groups, asker.is_current) == (("requesters",), is_current)


def test_S07_who_asked_is_asked_for_in_the_groups_of_now_and_a_no_stops_it(env: World) -> None:
    by_token(env.rita)
    request = ask(env, env.rita)
    by_token(env.rita, groups=["leavers"])
    asked = groups_asked(env)
    check_requesters(request)
    assert set(asked) == {("leavers",)}
    env.kubernetes.allowed.discard(("rita", "impersonate", "*"))
    with pytest.raises(gate.Waiting, match="does not allow rita to impersonate"):
        check_requesters(request)


def test_S07_by_groups_that_are_too_old_a_no_still_stops_it(env: World) -> None:
    by_token(env.rita)
    request = ask(env, env.rita)
    by_token(env.rita, hours=13)
    check_requesters(request)
    env.kubernetes.allowed.discard(("rita", "impersonate", "*"))
    with pytest.raises(gate.Waiting, match="does not allow rita to impersonate"):
        check_requesters(request)


def test_S09_nothing_of_others_is_tried_for_who_is_known_by_what_is_too_old(env: World) -> None:
    by_token(env.rita)
    request = ask(env, env.rita)
    assert plan_options(request).may_try_foreign
    by_token(env.rita, hours=13)
    assert not plan_options(request).may_try_foreign


class Recorded:
    """Stands in for the API of a cluster: as whom it was asked for an object."""

    def __init__(self) -> None:
        self.person: list[str] = []

    def acting_as(self, person: Identity) -> Recorded:
        self.person.append(person.username)
        return self

    def get(self, ref: ObjectRef) -> dict[str, Any]:
        return {"kind": ref.kind}


def reads_as(request: Request) -> str:
    api = Recorded()
    found = Request.objects.select_related("deployment__cluster").get(pk=request.pk)
    assert prepare.reader_as_requester(found, cast(Any, api))(ObjectRef("", "v1", "Secret", "x", "pull"))
    return api.person[0]


@pytest.mark.parametrize(
    ("writers", "reads"), [("rita", "rita"), ("rita ada", "ada"), ("rita ada rita", "rita"), ("ada rita bert", "bert")]
)
def test_S08_sources_are_read_as_the_last_writer(env: World, writers: str, reads: str) -> None:
    for number, name in enumerate(writers.split()):
        request = ask(env, getattr(env, name), version=str(number))
    assert {one["username"] for one in request.requesters} == set(writers.split())
    assert reads_as(request) == reads


def test_S08_where_nobody_who_asked_wrote_it_they_are_read_as_who_asked_last(env: World) -> None:
    first = applied(ask(env, env.rita))
    services.ask_again(by=acting(env.ada), deployment=first.deployment, via="browser")
    again = applied(Request.objects.latest("number"))
    assert names(again.requesters) == ["ada"]
    assert reads_as(again) == "ada"
    # And what nobody asks for is read as the last writer, beside who asked for what runs.
    assert names(unattended(again).requesters) == ["rita", "ada"]
    assert reads_as(Request.objects.latest("number")) == "rita"


def test_S31_the_worker_gets_a_right_of_its_own_where_the_last_writer_is_an_account(env: World) -> None:
    """What `rights` prints is what the worker does then: it reads as people, and for accounts by itself."""
    robot = world.user("system:serviceaccount:shop:robot", env.cluster)
    by_token(robot)
    for last, is_read_for_account in ((robot, True), (env.rita, False)):
        request = ask(env, last, sources=[PULL], config={"recursive": last is robot})
        Request.objects.filter(pk=request.pk).update(is_installer_proved=True)
        found = registered(env.cluster, cast(Any, Recorded()))
        assert bool(found.for_accounts) is is_read_for_account


def names(people: Iterable[dict[str, Any]]) -> list[str]:
    return [one["username"] for one in people]


def test_S07_what_nobody_asked_for_just_now_has_the_last_writers_as_requesters(env: World) -> None:
    env.kubernetes.allow("ada", "impersonate")
    applied(ask(env, env.bert))
    first = applied(ask(env, env.rita, version="2"))
    services.ask_again(by=acting(env.ada), deployment=first.deployment, via="browser")
    again = applied(Request.objects.latest("number"))
    assert names(again.requesters) == ["ada"], "who asks for the same once more"
    request = unattended(again)
    assert (request.is_unattended, request.is_requester_known) == (True, True)
    assert names(request.requesters) == ["rita", "ada"]
    made = AuditEntry.objects.filter(verb="request.made").latest("number")
    assert (made.actor, made.via, made.facts["standsFor"]) == ("pratique", "machine", "rita, ada")


def test_S05_an_unknown_writer_stays_unknown_where_nobody_asks(env: World) -> None:
    first = ask(env, env.rita)
    pivots.see(
        cluster=env.cluster,
        obj=world.seen(NAME, world.spec(paused=True), uid=first.deployment.uid, generation=2),
        writer=None,
    )
    assert not unattended(applied(first)).is_requester_known


def test_S05_who_wrote_it_does_not_approve_what_nobody_asked_for(env: World) -> None:
    env.kubernetes.allow("ada", "impersonate")
    request = world.in_review(unattended(applied(ask(env, env.ada))))
    with pytest.raises(services.reviews.SelfApproval):
        approve(request, env.ada)


def test_the_page_and_rest_say_that_nobody_asked_just_now(env: World) -> None:
    request = world.in_review(unattended(applied(ask(env, env.rita))))
    client = Client()
    enter(client, env.ada)
    page = " ".join(client.get(f"/requests/{request.uid}").content.decode().split())
    assert 'created automatically for <span class="mono">rita</span>' in page
    answer = client.get(f"/api/v1/requests/{request.uid}").json()
    assert answer["is_unattended"] is True
    assert answer["requesters"][0]["groups_at"] == request.requesters[0]["groups_at"] != ""
