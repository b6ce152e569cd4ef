"""OpenID Connect: which issuers the operator trusts for which cluster, and what one of their tokens proves there.

`issuers` reads the operator's file, `discovery` asks an issuer for its addresses and keys, `tokens` verifies what it
signed, `grants` asks for tokens, and `names` says whom claims mean on a cluster. The browser's sign-in and REST use the
same five.
"""

from approvals.oidc.discovery import IssuerDiscovery, IssuerSilent
from approvals.oidc.issuers import (
    ClaimsRefused,
    ClusterRules,
    Issuer,
    Issuers,
    NamedIdentity,
    OidcClient,
    names_on,
    parse_issuers,
)
from approvals.oidc.tokens import (
    Code,
    GrantRefused,
    TokenRefused,
    Tokens,
    Verified,
    exchange,
    issuer_of,
    renew,
    revoke,
    sign_out_address,
    verify_id_token,
    verify_logout_token,
)

__all__ = [
    "ClaimsRefused",
    "ClusterRules",
    "Code",
    "GrantRefused",
    "Issuer",
    "IssuerDiscovery",
    "IssuerSilent",
    "Issuers",
    "NamedIdentity",
    "OidcClient",
    "TokenRefused",
    "Tokens",
    "Verified",
    "exchange",
    "issuer_of",
    "names_on",
    "parse_issuers",
    "renew",
    "revoke",
    "sign_out_address",
    "verify_id_token",
    "verify_logout_token",
]
