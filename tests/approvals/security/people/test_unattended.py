"""What is known of those who asked ages, and what nobody asked for just now stands on who wrote it (S07, S08, S25)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, cast

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from approvals import gate, policy, services
from approvals.gate.planning import plan_options
from approvals.gate.remedies import HELD_BACK
from approvals.gate.rights import askers_of
from approvals.ledger import pivots
from approvals.ledger.pivots import Writer
from approvals.models import AuditEntry, BundleDeployment, KubernetesIdentity, Request, Review
from approvals.policy import Ballot
from approvals.project import configuration
from approvals.rights.registered import registered
from approvals.steps import prepare
from provisioner.values import AccessAnswer, Identity, ObjectRef
from tests.approvals import world
from tests.approvals.asked_gate import check_requesters, check_vouched
from tests.approvals.conftest import World, here
from tests.approvals.policy.test_policies import allow, look, save
from tests.approvals.world import acting, enter

__all__ = ["here"]
TOKEN_REVIEW = KubernetesIdentity.Authenticator.TOKEN_REVIEW
NAME = "strimzi"
PULL = {"kind": "image", "image": {"ref": "registry.example/x:1", "auth": {"secret": {"name": "pull"}}}}


def by_token(person: User, *, hours: float = 0, **changes: Any) -> None:
    """The person is known by tokens of the cluster, and last showed one so many hours ago."""
    seen = timezone.now() - timedelta(hours=hours)
    facts = {"authenticator": TOKEN_REVIEW, "uid": f"u-{person.username}", "groups_seen_at": seen, **changes}
    person.kubernetes_identities.update(**facts)


def ask(here: World, by: User, **spec: Any) -> Request:
    """A request of this person, as they are known now."""
    known = BundleDeployment.objects.filter(name=NAME).first()
    if known:
        wish = {"by": acting(by), "deployment": known, "spec": world.spec(**spec), "generation": known.generation}
        services.change_deployment(**wish, via="browser")
    else:
        wish = {"by": acting(by), "cluster": here.cluster, "name": NAME, "spec": world.spec(**spec), "labels": {}}
        services.create_deployment(**wish, via="browser")
    return Request.objects.select_related("deployment__cluster").latest("number")


def applied(request: Request) -> Request:
    if request.state == "preparing":
        world.in_review(request)
    Request.objects.filter(pk=request.pk).update(state="applied")
    request.refresh_from_db()
    return request


def unattended(of: Request) -> Request:
    made = pivots.ask_once_more(of=of)
    assert made is not None
    return Request.objects.select_related("deployment__cluster").get(pk=made.pk)


def groups_asked(here: World) -> list[tuple[str, ...]]:
    """The groups that Kubernetes is asked about from now on."""
    found: list[tuple[str, ...]] = []
    ask_it = here.kubernetes.ask

    def ask_and_note(cluster: Any, identity: Identity, question: Any) -> AccessAnswer:
        found.append(identity.groups)
        return ask_it(cluster, identity, question)

    here.kubernetes.ask = ask_and_note  # type: ignore[method-assign] # to see the groups
    return found


# Whom a request names, as they are known now.


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
    here: World, changes: dict[str, Any], is_current: bool
) -> None:
    by_token(here.rita)
    request = ask(here, here.rita)
    by_token(here.rita, **changes)
    (asker,) = askers_of(request)
    assert (asker.identity.username, asker.is_current) == ("rita", is_current)


@pytest.mark.parametrize("end", ["switched off", "forgotten"])
def test_S33_who_asked_and_is_nobody_any_more_is_known_by_what_is_too_old(here: World, end: str) -> None:
    request = ask(here, here.rita)
    if end == "switched off":
        User.objects.filter(pk=here.rita.pk).update(is_active=False)
    else:
        here.rita.kubernetes_identities.all().delete()
    assert not askers_of(request)[0].is_current


def test_who_was_renamed_at_the_issuer_is_asked_for_by_the_name_of_now(here: World) -> None:
    identity = {"authenticator": "oidc", "issuer": "https://sso.example.com", "subject": "s-1"}
    here.rita.kubernetes_identities.update(**identity)
    writer = Writer(Identity("rita"), "browser", None, timezone.now(), identity["issuer"], "s-1")
    pivots.see(cluster=here.cluster, obj=world.seen(NAME, world.spec()), writer=writer)
    here.rita.kubernetes_identities.update(username="rita-married")
    assert askers_of(Request.objects.get())[0].identity.username == "rita-married"


@pytest.mark.parametrize(("hours", "is_current"), [(1, True), (13, False), (None, False)])
def test_whom_no_account_stands_for_is_known_by_the_writing(here: World, hours: int | None, is_current: bool) -> None:
    proved_at = None if hours is None else timezone.now() - timedelta(hours=hours)
    writer = Writer(Identity("stamped", ("requesters",)), "kubectl", None, proved_at)
    pivots.see(cluster=here.cluster, obj=world.seen(NAME, world.spec()), writer=writer)
    (asker,) = askers_of(Request.objects.get())
    assert (asker.identity.groups, asker.is_current) == (("requesters",), is_current)


def test_S07_who_asked_is_asked_for_in_the_groups_of_now_and_a_no_stops_it(here: World) -> None:
    by_token(here.rita)
    request = ask(here, here.rita)
    by_token(here.rita, groups=["leavers"])
    asked = groups_asked(here)
    check_requesters(request)
    assert set(asked) == {("leavers",)}
    here.kubernetes.allowed.discard(("rita", "impersonate", "*"))
    with pytest.raises(gate.Waiting, match="does not let rita impersonate"):
        check_requesters(request)


def test_S07_by_groups_that_are_too_old_a_no_still_stops_it(here: World) -> None:
    by_token(here.rita)
    request = ask(here, here.rita)
    by_token(here.rita, hours=13)
    check_requesters(request)
    here.kubernetes.allowed.discard(("rita", "impersonate", "*"))
    with pytest.raises(gate.Waiting, match="does not let rita impersonate"):
        check_requesters(request)


def test_S09_nothing_of_others_is_tried_for_who_is_known_by_what_is_too_old(here: World) -> None:
    by_token(here.rita)
    request = ask(here, here.rita)
    assert plan_options(request).may_try_foreign
    by_token(here.rita, hours=13)
    assert not plan_options(request).may_try_foreign


# In whose name sources are read: whoever wrote the spec as it stands has named what is read.


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
    assert prepare._reader(found, cast(Any, api))(ObjectRef("", "v1", "Secret", "x", "pull"))
    return api.person[0]


@pytest.mark.parametrize(
    ("writers", "reads"), [("rita", "rita"), ("rita ada", "ada"), ("rita ada rita", "rita"), ("ada rita bert", "bert")]
)
def test_S08_sources_are_read_as_the_last_writer(here: World, writers: str, reads: str) -> None:
    for number, name in enumerate(writers.split()):
        request = ask(here, getattr(here, name), version=str(number))
    assert {one["username"] for one in request.requesters} == set(writers.split())
    assert reads_as(request) == reads


def test_S08_where_nobody_who_asked_wrote_it_they_are_read_as_who_asked_last(here: World) -> None:
    first = applied(ask(here, here.rita))
    services.ask_again(by=acting(here.ada), deployment=first.deployment, via="browser")
    again = applied(Request.objects.latest("number"))
    assert names(again.requesters) == ["ada"]
    assert reads_as(again) == "ada"
    # And what nobody asks for is read as the last writer, beside who asked for what runs.
    assert names(unattended(again).requesters) == ["rita", "ada"]
    assert reads_as(Request.objects.latest("number")) == "rita"


def test_S31_the_worker_gets_a_right_of_its_own_where_the_last_writer_is_an_account(here: World) -> None:
    """What `rights` prints is what the worker does then: it reads as people, and for accounts by itself."""
    robot = world.user("system:serviceaccount:shop:robot", here.cluster)
    by_token(robot)
    for last, is_read_for_account in ((robot, True), (here.rita, False)):
        request = ask(here, last, sources=[PULL], config={"by": last.username})
        Request.objects.filter(pk=request.pk).update(is_installer_proved=True)
        found = registered(here.cluster, cast(Any, Recorded()))
        assert bool(found.for_accounts) is is_read_for_account


# Whose request it is that nobody asked for just now.


def names(people: Iterable[dict[str, Any]]) -> list[str]:
    return [one["username"] for one in people]


def test_S07_what_nobody_asked_for_just_now_has_the_last_writers_as_requesters(here: World) -> None:
    here.kubernetes.allow("ada", "impersonate")
    applied(ask(here, here.bert))
    first = applied(ask(here, here.rita, version="2"))
    services.ask_again(by=acting(here.ada), deployment=first.deployment, via="browser")
    again = applied(Request.objects.latest("number"))
    assert names(again.requesters) == ["ada"], "who asks for the same once more"
    request = unattended(again)
    assert (request.is_unattended, request.is_requester_known) == (True, True)
    assert names(request.requesters) == ["rita", "ada"]
    made = AuditEntry.objects.filter(verb="request.made").latest("number")
    assert (made.actor, made.via, made.facts["standsFor"]) == ("pratique", "machine", "rita, ada")


def test_S05_an_unknown_writer_stays_unknown_where_nobody_asks(here: World) -> None:
    first = ask(here, here.rita)
    pivots.see(
        cluster=here.cluster,
        obj=world.seen(NAME, world.spec(paused=True), uid=first.deployment.uid, generation=2),
        writer=None,
    )
    assert not unattended(applied(first)).is_requester_known


def test_S05_who_wrote_it_does_not_approve_what_nobody_asked_for(here: World) -> None:
    here.kubernetes.allow("ada", "impersonate")
    request = world.in_review(unattended(applied(ask(here, here.ada))))
    with pytest.raises(services.reviews.SelfApproval):
        approve(request, here.ada)


def test_the_page_and_rest_say_that_nobody_asked_just_now(here: World) -> None:
    request = world.in_review(unattended(applied(ask(here, here.rita))))
    client = Client()
    enter(client, here.ada)
    page = " ".join(client.get(f"/requests/{request.uid}").content.decode().split())
    assert 'nobody asked just now; for <span class="mono">rita</span>' in page
    answer = client.get(f"/api/v1/requests/{request.uid}").json()
    assert answer["is_unattended"] is True
    assert answer["requesters"][0]["groups_at"] == request.requesters[0]["groups_at"] != ""


# Who vouches where nobody who asked can be asked.


def approve(request: Request, by: User) -> Review:
    return services.review(
        by=acting(by),
        request_id=request.pk,
        decision="Approve",
        subject_digest=request.subject_digest,
        reason="",
        channel="browser",
    )


@pytest.fixture
def aged(here: World) -> Request:
    """In review, and nobody asked; what is known of rita, who wrote it, is too old."""
    by_token(here.rita)
    request = world.in_review(unattended(applied(ask(here, here.rita))))
    by_token(here.rita, hours=13)
    return request


def test_S07_a_reviewer_who_may_not_use_the_account_is_not_enough(here: World, aged: Request) -> None:
    approve(aged, here.ada)
    found = look(aged)
    assert (found.state, found.problem_code) == ("in_review", HELD_BACK)
    assert (
        "what is known of rita, who asked, is too old to count: rita has to sign in again, or one approver must be"
        in found.problem
    )
    by_token(here.rita)
    found = look(aged)
    assert (found.state, found.problem) == ("approved", "")


def test_S07_a_reviewer_who_may_use_the_account_vouches(here: World, aged: Request) -> None:
    here.kubernetes.allow("ada", "impersonate")
    approve(aged, here.ada)
    found = look(aged)
    assert found.state == "approved"
    check_vouched(found)


@pytest.mark.parametrize("may_use_account", [True, False])
def test_S07_a_policy_vouches_by_its_own_identity_only(here: World, aged: Request, may_use_account: bool) -> None:
    """Its author, who may use the account, does not count for it."""
    here.kubernetes.allow("ada", "impersonate")
    each = save(here, expression="true")
    allow(here, each)
    if may_use_account:
        here.kubernetes.allow(f"pratique:policy:{each.pk}", "impersonate")
    found = look(aged)
    assert (found.state, Review.objects.get().may_use_account) == (
        ("approved", True) if may_use_account else ("in_review", False)
    )


def test_S07_it_is_asked_again_at_the_gate(here: World, aged: Request) -> None:
    each = save(here, expression="true")
    allow(here, each)
    here.kubernetes.allow(f"pratique:policy:{each.pk}", "impersonate")
    found = look(aged)
    check_vouched(found)
    here.kubernetes.allowed.discard((f"pratique:policy:{each.pk}", "impersonate", "*"))
    with pytest.raises(gate.Waiting, match="asked again before applying: what is known of rita"):
        check_vouched(found)
    by_token(here.rita)
    check_vouched(found)


def test_S07_groups_that_grow_old_after_the_approval_make_it_wait_at_the_gate(here: World) -> None:
    by_token(here.rita)
    request = world.in_review(ask(here, here.rita))
    approve(request, here.ada)
    found = look(request)
    assert found.state == "approved"
    by_token(here.rita, hours=13)
    with pytest.raises(gate.Waiting, match="rita has to sign in again"):
        check_vouched(found)


@pytest.mark.parametrize(
    ("ballots", "decision"),
    [
        pytest.param([Ballot("Approve", False, True, True)], "approved", id="who may use it"),
        pytest.param([Ballot("Approve", True, True, True)], "approved", id="a policy that may use it"),
        pytest.param([Ballot("Approve", False, True, False)], "undecided", id="who may not"),
        pytest.param(
            [Ballot("Approve", False, True, False), Ballot("Approve", True, False, True)],
            "undecided",
            id="who may, and does not count",
        ),
        pytest.param(
            [Ballot("Approve", False, True, False), Ballot("Approve", False, True, True)], "approved", id="one of two"
        ),
    ],
)
def test_S07_one_counted_approval_must_vouch_for_whom_nobody_can_ask_about(
    ballots: list[Ballot], decision: str
) -> None:
    found = policy.decide(ballots, needed=1, held_by=(), is_requester_known=True, too_old=["rita"])
    assert found.decision == decision


# What sources name in the cluster.


def private(here: World) -> Request:
    here.kubernetes.allow("rita", "get", "pull")
    by_token(here.rita)
    return ask(here, here.rita, sources=[PULL])


def test_S08_secrets_are_read_for_nobody_who_is_known_by_what_is_too_old(here: World) -> None:
    request = private(here)
    check_requesters(request)
    by_token(here.rita, hours=13)
    words = r"Secret harbour/pull, .*rita.* more than 12 hours ago: nothing of it is read. rita has to sign in again"
    with pytest.raises(gate.GroupsTooOld, match=words):
        check_requesters(request)


def test_S08_the_operators_word_is_not_for_what_people_ask_for(here: World, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": [f"prod/{NAME}"]}
    request = private(here)
    by_token(here.rita, hours=13)
    with pytest.raises(gate.GroupsTooOld):
        check_requesters(request)


@pytest.mark.parametrize(
    ("listed", "is_read"),
    [([f"prod/{NAME}"], True), ([], False), (["prod/other"], False), ([f"second/{NAME}"], False)],
    ids=["listed", "none", "another deployment", "another cluster"],
)
def test_S08_unattended_they_are_read_only_where_the_operator_lists_the_deployment(
    here: World, settings: Any, listed: list[str], is_read: bool
) -> None:
    request = unattended(applied(private(here)))
    check_requesters(request)
    by_token(here.rita, hours=13)
    settings.PRATIQUE = {**settings.PRATIQUE, "UNATTENDED_READS": listed}
    if is_read:
        check_requesters(request)
        here.kubernetes.allowed.discard(("rita", "get", "pull"))
        with pytest.raises(gate.Waiting, match="does not let rita get"):
            check_requesters(request)
    else:
        words = f"nobody asked for this just now; .* an operator lists prod/{NAME} in PRATIQUE_UNATTENDED_READS"
        with pytest.raises(gate.GroupsTooOld, match=words):
            check_requesters(request)


def test_S08_what_was_read_unattended_does_not_end_once_groups_are_old(here: World) -> None:
    """The operator's word is about reading: before that it is needed, and after it nothing is read any more."""
    request = unattended(applied(private(here)))
    by_token(here.rita, hours=13)
    Request.objects.filter(pk=request.pk).update(content=None)
    request.refresh_from_db()
    with pytest.raises(gate.GroupsTooOld):
        check_requesters(request)
    check_requesters(world.in_review(request))


