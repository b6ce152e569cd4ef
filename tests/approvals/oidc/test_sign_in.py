"""People of an issuer at our doors: a real issuer, our pages and REST, and a fake Kubernetes at our own port."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApiToken, IssuerGrant, KubernetesIdentity, SignIn
from approvals.oidc import Issuer, Issuers
from tests.approvals.oidc.visits import PEOPLE, come_back, leave, logout_token, new_token, rest, signed_in
from tests.support.approvals.fixtures import World
from tests.support.servers.issuer import CLIENT, RunningIssuer, code_for

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def test_the_way_there_carries_pkce_state_and_nonce(issuer: RunningIssuer) -> None:
    wish = leave(Client())
    assert (wish["code_challenge_method"], wish["response_type"], wish["client_id"]) == ("S256", "code", CLIENT)
    assert wish["redirect_uri"] == issuer.redirect_uri
    assert min(len(wish[name]) for name in ("state", "nonce", "code_challenge")) >= 16
    assert {*wish["scope"].split()} == {"openid", "profile", "groups", "offline_access"}


def test_who_signs_in_is_somebody_on_the_named_cluster_only(issuer: RunningIssuer, env: World) -> None:
    client = Client()
    answer = come_back(client, issuer, next="/clusters")
    assert (answer.status_code, answer["Location"]) == (302, "/clusters")
    identity = KubernetesIdentity.objects.get(issuer=issuer.url)
    assert (identity.cluster, identity.username, identity.groups) == (env.cluster, "oidc:u-ada", ["oidc:platform"])
    me = client.get("/me").content.decode()
    assert "oidc:u-ada" in me
    assert "OpenID Connect" in me


def test_S24_nobody_is_sent_elsewhere_after_signing_in(issuer: RunningIssuer) -> None:
    answer = come_back(Client(), issuer, next="https://evil.example/")
    assert answer["Location"] == "/"


def test_S30_no_token_of_the_issuer_stands_in_plain_text(issuer: RunningIssuer, env: World) -> None:
    signed_in(issuer)
    grant = IssuerGrant.objects.get()
    assert grant.refresh_token
    raw = IssuerGrant.objects.values_list("refresh_token", "id_token").get()
    assert all(grant.refresh_token.encode() not in bytes(one.envelope) for one in raw)


def test_S01_another_browser_cannot_use_the_answer(issuer: RunningIssuer) -> None:
    mine, theirs = Client(), Client()
    back = code_for(issuer, "ada", leave(mine))
    answer = theirs.get(f"/oidc/example/callback?{urlencode(back)}")
    assert answer.status_code == 403
    assert "did not start in this browser" in answer.content.decode()
    assert not SignIn.objects.exists()


def test_S01_an_answer_counts_once(issuer: RunningIssuer) -> None:
    client = Client()
    back = code_for(issuer, "ada", leave(client))
    assert client.get(f"/oidc/example/callback?{urlencode(back)}").status_code == 302
    assert client.get(f"/oidc/example/callback?{urlencode(back)}").status_code == 403


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"iss": "https://evil.example"}, "does not come from"),
        ({"code": "", "error": "access_denied"}, "you cancelled it"),
        ({"code": "", "error": "server_error"}, "it sent no code"),
        ({"code": "made-up"}, "invalid_grant"),
        pytest.param({"code": "x" * 9000}, "invalid_grant", id="a long code"),
        ({"state": "made-up"}, "did not start in this browser"),
        ({"state": ""}, "did not start in this browser"),
    ],
    ids=str,
)
def test_S01_a_mixed_up_or_broken_answer_signs_nobody_in(
    issuer: RunningIssuer, change: dict[str, str], words: str
) -> None:
    client = Client()
    back = {**code_for(issuer, "ada", leave(client)), **change}
    answer = client.get(f"/oidc/example/callback?{urlencode({key: text for key, text in back.items() if text})}")
    assert answer.status_code == 403
    assert words in answer.content.decode()
    assert not SignIn.objects.exists()


def test_S01_people_are_known_by_sub_whatever_else_is_equal(issuer: RunningIssuer) -> None:
    """Bert has ada's e-mail address, and calls himself ada from tomorrow on."""
    signed_in(issuer)
    signed_in(issuer, "bert")
    issuer.set_people({**PEOPLE, "bert": {**PEOPLE["bert"], "preferred_username": "ada"}})
    signed_in(issuer, "bert")
    owners = {row.subject: row.user_id for row in KubernetesIdentity.objects.filter(issuer=issuer.url)}
    assert set(owners) == {"u-ada", "u-bert"}
    assert len(set(owners.values())) == 2


