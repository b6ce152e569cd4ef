"""What an issuer signed: ID tokens (OpenID Connect Core 1.0, section 3.1.3.7) and back-channel logout tokens."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hmac import compare_digest
from typing import Any
from urllib.parse import quote, urlencode

import jwt

from approvals.oidc.discovery import IssuerDiscovery, IssuerSilent, post_form
from approvals.oidc.issuers import Issuer, Issuers, OidcClient

# No symmetric algorithm: its key would be the client's secret, or a public key that somebody takes for one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MAX_CHARACTERS = 16_384
LEEWAY_SECONDS = 30
# Tokens of the same issuer for other ends: to call an API with (RFC 9068), to sign people out.
OTHER_TYPES = frozenset({"at+jwt", "application/at+jwt", "logout+jwt", "application/logout+jwt"})
# The same in a claim, as Keycloak says it.
OTHER_CLAIMED_TYPES = frozenset({"bearer", "logout", "refresh", "offline"})
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
MAX_SUBJECT = 255


class TokenRefused(Exception):
    """The token proves nothing here; the message never quotes it."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A token that an issuer of the operator's signed for us. `subject` is its key for the person, never the e-mail."""

    issuer: Issuer
    subject: str
    claims: Mapping[str, Any]
    issued_at: datetime
    expires_at: datetime


def issuer_of(text: str, issuers: Issuers) -> Issuer:
    """Who claims to have signed a token; nothing is proved by that. Raises TokenRefused."""
    if len(text) > MAX_CHARACTERS:
        raise TokenRefused(f"the token has more than {MAX_CHARACTERS} characters")
    try:
        claims = jwt.decode(text, options={"verify_signature": False})
    except jwt.PyJWTError as exc:
        raise TokenRefused("the token is not a JWT") from exc
    issuer = issuers.with_url(str(claims.get("iss", "")))
    if issuer is None:
        raise TokenRefused("the token's issuer is not configured here")
    return issuer


def verify_id_token(
    text: str, issuer: Issuer, audiences: Sequence[str], discovery: IssuerDiscovery, *, nonce: str | None = None
) -> Verified:
    """An ID token of this issuer, for one of these audiences. Raises TokenRefused and IssuerSilent.

    `nonce` is what the browser's sign-in sent; None where nobody sent any, as for a token that a script brings.
    """
    if str(header_of(text).get("typ")).lower() in OTHER_TYPES:
        raise TokenRefused("this is not an ID token")
    claims = _claims(text, issuer, audiences, discovery, ["iss", "aud", "sub", "exp", "iat"])
    if "events" in claims or str(claims.get("typ")).lower() in OTHER_CLAIMED_TYPES:
        raise TokenRefused("this is not an ID token")
    subject = claims["sub"]
    if not 1 <= len(subject) <= MAX_SUBJECT or not subject.isprintable():
        raise TokenRefused(f"the claim sub is not 1 to {MAX_SUBJECT} printable characters")
    party = claims.get("azp")
    if party is not None and party not in audiences:
        raise TokenRefused("the token was issued to another party (azp)")
    if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and party is None:
        raise TokenRefused("the token has several audiences and no authorized party (azp)")
    if nonce is not None and not compare_digest(str(claims.get("nonce", "")), nonce):
        raise TokenRefused("the token belongs to another sign-in (nonce)")
    return Verified(issuer, subject, claims, _moment(claims["iat"]), _moment(claims["exp"]))


def verify_logout_token(text: str, issuer: Issuer, client: str, discovery: IssuerDiscovery) -> tuple[str, str]:
    """(sub, sid) of a logout token, one of them perhaps "". Raises TokenRefused and IssuerSilent.

    Source: OpenID Connect Back-Channel Logout 1.0, section 2.6.
    """
    claims = _claims(text, issuer, [client], discovery, ["iss", "aud", "iat", "exp", "jti", "events"])
    events = claims["events"]
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise TokenRefused("this is not a logout token: the events claim is missing")
    if "nonce" in claims:
        raise TokenRefused("this is not a logout token: it has a nonce")
    subject, session = claims.get("sub", ""), claims.get("sid", "")
    if not isinstance(session, str) or not (subject or session):
        raise TokenRefused("the logout token has neither sub nor sid")
    return subject, session


def header_of(text: str) -> dict[str, Any]:
    """The header of a token, unproved. Raises TokenRefused."""
    if len(text) > MAX_CHARACTERS:
        raise TokenRefused(f"the token has more than {MAX_CHARACTERS} characters")
    try:
        return jwt.get_unverified_header(text)
    except jwt.PyJWTError as exc:
        raise TokenRefused("the token is not a JWT") from exc


