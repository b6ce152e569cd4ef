"""People of a proxy at our doors: our pages and REST, and a fake Kubernetes at our own port."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from approvals import access
from approvals.models import ApiToken, AuditEntry, ChatAccount, KubernetesIdentity, Proof, SignIn
from approvals.networks import Proxies
from approvals.project.middleware import Forwarding
from approvals.proxies import ClusterNames, IdentityProxies, IdentityProxy
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

pytestmark = pytest.mark.django_db

PEER, STRANGER = "10.0.0.5", "198.51.100.9"
OUT = "https://sso.example.com/sign-out"


@pytest.fixture
def proxy(env: World, settings: Any) -> IdentityProxy:
    """It counts on cluster `prod` of the world and not for the API; ada, whom it names, may read and approve there."""
    env.kubernetes.allow("sso:ada", "get")
    return trust(settings, env.cluster.name)


def trust(settings: Any, *clusters: str, **more: Any) -> IdentityProxy:
    names = tuple(ClusterNames(cluster, "sso:", "sso:") for cluster in clusters)
    made = IdentityProxy("sso", "Example SSO", Proxies.read(f"{PEER}/32"), names, sign_out_url=OUT, **more)
    settings.PRATIQUE = {**settings.PRATIQUE, "IDENTITY_PROXIES_FILE": IdentityProxies((made,))}
    return made


def word(user: str = "ada", groups: str = "platform", peer: str = PEER) -> dict[str, Any]:
    """What a request through the proxy brings along."""
    named = {"HTTP_X_REMOTE_USER": user, "HTTP_X_REMOTE_GROUP": groups}
    return {"REMOTE_ADDR": peer, **{name: text for name, text in named.items() if text}}


def enter(client: Client, **said: Any) -> Any:
    return client.post("/sign-in", {"with": "proxy", "next": "/clusters"}, **(said or word()))


def signed_in() -> Client:
    client = Client()
    assert enter(client).status_code == 302
    return client


def is_in(client: Client, **said: Any) -> bool:
    return bool(client.get("/me", **(said or word())).status_code == 200)


def test_whom_the_proxy_names_is_somebody_on_the_named_cluster_only(proxy: IdentityProxy, env: World) -> None:
    second = world.cluster("second")
    client = Client()
    page = client.get("/sign-in", **word()).content.decode()
    assert "Continue as ada" in page
    answer = enter(client)
    assert (answer.status_code, answer["Location"]) == (302, "/clusters")
    row = KubernetesIdentity.objects.get(authenticator="proxy")
    assert (row.cluster, row.issuer, row.username, row.groups) == (env.cluster, "sso", "sso:ada", ["sso:platform"])
    me = client.get("/me", **word()).content.decode()
    assert "trusted proxy sso" in me
    assert "sso:ada" in me
    caller = caller_of(client)
    assert access.identity_of(caller, second) is None
    assert AuditEntry.objects.filter(verb="identity.proved", facts__proxy="sso").count() == 1


def caller_of(client: Client) -> access.Caller:
    row = SignIn.objects.get()
    return access.of_sign_in(row)


# Who comes from where, with what; the one right answer is in the last column.
ATTACKS: dict[str, tuple[dict[str, Any], bool]] = {
    "through the proxy": (word(), True),
    "from elsewhere": (word(peer=STRANGER), False),
    "over a Unix socket": (word(peer=""), False),
    "with the proxy's address forwarded": ({**word(peer=STRANGER), "HTTP_X_FORWARDED_FOR": PEER}, False),
    "without a name": ({"REMOTE_ADDR": PEER, "HTTP_X_REMOTE_GROUP": "platform"}, False),
    "two names": (word("ada\nalice"), False),
    "system:admin": (word("system:admin"), True),  # with the prefix it is sso:system:admin, and nobody's
    "another header of the kind": ({"REMOTE_ADDR": PEER, "HTTP_REMOTE_USER": "ada"}, False),
    "the variable of CGI": ({"REMOTE_ADDR": PEER, "REMOTE_USER": "ada"}, False),
}


@pytest.mark.parametrize(("said", "is_entered"), ATTACKS.values(), ids=ATTACKS)
def test_S01_only_the_proxys_own_word_signs_in(proxy: IdentityProxy, said: dict[str, Any], is_entered: bool) -> None:
    assert (enter(Client(), **said).status_code == 302) is is_entered
    assert SignIn.objects.exists() is is_entered


def test_S01_it_is_off_by_default(env: World) -> None:
    assert enter(Client()).status_code == 403
    assert "Continue as" not in Client().get("/sign-in", **word()).content.decode()
    assert not SignIn.objects.exists()


@pytest.mark.parametrize(
    ("user", "groups"), [("system:admin", ""), ("ada", "system:masters"), ("pratique:policy:1", "")], ids=str
)
def test_S01_names_of_the_system_and_of_policies_are_nobodys(env: World, settings: Any, user: str, groups: str) -> None:
    made = trust(settings, env.cluster.name)
    bare = IdentityProxy("sso", "SSO", made.peers, (ClusterNames(env.cluster.name, "", ""),))
    settings.PRATIQUE = {**settings.PRATIQUE, "IDENTITY_PROXIES_FILE": IdentityProxies((bare,))}
    client = Client()
    enter(client, **word(user, groups))
    assert not is_in(client, **word(user, groups))


ENDS: dict[str, dict[str, Any]] = {
    "the proxy names nobody": word(""),
    "the proxy names somebody else": word("bert"),
    "the same from elsewhere": word(peer=STRANGER),
    "it cannot be read": word("ada\nbert"),
    "groups of the cluster's own": word("ada", "a" * 251),
}


@pytest.mark.parametrize("said", ENDS.values(), ids=ENDS)
def test_S01_the_session_ends_where_the_proxy_no_longer_names_its_person(
    proxy: IdentityProxy, said: dict[str, Any]
) -> None:
    client = signed_in()
    assert is_in(client)
    assert not is_in(client, **said)
    assert not SignIn.objects.exists()
    assert not is_in(client), "it does not come back either"


@pytest.mark.parametrize("method", ["get", "post"])
def test_S25_a_call_past_the_proxy_is_refused_and_the_session_goes_on(proxy: IdentityProxy, method: str) -> None:
    """As where nginx lets programs with tokens past `auth_request`."""
    client = signed_in()
    seen = SignIn.objects.get().seen_at
    with time_machine.travel(seen + timedelta(minutes=5), tick=True):
        answer = getattr(client, method)("/api/v1/clusters", REMOTE_ADDR=PEER)
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
        assert "did not come through Example SSO" in answer.json()["detail"]
        assert SignIn.objects.get().seen_at == seen, "it keeps no session alive either"
        assert is_in(client)
        assert client.get("/api/v1/clusters", **word()).status_code == 200


@pytest.mark.parametrize(
    "said", [one for one in ENDS.values() if "HTTP_X_REMOTE_USER" in one and one["REMOTE_ADDR"] == PEER], ids=str
)
def test_S01_a_call_for_which_the_proxy_names_somebody_else_ends_the_session(
    proxy: IdentityProxy, said: dict[str, Any]
) -> None:
    client = signed_in()
    assert client.get("/api/v1/clusters", **said).status_code == 401
    assert not SignIn.objects.exists()


def test_S25_a_session_that_has_ended_does_not_come_back_by_a_call_past_the_proxy(proxy: IdentityProxy) -> None:
    client = signed_in()
    assert not is_in(client, **word(""))
    answer = client.get("/api/v1/clusters", REMOTE_ADDR=PEER)
    assert (answer.status_code, "did not come through" in answer.json()["detail"]) == (401, False)


def test_a_token_past_the_proxy_counts_beside_the_cookie_of_a_session(proxy: IdentityProxy, env: World) -> None:
    client = signed_in()
    _, text = world.api_token(env.ada)
    calls = {"REMOTE_ADDR": PEER, "HTTP_AUTHORIZATION": f"Bearer {text}"}
    assert client.get("/api/v1/tokens/current", **calls).status_code == 200
    assert is_in(client)


def test_S01_a_stolen_cookie_is_of_no_use_beside_the_proxy(proxy: IdentityProxy) -> None:
    client, thief = signed_in(), Client()
    thief.cookies = client.cookies
    assert not is_in(thief, REMOTE_ADDR=STRANGER)


def test_S01_the_cookie_is_another_one_after_signing_in(proxy: IdentityProxy) -> None:
    client = Client()
    client.get("/sign-in", **word())
    client.session["planted"] = 1
    before = client.session.session_key
    enter(client)
    assert client.cookies["sessionid"].value != before


def test_S01_a_link_or_a_form_of_another_site_signs_nobody_in(proxy: IdentityProxy) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/sign-in?with=proxy", **word())
    client.get("/clusters", **word())
    assert enter(client).status_code == 403
    assert not SignIn.objects.exists()


def test_S01_whoever_was_signed_in_before_is_not_mixed_up_with_whom_the_proxy_names(
    proxy: IdentityProxy, env: World
) -> None:
    """A session that a token began is not the proxy's, whoever it names, and its proofs do not go over."""
    env.kubernetes.tokens["eve"] = Identity("eve", ("here",), "uid-e")
    client = Client()
    client.post("/sign-in", {"with": "token", "cluster": env.cluster.name, "token": "eve"}, **word())
    assert access.of_sign_in(SignIn.objects.get()).proofs[0].identity.username == "eve"
    assert is_in(client, **word("bert")), "the proxy's word ends no session of others"
    enter(client)
    latest = SignIn.objects.latest("pk")
    assert [proof.identity.username for proof in access.of_sign_in(latest).proofs] == ["sso:ada"]


