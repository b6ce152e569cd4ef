"""The pages to sign in and out: by password, by an OpenID Connect issuer, and the choice of light or dark.

Modules that other rooms use:

- `accounts`: signing in and out, and the choice of light or dark
- `oidc`: signing in at an OpenID Connect issuer: the way there and back, and the issuer's word that somebody has left
"""

__all__ = [
    "accounts",
    "oidc",
]
