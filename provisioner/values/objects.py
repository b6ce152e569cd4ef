"""Kubernetes objects as JSON has them, their names, and who asks for access to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from provisioner.errors import InvalidManifest

# A Kubernetes object as JSON has it. Values that hold one never change it; who needs another object copies it.
JsonObject = Mapping[str, Any]

_WORDS: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}


def object_in(value: object, name: str) -> JsonObject:
    """`value` if it is a JSON object. Raises InvalidManifest, which calls it `name`, for what else it is."""
    if isinstance(value, Mapping):
        return value
    found = "nothing" if value is None else _WORDS.get(type(value), type(value).__name__)
    raise InvalidManifest(f"{name}: expected an object, found {found}")


def created_at(obj: JsonObject) -> str:
    """When an object was created, "" where nobody says: in UTC and to the second, so that times sort as text."""
    return str((obj.get("metadata") or {}).get("creationTimestamp") or "")


_GROUPS_WITHOUT_DOMAIN = frozenset({"", "apps", "autoscaling", "batch", "policy"})

# Of an object, `ObjectRef.identity`: group, kind, namespace ("" for a cluster-scoped one) and name.
ObjectIdentity = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class GroupKind:
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class RefParts(Protocol):
    """What holds the parts of a reference beside other things: a row of a database, for one."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True, order=True)
class ObjectRef:
    """The name of one object: `namespace` is "" for a cluster-scoped one, `group` is "" for the core group."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @property
    def identity(self) -> ObjectIdentity:
        """What makes it the same object, whichever version it is written in."""
        return (self.group, self.kind, self.namespace, self.name)

    @property
    def place(self) -> str:
        """Its name among the objects of its kind: with the namespace before it where there is one."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.group_kind} {self.place}"

    @classmethod
    def from_parts(cls, parts: RefParts) -> ObjectRef:
        return cls(parts.group, parts.version, parts.kind, parts.namespace, parts.name)

    @classmethod
    def of_service_account(cls, namespace: str, name: str) -> ObjectRef:
        return cls("", "v1", "ServiceAccount", namespace, name)

    @classmethod
    def of(cls, obj: JsonObject) -> ObjectRef:
        """The reference of a Kubernetes object; absent parts become "". Raises InvalidManifest for what is none."""
        try:
            group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
            meta = obj.get("metadata") or {}
            namespace, name = str(meta.get("namespace") or ""), str(meta.get("name", ""))
            return cls(group, version, str(obj.get("kind", "")), namespace, name)
        except AttributeError:  # asked afterwards: this is done for every object, many times
            object_in(object_in(obj, "the object").get("metadata"), "metadata")
            raise


def display_name(ref: ObjectRef) -> str:
    """An object as a sentence names it: the group only where Kubernetes itself does not own it."""
    if ref.kind == "CustomResourceDefinition":
        return f"CRD {ref.name}"
    is_own = ref.group in _GROUPS_WITHOUT_DOMAIN or ref.group.endswith(".k8s.io")
    kind = ref.kind if is_own else str(ref.group_kind)
    return f"{kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{kind} {ref.name}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who Kubernetes takes somebody for."""

    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @classmethod
    def of_service_account(cls, namespace: str, name: str) -> Identity:
        """The identity and the groups that the API server gives a ServiceAccount."""
        return cls(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
        )


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """One question to Kubernetes' authorizers. `path` makes it a non-resource question; then the rest stays ""."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.verb} {self.path}"
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        resource = f"{resource}.{self.group}" if self.group else resource
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{f' {self.name}' if self.name else ''}{place}"


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """What the API server said; `reason` is its own words, for people."""

    allowed: bool
    reason: str = ""