def test_S01_a_sub_in_other_capitals_is_another_account_and_another_session(issuer: RunningIssuer) -> None:
    issuer.set_people({"ada": PEOPLE["ada"], "bert": {**PEOPLE["bert"], "sub": "U-ADA"}})
    ada, bert = signed_in(issuer), signed_in(issuer, "bert")
    accounts = KubernetesIdentity.objects.filter(subject__in=["u-ada", "U-ADA"]).values_list("subject", "user_id")
    assert len(set(accounts)) == len({user for _, user in accounts}) == 2
    answer = Client().post("/oidc/example/back-channel", {"logout_token": logout_token(issuer)})
    assert answer.status_code == 200
    assert [client.get("/me").status_code for client in (ada, bert)] == [302, 200]


def test_S01_a_local_account_of_the_same_name_is_not_entered(issuer: RunningIssuer) -> None:
    local = User.objects.create_user("ada@example", password="a long password", is_staff=True)
    signed_in(issuer)
    entered = KubernetesIdentity.objects.get(subject="u-ada").user
    assert entered != local
    assert not entered.is_staff


def test_an_account_that_is_switched_off_stays_out(issuer: RunningIssuer) -> None:
    client = signed_in(issuer)
    User.objects.filter(kubernetes_identities__subject="u-ada").update(is_active=False)
    assert client.get("/me").status_code == 302
    answer = come_back(Client(), issuer)
    assert answer.status_code == 403
    assert "is disabled" in answer.content.decode()


def test_S25_unknown_groups_are_told_and_count_nowhere(issuer: RunningIssuer) -> None:
    issuer.set_people({"ada": {"sub": "u-ada", "hasgroups": True}})
    answer = come_back(Client(), issuer)
    assert answer.status_code == 403
    assert "do not fit in a token" in answer.content.decode()
    assert not KubernetesIdentity.objects.filter(issuer=issuer.url).exists()


def test_S25_groups_that_become_unknown_end_what_was_known(issuer: RunningIssuer) -> None:
    client = signed_in(issuer)
    issuer.set_people({"ada": {"sub": "u-ada", "_claim_names": {"groups": "src1"}}})
    client.get("/me")
    assert "oidc:platform" not in client.get("/me", follow=True).content.decode()


def test_S33_sessions_and_tokens_end_with_the_person(issuer: RunningIssuer, env: World) -> None:
    client = signed_in(issuer)
    text = new_token(client, env)
    assert rest(text).status_code == 200
    issuer.set_people({"bert": PEOPLE["bert"]})
    assert client.get("/me").status_code == 302
    assert rest(text).status_code == 401
    assert not ApiToken.objects.exists()
    assert not IssuerGrant.objects.exists()


def test_S33_a_token_is_proved_anew_after_its_session_has_ended(issuer: RunningIssuer, env: World) -> None:
    client = signed_in(issuer)
    text = new_token(client, env)
    client.post("/sign-out")
    before = IssuerGrant.objects.get().renewed_at
    assert rest(text).status_code == 200
    assert IssuerGrant.objects.get().renewed_at > before
    issuer.set_people({**PEOPLE, "ada": {"sub": "u-ada", "groups": ["guests"]}})
    rest(text)
    assert KubernetesIdentity.objects.get(subject="u-ada").groups == ["oidc:guests"]


