"""What the tests of sources share: the operator's policies, where every server is on loopback, and a Secret."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from dataclasses import replace

from provisioner.source import EgressPolicy
from provisioner.values import JsonObject

MIB = 1024 * 1024
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
STRICT = EgressPolicy(timeout_seconds=60)
# Plain http to this machine; everything else as strict as ever.
OPEN = replace(STRICT, allowed_networks=LOOPBACK, plain_http_hosts=("*",))
MUTABLE = replace(OPEN, allow_mutable=True)


def secret(type_: str, **values: str | bytes) -> JsonObject:
    """A live Secret of harbour, named pull."""
    data = {
        key: base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
        for key, value in values.items()
    }
    meta = {"name": "pull", "namespace": "harbour"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": type_, "data": data}


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
