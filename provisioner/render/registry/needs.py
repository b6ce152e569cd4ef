"""What a bundle of OLM needs beside itself: packages, APIs, and constraints that combine them (`olm.constraint`). PURE.

The vocabulary is that of operator-framework/api, `pkg/constraints`: package, gvk, all, any, not and cel. As in OLM's
manual each member of a list is a need of its own, which different bundles may meet. CEL asks about the properties of
one bundle, which nobody keeps here: such a need stands as it is written, and is not judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from provisioner.errors import InvalidRange
from provisioner.escaping import visible
from provisioner.sentences import some
from provisioner.values import Requirement, RequirementKind
from provisioner.versions import VersionRange, range_of

PACKAGE, API, CONSTRAINT = "olm.package.required", "olm.gvk.required", "olm.constraint"
MAX_CHARACTERS = 4096
MAX_DEPTH = 8
MAX_MEMBERS = 100
MAX_NAME = 253
# Of a list of alternatives, in words.
MOST_SAID = 5


@dataclass(frozen=True, slots=True)
class PackageNeed:
    """Another package, in any version where there is no range."""

    package: str
    versions: VersionRange | None = None

    def __str__(self) -> str:
        return f"package {self.package} {self.versions or ''}".strip()


@dataclass(frozen=True, slots=True)
class ApiNeed:
    """A kind of object in one version, whoever brings it."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.group}/{self.version}" if self.group else f"{self.kind} in {self.version}"

    @property
    def key(self) -> str:
        """As `CatalogBundle.apis` has it."""
        return f"{self.kind}.{self.group}/{self.version}"


class Join(StrEnum):
    """How many of the members of a list have to be so."""

    ALL = "all"
    ANY = "any"
    NONE = "not"


_SAID = {Join.ALL: "all of", Join.ANY: "one of", Join.NONE: "none of"}


@dataclass(frozen=True, slots=True)
class CompoundNeed:
    """Needs that are joined. `message` is what its publisher says where it is not met, "" for nothing."""

    join: Join
    members: tuple[Need, ...]
    message: str = ""

    def __str__(self) -> str:
        return self.message or f"{_SAID[self.join]} ({some([str(member) for member in self.members], MOST_SAID)})"


@dataclass(frozen=True, slots=True)
class UnjudgedNeed:
    """A need that nobody judges: CEL, or what cannot be read. `why` is a phrase."""

    words: str
    why: str

    def __str__(self) -> str:
        return self.words


Need = PackageNeed | ApiNeed | CompoundNeed | UnjudgedNeed


def need_of_property(kind: str, value: Any) -> Need:
    """What one property asks for; `kind` is its type, one of PACKAGE, API and CONSTRAINT. Never raises."""
    if not isinstance(value, Mapping):
        return _unreadable(kind, "its value is no mapping")
    if kind == CONSTRAINT:
        if len(constraint_text(value)) > MAX_CHARACTERS:
            return _unreadable(kind, f"it has more than {MAX_CHARACTERS} characters")
        return _constraint(value, 0)
    return _package(value) if kind == PACKAGE else _api(value)


def constraint_text(value: Any) -> str:
    """A constraint as it is kept: what `need_of_property` read, without spaces."""
    return json.dumps(value, separators=(",", ":"), default=str)


def needs_of_requirements(requirements: Iterable[Requirement]) -> list[Need]:
    """What a rendered bundle needs of other bundles; versions of the cluster and fields are no such needs."""
    found: list[Need] = []
    for asked in requirements:
        if asked.kind is RequirementKind.PACKAGE:
            found.append(_package({"packageName": asked.name, "versionRange": asked.version}))
        elif asked.kind is RequirementKind.API:
            found.append(_api({"group": asked.group, "version": asked.version, "kind": asked.name}))
        elif asked.kind is RequirementKind.CONSTRAINT and asked.constraint:
            found.append(need_of_property(CONSTRAINT, json.loads(asked.constraint)))
        elif asked.kind is RequirementKind.CONSTRAINT:
            found.append(UnjudgedNeed(visible(asked.version or asked.name), "its constraint was not kept"))
    return found


def _constraint(value: Mapping[str, Any], depth: int) -> Need:
    """As upstream's Parse: a field that nobody knows, or several needs in one place, make it unreadable."""
    message = visible(str(value.get("failureMessage") or "")[:MAX_NAME])
    keys = sorted(visible(str(key)[:MAX_NAME]) for key in value if key != "failureMessage")
    if len(keys) != 1 or depth > MAX_DEPTH:
        why = "it is nested too deeply" if depth > MAX_DEPTH else f"expected one need, found {some(keys) or 'none'}"
        return _unreadable(message or CONSTRAINT, why)
    key, body = keys[0], value.get(keys[0])
    if not isinstance(body, Mapping):
        return _unreadable(message or CONSTRAINT, f"its {key} is no mapping")
    if key == "package":
        return _package(body)
    if key == "gvk":
        return _api(body)
    if key == "cel":
        rule = visible(str(body.get("rule") or "")[:MAX_NAME])
        return UnjudgedNeed(message or f"CEL {rule}", "CEL is not evaluated")
    members = body.get("constraints")
    if key not in list(Join) or not isinstance(members, list) or not 0 < len(members) <= MAX_MEMBERS:
        return _unreadable(message or CONSTRAINT, f"its {key[:40]} cannot be read")
    read = (
        _constraint(member, depth + 1) if isinstance(member, Mapping) else _unreadable(key, "a member is no mapping")
        for member in members
    )
    return CompoundNeed(Join(key), tuple(read), message)


def _package(value: Mapping[str, Any]) -> Need:
    name, text = value.get("packageName") or value.get("name"), value.get("versionRange") or value.get("version") or ""
    if not _is_name(name) or not isinstance(text, str):
        return _unreadable(PACKAGE, "it names no package")
    try:
        return PackageNeed(name, range_of(text) if text.strip() else None)
    except InvalidRange as exc:
        return _unreadable(f"package {name}", str(exc))


def _api(value: Mapping[str, Any]) -> Need:
    group, version, kind = (value.get(name) or "" for name in ("group", "version", "kind"))
    if not (_is_name(version) and _is_name(kind) and (group == "" or _is_name(group))):
        return _unreadable(API, "it names no kind in a version")
    return ApiNeed(group, version, kind)


def _is_name(text: Any) -> TypeGuard[str]:
    """Whether a database and a page can take it."""
    return isinstance(text, str) and 0 < len(text) <= MAX_NAME and text.isprintable()


def _unreadable(words: str, why: str) -> UnjudgedNeed:
    return UnjudgedNeed(words, f"it cannot be read: {why}")
