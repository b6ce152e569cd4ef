"""What versions of a CRD say beside their schemas: subresources, printer columns, selectable fields.

The API server keeps each of them, and the schema, once for all versions where all say the same, and its errors name the
place where it keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from provisioner.schema.definition.crd import Crd, CrdVersion
from provisioner.schema.fields import FieldError, child, duplicate, index, invalid, required, same_json, too_many
from provisioner.schema.json_paths import pointed_at
from provisioner.schema.reading import Schema

SIMPLE_PATH = "must be a simple json path starting with ."
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
SELECTABLE_TYPES = frozenset({"string", "boolean", "integer"})
NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)
MAX_SELECTABLE = 8


def part_errors(crd: Crd) -> list[FieldError]:
    """What the API server refuses in subresources, columns and selectable fields."""
    found = _each(crd, _scale_of, lambda version, path: _scale_errors(version, child(path, "subresources.scale")))
    found += _each(crd, _columns_of, lambda it, path: _column_errors(it, child(path, "additionalPrinterColumns")))
    return found + _selectable(crd)


def _is_shared(crd: Crd, part: Callable[[CrdVersion], Any]) -> bool:
    parts = [part(version) for version in crd.versions]
    return all(same_json(parts[0], it) for it in parts[1:])


def _each(
    crd: Crd, part: Callable[[CrdVersion], Any], errors: Callable[[CrdVersion, str], list[FieldError]]
) -> list[FieldError]:
    if crd.versions and _is_shared(crd, part):
        return errors(crd.versions[0], "spec")
    return [error for at, version in enumerate(crd.versions) for error in errors(version, index("spec.versions", at))]


def _scale_of(version: CrdVersion) -> Any:
    return version.subresources


def _columns_of(version: CrdVersion) -> list[Any]:
    columns = version.body.get("additionalPrinterColumns")
    return columns if isinstance(columns, list) else []


def _scale_errors(version: CrdVersion, path: str) -> list[FieldError]:
    scale = version.scale
    if scale is None:
        return []
    found = []
    wanted = (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",)))
    for name, starts in (*wanted, ("labelSelectorPath", (".spec.", ".status."))):
        value, at = str(scale.get(name) or ""), child(path, name)
        if not value:
            found += [required(at)] if name != "labelSelectorPath" else []
        elif not value.startswith("."):
            found.append(invalid(at, value, SIMPLE_PATH))
        elif not value.startswith(starts):
            places = " or ".join(start.rstrip(".") for start in starts)
            either = "either " if len(starts) > 1 else ""
            found.append(invalid(at, value, f"should be a json path under {either}{places}"))
    return found


def _column_errors(version: CrdVersion, path: str) -> list[FieldError]:
    columns = enumerate(_columns_of(version))
    return [
        error
        for place, column in columns
        if isinstance(column, Mapping)
        for error in _one_column(column, index(path, place))
    ]


def _one_column(column: Mapping[str, Any], path: str) -> list[FieldError]:
    found = []
    json_path = str(column.get("jsonPath") or column.get("JSONPath") or "")
    kind, form = column.get("type"), column.get("format")
    if not column.get("name"):
        found.append(required(child(path, "name")))
    if kind not in COLUMN_TYPES:
        words = f"must be one of {','.join(COLUMN_TYPES)}"
        found.append(invalid(child(path, "type"), kind, words) if kind else required(child(path, "type"), words))
    if form and form not in COLUMN_FORMATS:
        found.append(invalid(child(path, "format"), form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    if not json_path:
        found.append(required(child(path, "JSONPath")))
    elif not json_path.startswith("."):
        found.append(invalid(child(path, "JSONPath"), json_path, SIMPLE_PATH))
    return found


def _selectable(crd: Crd) -> list[FieldError]:
    """Selectable fields are judged by the schema beside which they are kept: both once for all, or both by version."""
    if not any(version.selectable_fields for version in crd.versions):
        return []
    if _is_shared(crd, lambda version: version.selectable_fields):
        at = "spec.selectableFields"
        if crd.shared_schema is None:
            return [invalid(at, "", "may only be set when validations.schema is included")]
        return _field_errors(crd.versions[0].selectable_fields, crd.shared_schema, at)
    found: list[FieldError] = []
    for place, version in enumerate(crd.versions):
        at = child(index("spec.versions", place), "selectableFields")
        if version.selectable_fields and (crd.shared_schema is not None or version.schema is None):
            words = "may only be set when `version.schema.openAPIV3Schema` is not included"
            found.append(invalid(at, "", words))
        elif version.schema is not None:
            found += _field_errors(version.selectable_fields, version.schema, at)
    return found


def _field_errors(json_paths: list[str], schema: Schema, path: str) -> list[FieldError]:
    found = []
    seen: set[str] = set()
    for place, json_path in enumerate(json_paths):
        at = child(index(path, place), "jsonPath")
        if not json_path:
            found.append(required(at))
            continue
        node, problem = pointed_at(json_path, schema)
        if problem:
            found.append(invalid(at, json_path, f"is an invalid path: {problem}"))
            continue
        if json_path.startswith(".metadata.") or json_path == ".metadata":
            found.append(invalid(at, json_path, "must not point to fields in metadata"))
        if node.get("type") not in SELECTABLE_TYPES:
            found.append(invalid(at, json_path, NOT_SELECTABLE))
        if json_path in seen:
            found.append(duplicate(at, json_path))
        seen.add(json_path)
    if len(seen) > MAX_SELECTABLE:
        found.append(too_many(path, len(seen), MAX_SELECTABLE))
    return found
