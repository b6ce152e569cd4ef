"""Asking a real issuer for tokens: the demo's, which django-oauth-toolkit serves as a process."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from approvals.oidc import (
    Code,
    GrantRefused,
    Issuer,
    IssuerDiscovery,
    OidcClient,
    TokenRefused,
    Tokens,
    exchange,
    renew,
    revoke,
    sign_out_address,
)
from tests.support.servers.issuer import CLIENT, RunningIssuer, code_for, start_issuer

pytestmark = pytest.mark.services

PEOPLE = {"ada": {"sub": "u-ada", "groups": ["platform"]}, "bert": {"sub": "u-bert", "groups": ["developers"]}}
HOME = "http://127.0.0.1:9/sign-in"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    folder: Path = tmp_path_factory.mktemp("issuer")
    issuer = start_issuer(folder, "http://127.0.0.1:9", PEOPLE)
    yield issuer
    issuer.stop()


@pytest.fixture
def issuer(running: RunningIssuer) -> Iterator[Issuer]:
    yield Issuer("example", "Example", running.url, (), OidcClient(CLIENT))
    running.set_people(PEOPLE)


@pytest.fixture
def discovery() -> IssuerDiscovery:
    return IssuerDiscovery()


class Browser:
    """One sign-in, with the secrets that only this browser's session has."""

    def __init__(self, running: RunningIssuer, person: str = "ada"):
        self.verifier, self.nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        wish = {"scope": "openid profile groups offline_access", "state": "s", "nonce": self.nonce}
        self.redirect_uri = running.redirect_uri
        back = code_for(running, person, {**wish, "code_challenge": challenge, "code_challenge_method": "S256"})
        self.code = back["code"]

    def exchange(self, issuer: Issuer, discovery: IssuerDiscovery, **other: str) -> Tokens:
        known = Code(self.code, self.redirect_uri, self.verifier, self.nonce)
        return exchange(issuer, discovery, replace(known, **other))


def test_a_code_becomes_a_proof_once(running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery) -> None:
    browser = Browser(running)
    tokens = browser.exchange(issuer, discovery)
    assert (tokens.verified.subject, tokens.verified.claims["groups"]) == ("u-ada", ["platform"])
    assert tokens.refresh_token not in repr(tokens)
    with pytest.raises(GrantRefused, match="invalid_grant"):
        browser.exchange(issuer, discovery)


def test_S01_a_code_is_nothing_without_the_verifier_of_its_session(
    running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery
) -> None:
    with pytest.raises(GrantRefused, match="invalid_grant"):
        Browser(running).exchange(issuer, discovery, verifier=secrets.token_urlsafe(48))


def test_S01_a_code_of_another_sign_in_is_refused(
    running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery
) -> None:
    with pytest.raises(TokenRefused, match="another sign-in"):
        Browser(running).exchange(issuer, discovery, nonce="another")


def test_S25_a_group_that_is_taken_away_is_gone_when_renewed(
    running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery
) -> None:
    tokens = Browser(running).exchange(issuer, discovery)
    running.set_people({**PEOPLE, "ada": {"sub": "u-ada", "groups": []}})
    renewed = renew(issuer, discovery, refresh_token=tokens.refresh_token, subject="u-ada")
    assert renewed.verified.claims["groups"] == []
    assert renewed.verified.issued_at >= tokens.verified.issued_at


def test_S33_who_has_left_gets_no_tokens(running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery) -> None:
    tokens = Browser(running).exchange(issuer, discovery)
    running.set_people({"bert": PEOPLE["bert"]})
    with pytest.raises(GrantRefused):
        renew(issuer, discovery, refresh_token=tokens.refresh_token, subject="u-ada")


def test_S01_a_refresh_token_renews_its_own_person_only(
    running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery
) -> None:
    tokens = Browser(running, "bert").exchange(issuer, discovery)
    with pytest.raises(TokenRefused, match="another person"):
        renew(issuer, discovery, refresh_token=tokens.refresh_token, subject="u-ada")


def test_a_token_that_was_given_back_renews_nothing(
    running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery
) -> None:
    tokens = Browser(running).exchange(issuer, discovery)
    if not revoke(issuer, discovery, tokens.refresh_token):
        pytest.fail("the issuer says nowhere that it takes tokens back")
    with pytest.raises(GrantRefused):
        renew(issuer, discovery, refresh_token=tokens.refresh_token, subject="u-ada")


def test_a_browser_signs_out_at_the_issuer_and_comes_back(
    running: RunningIssuer, issuer: Issuer, discovery: IssuerDiscovery
) -> None:
    tokens = Browser(running).exchange(issuer, discovery)
    address = sign_out_address(issuer, discovery, id_token=tokens.id_token, home=HOME)
    query = dict(parse_qsl(urlsplit(address).query))
    assert address.startswith(running.url)
    assert query == {"id_token_hint": tokens.id_token, "client_id": CLIENT, "post_logout_redirect_uri": HOME}
