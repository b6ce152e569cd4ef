"""When objects were created, as the API server says."""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.values import JsonObject


def newest(objects: Iterable[JsonObject]) -> str:
    """When the last of them was created, by the clock of the API server; "" where there is none, or nobody says."""
    return max((created_at(one) for one in objects), default="")


def created_at(obj: JsonObject) -> str:
    """Of one object: times of the API server are in UTC and to the second, so that they sort as text."""
    return str((obj.get("metadata") or {}).get("creationTimestamp") or "")
