"""One request and its answer, between the socket and the API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from provisioner.sandbox import protobuf
from provisioner.sandbox.status import bad_request
from provisioner.sandbox.types.kinds import SandboxKind
from provisioner.values import Identity


@dataclass(frozen=True, slots=True)
class SandboxCall:
    """`headers` are lower-case, each with all its values; `query` holds the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, list[str]]
    body: bytes = b""

    def header(self, name: str) -> str:
        return (self.headers.get(name) or [""])[0]

    def json(self) -> Any:
        """The body as JSON, YAML or a protobuf of kubectl's; raises Refusal 400 and 415."""
        kind = self.header("content-type").partition(";")[0].strip()
        if "protobuf" in kind:
            return protobuf.read(self.body)
        try:
            return (
                yaml.load(self.body, yaml.CSafeLoader)
                if "yaml" in kind and self.body[:1] != b"{"
                else json.loads(self.body)
            )
        except (ValueError, yaml.YAMLError) as exc:
            raise bad_request(f"the object provided is unrecognized: {exc}") from exc

    def object(self) -> dict[str, Any]:
        found = self.json()
        if not isinstance(found, dict):
            raise bad_request("the object provided is unrecognized: expected an object")
        return found

    @property
    def is_dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"


@dataclass(frozen=True, slots=True)
class PathTarget:
    """What a path names. `name` is "" for a collection."""

    kind: SandboxKind
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.kind.group, self.kind.plural, self.namespace if self.kind.is_namespaced else "", self.name)


@dataclass(frozen=True, slots=True)
class SandboxAnswer:
    """`stream` gives watch events instead of a body."""

    code: int
    body: Any = None
    warnings: tuple[str, ...] = ()
    stream: Iterator[dict[str, Any]] | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Writing:
    """Who writes, as managedFields name them, and whether for good."""

    identity: Identity
    manager: str
    is_dry_run: bool
    validation: str
    warnings: list[str] = field(default_factory=list)
