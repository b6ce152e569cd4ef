"""What Cluster answers with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.client.failures import Doing, event_failure
from provisioner.cluster.client.transport import Stream
from provisioner.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Applied:
    """What the API server answered to an apply."""

    object: dict[str, Any]
    is_created: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A list and the resourceVersion from which a watch carries on after it."""

    objects: tuple[dict[str, Any], ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The first objects of a list, in the server's order; `total` is how many there are, None where it did not say."""

    objects: tuple[dict[str, Any], ...]
    total: int | None
    resource_version: str


class WatchType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    type: WatchType
    object: dict[str, Any]

    @property
    def resource_version(self) -> str:
        return str((self.object.get("metadata") or {}).get("resourceVersion") or "")


class Watch(Iterator[WatchEvent]):
    """Events until the server's timeout. `close`, from any thread, ends it at once."""

    def __init__(self, stream: Stream, resource: ServedResource, doing: Doing):
        self._stream = stream
        self._resource = resource
        self._doing = doing

    def __next__(self) -> WatchEvent:
        event = next(self._stream)
        word, obj = str(event.get("type") or ""), event.get("object")
        if word == "ERROR" and isinstance(obj, dict):
            self.close()
            raise event_failure(self._doing, obj)
        if word not in set(WatchType) or not isinstance(obj, dict):
            self.close()
            raise ClusterError(f"{self._doing}: an event of the unknown type {word!r}")
        return WatchEvent(WatchType(word), with_kind(obj, self._resource))

    def close(self) -> None:
        self._stream.close()


def with_kind(obj: dict[str, Any], resource: ServedResource) -> dict[str, Any]:
    """`obj` with its apiVersion and kind, which lists leave out and metadata-only answers replace."""
    if obj.get("kind") == resource.kind and obj.get("apiVersion") == resource.api_version:
        return obj
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
