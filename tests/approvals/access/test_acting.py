"""The line on every page that says as whom the viewer acts where, how that was proved, and until when it counts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals import access, services
from approvals.access import Caller, Credential
from approvals.access.caller import Proof
from approvals.models import Cluster, KubernetesIdentity, SignIn
from approvals.oidc import ClusterRules, Issuer, Issuers
from approvals.oidc.issuers import Prefixed
from approvals.services import Browser
from approvals.services.sessions import SIGN_IN
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

NOW = timezone.now()
TOKEN = KubernetesIdentity.Authenticator.TOKEN_REVIEW


def line_of(response: Any) -> str:
    """The words of the line, without its tags."""
    found = re.search(r'<div class="acting-line".*?</header>', text_of(response), re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]*>", "", found[0]).split())


def proof(number: int, *, hours: float = 0, authenticator: str = TOKEN, issuer: str = "") -> Proof:
    who = Identity("ada", ("platform",), "u")
    return Proof(number, f"c{number}", authenticator, issuer, who, NOW - timedelta(hours=hours), number)


def cluster(number: int) -> Cluster:
    return Cluster(pk=number, name=f"c{number}")


def caller(*proofs: Proof, ends_in_hours: float | None = None) -> Caller:
    ends_at = None if ends_in_hours is None else NOW + timedelta(hours=ends_in_hours)
    return Caller(User(username="ada"), Credential.SESSION, proofs, ends_at=ends_at)


def entered(env: World, *clusters: str) -> Client:
    """A browser in which carol of these clusters has proved all of them, linked as one account."""
    for name in clusters[1:]:
        world.cluster(name)
    for name in clusters:
        env.kubernetes.tokens[name] = Identity("carol", ("platform",), f"of-{name}")
    env.kubernetes.allow("carol", "get")
    who = world.by_token(clusters[0], clusters[0])
    for name in clusters[1:]:
        services.link_identity(by=who, proved=services.prove(cluster=name, token=name, address="192.0.2.1"))
        who = access.of_sign_in(SignIn.objects.get(pk=who.holder_id))
    client = Client()
    client.force_login(who.user)
    session = client.session
    session[SIGN_IN] = who.holder_id
    session.save()
    return client


@pytest.mark.parametrize(
    ("proved_hours_ago", "session_ends_in", "counts_for"),
    [
        pytest.param(2, None, 10, id="as long as the groups are believed"),
        pytest.param(2, 3, 3, id="no longer than the session"),
        pytest.param(2, 11, 10, id="a session that outlives the proof"),
    ],
)
def test_S25_it_is_told_when_a_proof_stops_counting(
    proved_hours_ago: float, session_ends_in: float | None, counts_for: float
) -> None:
    who = caller(proof(1, hours=proved_hours_ago), ends_in_hours=session_ends_in)
    (one,) = access.acting_of(who, cluster(1), NOW).identities
    assert one.ends_at == NOW + timedelta(hours=counts_for)
    assert not one.is_expired


def test_S25_what_counts_no_longer_is_told_apart_from_what_does() -> None:
    who = caller(proof(1), proof(2, hours=13))
    assert [access.acting_of(who, cluster(number), NOW).current != () for number in (1, 2)] == [True, False]
    assert [one.cluster for one in access.acting_of(who, cluster(2), NOW).expired] == ["c2"]


@pytest.mark.parametrize(
    ("authenticator", "issuer", "words"),
    [
        pytest.param("token-review", "", "Kubernetes token", id="token"),
        pytest.param("mapped", "", "password", id="password"),
        pytest.param("oidc", "https://sso.example.com", "Example Corp", id="issuer"),
        pytest.param("oidc", "https://gone.example.com", "OpenID Connect", id="an issuer that is gone"),
    ],
)
def test_how_an_identity_was_proved_is_told_in_the_words_of_the_sign_in_page(
    authenticator: str, issuer: str, words: str, settings: Any
) -> None:
    rules = ClusterRules("c1", Prefixed("sub", ""), Prefixed("groups", ""))
    known = Issuers((Issuer("example", "Example Corp", "https://sso.example.com", (rules,)),))
    settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": known}
    assert access.proved_by(proof(1, authenticator=authenticator, issuer=issuer)) == words


@pytest.mark.parametrize("path", ["/", "/audit", "/policies", "/clusters", "/deployments", "/me"])
def test_S25_one_identity_is_told_in_full_on_pages_of_all_clusters(path: str, env: World, browse: Browse) -> None:
    words = "Signed in as ada on prod (platform) · password, verified just now · expires in 12 h"
    assert line_of(browse(env.ada).get(path)) == words


def test_S25_the_exact_times_stand_in_tooltips(env: World, browse: Browse) -> None:
    text = text_of(browse(env.ada).get("/audit"))
    began = SignIn.objects.get().began_at
    for at in (began, began + timedelta(hours=12)):
        assert f'title="{at:%Y-%m-%dT%H:%M:%SZ}"' in text


def test_S25_several_identities_are_told_in_one_line_and_all_in_its_list(env: World) -> None:
    client = entered(env, "prod", "east", "west", "north")
    line = line_of(client.get("/audit"))
    assert line.startswith("Signed in as carol on east (just now), carol on north (just now) and 2 more ")
    for name in ("prod", "east", "west", "north"):
        assert f"Signed in as carol on {name} (platform) · Kubernetes token, verified just now" in line


def test_S25_a_page_of_one_cluster_tells_of_that_one_alone(env: World, afternoon: dict[str, Any]) -> None:
    line = line_of(entered(env, "prod", "east").get(f"/requests/{afternoon['serious'].uid}"))
    assert line.startswith(
        "Signed in as carol on prod (platform) · Kubernetes token, verified just now · expires in 12 h"
    )
    assert "east" not in line


def test_S25_an_identity_that_expired_is_told_with_the_way_to_sign_in_again(env: World) -> None:
    client = entered(env, "prod", "east")
    here_only = {"identity__cluster__name": "east"}
    SignIn.objects.get().proofs.filter(**here_only).update(proved_at=timezone.now() - timedelta(hours=13))
    response = client.get("/policies")
    line = line_of(response)
    assert line.startswith("Signed in as carol on prod (just now); expired on east ")
    assert "Expired: carol on east · Kubernetes token, verified 13 h ago, expired 1 h ago." in line
    assert line.endswith("Sign in again")
    assert '<a href="/sign-in?next=/policies">Sign in again</a>' in text_of(response)


def test_S25_a_linked_cluster_where_nothing_was_proved_is_named(env: World) -> None:
    first = entered(env, "prod", "east")
    first.post("/sign-out")
    who = services.sign_in(
        proved=services.prove(cluster="prod", token="prod", address="192.0.2.1"), browser=Browser("192.0.2.1")
    )
    client = Client()
    client.force_login(who.user)
    session = client.session
    session[SIGN_IN] = who.pk
    session.save()
    line = line_of(client.get("/clusters"))
    assert line.startswith("Signed in as carol on prod (just now); not signed in on east ")
    assert "Not signed in on east: you have no access there. Sign in" in line


def test_S25_who_is_nobody_anywhere_is_told_so(env: World, browse: Browse) -> None:
    line = line_of(browse(User.objects.create_user("nobody")).get("/"))
    assert line == "Not signed in on any cluster: you have no access there. Sign in"


def test_S29_the_line_names_no_cluster_that_the_account_does_not_know(env: World, browse: Browse) -> None:
    world.cluster("submarine")
    assert "submarine" not in line_of(browse(env.ada).get("/clusters"))
    nobody = browse(User.objects.create_user("nobody"))
    assert "submarine" not in line_of(nobody.get("/clusters"))


def test_strangers_have_no_such_line(env: World) -> None:
    assert "acting-line" not in text_of(Client().get("/sign-in"))


def test_many_groups_are_counted_and_the_account_page_lists_them(env: World, browse: Browse) -> None:
    groups = [f"g{number}" for number in range(1, 8)]
    KubernetesIdentity.objects.filter(user=env.ada).update(groups=groups)
    assert "(g1, g2, g3, g4, +3 groups)" in line_of(browse(env.ada).get("/"))
    assert ", ".join(groups) in text_of(browse(env.ada).get("/me"))
