"""What we ask an issuer for: tokens for a code, tokens anew, and the end of a session (RFC 6749, OpenID Connect)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from approvals.oidc.discovery import IssuerDiscovery, IssuerSilent, post_form
from approvals.oidc.issuers import Issuer, OidcClient
from approvals.oidc.tokens import TokenRefused, Verified, verify_id_token

MAX_CHARACTERS = 16_384


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
    wish = {
        "grant_type": "authorization_code",
        "code": code.text,
        "redirect_uri": code.redirect_uri,
        "code_verifier": code.verifier,
    }
    return _tokens(issuer, discovery, wish, code.nonce)


def renew(issuer: Issuer, discovery: IssuerDiscovery, *, refresh_token: str, subject: str) -> Tokens:
    """Tokens of the same person, of now. Raises GrantRefused, TokenRefused and IssuerSilent.

    Where the issuer sends no new refresh token, the one that was given counts on (RFC 6749, section 6).
    """
    wish = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    tokens = _tokens(issuer, discovery, wish, None)
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


def _tokens(issuer: Issuer, discovery: IssuerDiscovery, wish: Mapping[str, str], nonce: str | None) -> Tokens:
    client = issuer.client
    if client is None:
        raise GrantRefused("no_client")
    document = discovery.document(issuer)
    fields, headers = _as_client(client, document)
    answer = post_form(issuer, document["token_endpoint"], {**wish, **fields}, headers)
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
