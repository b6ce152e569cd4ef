"""Names as OLM makes them, so that an operator that moves from OLM keeps its objects.

Source: operator-controller, internal/shared/util/hash and internal/operator-controller/rukpak/util.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from provisioner.render.registry.csv import AccountRules

MAX_NAME_LENGTH = 63
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# What Go's encoder writes as an escape though JSON does not ask for it.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def permission_name(csv_name: str, permission: AccountRules) -> str:
    """The name of the role and of its binding: that of bundle and account, and a hash of account and rules."""
    rules = list(permission.rules) if permission.rules or permission.has_list else None
    body = {"serviceAccountName": permission.account, "rules": rules}
    # base36(sha224(JSON)), without leading zeros.
    number = int.from_bytes(hashlib.sha224(f"{go_json(body)}\n".encode()).digest())
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return suffixed(f"{csv_name}-{permission.subject}", digits or "0")


def service_name(deployment: str) -> str:
    """The Service before the webhooks of a deployment."""
    return suffixed(deployment.replace(".", "-"), "service")


def certificate_name(deployment: str) -> str:
    """The Certificate of that Service, and the Secret that it is kept in."""
    return suffixed(service_name(deployment), "cert")


def suffixed(base: str, suffix: str) -> str:
    """`base-suffix`, with the end of `base` cut off where it would be longer than a label may be."""
    if len(base) + len(suffix) > MAX_NAME_LENGTH:
        base = base[: MAX_NAME_LENGTH - len(suffix) - 1]
    return f"{base}-{suffix}"


def go_json(value: Any) -> str:
    """JSON as Go writes it, for a value whose keys stand in Go's order."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign, escape in _ESCAPED.items():
        text = text.replace(sign, escape)
    return text


def ordered(value: Any) -> Any:
    """The value with its keys in Go's order."""
    if isinstance(value, Mapping):
        return {str(key): ordered(value[key]) for key in sorted(value, key=str)}
    return [ordered(one) for one in value] if isinstance(value, list) else value
