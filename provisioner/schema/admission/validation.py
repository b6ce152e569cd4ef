"""Whether a custom resource fits its schema, node by node, with the errors that the API server would give.

The order of the checks and the counting of successes follow the server: where no branch of an `anyOf` or `oneOf` fits,
the errors of the branch with most successes are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.schema.admission import scalars
from provisioner.schema.admission.correlation import Correlation
from provisioner.schema.fields import (
    FieldError,
    go_quoted,
    invalid,
    required,
    same_json,
    too_many,
    unsupported,
    wrong_type,
)
from provisioner.schema.formats import honoured
from provisioner.schema.subschemas import Schema, properties_of, schema_of


@dataclass(slots=True)
class ValidationOutcome:
    """The errors found at a node and below it, and how many checks succeeded."""

    known: dict[FieldError, None] = field(default_factory=dict)  # a list takes too long to search for a wide object
    successes: int = 0

    @property
    def errors(self) -> list[FieldError]:
        """Each once, in the order in which they were found."""
        return list(self.known)

    def add(self, *errors: FieldError) -> None:
        for error in errors:
            self.known.setdefault(error)

    def merge(self, other: ValidationOutcome) -> None:
        self.known |= other.known
        self.successes += other.successes

    @property
    def is_valid(self) -> bool:
        return not self.known


def validate(schema: Schema, obj: Any, old: Correlation | None = None) -> list[FieldError]:
    """The errors of `obj`; with `old` only those that remain after ratcheting."""
    return _ratcheted(schema, obj, "", old).errors


def _ratcheted(schema: Schema, value: Any, path: str, old: Correlation | None) -> ValidationOutcome:
    found = _checked(schema, value, path, old)
    return ValidationOutcome() if found.known and old is not None and old.is_unchanged else found


def _checked(schema: Schema, value: Any, path: str, old: Correlation | None) -> ValidationOutcome:
    found = ValidationOutcome()
    types = types_of(schema)
    format_name = honoured(types[0] if len(types) == 1 else "", str(schema.get("format") or ""))
    if types or format_name:
        _check_type(found, value, path, (types, format_name, bool(schema.get("nullable"))))
    if value is None:
        _check_enum(found, schema, value, path)
        return found
    if types or format_name:
        found.successes += 1
    # Inside junctors nothing is ratcheted: their branches are judged as if the object were new.
    if any_of := _branches(schema, "anyOf"):
        _check_any_of(found, (_checked(branch, value, path, None) for branch in any_of), path)
    if one_of := _branches(schema, "oneOf"):
        _check_one_of(found, [_checked(branch, value, path, None) for branch in one_of], path)
    if all_of := _branches(schema, "allOf"):
        outcomes = [_checked(branch, value, path, None) for branch in all_of]
        for outcome in outcomes:
            found.merge(outcome)
        fitting = sum(outcome.is_valid for outcome in outcomes)
        if fitting != len(outcomes):
            tail = "" if fitting else ". None validated"
            found.add(invalid("", "", f"{go_quoted(path)} must validate all the schemas (allOf){tail}"))
    forbidden = schema_of(schema.get("not"))
    if forbidden is not None and _checked(forbidden, value, path, None).is_valid:
        found.add(invalid("", "", f"{go_quoted(path)} must not validate the schema (not)"))
    found.successes += 1
    _check_kind(found, schema, value, path, old)
    _check_enum(found, schema, value, path)
    found.successes += 3
    return found


def _check_kind(found: ValidationOutcome, schema: Schema, value: Any, path: str, old: Correlation | None) -> None:
    if isinstance(value, str):
        found.add(*scalars.string_errors(schema, value, path))
        types = types_of(schema)
        format_name = honoured(types[0] if len(types) == 1 else "", str(schema.get("format") or ""))
        found.add(*scalars.format_errors(format_name, value, path))
        found.successes += 2 if scalars.is_string_format(format_name) else 1
    elif isinstance(value, dict):
        at, count = path.removeprefix("."), len(value)
        least, most = schema.get("minProperties"), schema.get("maxProperties")
        if least is not None and count < least:
            found.add(invalid(at, count, f"{path} in body should have at least {least} properties"))
        if most is not None and count > most:
            found.add(too_many(at, count, most))
        known = properties_of(schema)
        _check_additional(found, schema, value, path, old)
        for name in known:
            if name in value:
                described = schema_of(known[name]) or {}
                found.merge(_field(described, value[name], f"{path}.{name}" if path else name, (path, name, old)))
        for name in schema.get("required") or ():
            if name not in value:
                found.add(required(f"{path}.{name}".removeprefix(".")))
        found.successes += 1
    elif isinstance(value, list):
        _check_list(found, schema, value, path, old)
        found.successes += 2
    elif not isinstance(value, bool):
        found.add(*scalars.number_errors(schema, types_of(schema), value, path))
        found.successes += 2


def types_of(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string") is True:
        return ("integer", "string")
    name = schema.get("type")
    return (name,) if isinstance(name, str) and name else ()


def _check_type(found: ValidationOutcome, value: Any, path: str, wanted: tuple[tuple[str, ...], str, bool]) -> None:
    types, format_name, is_nullable = wanted
    actual = scalars.json_type(value)
    if actual == "null":
        fits = not types or "null" in types or is_nullable
    else:
        fits = _fits_type(value, actual, types, format_name)
    if fits:
        found.successes += 1
        return
    expected = ",".join(types)
    if format_name and actual not in ("string", "array", "null"):
        expected, actual = format_name, scalars.go_format(value)
    detail = f"{path} in body must be of type {expected}: {go_quoted(actual)}"
    found.add(wrong_type(path.removeprefix("."), actual, detail))


def _fits_type(value: Any, actual: str, types: tuple[str, ...], format_name: str) -> bool:
    is_numeric = "number" in types or "integer" in types
    if format_name and not is_numeric and isinstance(value, str | list):
        return True  # a string format replaces the check of the type, and lists pass as well
    if actual in types:
        return True
    if actual == "number":
        return "integer" in types and scalars.is_whole(value)
    return actual == "integer" and "number" in types


def _check_enum(found: ValidationOutcome, schema: Schema, value: Any, path: str) -> None:
    allowed = schema.get("enum")
    if not isinstance(allowed, list) or not allowed:
        return
    if not any(scalars.equals_enum(value, entry) for entry in allowed):
        found.add(unsupported(path.removeprefix("."), value, allowed))


def _check_list(found: ValidationOutcome, schema: Schema, value: list[Any], path: str, old: Correlation | None) -> None:
    items = schema_of(schema.get("items"))
    if items is not None:
        for position, item in enumerate(value):
            before = old.item(position) if old is not None else None
            found.merge(_ratcheted(items, item, f"{path}[{position}]", before))
    at, count = path.removeprefix("."), len(value)
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and count < least:
        found.add(invalid(at, count, f"{path} in body should have at least {least} items"))
    if most is not None and count > most:
        found.add(too_many(at, count, most))
    if schema.get("uniqueItems") and any(_occurs(item, value[:place]) for place, item in enumerate(value)):
        found.add(invalid(at, "", f"{path} in body shouldn't contain duplicates"))


def _occurs(item: Any, earlier: list[Any]) -> bool:
    return any(same_json(item, known) for known in earlier)


def _check_additional(
    found: ValidationOutcome, schema: Schema, value: dict[str, Any], path: str, old: Correlation | None
) -> None:
    additional = schema.get("additionalProperties")
    if additional is None or additional is True:
        return
    known = properties_of(schema)
    for name in sorted(value.keys() - known.keys()):
        if additional is False:
            detail = f"{path}.{name} in body is a forbidden property"
            found.add(invalid(path.removeprefix("."), name, detail))
        elif isinstance(additional, Mapping):
            found.merge(_field(additional, value[name], f"{path}.{name}", (path, name, old)))


def _field(schema: Schema, value: Any, path: str, where: tuple[str, str, Correlation | None]) -> ValidationOutcome:
    parent, name, old = where
    is_type_meta = parent == "" and name in ("apiVersion", "kind")
    before = old.field(name) if old is not None and not is_type_meta else None
    return _ratcheted(schema, value, path, before)


def _check_any_of(found: ValidationOutcome, outcomes: Iterable[ValidationOutcome], path: str) -> None:
    failed = []
    for outcome in outcomes:
        if outcome.is_valid:
            found.merge(outcome)
            return
        failed.append(outcome)
    found.add(invalid("", "", f"{go_quoted(path)} must validate at least one schema (anyOf)"))
    found.merge(_nearest(failed))


def _check_one_of(found: ValidationOutcome, outcomes: list[ValidationOutcome], path: str) -> None:
    fitting = [outcome for outcome in outcomes if outcome.is_valid]
    if len(fitting) == 1:
        found.merge(fitting[0])
        return
    count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
    found.add(invalid("", "", f"{go_quoted(path)} must validate one and only one schema (oneOf). {count}"))
    if not fitting:
        found.merge(_nearest(outcomes))


def _nearest(outcomes: list[ValidationOutcome]) -> ValidationOutcome:
    """The first of those with most successes."""
    return max(outcomes, key=lambda outcome: outcome.successes)


def _branches(schema: Schema, junctor: str) -> list[Schema]:
    found = schema.get(junctor)
    return [branch for branch in found if isinstance(branch, Mapping)] if isinstance(found, list) else []
