"""The values of this room: a change of one object, and what the API server would say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from provisioner.builtin.forms import alike
from provisioner.json_values import mapping
from provisioner.values import JsonObject

Path = tuple[str | int, ...]
MAX_QUOTED = 60
NEVER = "never changes once the object exists"


@dataclass(frozen=True, slots=True)
class FieldRefusal:
    """One thing that the API server refuses. `words` say why after the field's name, such as "must not be empty".

    `is_of_schema` where the field or its type is unknown, `is_of_update` where the same would do in a new object,
    `is_missing` where the schema requires a field that is not there.
    """

    path: Path
    words: str
    is_of_schema: bool = False
    is_of_update: bool = False
    is_missing: bool = False

    @property
    def field(self) -> str:
        """The path as the API server writes it: `spec.ports[0].name`."""
        return dotted(self.path)


class WhyUnknown(StrEnum):
    """What of an object cannot be judged without its server."""

    ADDRESS = "address"  # of a Service that asks for one: which it has never changes
    FAMILIES = "ip-families"  # whether the cluster has addresses of IPv6
    GROWTH = "growth"  # of a claim, which its storage class may allow
    RULES = "rules"  # of a kind that bundles hardly ever have: only the server checks its fields together
    NO_SCHEMAS = "no-schemas"  # those of Kubernetes are not installed


@dataclass(frozen=True, slots=True)
class Judgement:
    """`since` names the first supported minor that takes what an older one refuses, `refused_before` those fields.

    `unknown` is what could not be judged; `has_expressions` of CEL, which are never judged here.
    """

    refusals: tuple[FieldRefusal, ...] = ()
    unknown: tuple[WhyUnknown, ...] = ()
    refused_before: tuple[FieldRefusal, ...] = ()
    since: str = ""
    has_expressions: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One object as the server would hold it: `old` is None for a new one. `sent` is what is written down.

    `minor` is the server's, such as 1.36, "" for the newest supported.
    """

    new: JsonObject
    old: JsonObject | None
    sent: JsonObject
    minor: str = ""

    def is_before(self, minor: int) -> bool:
        """Whether the server is older than 1.`minor`."""
        return bool(self.minor) and int(self.minor.rpartition(".")[2]) < minor

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.new.get("spec"))

    @property
    def old_spec(self) -> Mapping[str, Any]:
        return mapping((self.old or {}).get("spec"))


def dotted(path: Iterable[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def quoted(value: object) -> str:
    """A value of the bundle as a sentence shows it."""
    text = str(value)
    return f"`{text[:MAX_QUOTED]}…`" if len(text) > MAX_QUOTED else f"`{text}`"


def numbered(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The mappings of a list with their places; what else stands in it is left out."""
    if isinstance(value, list):
        for place, one in enumerate(value):
            if isinstance(one, Mapping):
                yield place, one


def is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def first_difference(old: Any, new: Any, path: Path) -> Path:
    """The innermost place in which two values below `path` differ first."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = sorted(key for key in {**old, **new} if not alike(old.get(key), new.get(key)))
        return first_difference(old.get(keys[0]), new.get(keys[0]), (*path, str(keys[0]))) if keys else path
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            if not alike(one, other):
                return first_difference(one, other, (*path, place))
    return path