def test_S08_what_was_read_while_the_groups_counted_is_not_read_again(here: World) -> None:
    """The gate then asks a reviewer to vouch for the account; the Secret itself is not needed any more."""
    request = world.in_review(private(here))
    by_token(here.rita, hours=13)
    check_requesters(request)


@pytest.mark.parametrize("text", [NAME, "prod/", "/x", "prod/*", "prod/x/y", "prod/X", "prod x/y"])
def test_unattended_reads_are_listed_by_name_not_by_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="PRATIQUE_UNATTENDED_READS: .* expected CLUSTER/NAME"):
        configuration.read({"PRATIQUE_UNATTENDED_READS": text})


def test_unattended_reads_are_read() -> None:
    found = configuration.read({"PRATIQUE_UNATTENDED_READS": "prod/a, second/b-c.d"})
    assert found["UNATTENDED_READS"] == ["prod/a", "second/b-c.d"]
    assert configuration.read({})["UNATTENDED_READS"] == []


# The policy's page.


def test_the_page_of_a_grant_says_as_whom_it_approves_and_what_it_lacks(here: World) -> None:
    each = save(here)
    client = Client()
    enter(client, here.ada)
    page = client.get("/policies/of/routine").content.decode()
    assert f"pratique:policy:{each.pk}" in page
    assert f"does not let pratique:policy:{each.pk} approve" in page.replace("Does not", "does not")
    assert "So it approves nothing" in page
    here.kubernetes.allow("bert", "approve")
    save(here, by=acting(here.bert))
    save(here)
    page = " ".join(client.get("/policies/of/routine").content.decode().split())
    assert "ada, bert <p>It approves nothing that one of them asks for.</p>" in page
    allow(here, each)
    cache.clear()
    page = client.get("/policies/of/routine").content.decode()
    assert "So it approves nothing" not in page
    assert "The policy stays in force" not in page
    assert client.get("/api/v1/policies/routine").json()["approves_as"] == f"pratique:policy:{each.pk}"


