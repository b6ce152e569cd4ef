"""When the credentials that stand in a kubeconfig end. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from datetime import UTC, datetime

from cryptography import x509

from provisioner.cluster.client.kubeconfig import read_kubeconfig
from provisioner.errors import BadSource


def end_of_credentials(kubeconfig: str, *, trusted: bool = False) -> datetime | None:
    """When the first of them ends: a client certificate, or a token that is a JWT. None where none says so."""
    try:
        document = read_kubeconfig(kubeconfig, trusted=trusted)
    except BadSource:
        return None
    user = document["users"][0]["user"] if document["users"] else {}
    ends = [*_of_certificate(str(user.get("client-certificate-data") or "")), *_of_token(str(user.get("token") or ""))]
    return min(ends, default=None)


def _of_certificate(data: str) -> Iterator[datetime]:
    try:
        yield x509.load_pem_x509_certificates(base64.b64decode(data))[0].not_valid_after_utc
    except (ValueError, IndexError):
        return


def _of_token(token: str) -> Iterator[datetime]:
    """Its `exp`, unproved: the API server alone proves it."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        yield datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, OSError, binascii.Error):
        return