def test_S25_an_issuer_that_is_away_ends_nobody_at_once(issuer: RunningIssuer, settings: Any, env: World) -> None:
    client = signed_in(issuer)
    IssuerGrant.objects.update(issuer="http://127.0.0.1:9")
    KubernetesIdentity.objects.filter(subject="u-ada").update(issuer="http://127.0.0.1:9")
    known = settings.PRATIQUE["OIDC_FILE"].every[0]
    away = Issuer("example", "Example", "http://127.0.0.1:9", known.clusters, known.client, known.audiences)
    settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": Issuers((away,))}
    assert client.get("/me").status_code == 200
    answer = client.post("/oidc/example")
    assert answer.status_code == 503
    assert "did not respond" in answer.content.decode()


def test_signing_out_here_offers_to_sign_out_there(issuer: RunningIssuer) -> None:
    client = signed_in(issuer)
    answer = client.post("/sign-out")
    assert f'href="{issuer.url}' in answer.content.decode()
    assert not SignIn.objects.exists()
    assert not IssuerGrant.objects.exists()


def test_who_signs_out_there_is_signed_out_here_everywhere(issuer: RunningIssuer) -> None:
    clients = [signed_in(issuer), signed_in(issuer), signed_in(issuer, "bert")]
    answer = Client().post("/oidc/example/back-channel", {"logout_token": logout_token(issuer)})
    assert answer.status_code == 200
    assert [client.get("/me").status_code for client in clients] == [302, 302, 200]


def test_one_session_there_ends_one_here(issuer: RunningIssuer) -> None:
    first, second = signed_in(issuer), signed_in(issuer)
    session = IssuerGrant.objects.order_by("pk")[0].session
    token = logout_token(issuer, sid=session)
    assert Client().post("/oidc/example/back-channel", {"logout_token": token}).status_code == 200
    assert [client.get("/me").status_code for client in (first, second)] == [302, 200]


@pytest.mark.parametrize(
    "more", [{"aud": "other"}, {"iss": "https://evil.example"}, {"events": {}}, {"nonce": "n"}, {"exp": 1}], ids=str
)
def test_S01_what_the_issuer_did_not_say_signs_nobody_out(issuer: RunningIssuer, more: dict[str, Any]) -> None:
    client = signed_in(issuer)
    answer = Client().post("/oidc/example/back-channel", {"logout_token": logout_token(issuer, **more)})
    assert answer.status_code == 400
    assert Client().post("/oidc/example/back-channel", {"logout_token": "x"}).status_code == 400
    assert client.get("/me").status_code == 200


def test_a_browser_told_by_the_issuer_signs_out_in_a_frame(issuer: RunningIssuer) -> None:
    client = signed_in(issuer)
    session = IssuerGrant.objects.get().session
    stranger = Client()
    for wrong in ({"sid": session}, {"iss": issuer.url}, {"iss": "https://evil.example", "sid": session}):
        assert stranger.get(f"/oidc/example/front-channel?{urlencode(wrong)}").status_code == 400
    assert client.get("/me").status_code == 200
    answer = stranger.get(f"/oidc/example/front-channel?{urlencode({'iss': issuer.url, 'sid': session})}")
    assert answer.status_code == 200
    assert f"frame-ancestors {issuer.url}" in answer["Content-Security-Policy"]
    assert "X-Frame-Options" not in answer
    assert client.get("/me").status_code == 302


def test_a_script_comes_with_an_id_token(issuer: RunningIssuer, env: World) -> None:
    signed_in(issuer)
    text = IssuerGrant.objects.get().id_token
    answer = rest(text)
    assert answer.status_code == 200, answer.content
    assert Client().get("/api/v1/requests", headers={"Authorization": f"Bearer {text}x"}).status_code == 401


def test_S01_an_id_token_for_another_audience_is_refused(issuer: RunningIssuer, settings: Any, env: World) -> None:
    signed_in(issuer)
    text = IssuerGrant.objects.get().id_token
    known = settings.PRATIQUE["OIDC_FILE"].every[0]
    for audiences, words in (((), "ID tokens from this issuer are not accepted"), (("other",), "another audience")):
        other = Issuer("example", "Example", issuer.url, known.clusters, known.client, audiences)
        settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": Issuers((other,))}
        answer = rest(text)
        assert answer.status_code == 401
        assert words in answer.content.decode()