@pytest.mark.parametrize("leaves", ["loses the right", "is nobody there"])
def test_the_page_says_that_its_last_editor_could_not_save_it_today(here: World, leaves: str) -> None:
    save(here, names=["strimzi"], by=acting(here.ada))
    if leaves == "loses the right":
        here.kubernetes.allowed.discard(("ada", "approve", "*"))
        words = "ada may no longer approve BundleDeployment strimzi on cluster prod"
    else:
        here.ada.kubernetes_identities.all().delete()
        words = "ada is nobody on cluster prod any more"
    cache.clear()
    here.kubernetes.allow("bert", "get")
    client = Client()
    enter(client, here.bert)
    page = client.get("/policies/of/routine").content.decode().casefold()
    assert words.casefold() in page
    assert "the policy stays in force" in page


def test_the_form_says_what_its_writer_lacks(here: World) -> None:
    here.kubernetes.allow("bert", "get")
    here.kubernetes.allow("bert", "approve", "his")
    client = Client()
    enter(client, here.bert)
    form = {
        "name": "routine",
        "cluster": "prod",
        "kind": "grant",
        "mode": "enforce",
        "names": "his\nstrimzi",
        "expression": "true",
        "is_active": "on",
    }
    answer = client.post("/policies/new", form)
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "a policy may approve only what its author may" in page.casefold()
    assert "BundleDeployment strimzi of cluster prod" in page
    assert "pratique-approve-strimzi" in page, "the rule that would allow it"
