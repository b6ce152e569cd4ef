"""The pages to sign in and out: by password, by an OpenID Connect issuer, and the choice of light or dark."""
