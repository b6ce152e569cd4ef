"""The values of this room: a change of one object, and what the API server would say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from provisioner.builtin.forms import FORMS, alike
from provisioner.json_values import mapping, value_at
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
class ObjectNode:
    """A mapping inside an object with the path to it: rules read its fields and refuse them by the same keys."""

    value: Mapping[str, Any]
    path: Path = ()

    def get(self, *keys: str) -> Any:
        """Return the value that `keys` lead to, None where they lead nowhere."""
        return value_at(self.value, *keys)

    def at(self, *keys: str) -> ObjectNode:
        """Return the mapping that `keys` lead to, an empty one where they lead to none."""
        return ObjectNode(mapping(self.get(*keys)), (*self.path, *keys))

    def items(self, *keys: str) -> Iterator[ObjectNode]:
        """Yield the mappings in the list that `keys` lead to; what else stands in it is left out."""
        for place, item in numbered(self.get(*keys)):
            yield ObjectNode(item, (*self.path, *keys, place))

    def refuse(self, words: str, *steps: str | int) -> FieldRefusal:
        return FieldRefusal((*self.path, *steps), words)

    def refuse_value(self, words: str, *keys: str) -> FieldRefusal:
        """Refuse a field, and quote its value."""
        return self.refuse(f"{words}, and is {quoted(self.get(*keys))}", *keys)

    def refuse_change(self, *steps: str | int, words: str = NEVER) -> FieldRefusal:
        """Refuse an update that would do in a new object."""
        return FieldRefusal((*self.path, *steps), words, is_of_update=True)

    def check_form(self, form: str, *keys: str) -> Iterator[FieldRefusal]:
        """Refuse a text that is not of the form (see `forms.FORMS`); an empty one passes."""
        is_sound, words = FORMS[form]
        text = self.get(*keys)
        if isinstance(text, str) and text and not is_sound(text):
            yield self.refuse_value(f"must be {words}", *keys)

    def check_choice(self, allowed: Iterable[str], *keys: str) -> Iterator[FieldRefusal]:
        if self.get(*keys) not in allowed:
            yield self.refuse_value(f"must be {' or '.join(allowed)}", *keys)

    def check_least(self, least: int, *fields: str) -> Iterator[FieldRefusal]:
        for field in fields:
            number = self.get(field)
            if is_number(number) and number < least:
                yield self.refuse(f"must be at least {least}, and is {number}", field)

    def check_unique(self, items: str, key: str, *, allows_empty: bool = False) -> Iterator[FieldRefusal]:
        """Refuse items of a list whose key an earlier one has; without `allows_empty` only one may have none."""
        seen: set[str] = set()
        for item in self.items(items):
            name = str(item.get(key) or "")
            if name in seen and not (allows_empty and not name):
                yield item.refuse(f"stands there twice: {quoted(name)}", key)
            seen.add(name)


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
    def root(self) -> ObjectNode:
        return ObjectNode(self.new)

    @property
    def spec(self) -> ObjectNode:
        return self.root.at("spec")

    @property
    def old_spec(self) -> Mapping[str, Any]:
        return mapping((self.old or {}).get("spec"))

    @property
    def sent_spec(self) -> Mapping[str, Any]:
        return mapping(self.sent.get("spec"))


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
        for place, item in enumerate(value):
            if isinstance(item, Mapping):
                yield place, item


def is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def first_difference(old: Any, new: Any, path: Path) -> Path:
    """The innermost place in which two values below `path` differ first."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = sorted(key for key in {**old, **new} if not alike(old.get(key), new.get(key)))
        return first_difference(old.get(keys[0]), new.get(keys[0]), (*path, str(keys[0]))) if keys else path
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (before, after) in enumerate(zip(old, new, strict=True)):
            if not alike(before, after):
                return first_difference(before, after, (*path, place))
    return path
