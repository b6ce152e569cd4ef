"""The fields of built-in kinds and their types, taken at run time from the model classes of the Kubernetes client.

Beside cluster/client/api.py this is the one place that imports `kubernetes`: for its tables of fields alone.
What a list is (a map by keys, a set, atomic) the classes do not say; that table is in `topologies.py`.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from dataclasses import dataclass, field
from typing import Any

from kubernetes.client import models

from provisioner.sandbox.types import field_forms
from provisioner.sandbox.types.field_forms import QUANTITY
from provisioner.sandbox.types.kinds import SandboxKind

_LIST = re.compile(r"^[Ll]ist\[(?P<inner>.+)\]$")
_MAP = re.compile(r"^[Dd]ict\[str, ?(?P<inner>.+)\]$")
# Their values are free-form, or typed otherwise than the classes say.
_FREE = {"V1FieldsV1", "V1JSONSchemaProps", "object"}
_META = "V1ObjectMeta"
_PLAIN: dict[str, tuple[tuple[type, ...], str, str]] = {
    "str": ((str,), "string", "string"),
    QUANTITY: ((str,), "string", "string"),
    "bytes": ((str,), "string", "[]uint8"),
    "datetime": ((str,), "string", "v1.Time"),
    "bool": ((bool,), "boolean", "bool"),
    "int": ((int,), "numeric (int)", "int32"),
    "float": ((int, float), "numeric", "float64"),
}


@dataclass(slots=True)
class Reading:
    """An object as its kind declares it: `undeclared` as `spec.containers[0].x`, `wrong` the first wrong type.

    `wrong` is (path with dots only, what JSON has, what Go expects, what a typed patch expects, the value).
    """

    after: Any = None
    undeclared: list[str] = field(default_factory=list)
    wrong: tuple[str, str, str, str, Any] | None = None


def read(kind: SandboxKind, obj: dict[str, Any]) -> Reading:
    """`obj` with its declared fields only and without nulls."""
    reading = Reading()
    reading.after = _read(reading, model_name(kind), obj, "")
    return reading


def read_metadata(meta: Any) -> Reading:
    """The metadata of any object, custom ones included."""
    reading = Reading()
    reading.after = _read(reading, _META, meta, "metadata")
    return reading


def model_name(kind: SandboxKind) -> str:
    """The class of a built-in kind; "object" (anything goes) where the client has none."""
    version = kind.version.capitalize()
    group = kind.group.partition(".")[0].capitalize() or "Core"
    names = (f"{version}{kind.kind}", f"{group}{version}{kind.kind}")
    return next((name for name in names if _fields(name) is not None), "object")


@functools.cache
def field_type(model: str, names: tuple[str, ...]) -> tuple[str, str, str]:
    """(class that holds it, its name there, its type) of the field at `names`; types of list items are looked into."""
    holder, name, found = "", "", model
    for name in names:
        found = _item_type(found)
        inner = _MAP.match(found)
        if inner:
            holder, found = "", inner["inner"]
            continue
        fields = _fields(found)
        if fields is None or name not in fields:
            return "", name, "object"
        holder, found = found, fields[name]
    return holder, name, found


def _item_type(form: str) -> str:
    while inner := _LIST.match(form):
        form = inner["inner"]
    return form


def _read(reading: Reading, form: str, value: Any, at: str) -> Any:
    if value is None:
        return None
    inner = _LIST.match(form)
    if inner:
        return _read_list(reading, inner["inner"], value, at)
    inner = _MAP.match(form)
    fields = None if inner else _fields(form)
    if inner or fields is not None:
        if not isinstance(value, dict):
            return _refuse(reading, at, value, "map", form)
        if inner:
            return {key: _read_in_map(reading, inner["inner"], item, at, key) for key, item in value.items()}
        return _read_fields(reading, fields or {}, value, at)
    if form in _PLAIN:
        return _read_plain(reading, form, value, at)
    return value


def _read_fields(reading: Reading, fields: dict[str, str], value: dict[str, Any], at: str) -> dict[str, Any]:
    made = {}
    for key, item in value.items():
        place = f"{at}.{key}" if at else key
        if key not in fields:
            reading.undeclared.append(place)
        elif item is not None:
            made[key] = _read(reading, fields[key], item, place)
    return made


def _read_list(reading: Reading, form: str, value: Any, at: str) -> Any:
    if not isinstance(value, list):
        return _refuse(reading, at, value, "list", form)
    return [_read(reading, form, item, f"{at}[{number}]") for number, item in enumerate(value)]


def _read_in_map(reading: Reading, form: str, value: Any, at: str, key: str) -> Any:
    place = f"{at}.{key}"
    if form not in _PLAIN:
        return _read(reading, form, value, place)
    return _read_plain(reading, form, value, place)


def _read_plain(reading: Reading, form: str, value: Any, at: str) -> Any:
    types, expected, _ = _PLAIN[form]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if form == QUANTITY and is_number:
        return json.dumps(value)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return _refuse(reading, at, value, expected, form)
    return value


def _refuse(reading: Reading, at: str, value: Any, expected: str, form: str) -> Any:
    if reading.wrong is None:
        named = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
        go = _PLAIN[form][2] if form in _PLAIN else f"map[string]{form}" if expected == "map" else f"[]{form}"
        reading.wrong = (re.sub(r"\[\d+\]", "", at), named.get(type(value), "value"), go, expected, value)
    return value


@functools.cache
def _fields(name: str) -> dict[str, str] | None:
    """The types of a class's fields by their names in JSON; None for what is no class, or free-form."""
    found = getattr(models, name, None) if name not in _FREE and name[:1].isupper() else None
    if found is None or not hasattr(found, "openapi_types"):
        return None
    return {
        alias: field_forms.form_of(name, alias, found.openapi_types[own])
        for own, alias in found.attribute_map.items()
        if field_forms.is_served(name, alias)
    }


@dataclass(frozen=True, slots=True)
class Field:
    """A field as its class describes it; `form` is its type in the words of the class: `str`, `List[V1Container]`.

    `choice`: the words of which it, or each item of its list, is one; () where it may be any.
    """

    name: str
    form: str
    description: str
    is_required: bool
    choice: tuple[str, ...] = ()


def described(name: str) -> tuple[str, list[Field]] | None:
    """(what the class is, its fields by name); None for what is no class, or free-form."""
    forms = _fields(name)
    if forms is None:
        return None
    model = getattr(models, name)
    about = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0].strip()
    found = []
    for own, alias in model.attribute_map.items():
        if alias not in forms:
            continue
        info = model.model_fields.get(own)
        is_required = field_forms.is_required(name, alias, bool(info and info.is_required()))
        choice = field_forms.choice_of(name, alias)
        found.append(Field(alias, forms[alias], (info.description if info else "") or "", is_required, choice))
    return about, sorted(found, key=lambda it: it.name)


def unwrapped(form: str) -> tuple[str, str]:
    """("list" | "map" | "", the form inside) of a form."""
    for word, pattern in (("list", _LIST), ("map", _MAP)):
        inner = pattern.match(form)
        if inner:
            return word, inner["inner"]
    return "", form
