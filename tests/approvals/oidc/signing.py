"""An issuer for tests: keys of its own, and an HTTP server that says what an issuer says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.servers.serving import Handler, serving

AUDIENCE = "pratique"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Signer:
    """What it says can be changed while it runs; `asked` counts requests by path."""

    url: str = ""
    keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=lambda: {"first": new_key()})
    said: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            **self.said,
        }

    def jwks(self) -> dict[str, Any]:
        algorithm = jwt.algorithms.RSAAlgorithm
        return {
            "keys": [
                {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig", "alg": "RS256"}
                for name, key in self.keys.items()
            ]
        }

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        known = {"iss": self.url, "aud": AUDIENCE, "sub": "u-1", "iat": now, "exp": now + 600, "groups": ["platform"]}
        return {name: value for name, value in {**known, **more}.items() if value is not None}

    def token(self, *, key: str = "first", header: dict[str, Any] | None = None, **more: Any) -> str:
        return jwt.encode(self.claims(**more), self.keys[key], "RS256", headers={"kid": key, **(header or {})})


@contextmanager
def running_signer() -> Iterator[Signer]:
    signer = Signer()

    class Keys(Handler):
        def do_GET(self) -> None:
            signer.asked[self.path] = signer.asked.get(self.path, 0) + 1
            known = {"/.well-known/openid-configuration": signer.document, "/keys": signer.jwks}
            body = signer.raw.get(self.path) or json.dumps(known[self.path]()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Keys) as signer.url:
        yield signer