@pytest.mark.parametrize("what", ["password", "staff", "mapping", "inactive"])
def test_S01_no_proxy_enters_an_operators_account(proxy: IdentityProxy, env: World, what: str) -> None:
    client = signed_in()
    user = User.objects.get(kubernetes_identities__authenticator="proxy")
    if what == "password":
        user.set_password("a long password")
    if what == "staff":
        user.is_staff = True
    if what == "inactive":
        user.is_active = False
    user.save()
    if what == "mapping":
        about = {"authenticator": "mapped", "username": "root", "groups_seen_at": timezone.now()}
        KubernetesIdentity.objects.create(user=user, cluster=world.cluster("second"), **about)
    with time_machine.travel(timezone.now() + timedelta(minutes=2), tick=True):
        assert not is_in(client)
        assert enter(Client()).status_code == 403


def test_S01_a_local_account_of_the_same_name_is_not_entered(proxy: IdentityProxy) -> None:
    local = User.objects.create_user("ada@sso", password="a long password", is_staff=True)
    signed_in()
    assert KubernetesIdentity.objects.get(authenticator="proxy").user != local


def test_S01_a_name_of_the_cluster_itself_is_another_person(env: World, settings: Any) -> None:
    """The world's ada is known by a token; a proxy without a prefix names somebody of the same name."""
    made = trust(settings, env.cluster.name)
    bare = IdentityProxy("sso", "SSO", made.peers, (ClusterNames(env.cluster.name, "", ""),))
    settings.PRATIQUE = {**settings.PRATIQUE, "IDENTITY_PROXIES_FILE": IdentityProxies((bare,))}
    enter(Client())
    assert KubernetesIdentity.objects.get(authenticator="proxy").user != env.ada


