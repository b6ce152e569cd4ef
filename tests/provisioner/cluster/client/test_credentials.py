"""When the credentials of a kubeconfig end: of a client certificate, of a token, of neither."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from provisioner.cluster.client.credentials import end_of_credentials

SOON, LATER = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)


def certificate(end: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pratique")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def token(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@pytest.mark.parametrize(
    ("user", "end"),
    [
        ({"token": token({"exp": SOON.timestamp()})}, SOON),
        ({"client-certificate-data": certificate(SOON), "client-key-data": "eA=="}, SOON),
        (
            {
                "token": token({"exp": LATER.timestamp()}),
                "client-certificate-data": certificate(SOON),
                "client-key-data": "eA==",
            },
            SOON,
        ),
        ({"token": token({"sub": "for ever"})}, None),
        ({"token": token({"exp": "tomorrow"})}, None),
        ({"token": token({"exp": 1e300})}, None),
        ({"token": token([])}, None),
        ({"token": "opaque"}, None),
        ({"token": "a.b.c"}, None),
        ({"client-certificate-data": "bm8=", "client-key-data": "eA=="}, None),
        ({}, None),
    ],
    ids=[
        "token",
        "certificate",
        "the first",
        "no end",
        "a word",
        "too far",
        "a list",
        "opaque",
        "broken",
        "no",
        "none",
    ],
)
def test_the_end_of_what_ends_first(user: dict[str, str], end: datetime | None) -> None:
    kubeconfig = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://example.com"}}],
        "users": [{"name": "a", "user": user}],
    }
    assert end_of_credentials(json.dumps(kubeconfig)) == end
