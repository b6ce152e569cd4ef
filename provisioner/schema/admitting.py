"""One custom resource on its way into the API server: what becomes of it, and what the server would say."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.schema.correlation import Correlation
from provisioner.schema.embedded import embedded_errors
from provisioner.schema.fields import DEEPEST, OMITTED, FieldError, invalid, is_too_deep
from provisioner.schema.forms import readable
from provisioner.schema.lists import list_errors
from provisioner.schema.pruning import Schema, prepared
from provisioner.schema.rules import has_rules, rule_errors
from provisioner.schema.validating import validate
from provisioner.values import JsonObject

RULES_SKIPPED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@dataclass(frozen=True, slots=True)
class Admission:
    """What a schema makes of an object.

    `after` is the object as it would be stored, `pruned` the sorted dotted paths of what was dropped, `errors` what the
    schema, its lists and its CEL rules refuse. `embedded` are the errors of resources inside the object, which are no
    matter of the schema and never ratcheted. `refusals` are the server's whole answer, the object's own metadata apart.
    """

    after: JsonObject
    pruned: list[str]
    errors: list[FieldError]
    embedded: tuple[FieldError, ...] = ()
    refusals: tuple[FieldError, ...] = ()


def admit(schema: Schema, obj: JsonObject, *, old: JsonObject | None = None) -> Admission:
    """Prune, default and validate `obj` by `schema`, an openAPIV3Schema, as API server 1.36 does.

    With `old`, the object as it is stored now, `obj` is an update of it and `errors` are those that remain after
    ratcheting. Nothing given is changed. A CEL rule that cannot be evaluated here is an error that says so. Raises
    InvalidManifest for a schema that has not the form of one.
    """
    readable(schema)
    if is_too_deep(obj) or (old is not None and is_too_deep(old)):
        unjudged = (invalid("", OMITTED, f"nested deeper than {DEEPEST} levels: not judged"),)
        return Admission(obj, [], list(unjudged), refusals=unjudged)
    after, pruned = prepared(schema, obj)
    before = prepared(schema, old)[0] if old is not None else None
    related = Correlation(after, before, schema) if before is not None else None
    errors = validate(schema, after, related)
    if before is None or not list_errors(schema, before):
        errors += list_errors(schema, after)
    embedded = embedded_errors(schema, after)
    is_stopped = any(error.stops_rules for error in errors)
    ruled = _skipped(schema) if is_stopped else rule_errors(schema, after, before, related)
    is_stopped_inside = any(error.stops_rules for error in embedded)
    refusals = (*errors, *embedded, *(_skipped(schema) if is_stopped_inside else ruled))
    return Admission(after, list(pruned), [*errors, *ruled], tuple(embedded), refusals)


def _skipped(schema: Schema) -> list[FieldError]:
    """What is said of rules that are not run; whether there are any takes a look at the whole schema."""
    return [invalid("", None, RULES_SKIPPED)] if has_rules(schema) else []