def test_S25_groups_are_those_of_now(proxy: IdentityProxy, env: World) -> None:
    client = signed_in()
    for groups in ("night\nplatform", "night", ""):
        assert is_in(client, **word("ada", groups))
        expected = [f"sso:{group}" for group in groups.split("\n") if group]
        assert Proof.objects.get().groups == expected
        assert KubernetesIdentity.objects.get(authenticator="proxy").groups == expected


def test_S25_what_is_said_with_each_request_is_written_once_a_minute(proxy: IdentityProxy) -> None:
    client = signed_in()
    first = Proof.objects.get().proved_at
    client.get("/me", **word())
    assert Proof.objects.get().proved_at == first
    with time_machine.travel(first + timedelta(seconds=90), tick=True):
        client.get("/me", **word())
        assert Proof.objects.get().proved_at > first + timedelta(seconds=80)


def test_S33_a_proxy_that_is_taken_away_counts_no_longer_anywhere(
    proxy: IdentityProxy, env: World, settings: Any
) -> None:
    client = signed_in()
    linked = ChatAccount.objects.create(
        user=KubernetesIdentity.objects.get(authenticator="proxy").user,
        tool="slack",
        account="U1",
        linked_at=timezone.now(),
    )
    linked.identities.set(KubernetesIdentity.objects.filter(authenticator="proxy"))
    row = KubernetesIdentity.objects.get(authenticator="proxy")
    assert access.of_chat(linked).proofs
    assert access.still_known_of(row.user, env.cluster, now=timezone.now())
    settings.PRATIQUE = {**settings.PRATIQUE, "IDENTITY_PROXIES_FILE": IdentityProxies()}
    assert not access.of_chat(linked).proofs
    assert access.still_known_of(row.user, env.cluster, now=timezone.now()) is None
    assert not is_in(client)


