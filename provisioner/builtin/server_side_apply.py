"""What the server holds after server-side apply.

What only defaults have set stays; what we had set and do not set any more goes.

So a Deployment whose strategy becomes Recreate keeps the `rollingUpdate` that the server filled in, and is refused.
Source: Kubernetes, Server-Side Apply, merge strategy; structured-merge-diff, merge/update.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.builtin.schemas import Schemas, key_of
from provisioner.json_values import mapping

Schema = Mapping[str, Any]
_NOTHING: Schema = {}


def merged(schemas: Schemas, schema: Schema, live: Any, sent: Any, new: Any) -> Any:
    """`new` applied to `live` by the owner who had applied `sent` before; nulls stand for nothing."""
    _, node = schemas.resolved(schema)
    is_whole = node.get("x-kubernetes-map-type") == "atomic" or node.get("x-kubernetes-list-type") == "atomic"
    if is_whole or live is None:
        return without_nulls(new)
    if isinstance(live, Mapping) and isinstance(new, Mapping):
        return _merge_maps(schemas, node, live, mapping(sent), new)
    if isinstance(live, list) and isinstance(new, list):
        return _merge_lists(schemas, node, (live, sent if isinstance(sent, list) else [], new))
    return new


def without_nulls(value: Any) -> Any:
    if isinstance(value, (dict, Mapping)):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):  # a null among others is an empty one of them
        empty: Any = {} if any(isinstance(one, Mapping) for one in value) else ""
        return [empty if one is None else without_nulls(one) for one in value]
    return value


def _merge_maps(schemas: Schemas, node: Schema, live: Any, sent: Mapping[str, Any], new: Any) -> dict[str, Any] | None:
    """None where nothing is left because something went; where a null stands in `new`, the holder of it stays."""
    fields, others = node.get("properties") or {}, node.get("additionalProperties")
    found: dict[str, Any] = {}
    for key in (*live, *(one for one in new if one not in live)):
        inner = fields.get(key) or (others if isinstance(others, Mapping) else _NOTHING)
        if new.get(key) is not None:
            found[key] = merged(schemas, inner, live.get(key), sent.get(key), new[key])
        elif key in live and sent.get(key) is None:
            found[key] = live[key]
    kept = {key: one for key, one in found.items() if one is not None}
    return kept if kept or None in new.values() or not live else None


def _merge_lists(schemas: Schemas, node: Schema, sides: tuple[list[Any], list[Any], list[Any]]) -> list[Any]:
    live, sent, new = sides
    items, keys = node.get("items") or _NOTHING, node.get("x-kubernetes-list-map-keys")
    if node.get("x-kubernetes-list-type") == "set":
        ours_or_gone = {repr(one) for one in (*new, *sent)}
        return [*new, *(one for one in live if repr(one) not in ours_or_gone)]
    if node.get("x-kubernetes-list-type") != "map" or not keys:
        return [without_nulls(one) for one in new]
    before, ours = ({repr(key_of(one, keys)): one for one in side} for side in (live, sent))
    named = [(repr(key_of(one, keys)), one) for one in new]
    found = [merged(schemas, items, before.get(key), ours.get(key), one) or {} for key, one in named]
    kept = {key for key, _ in named} | ours.keys()
    return [*found, *(one for key, one in before.items() if key not in kept)]
