"""Whether applying an object again would change nothing, told from the live object alone. Pure.

The API server writes down who set which field. Where our entry names exactly the fields of the content, and each holds
the content's value, a server-side apply has nothing to set, nothing to take away and nobody to conflict with. What
cannot be proved here is asked of the server by dry-run; "no" therefore only costs a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from provisioner.cluster.choices import as_sent
from provisioner.cluster.tracking import NONCE, Tracking
from provisioner.values import JsonObject

_FIELD, _ITEM, _VALUE, _SELF = "f:", "k:", "v:", "."


def is_applied(wished: JsonObject, live: JsonObject, *, field_manager: str) -> bool:
    """Whether `live` is what an apply of `wished` by `field_manager`, with the object's own tracking, would leave."""
    entries = [
        entry
        for entry in (live.get("metadata") or {}).get("managedFields") or []
        if entry.get("manager") == field_manager and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    tracking = Tracking.on(live)
    is_ours = len(entries) == 1 and NONCE in tracking.annotations
    if not is_ours or entries[0].get("apiVersion") != wished.get("apiVersion"):
        return False
    return _holds(_sent(as_sent(wished), tracking), live, entries[0].get("fieldsV1") or {})


def _sent(wished: JsonObject, tracking: Tracking) -> dict[str, Any]:
    """What of an apply becomes fields: all but what names the object."""
    meta = {key: value for key, value in (wished.get("metadata") or {}).items() if key not in {"name", "namespace"}}
    body = {key: value for key, value in wished.items() if key not in {"apiVersion", "kind", "metadata"}}
    return {**body, "metadata": tracking.put_on(meta)}


def _holds(wished: object, live: object, owned: Mapping[str, Any]) -> bool:
    """Whether `live` has the value, and our entry this value's fields and no others."""
    inner = {key: node for key, node in owned.items() if key != _SELF}
    if not inner or all(key.startswith(_VALUE) for key in inner):
        # A leaf, a map or list that is owned as a whole, or a set.
        return _bytes(wished) == _bytes(live) and (
            not inner or (isinstance(wished, list) and len(inner) == len(wished))
        )
    if isinstance(wished, Mapping) and isinstance(live, Mapping):
        names = {f"{_FIELD}{key}" for key in wished}
        return names == inner.keys() and all(
            key in live and _holds(value, live[key], inner[f"{_FIELD}{key}"]) for key, value in wished.items()
        )
    if isinstance(wished, list) and isinstance(live, list) and len(wished) == len(live) == len(inner):
        return all(_holds_item(one, other, inner) for one, other in zip(wished, live, strict=True))
    return False


def _holds_item(wished: object, live: object, owned: Mapping[str, Any]) -> bool:
    """Of a list whose items have keys; a key that the content leaves out has been defaulted by the server."""
    if not isinstance(wished, Mapping) or not isinstance(live, Mapping):
        return False
    nodes = [node for key, node in owned.items() if key.startswith(_ITEM) and _is_key_of(key, wished, live)]
    return len(nodes) == 1 and _holds(wished, live, nodes[0])


def _is_key_of(key: str, wished: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    try:
        stated = orjson.loads(key.removeprefix(_ITEM))
    except orjson.JSONDecodeError:
        return False
    return isinstance(stated, dict) and all(
        _bytes(live.get(name)) == _bytes(value) == _bytes(wished.get(name, value)) for name, value in stated.items()
    )


def _bytes(value: object) -> bytes:
    """One text for one value: 1, "1", 1.0 and true are four."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