def test_S33_a_cluster_that_is_taken_away_counts_no_longer(proxy: IdentityProxy, env: World, settings: Any) -> None:
    trust(settings, env.cluster.name, world.cluster("second").name)
    client = signed_in()
    assert Proof.objects.count() == 2
    trust(settings, "second")
    assert is_in(client)
    assert [proof.cluster for proof in access.of_sign_in(SignIn.objects.get()).proofs] == ["second"]


def test_signing_out_leads_to_the_proxys_own_sign_out(proxy: IdentityProxy) -> None:
    client = signed_in()
    page = client.post("/sign-out", **word()).content.decode()
    assert f'href="{OUT}"' in page
    assert not SignIn.objects.exists()
    assert not is_in(client), "the proxy's word alone signs nobody in again"


def test_S33_an_api_token_of_a_proxys_session_ends_with_what_was_proved(
    proxy: IdentityProxy, env: World, settings: Any
) -> None:
    client = signed_in()
    form = {"name": "ci", "days": 30, "scopes": ["read"], "clusters": [env.cluster.pk]}
    assert client.post("/me/tokens", form, **word()).status_code == 200
    token = ApiToken.objects.get()
    assert token.expires_at - Proof.objects.filter(api_token=token).get().proved_at <= access.groups_limit()
    settings.PRATIQUE = {**settings.PRATIQUE, "IDENTITY_PROXIES_FILE": IdentityProxies()}
    assert not access.of_token(token).proofs


def test_two_clusters_are_linked_and_end_together(proxy: IdentityProxy, env: World) -> None:
    client = signed_in()
    second = world.cluster("second")
    env.kubernetes.tokens["ada-there"] = Identity("ada-there", ("here",), "uid-1")
    assert client.post("/me/identities", {"cluster": second.name, "token": "ada-there"}, **word()).status_code == 302
    entered = client.post("/sign-in", {"with": "token", "cluster": second.name, "token": "ada-there"}, **word())
    assert entered.status_code == 302
    assert {proof.identity.username for proof in access.of_sign_in(SignIn.objects.get()).proofs} == {
        "sso:ada",
        "ada-there",
    }
    assert not is_in(client, **word("")), "what the proxy said was carried over with what ends it"


def test_S33_what_was_unlinked_is_not_linked_again_by_the_next_request(proxy: IdentityProxy, env: World) -> None:
    client = signed_in()
    second = world.cluster("second")
    env.kubernetes.tokens["ada-there"] = Identity("ada-there", ("here",), "uid-1")
    client.post("/me/identities", {"cluster": second.name, "token": "ada-there"}, **word())
    mine = KubernetesIdentity.objects.get(authenticator="proxy")
    assert client.post(f"/me/identities/{mine.pk}/unlink", **word()).status_code == 302
    assert is_in(client)
    assert not KubernetesIdentity.objects.filter(authenticator="proxy").exists()


# REST


@pytest.fixture
def rest(env: World, settings: Any) -> Client:
    env.kubernetes.allow("sso:ada", "get")
    trust(settings, env.cluster.name, is_for_api=True)
    return Client(enforce_csrf_checks=True)


def test_REST_takes_the_proxys_word_where_the_operator_says_so(rest: Client, env: World) -> None:
    answer = rest.get("/api/v1/clusters", **word())
    assert [one["name"] for one in answer.json()["results"]] == [env.cluster.name]
    assert not SignIn.objects.exists(), "each call is proved by itself"
    assert "sessionid" not in rest.cookies


