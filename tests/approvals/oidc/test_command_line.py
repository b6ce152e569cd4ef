"""`kubectl pratique login` at our door: a real issuer's code, and the secret that only the command line knew."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals.models import ApiToken, AuditEntry, SignIn
from tests.approvals.oidc.visits import SITE, rest
from tests.support.approvals.fixtures import World
from tests.support.servers.issuer import RunningIssuer, code_for

pytestmark = [pytest.mark.services, pytest.mark.django_db]

BACK = "http://127.0.0.1:40123/"
VERIFIER = "v" * 64
HOME = SITE
CLIENT_ID = "kubectl-pratique"


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def code(issuer: RunningIssuer, person: str = "ada", back: str = BACK, service: str = HOME) -> str:
    """What the issuer sends the browser back with."""
    proof = {
        "code_challenge": digest(VERIFIER),
        "code_challenge_method": "S256",
        "nonce": digest(f"{service}\n{VERIFIER}"),
        "state": "s",
    }
    about = {"client_id": CLIENT_ID, "redirect_uri": back, "scope": "openid profile groups"}
    return code_for(issuer, person, {**about, **proof})["code"]


def bring(text: str, **changed: str) -> Any:
    wish = {
        "issuer": "example",
        "code": text,
        "redirect_uri": BACK,
        "verifier": VERIFIER,
        "service": HOME,
        "name": "laptop",
    }
    return Client().post("/api/v1/sign-in/exchange", json.dumps({**wish, **changed}), content_type="application/json")


def test_everybody_may_ask_where_to_sign_in(issuer: RunningIssuer) -> None:
    assert Client().get("/api/v1/sign-in/issuers").json() == [
        {
            "name": "example",
            "title": "Example",
            "authorization_url": f"{issuer.url}/o/authorize/",
            "client_id": CLIENT_ID,
            "scopes": ["openid", "profile", "groups"],
        }
    ]


def test_a_code_becomes_a_token_that_reads_and_does_nothing_else(
    issuer: RunningIssuer, env: World, settings: Any
) -> None:
    answer = bring(code(issuer))
    assert answer.status_code == 201, answer.content
    text, about = answer.json()["token"], answer.json()["about"]
    assert (about["name"], about["scopes"]) == ("laptop", ["read"])
    assert [(one["cluster"], one["username"]) for one in about["proofs"]] == [(env.cluster.name, "oidc:u-ada")]
    row = ApiToken.objects.get()
    limit = timedelta(hours=settings.PRATIQUE["GROUPS_HOURS"])
    assert limit - timedelta(minutes=2) < row.expires_at - timezone.now() <= limit
    assert row.grant is None
    assert not SignIn.objects.exists()
    assert AuditEntry.objects.get(verb="token.created").via == "oidc"
    assert rest(text).status_code == 200
    header = {"Authorization": f"Bearer {text}"}
    refused = Client().post("/api/v1/deployments", "{}", content_type="application/json", headers=header)
    assert (refused.status_code, refused.json()["code"]) == (403, "out-of-scope")


def test_who_signs_out_ends_their_own_token_only(issuer: RunningIssuer, env: World) -> None:
    mine, other = (bring(code(issuer)).json()["token"] for _ in range(2))
    header = {"Authorization": f"Bearer {mine}"}
    assert Client().delete("/api/v1/tokens/current", headers=header).status_code == 204
    assert [rest(text).status_code for text in (mine, other)] == [401, 200]
    assert AuditEntry.objects.filter(verb="token.revoked", via="rest").count() == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"verifier": "w" * 64}, "sign-in-failed", id="whoever saw the code, without the secret"),
        pytest.param({"service": "https://evil.example"}, "sign-in-failed", id="for another service"),
        pytest.param({"code": "made-up"}, "sign-in-failed", id="no code of the issuer's"),
        pytest.param({"redirect_uri": "http://127.0.0.1:40124/"}, "sign-in-failed", id="another place on this machine"),
        pytest.param({"redirect_uri": "https://evil.example/"}, "sign-in-failed", id="a place elsewhere"),
        pytest.param({"redirect_uri": "http://127.0.0.1.evil.example:1/"}, "sign-in-failed", id="a name like ours"),
        pytest.param({"issuer": "other"}, "not-allowed", id="an issuer that there is not"),
    ],
)
def test_S33_a_code_that_proves_nothing_makes_no_token(
    issuer: RunningIssuer, changed: dict[str, str], said: str
) -> None:
    answer = bring(code(issuer), **changed)
    assert (answer.status_code, answer.json()["code"]) == (403, said)
    assert not ApiToken.objects.exists()


def test_S33_a_code_counts_once(issuer: RunningIssuer) -> None:
    text = code(issuer)
    assert [bring(text).status_code for _ in range(2)] == [201, 403]


def test_S35_a_sign_in_for_another_service_is_of_no_use_to_it_here(issuer: RunningIssuer) -> None:
    """Somebody was led to `login --service https://evil.example`, which names our issuer and brings us what it got."""
    answer = bring(code(issuer, service="https://evil.example"))
    assert (answer.status_code, answer.json()["code"]) == (403, "sign-in-failed")
    assert "nonce" in answer.json()["detail"]
    assert not ApiToken.objects.exists()


def test_another_address_of_ours_is_told_the_right_one(issuer: RunningIssuer, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "PUBLIC_URL": "https://pratique.example/"}
    assert "login --service https://pratique.example" in bring(code(issuer)).json()["detail"]
    wanted = "https://pratique.example"
    assert bring(code(issuer, service=wanted), service=wanted).status_code == 201
    settings.PRATIQUE = {**settings.PRATIQUE, "PUBLIC_URL": "https://Pratique.Example/"}
    assert bring(code(issuer, service=wanted), service=wanted).status_code == 201


def test_S33_a_browsers_client_is_not_the_command_lines(issuer: RunningIssuer, settings: Any) -> None:
    """Where the operator names no client for it, nobody gets a token this way."""
    issuers = settings.PRATIQUE["OIDC_FILE"]
    without = type(issuers)(tuple(replace(one, command_line=None) for one in issuers))
    text = code(issuer)
    settings.PRATIQUE = {**settings.PRATIQUE, "OIDC_FILE": without}
    assert Client().get("/api/v1/sign-in/issuers").json() == []
    assert (bring(text).status_code, bring(text).json()["code"]) == (403, "not-allowed")


def test_S29_who_guesses_codes_is_stopped(issuer: RunningIssuer) -> None:
    answers = [bring("made-up", issuer="other").status_code for _ in range(31)]
    assert answers == [403] * 30 + [429]


def test_an_account_that_is_switched_off_gets_none(issuer: RunningIssuer, env: World) -> None:
    assert bring(code(issuer)).status_code == 201
    user = ApiToken.objects.get().user
    user.is_active = False
    user.save()
    ApiToken.objects.all().delete()
    assert bring(code(issuer)).status_code == 403
    assert not ApiToken.objects.exists()
