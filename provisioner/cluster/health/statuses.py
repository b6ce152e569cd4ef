"""What Kubernetes objects say of themselves, read without trusting their shape. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from provisioner.values import Health, HealthState, JsonObject

MAX_WORDS = 400


def meta_of(obj: JsonObject) -> Mapping[str, Any]:
    return obj.get("metadata") or {}


def spec_of(obj: JsonObject) -> Mapping[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def status_of(obj: JsonObject) -> Mapping[str, Any]:
    status = obj.get("status")
    return status if isinstance(status, Mapping) else {}


def condition_of(obj: JsonObject, word: str) -> Mapping[str, Any]:
    conditions = status_of(obj).get("conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if isinstance(condition, Mapping) and condition.get("type") == word:
            return condition
    return {}


def said(condition: Mapping[str, Any]) -> str:
    """Its reason and message: words of whoever wrote the status, so values of the object (security-rules.md S27)."""
    words = shortened(condition.get("message"))
    return joined(str(condition.get("reason") or condition.get("type") or ""), words)


def joined(reason: str, message: object) -> str:
    return f"{reason}: {message}" if message else reason


def shortened(message: object) -> str:
    """A message of the cluster on one line, without control characters, of at most MAX_WORDS characters."""
    plain = " ".join("".join(one if one.isprintable() else " " for one in str(message or "")[: 4 * MAX_WORDS]).split())
    return plain if len(plain) <= MAX_WORDS else plain[: MAX_WORDS - 1] + "…"


def count_of(status: Mapping[str, Any], key: str) -> int:
    value = status.get(key)
    return value if isinstance(value, int) else 0


def wanted_replicas(obj: JsonObject) -> int:
    replicas = spec_of(obj).get("replicas")
    return replicas if isinstance(replicas, int) else 1


def short(status: Mapping[str, Any], wanted: int, keys: Mapping[str, str]) -> Health | None:
    """The first of the counts that is below `wanted`, in words."""
    for key, words in keys.items():
        if count_of(status, key) < wanted:
            return in_progress(f"{count_of(status, key)} of {wanted} {words}")
    return None


def surplus(obj: JsonObject) -> Health | None:
    made, wanted = count_of(status_of(obj), "replicas"), wanted_replicas(obj)
    return in_progress(f"{made} replicas, expected {wanted}") if made > wanted else None


def in_progress(message: str, server_words: str = "") -> Health:
    return Health(HealthState.IN_PROGRESS, message, server_words)


def instant_of(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
