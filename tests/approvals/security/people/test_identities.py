"""Who somebody is, by each way in, on each cluster: the one right answer (security-rules.md S01, S12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals import access, services
from approvals.access import Caller, Credential
from approvals.audit import Actor
from approvals.errors import AlreadyReviewed, InvalidInput, NotAllowed, NotFound, ProofTooOld
from approvals.models import (
    ApiToken,
    AuditEntry,
    ChatAccount,
    Cluster,
    KubernetesIdentity,
    Proof,
    Request,
    Review,
    SignIn,
)
from approvals.services import Browser
from provisioner.values import AccessAnswer, AccessRequest, Identity
from tests.approvals.security.people.decisions import approve
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

OPERATOR = Actor("operator", "shell")
BROWSER = Browser("192.0.2.1", "curl/8")


@dataclass
class Two:
    """Clusters `demo` and `second`. Tokens are written `cluster/name/uid`, and only their own cluster knows them."""

    demo: Cluster
    second: Cluster
    kubernetes: world.FakeKubernetes

    def by_token(self, cluster: str, name: str, uid: str, before: Caller | None = None) -> Caller:
        token = f"{cluster}.{name}.{uid}"
        self.kubernetes.tokens[token] = Identity(name, (f"of-{cluster}",), uid)
        return world.by_token(cluster, token, before)

    def proved(self, cluster: str, name: str, uid: str) -> services.Proved:
        return services.Proved(
            Cluster.objects.get(name=cluster), Identity(name, (f"of-{cluster}",), uid), timezone.now()
        )

    def names(self, caller: Caller) -> tuple[str, str]:
        """Who the caller is on demo and on second; "" is nobody."""
        found = [access.identity_of(caller, cluster) for cluster in (self.demo, self.second)]
        return tuple(f"{one.username}/{one.uid}/{','.join(one.groups)}" if one else "" for one in found)


@pytest.fixture
def two(env: World) -> Two:
    """ada is a local account, mapped on demo as `ada`; the tokens of either cluster may say what they like."""
    demo, second = world.cluster("demo"), world.cluster("second")
    ada = User.objects.get(username="ada")
    ada.set_password("a long enough phrase")
    ada.save()
    services.map_identity(user=ada, cluster=demo, username="ada", groups=["platform"], by=OPERATOR)
    User.objects.create_superuser("root", password="a long enough phrase")
    return Two(demo, second, env.kubernetes)


def password(two: Two, name: str = "ada") -> Caller:
    user = User.objects.get(username=name)
    return access.of_sign_in(services.sign_in_with_password(user=user, browser=BROWSER))


def linked(two: Two) -> Caller:
    """carol of demo, who proved in the same session that she is carol of second."""
    carol = two.by_token("demo", "carol", "c-1")
    services.link_identity(by=carol, proved=two.proved("second", "carol", "c-9"))
    return access.of_sign_in(SignIn.objects.get(pk=carol.holder_id))


def linked_then_only_second(two: Two) -> Caller:
    linked(two)
    return two.by_token("second", "carol", "c-9")


def token_of(caller: Caller, *clusters: Cluster, scopes: tuple[str, ...] = ("read", "request", "decide")) -> ApiToken:
    return services.create_api_token(by=caller, name="ci", days=1, scopes=scopes, clusters=clusters)[0]


def chat_of(caller: Caller) -> ChatAccount:
    code = services.issue_link_code(tool="slack", tenant="T", account="U", name="u")
    return services.link_chat_account(by=caller, code=code)


def of_one_mapping(two: Two) -> Caller:
    """An API token for demo, of an account that the operator mapped on both clusters."""
    ada = User.objects.get(username="ada")
    services.map_identity(user=ada, cluster=two.second, username="ada", groups=["platform"], by=OPERATOR)
    return access.of_token(token_of(password(two), two.demo))


A, D, S = "ada//platform", "ada/u-1/of-demo", "ada/u-2/of-second"
CD, CS = "carol/c-1/of-demo", "carol/c-9/of-second"
TABLE: list[tuple[str, Callable[[Two], Caller], str, tuple[str, str]]] = [
    # way in, who asks, the account that is entered, who that is on demo and on second
    ("the password of an account mapped on demo", password, "ada", (A, "")),
    ("a token of demo for the mapped name", lambda two: two.by_token("demo", "ada", "u-1"), "ada@demo", (D, "")),
    ("a token of second for the mapped name", lambda two: two.by_token("second", "ada", "u-2"), "ada@second", ("", S)),
    (
        "a token of second without a uid",
        lambda two: two.by_token("second", "ada", ""),
        "ada@second",
        ("", "ada//of-second"),
    ),
    (
        "a token of second for the name of a superuser",
        lambda two: two.by_token("second", "root", "r"),
        "root@second",
        ("", "root/r/of-second"),
    ),
    ("a password of a superuser, whom nobody mapped", lambda two: password(two, "root"), "root", ("", "")),
    ("both, proved in one session", linked, "carol@demo", (CD, CS)),
    ("linked, but only second is proved now", linked_then_only_second, "carol@demo", ("", CS)),
    (
        "an API token of both, for second",
        lambda two: access.of_token(token_of(linked(two), two.second)),
        "carol@demo",
        ("", CS),
    ),
    (
        "an API token made where only second was proved",
        lambda two: access.of_token(token_of(linked_then_only_second(two), two.second)),
        "carol@demo",
        ("", CS),
    ),
    ("an API token for demo, where the account is mapped on both", of_one_mapping, "ada", (A, "")),
    ("an API token of a password", lambda two: access.of_token(token_of(password(two), two.demo)), "ada", (A, "")),
    (
        "a chat account linked where only second was proved",
        lambda two: access.of_chat(chat_of(linked_then_only_second(two))),
        "carol@demo",
        ("", CS),
    ),
    (
        "the webhook's robot, by the operator's mapping",
        lambda two: access.of_operator(User.objects.get(username="ada"), Credential.WEBHOOK),
        "ada",
        (A, ""),
    ),
    (
        "the webhook's robot, of whom only a cluster knows",
        lambda two: access.of_operator(two.by_token("demo", "carol", "c-1").user, Credential.WEBHOOK),
        "carol@demo",
        ("", ""),
    ),
]


@pytest.mark.parametrize(("enter", "account", "names"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_S01_every_way_in_has_one_account_and_one_identity_a_cluster(
    two: Two, enter: Callable[[Two], Caller], account: str, names: tuple[str, str]
) -> None:
    caller = enter(two)
    assert (caller.name, two.names(caller)) == (account, names)


def test_S01_the_attack_of_the_issue_a_token_of_second_decides_nothing_on_demo(two: Two) -> None:
    """ada is mapped on both clusters; whoever controls second makes a token for her name there."""
    ada = User.objects.get(username="ada")
    services.map_identity(user=ada, cluster=two.second, username="ada", groups=["platform"], by=OPERATOR)
    world.submit_spec(two.demo, world.seen("strimzi", world.spec()))
    request = world.in_review(Request.objects.get())
    before = list(KubernetesIdentity.objects.filter(user=ada).order_by("pk").values())
    thief = two.by_token("second", "ada", "evil")
    assert thief.user != ada
    with pytest.raises(NotAllowed, match="no Kubernetes identity on cluster demo"):
        world.review(request, thief)
    assert list(KubernetesIdentity.objects.filter(user=ada).order_by("pk").values()) == before
    assert not Review.objects.exists()


def test_S01_a_name_that_is_made_again_is_another_person(two: Two) -> None:
    first, again = two.by_token("demo", "carol", "c-1"), two.by_token("demo", "carol", "c-2")
    assert first.user != again.user
    assert (first.name, again.name.startswith("carol@demo#")) == ("carol@demo", True)
    assert two.by_token("demo", "carol", "c-1").user == first.user


def test_S01_an_account_that_is_called_like_a_token_s_is_not_entered(two: Two) -> None:
    squatter = User.objects.create_user("carol@demo", password="a long enough phrase")
    assert two.by_token("demo", "carol", "c-1").user != squatter


def test_S01_a_person_comes_in_also_where_others_took_every_name_that_is_theirs(two: Two) -> None:
    """The mark that tells two accounts of a name apart can be worked out: somebody may have been called so before."""
    key = (two.demo.pk, "carol", "c-1")
    taken = set()
    for _ in range(4):
        name = services.sign_ins.free_name("carol@demo", *key)
        assert name not in taken
        assert len(name) <= 150
        taken.add(User.objects.create_user(name).username)
    carol = two.by_token("demo", "carol", "c-1")
    assert carol.name not in taken
    assert two.by_token("demo", "carol", "c-1").user == carol.user


def test_S01_a_name_that_is_too_long_is_marked_and_fits(two: Two) -> None:
    names = {User.objects.create_user(services.sign_ins.free_name("x" * 300, "key")).username for _ in range(3)}
    assert [len(name) for name in names] == [150] * 3


@pytest.mark.parametrize("column", ["is_staff", "is_superuser"])
def test_S01_staff_is_never_entered_by_a_token_nor_stays_in(two: Two, column: str) -> None:
    carol = two.by_token("demo", "carol", "c-1")
    User.objects.filter(pk=carol.user.pk).update(**{column: True})
    with pytest.raises(NotAllowed, match="staff rights"):
        two.by_token("demo", "carol", "c-1")
    user = User.objects.get(pk=carol.user.pk)
    assert services.caller_of(user=user, sign_in_id=carol.holder_id) is None


def test_S01_an_account_with_a_password_is_never_entered_by_a_token(two: Two) -> None:
    carol = two.by_token("demo", "carol", "c-1")
    carol.user.set_password("a long enough phrase")
    carol.user.save()
    with pytest.raises(NotAllowed, match="has a password"):
        two.by_token("demo", "carol", "c-1")


def test_S01_the_operator_maps_no_account_that_tokens_enter(two: Two) -> None:
    carol = two.by_token("demo", "carol", "c-1")
    with pytest.raises(InvalidInput, match="signs in with cluster tokens"):
        services.map_identity(user=carol.user, cluster=two.second, username="c", groups=[], by=OPERATOR)


def test_S01_who_is_switched_off_is_nobody_by_every_credential(two: Two) -> None:
    carol = two.by_token("demo", "carol", "c-1")
    token, chat = token_of(carol, two.demo), chat_of(carol)
    User.objects.filter(pk=carol.user.pk).update(is_active=False)
    user = User.objects.get(pk=carol.user.pk)
    for row in (SignIn, ApiToken, ChatAccount):
        assert row.objects.filter(user=user).exists()
    token.user = chat.user = user
    assert access.of_token(token).proofs == access.of_chat(chat).proofs == ()
    assert services.caller_of(user=user, sign_in_id=carol.holder_id) is None
    with pytest.raises(NotAllowed, match="is disabled"):
        two.by_token("demo", "carol", "c-1")


# Linking.


def test_S01_linking_needs_a_first_proof_that_is_young_enough(two: Two) -> None:
    carol = two.by_token("demo", "carol", "c-1")
    Proof.objects.update(proved_at=timezone.now() - timedelta(hours=13))
    old = access.of_sign_in(SignIn.objects.get(pk=carol.holder_id))
    with pytest.raises(ProofTooOld):
        services.link_identity(by=old, proved=two.proved("second", "carol", "c-9"))


@pytest.mark.parametrize("credential", ["password", "api token", "chat"])
def test_S01_nothing_is_linked_from_elsewhere_than_a_session_of_a_token(two: Two, credential: str) -> None:
    carol = two.by_token("demo", "carol", "c-1")
    callers = {
        "password": lambda: password(two),
        "api token": lambda: access.of_token(token_of(carol, two.demo)),
        "chat": lambda: access.of_chat(chat_of(carol)),
    }
    with pytest.raises(NotAllowed, match="only an account that signs in with a cluster token"):
        services.link_identity(by=callers[credential](), proved=two.proved("second", "carol", "c-9"))


def test_S01_a_link_moves_the_person_with_all_that_stood_on_it_and_is_audited(two: Two) -> None:
    alone = two.by_token("second", "carol", "c-9")
    token, chat = token_of(alone, two.second), chat_of(alone)
    both = linked(two)
    assert two.names(both) == (CD, CS)
    assert not SignIn.objects.filter(pk=alone.holder_id).exists()
    assert not ApiToken.objects.filter(pk=token.pk).exists()
    assert access.of_chat(ChatAccount.objects.get(pk=chat.pk)).proofs == ()
    facts = AuditEntry.objects.get(verb="identity.linked").facts
    assert (facts["account"], facts["cluster"], facts["before"]) == ("carol@demo", "second", "carol@second")


def test_S01_a_link_is_undone_and_the_person_is_their_own_again(two: Two) -> None:
    both = linked(two)
    row = KubernetesIdentity.objects.get(cluster=two.second, uid="c-9")
    services.unlink_identity(by=both, identity_id=row.pk)
    after = access.of_sign_in(SignIn.objects.get(pk=both.holder_id))
    assert two.names(after) == (CD, "")
    assert two.by_token("second", "carol", "c-9").user != both.user
    assert AuditEntry.objects.filter(verb="identity.unlinked").exists()
    with pytest.raises(InvalidInput, match="only identity"):
        services.unlink_identity(by=after, identity_id=after.proofs[0].identity_id)


def test_S01_nobody_unlinks_somebody_else(two: Two) -> None:
    both, other = linked(two), two.by_token("demo", "dora", "d-1")
    with pytest.raises(NotFound):
        services.unlink_identity(by=other, identity_id=both.proofs[0].identity_id)


def test_S01_a_session_of_one_cluster_neither_sees_nor_ends_what_another_has_proved(two: Two) -> None:
    demo = two.by_token("demo", "carol", "c-1")
    token = token_of(demo, two.demo)
    services.link_identity(by=demo, proved=two.proved("second", "carol", "c-9"))
    Proof.objects.filter(sign_in_id=demo.holder_id, identity__cluster=two.second).delete()
    second = two.by_token("second", "carol", "c-9")
    assert second.user == demo.user
    sessions, tokens = services.sharing_identity(second)
    assert ([row.pk for row in sessions], [row.pk for row in tokens]) == ([second.holder_id], [])
    with pytest.raises(NotFound):
        services.end_session(by=second, sign_in_id=demo.holder_id or 0)
    with pytest.raises(NotFound):
        services.revoke_api_token(by=second, token_id=token.pk)


def test_S01_a_withdrawal_needs_an_identity_on_the_request_s_cluster(two: Two) -> None:
    both = linked(two)
    world.submit_spec(two.demo, world.seen("strimzi", world.spec()))
    request = Request.objects.get()
    Request.objects.update(requesters=[{"username": "carol", "uid": "c-1", "groups": [], "user_id": both.user.pk}])
    with pytest.raises(NotAllowed, match="no Kubernetes identity on cluster demo"):
        services.withdraw(by=two.by_token("second", "carol", "c-9"), request_id=request.pk, reason="", via="browser")
    assert services.withdraw(by=both, request_id=request.pk, reason="", via="browser").state == "withdrawn"


def test_S12_a_name_is_one_vote_however_many_accounts_lead_to_it(two: Two, env: World, settings: object) -> None:
    world.submit_spec(two.demo, world.seen("strimzi", world.spec()))
    request = world.in_review(Request.objects.get())
    approve(env, request, by=password(two))
    for uid in ("u-1", "u-2"):
        with pytest.raises(AlreadyReviewed, match="another account"):
            approve(env, request, by=two.by_token("demo", "ada", uid))
    assert Review.objects.count() == 1


# What ends.


def test_S33_what_stands_on_an_identity_ends_with_it(two: Two) -> None:
    carol = two.by_token("demo", "carol", "c-1")
    token, chat = token_of(carol, two.demo), chat_of(carol)
    services.forget_identity(user=carol.user, cluster=two.demo, by=OPERATOR)
    assert not SignIn.objects.filter(pk=carol.holder_id).exists()
    assert not ApiToken.objects.filter(pk=token.pk).exists()
    assert access.of_chat(ChatAccount.objects.get(pk=chat.pk)).proofs == ()


def test_S33_another_name_in_the_mapping_ends_what_was_entered_as_the_name_before(two: Two) -> None:
    ada = password(two)
    token = token_of(ada, two.demo)
    services.map_identity(user=ada.user, cluster=two.demo, username="eve", groups=[], by=OPERATOR)
    assert not SignIn.objects.filter(pk=ada.holder_id).exists()
    assert not ApiToken.objects.filter(pk=token.pk).exists()


def test_S25_other_groups_in_the_mapping_count_at_once(two: Two) -> None:
    ada = password(two)
    services.map_identity(user=ada.user, cluster=two.demo, username="ada", groups=["guests"], by=OPERATOR)
    assert two.names(access.of_sign_in(SignIn.objects.get(pk=ada.holder_id))) == ("ada//guests", "")


def test_S01_without_local_accounts_no_password_enters_and_none_stays_in(two: Two, settings: object) -> None:
    ada = password(two)
    token = token_of(ada, two.demo)
    settings.PRATIQUE = {**settings.PRATIQUE, "LOCAL_ACCOUNTS": False}
    assert services.caller_of(user=ada.user, sign_in_id=ada.holder_id) is None
    assert access.of_token(token).proofs == ()
    form = {"with": "password", "username": "ada", "password": "a long enough phrase"}
    assert Client().post("/sign-in", form).status_code == 404
    assert "local account" not in Client().get("/sign-in").content.decode()


# A machine is told what it may do before it is in.


def test_S12_a_service_account_is_told_what_it_may_do_before_it_is_signed_in(two: Two) -> None:
    name = "system:serviceaccount:ci:bot"
    two.kubernetes.tokens["sa"] = Identity(name, ("system:serviceaccounts",), "s-1")
    two.kubernetes.allow(name, "get")
    client = Client()
    answer = client.post("/sign-in", {"with": "token", "cluster": "demo", "token": "sa", "next": "/clusters"})
    text = answer.content.decode()
    assert (answer.status_code, "You are not signed in yet" in text, "kind: ClusterRole" in text) == (200, True, True)
    assert "sa" not in [value for _, value in client.session.items()]
    assert not SignIn.objects.filter(user__username=f"{name}@demo").exists()
    assert client.get("/").status_code == 302
    entered = client.post("/sign-in", {"with": "confirmation", "next": "/clusters"})
    assert (entered.status_code, entered["Location"]) == (302, "/clusters")
    assert client.get("/clusters").status_code == 200
    assert client.post("/sign-in", {"with": "confirmation"}).status_code == 404


def test_S12_what_was_proved_is_confirmed_within_five_minutes(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    two.kubernetes.tokens["sa"] = Identity("system:serviceaccount:ci:bot", (), "s-1")
    client = Client()
    client.post("/sign-in", {"with": "token", "cluster": "demo", "token": "sa"})
    later = timezone.now() + timedelta(minutes=6)
    monkeypatch.setattr("approvals.web.signing_in.accounts.database_now", lambda: later)
    assert client.post("/sign-in", {"with": "confirmation"}).status_code == 404
    assert not SignIn.objects.exists()


def test_S12_a_listed_service_account_with_all_rights_comes_in_at_once(two: Two, settings: object) -> None:
    name = "system:serviceaccount:ci:bot"
    two.kubernetes.tokens["sa"] = Identity(name, (), "s-1")
    for verb in ("get", "approve"):
        two.kubernetes.allow(name, verb)
    settings.PRATIQUE = {**settings.PRATIQUE, "MACHINE_REVIEWERS": [name]}
    assert Client().post("/sign-in", {"with": "token", "cluster": "demo", "token": "sa"}).status_code == 302


def test_promise_4_a_right_that_could_not_be_asked_is_last_event_unknown(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.kubernetes.tokens["sa"] = Identity("system:serviceaccount:ci:bot", (), "s-1")

    def ask(cluster: Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer:
        two.kubernetes.is_down = True
        return world.FakeKubernetes.ask(two.kubernetes, cluster, identity, request)

    monkeypatch.setattr(two.kubernetes, "ask", ask)
    answer = Client().post("/sign-in", {"with": "token", "cluster": "demo", "token": "sa"})
    assert (answer.status_code, "Kubernetes could not be asked" in answer.content.decode()) == (200, True)


def test_promise_7_what_people_do_with_their_credentials_has_an_audit_row(two: Two) -> None:
    ada = User.objects.get(username="ada")
    by = password(two)
    services.revoke_api_token(by=by, token_id=token_of(by, two.demo).pk)
    services.unlink_chat_account(by=by, account_id=chat_of(by).pk)
    services.end_session(by=by, sign_in_id=password(two).holder_id or 0)
    password(two)
    services.end_other_sessions(by=by)
    services.forget_identity(user=ada, cluster=two.demo, by=OPERATOR)
    assert list(AuditEntry.objects.order_by("number").values_list("verb", flat=True)) == [
        "identity.mapped",
        "session.began",
        "token.created",
        "token.revoked",
        "chat.linked",
        "chat.unlinked",
        "session.began",
        "session.ended",
        "session.began",
        "session.ended",
        "identity.forgotten",
    ]