def _claims(
    text: str, issuer: Issuer, audiences: Sequence[str], discovery: IssuerDiscovery, needed: list[str]
) -> dict[str, Any]:
    header = header_of(text)
    if header.get("alg") not in ALGORITHMS:
        raise TokenRefused(f"the token is signed with {str(header.get('alg'))[:20]!r}; expected one of {ALGORITHMS}")
    key = discovery.key(issuer, str(header.get("kid", "")))
    if key is None:
        raise TokenRefused("the token is signed with a key that its issuer does not publish")
    # A key without `alg` is taken for the first algorithm of its type: RSA signs by six.
    is_of_rsa = all(name[:2] in ("RS", "PS") for name in (key.algorithm_name, header["alg"]))
    if key.algorithm_name != header["alg"] and not is_of_rsa:
        raise TokenRefused("the token's algorithm does not match its key")
    try:
        return jwt.decode(
            text,
            key.key,
            algorithms=[header["alg"]],
            audience=list(audiences),
            issuer=issuer.url,
            leeway=LEEWAY_SECONDS,
            options={"require": needed},
        )
    except jwt.ExpiredSignatureError as exc:
        raise TokenRefused("the token has expired") from exc
    except jwt.InvalidAudienceError as exc:
        raise TokenRefused(f"the token is for another audience; expected {' or '.join(audiences)}") from exc
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as exc:
        raise TokenRefused(f"the token is not valid ({type(exc).__name__})") from exc


def _moment(seconds: float) -> datetime:
    """Raises TokenRefused where a clock knows no such moment."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, TypeError, OSError) as exc:
        raise TokenRefused("the token is not valid: its times are malformed") from exc


class GrantRefused(Exception):
    """The issuer gives no tokens for this any more; `code` is its error, such as invalid_grant."""

    def __init__(self, code: str):
        super().__init__(f"the issuer returned {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Tokens:
    """An ID token with what it proves, and what it can be renewed with ("": it cannot)."""

    verified: Verified
    id_token: str
    refresh_token: str

    def __repr__(self) -> str:
        return f"Tokens(of {self.verified.subject!r} by {self.verified.issuer.name})"


@dataclass(frozen=True, slots=True)
class Code:
    """What a browser came back with, and what only its session knew: PKCE's verifier and the nonce."""

    text: str
    redirect_uri: str
    verifier: str
    nonce: str

    def __repr__(self) -> str:
        return f"Code(for {self.redirect_uri!r})"


def exchange(issuer: Issuer, discovery: IssuerDiscovery, code: Code) -> Tokens:
    """The tokens for a browser's code. Raises GrantRefused, TokenRefused and IssuerSilent."""
    form = {
        "grant_type": "authorization_code",
        "code": code.text,
        "redirect_uri": code.redirect_uri,
        "code_verifier": code.verifier,
    }
    return _ask_for_tokens(issuer, discovery, form, code.nonce)


def renew(issuer: Issuer, discovery: IssuerDiscovery, *, refresh_token: str, subject: str) -> Tokens:
    """Tokens of the same person, of now. Raises GrantRefused, TokenRefused and IssuerSilent.

    Where the issuer sends no new refresh token, the one that was given counts on (RFC 6749, section 6).
    """
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    tokens = _ask_for_tokens(issuer, discovery, form, None)
    if tokens.verified.subject != subject:
        raise TokenRefused("the issuer renewed the token of another person")
    return Tokens(tokens.verified, tokens.id_token, tokens.refresh_token or refresh_token)


def revoke(issuer: Issuer, discovery: IssuerDiscovery, refresh_token: str) -> bool:
    """Give a refresh token back (RFC 7009); False where the issuer takes none back. Raises IssuerSilent."""
    address = discovery.document(issuer).get("revocation_endpoint")
    if not address or issuer.client is None:
        return False
    fields, headers = _as_client(issuer.client, discovery.document(issuer))
    post_form(issuer, address, {**fields, "token": refresh_token}, headers, is_empty=True)
    return True


def sign_out_address(issuer: Issuer, discovery: IssuerDiscovery, *, id_token: str, home: str) -> str:
    """Where a browser signs out at the issuer and comes back to `home`; "" where the issuer has no such place.

    Source: OpenID Connect RP-Initiated Logout 1.0, section 2.
    """
    address = discovery.document(issuer).get("end_session_endpoint")
    if not address or issuer.client is None:
        return ""
    about = {"id_token_hint": id_token, "client_id": issuer.client.id, "post_logout_redirect_uri": home}
    return f"{address}{'&' if '?' in address else '?'}{urlencode({key: text for key, text in about.items() if text})}"


def _ask_for_tokens(issuer: Issuer, discovery: IssuerDiscovery, form: Mapping[str, str], nonce: str | None) -> Tokens:
    client = issuer.client
    if client is None:
        raise GrantRefused("no_client")
    document = discovery.document(issuer)
    fields, headers = _as_client(client, document)
    answer = post_form(issuer, document["token_endpoint"], {**form, **fields}, headers)
    if "error" in answer:
        raise GrantRefused(str(answer["error"])[:60])
    id_token, refresh_token = answer.get("id_token"), answer.get("refresh_token", "")
    if not isinstance(id_token, str) or not isinstance(refresh_token, str) or len(refresh_token) > MAX_CHARACTERS:
        raise IssuerSilent(f"{issuer.url} returned no ID token, so the person is unknown")
    return Tokens(verify_id_token(id_token, issuer, [client.id], discovery, nonce=nonce), id_token, refresh_token)


def _as_client(client: OidcClient, document: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """(fields, headers) that say which client asks: by `client_secret_basic`, unless the issuer knows only the other.

    Source: RFC 6749, section 2.3.1; each part is form-encoded before it is put together.
    """
    if not client.secret:
        return {"client_id": client.id}, {}
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if isinstance(methods, list) and "client_secret_basic" not in methods:
        return {"client_id": client.id, "client_secret": client.secret}, {}
    both = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
    return {}, {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}
