"""The operator's policies that the tests of sources share: every server of theirs is on loopback."""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import replace

from provisioner.source import EgressPolicy

MIB = 1024 * 1024
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
STRICT = EgressPolicy(timeout_seconds=10)
# Plain http to this machine; everything else as strict as ever.
OPEN = replace(STRICT, allowed_networks=LOOPBACK, allow_http=True)
MUTABLE = replace(OPEN, allow_mutable=True)


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
