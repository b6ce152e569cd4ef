"""`kubectl pratique login`: a token for reading, for whoever an issuer names to the command line.

The browser signs in at the issuer and comes back to a loopback address with a code (RFC 8252). The code is good only
with the secret of PKCE, which the command line keeps until it brings both here, and only at the service whose address
the command line put into the nonce: whoever is led to sign in at another address signs in nowhere else. A kubeconfig's
credential is never sent, and none is asked for (security-rules.md S35).
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit, urlunsplit

from django.conf import settings

from approvals import instruments, rate_limits
from approvals.errors import IssuerAway, NotAllowed, SignInFailed
from approvals.models import ApiToken
from approvals.oidc import Code, GrantRefused, Issuers, IssuerSilent, TokenRefused, Tokens, exchange
from approvals.services.issuers import DISCOVERY, caller_of_id_token
from approvals.services.tokens import create_read_token

# Without a name, which could be made to lead elsewhere (RFC 8252, section 8.3).
LOOPBACK = re.compile(r"http://(?:127\.0\.0\.1|\[::1\]):[1-9][0-9]{0,4}/", re.ASCII)
DAYS = 30

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommandLineIssuer:
    """Where and as which client the command line has people sign in."""

    name: str
    title: str
    authorization_url: str
    client_id: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandLineCode:
    """What a command line brings: the code, and `service`, the URL at which it took this service to be."""

    text: str
    redirect_uri: str
    verifier: str
    service: str

    def __repr__(self) -> str:
        return f"CommandLineCode(for {self.redirect_uri!r})"

    def at(self, home: str) -> Code:
        """The code with the nonce of a sign-in at `home`, which is this service's URL without a slash at its end."""
        digest = hashlib.sha256(f"{home}\n{self.verifier}".encode()).digest()
        return Code(self.text, self.redirect_uri, self.verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode())


def command_line_issuers() -> list[CommandLineIssuer]:
    """Those by which the operator lets the command line sign in, without those that do not answer now."""
    found = []
    for issuer in _configured():
        if issuer.command_line is None:
            continue
        try:
            address = str(DISCOVERY.document(issuer)["authorization_endpoint"])
        except IssuerSilent as exc:
            logger.warning("an issuer is not responding", extra={"issuer": issuer.name, "error": str(exc)})
            continue
        client = issuer.command_line
        found.append(CommandLineIssuer(issuer.name, issuer.title, address, client.id, client.scopes))
    return found


def sign_in_command_line(*, issuer: str, back: CommandLineCode, name: str, address: str) -> tuple[ApiToken, str]:
    """A new token for reading, and its text; `address` is the client's.

    Raises NotAllowed for an issuer that there is not, and for somebody who is nobody here; SignInFailed where the code
    proves nothing, IssuerAway, and TooManyAttempts.
    """
    attempt = rate_limits.Attempt(rate_limits.COMMAND_LINE, address)
    attempt.begin()
    try:
        caller = caller_of_id_token(_exchanged(issuer, back).verified)
    except (NotAllowed, SignInFailed):
        instruments.refused_sign_ins.labels("command_line").inc()
        raise
    attempt.succeed()
    return create_read_token(by=caller, name=name, days=DAYS)


def _exchanged(name: str, back: CommandLineCode) -> Tokens:
    issuer = _configured().named(name)
    if issuer is None or issuer.command_line is None:
        raise NotAllowed("the command line cannot sign in at this issuer: paste a token of the account page instead")
    home = _home()
    if back.service != home:
        raise SignInFailed(f"you signed in for {back.service}: run kubectl pratique login --service {home}")
    if not LOOPBACK.fullmatch(back.redirect_uri):
        raise SignInFailed("redirect_uri is not http://127.0.0.1:PORT/: a command line comes back to its own machine")
    try:
        return exchange(replace(issuer, client=issuer.command_line), DISCOVERY, back.at(home))
    except IssuerSilent as exc:
        raise IssuerAway(f"No answer from {issuer.title}: {exc}. Try again in a minute.") from exc
    except (GrantRefused, TokenRefused) as exc:
        raise SignInFailed(f"You could not be signed in at {issuer.title}: {exc}. Sign in again.") from exc


def _home() -> str:
    """PRATIQUE_PUBLIC_URL as `kubectl pratique` writes it (provisioner.cli.kubectl.service.checked_url)."""
    parts = urlsplit(str(settings.PRATIQUE["PUBLIC_URL"]))
    return urlunsplit((parts.scheme, parts.netloc.lower(), quote(parts.path.rstrip("/"), safe="/%"), "", ""))


def _configured() -> Issuers:
    found: Issuers = settings.PRATIQUE["OIDC_FILE"]
    return found
