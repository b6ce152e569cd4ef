"""Tokens of issuers: what is believed, and everything that is not."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import jwt
import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from approvals.oidc import (
    Issuer,
    IssuerDiscovery,
    Issuers,
    IssuerSilent,
    TokenRefused,
    Verified,
    verify_id_token,
    verify_logout_token,
)
from approvals.oidc.discovery import ASK_AGAIN_SECONDS, FRESH_SECONDS, PATH
from approvals.oidc.tokens import LOGOUT_EVENT, MAX_CHARACTERS, issuer_of
from tests.approvals.oidc.signing import AUDIENCE, Signer, new_key, running_signer
from tests.support.patience import scaled, wait_for

IN_2096 = 4_000_000_000
EVENTS: dict[str, dict[str, str]] = {LOGOUT_EVENT: {}}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def server() -> Iterator[Signer]:
    with running_signer() as signer:
        yield signer


@pytest.fixture
def signer(server: Signer) -> Iterator[Signer]:
    keys = dict(server.keys)
    yield server
    server.keys, server.said, server.raw, server.asked = keys, {}, {}, {}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def discovery(clock: Clock) -> IssuerDiscovery:
    return IssuerDiscovery(clock)


def issuer(signer: Signer) -> Issuer:
    return Issuer("example", "Example", signer.url, ())


def verify(signer: Signer, discovery: IssuerDiscovery, token: str, **more: Any) -> Verified:
    return verify_id_token(token, issuer(signer), [AUDIENCE], discovery, **more)


def test_a_token_for_us_is_believed(signer: Signer, discovery: IssuerDiscovery) -> None:
    verified = verify(signer, discovery, signer.token(nonce="n-1"), nonce="n-1")
    assert (verified.subject, verified.claims["groups"]) == ("u-1", ["platform"])
    assert 0 <= time.time() - verified.issued_at.timestamp() < scaled(60)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "MissingRequiredClaimError"),
        ({"sub": None}, "MissingRequiredClaimError"),
        ({"sub": ""}, "sub"),
        ({"sub": "x" * 256}, "sub"),
        ({"sub": 7}, "InvalidSubjectError"),
        ({"iss": "https://evil.example"}, "InvalidIssuerError"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "MissingRequiredClaimError"),
        ({"exp": "soon"}, "not valid"),
        ({"exp": 1e300}, "not valid"),
        ({"iat": None}, "MissingRequiredClaimError"),
        ({"iat": IN_2096}, "ImmatureSignatureError"),
        ({"nbf": IN_2096}, "ImmatureSignatureError"),
        ({"azp": "other"}, "another party"),
        ({"aud": [AUDIENCE, "other"]}, "several audiences"),
        ({"nonce": "n-2"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
    ],
    ids=str,
)
def test_S01_a_token_for_others_or_of_another_time_is_refused(
    signer: Signer, discovery: IssuerDiscovery, claims: dict[str, Any], words: str
) -> None:
    with pytest.raises(TokenRefused, match=words):
        verify(signer, discovery, signer.token(**{"nonce": "n-1", **claims}), nonce="n-1")


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _parts(signer: Signer, algorithm: str) -> str:
    parts = ({"alg": algorithm, "kid": "first"}, signer.claims())
    return ".".join(_encoded(json.dumps(one).encode()) for one in parts)


def _unsigned(signer: Signer) -> str:
    return _parts(signer, "none") + "."


def _by_public_key(signer: Signer) -> str:
    """Signed with HMAC, whose key is the issuer's public one, written out: a confusion of algorithms."""
    known = signer.keys["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    said = _parts(signer, "HS256")
    return f"{said}.{_encoded(hmac.digest(known, said.encode(), 'sha256'))}"


def _by_stranger(signer: Signer) -> str:
    return jwt.encode(signer.claims(), new_key(), "RS256", headers={"kid": "first"})


def _by_curve(signer: Signer) -> str:
    return jwt.encode(signer.claims(), ec.generate_private_key(ec.SECP256R1()), "ES256", headers={"kid": "first"})


def _with_own_key(signer: Signer) -> str:
    key = new_key()
    jwk = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return jwt.encode(signer.claims(), key, "RS256", headers={"kid": "mine", "jwk": jwk})


@pytest.mark.parametrize(
    "forge",
    [
        _unsigned,
        _by_public_key,
        _by_stranger,
        _by_curve,
        _with_own_key,
        lambda signer: signer.token(header={"typ": "at+jwt"}),
        lambda signer: signer.token(header={"typ": "logout+jwt"}),
        lambda signer: signer.token(header={"crit": ["exp"]}),
        lambda signer: signer.token() + "x",
        lambda signer: signer.token(padding="x" * MAX_CHARACTERS),
        lambda _: "",
        lambda _: "a.b.c",
        lambda _: "[1].[2].[3]",
    ],
    ids=["none", "hmac", "stranger", "curve", "own key", "access", "logout", "crit", "tail", "long", "", "abc", "list"],
)
def test_S01_a_forged_token_is_refused(signer: Signer, discovery: IssuerDiscovery, forge: Any) -> None:
    with pytest.raises(TokenRefused):
        verify(signer, discovery, forge(signer))


def test_who_signed_is_looked_up_by_the_exact_url(signer: Signer) -> None:
    issuers = Issuers((issuer(signer),))
    assert issuer_of(signer.token(), issuers).name == "example"
    for other in (f"{signer.url}/", signer.url.upper(), "", None):
        with pytest.raises(TokenRefused, match="issuer is not configured"):
            issuer_of(signer.token(iss=other), issuers)


def test_keys_change_without_a_restart(signer: Signer, discovery: IssuerDiscovery, clock: Clock) -> None:
    verify(signer, discovery, signer.token())
    signer.keys["second"] = new_key()
    clock.now += ASK_AGAIN_SECONDS
    verify(signer, discovery, signer.token(key="second"))
    old = signer.token()
    del signer.keys["first"]
    clock.now += FRESH_SECONDS
    with pytest.raises(TokenRefused, match="does not publish"):
        verify(signer, discovery, old)


def test_S29_made_up_keys_do_not_make_us_ask_without_end(signer: Signer, discovery: IssuerDiscovery) -> None:
    for number in range(50):
        with pytest.raises(TokenRefused, match="does not publish"):
            verify(signer, discovery, signer.token(header={"kid": f"k-{number}"}))
    assert signer.asked["/keys"] == 1


@pytest.mark.parametrize(
    ("path", "raw", "words"),
    [
        ("/.well-known/openid-configuration", b"<html>", "without JSON"),
        ("/.well-known/openid-configuration", b"[]", "unexpected status"),
        ("/.well-known/openid-configuration", b'{"issuer": "https://evil.example"}', "another issuer"),
        ("/.well-known/openid-configuration", b" " * 300_000, "more than"),
        ("/keys", b'{"keys": 3}', "list"),
        ("/keys", json.dumps({"keys": [{}] * 51}).encode(), "list"),
    ],
)
def test_S29_an_issuer_that_says_nonsense_counts_as_silent(
    signer: Signer, discovery: IssuerDiscovery, path: str, raw: bytes, words: str
) -> None:
    signer.raw[path] = raw
    with pytest.raises(IssuerSilent, match=words):
        verify(signer, discovery, signer.token())


def test_S19_addresses_without_tls_are_refused(signer: Signer, discovery: IssuerDiscovery) -> None:
    signer.said["token_endpoint"] = "http://sso.example.com/token"
    with pytest.raises(IssuerSilent, match="https"):
        verify(signer, discovery, signer.token())


def test_an_issuer_that_is_away_is_silent(discovery: IssuerDiscovery) -> None:
    away = Signer(url="http://127.0.0.1:9")
    with pytest.raises(IssuerSilent, match="did not respond"):
        verify(away, discovery, away.token())


def test_S29_a_silent_issuer_is_not_asked_for_each_token_that_says_it_is_of_it(
    signer: Signer, discovery: IssuerDiscovery, clock: Clock
) -> None:
    signer.raw[PATH] = b"<html>"
    for _ in range(20):
        with pytest.raises(IssuerSilent, match="without JSON"):
            verify(signer, discovery, signer.token())
    assert signer.asked[PATH] == 1
    signer.raw.clear()
    clock.now += ASK_AGAIN_SECONDS
    assert verify(signer, discovery, signer.token()).subject == "u-1"


def test_S29_one_thread_waits_for_an_issuer_that_was_silent(discovery: IssuerDiscovery, clock: Clock) -> None:
    """Else as many tokens as there are threads, which anybody can write, would stop all pages."""
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.MonkeyPatch.context() as patch:
        patch.setattr("approvals.oidc.discovery.TIMEOUT", urllib3.Timeout(connect=60, read=1))
        away = Signer(url=f"http://127.0.0.1:{mute.getsockname()[1]}")
        text = away.token()

        with pytest.raises(IssuerSilent, match="ReadTimeoutError"):
            verify(away, discovery, text)
        mute.accept()[0].close()
        # From now on it is the test that ends the waiting.
        patch.setattr("approvals.oidc.discovery.TIMEOUT", urllib3.Timeout(connect=60, read=3600))
        clock.now += ASK_AGAIN_SECONDS
        with ThreadPoolExecutor(6) as pool:
            tried = [pool.submit(verify, away, discovery, text) for _ in range(6)]
            try:
                wait_for(lambda: sum(one.done() for one in tried), "the others end", is_so=lambda ended: ended == 5)
            finally:
                mute.settimeout(scaled(60))
                mute.accept()[0].close()
        mute.settimeout(0)
        with pytest.raises(BlockingIOError):
            mute.accept()
        assert {type(one.exception()) for one in tried} == {IssuerSilent}


def test_S29_an_answer_that_drips_is_cut_off(discovery: IssuerDiscovery) -> None:
    with socket.create_server(("127.0.0.1", 0)) as slow, pytest.MonkeyPatch.context() as patch:
        patch.setattr("approvals.oidc.discovery.ANSWER_SECONDS", 0.5)

        dripped: list[bytes] = []

        def drip() -> None:
            with slow.accept()[0] as client, contextlib.suppress(OSError):
                client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                for _ in range(600):
                    client.sendall(b" ")
                    dripped.append(b" ")
                    time.sleep(0.1)

        Thread(target=drip, daemon=True).start()
        away = Signer(url=f"http://127.0.0.1:{slow.getsockname()[1]}")
        with pytest.raises(IssuerSilent, match="took more than"):
            verify(away, discovery, away.token())
        assert len(dripped) < 600


@pytest.mark.parametrize(
    "claims", [{"typ": "Bearer"}, {"typ": "Logout"}, {"events": EVENTS}], ids=["access", "Keycloak's", "without typ"]
)
def test_S01_another_kind_of_token_that_says_so_in_a_claim_is_refused(
    signer: Signer, discovery: IssuerDiscovery, claims: dict[str, Any]
) -> None:
    with pytest.raises(TokenRefused, match="not an ID token"):
        verify(signer, discovery, signer.token(**claims))
    assert verify(signer, discovery, signer.token(typ="ID")).subject == "u-1"


def test_one_key_that_cannot_be_read_does_not_hide_the_others(signer: Signer, discovery: IssuerDiscovery) -> None:
    broken = {"kty": "RSA", "kid": "broken", "n": "!", "e": "!"}
    signer.raw["/keys"] = json.dumps({"keys": [broken, *signer.jwks()["keys"]]}).encode()
    assert verify(signer, discovery, signer.token()).subject == "u-1"


def test_a_logout_token_names_person_and_session(signer: Signer, discovery: IssuerDiscovery) -> None:
    token = signer.token(events=EVENTS, jti="j-1", sid="s-1")
    assert verify_logout_token(token, issuer(signer), AUDIENCE, discovery) == ("u-1", "s-1")


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"events": {}}, "events"),
        ({"events": [LOGOUT_EVENT]}, "events"),
        ({"events": None}, "MissingRequiredClaimError"),
        ({"nonce": "n"}, "nonce"),
        ({"sub": None, "sid": None}, "neither"),
        ({"sid": 3}, "neither"),
        ({"jti": None}, "MissingRequiredClaimError"),
        ({"aud": "other"}, "another audience"),
    ],
    ids=str,
)
def test_what_is_no_logout_token_signs_nobody_out(
    signer: Signer, discovery: IssuerDiscovery, claims: dict[str, Any], words: str
) -> None:
    token = signer.token(**{"events": EVENTS, "jti": "j-1", "sid": "s-1", **claims})
    with pytest.raises(TokenRefused, match=words):
        verify_logout_token(token, issuer(signer), AUDIENCE, discovery)