def test_S01_REST_does_not_where_the_operator_does_not(proxy: IdentityProxy) -> None:
    assert Client().get("/api/v1/clusters", **word()).status_code == 401


@pytest.mark.parametrize("said", [one for one, is_entered in ATTACKS.values() if not is_entered], ids=str)
def test_S01_REST_believes_nobody_else(rest: Client, said: dict[str, Any]) -> None:
    assert rest.get("/api/v1/clusters", **said).status_code == 401


CALLS: dict[str, tuple[dict[str, Any], bool]] = {
    "a program": ({"content_type": "application/json"}, True),
    "with a charset": ({"content_type": "application/json; charset=utf-8"}, True),
    "a form": ({"content_type": "application/x-www-form-urlencoded"}, False),
    "text": ({"content_type": "text/plain"}, False),
    "text that looks like JSON": ({"content_type": "text/plain;application/json"}, False),
    "another site": ({"content_type": "application/json", "HTTP_SEC_FETCH_SITE": "cross-site"}, False),
    "a neighbour's site": ({"content_type": "application/json", "HTTP_SEC_FETCH_SITE": "same-site"}, False),
}


@pytest.mark.parametrize(("how", "is_taken"), CALLS.values(), ids=CALLS)
def test_S01_no_other_site_has_a_browser_write(rest: Client, how: dict[str, Any], is_taken: bool) -> None:
    """The browser is signed in at the proxy, so its word comes with whatever any page sends."""
    body = json.dumps({"cluster": "nowhere", "name": "x", "spec": {}, "labels": {}})
    answer = rest.post("/api/v1/deployments", body, **{**word(), **how})
    assert (answer.status_code != 403) is is_taken, answer.content
    if not is_taken:
        assert "must not come from another site" in answer.json()["detail"]


def test_S25_REST_acts_with_the_groups_of_the_call(rest: Client, env: World) -> None:
    for groups in ("platform", "night"):
        rest.get("/api/v1/clusters", **word("ada", groups))
        assert KubernetesIdentity.objects.get(authenticator="proxy").groups == [f"sso:{groups}"]


def test_S33_an_API_token_through_the_proxy_is_the_tokens_own(rest: Client, env: World) -> None:
    """What comes with a token is the token's; the proxy's word adds nothing to it."""
    _, text = world.api_token(env.ada)
    answer = rest.get("/api/v1/tokens/current", **{**word("bert"), "HTTP_AUTHORIZATION": f"Bearer {text}"})
    assert answer.status_code == 200
    assert not KubernetesIdentity.objects.filter(authenticator="proxy").exists()


def test_the_reference_of_the_API_names_the_header(rest: Client) -> None:
    text = rest.get("/api/v1/schema", **word()).content.decode()
    assert re.search(r"name: X-Remote-User", text) or '"name": "X-Remote-User"' in text


def test_S01_who_comes_again_is_the_same_person(proxy: IdentityProxy, env: World) -> None:
    signed_in()
    signed_in()
    assert User.objects.filter(kubernetes_identities__authenticator="proxy").distinct().count() == 1
    assert env.cluster.identities.filter(authenticator="proxy").count() == 1


@pytest.mark.parametrize("peer", [PEER, STRANGER])
def test_S01_nothing_behind_the_outermost_middleware_reads_the_headers(proxy: IdentityProxy, peer: str) -> None:
    kept: dict[str, Any] = {}
    request = RequestFactory().get("/", **word(peer=peer))
    Forwarding(lambda passed: kept.update(passed.META) or HttpResponse())(request)
    assert "HTTP_X_REMOTE_USER" not in kept
    assert (request.proxied is None) is (peer == STRANGER)  # type: ignore[attr-defined]  # the middleware sets it


def test_S01_an_account_that_becomes_the_operators_is_entered_no_more_at_once(rest: Client) -> None:
    assert rest.get("/api/v1/clusters", **word()).status_code == 200
    user = User.objects.get(kubernetes_identities__authenticator="proxy")
    user.set_password("a long password")
    user.save()
    assert rest.get("/api/v1/clusters", **word()).status_code == 401
