"""One custom resource on its way into the API server: what becomes of it, and what the server would say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.schema.admission.correlation import Correlation
from provisioner.schema.admission.embedded import embedded_errors
from provisioner.schema.admission.pruning import prepared
from provisioner.schema.admission.rules import ObjectUpdate, errors_of_rules, has_rules
from provisioner.schema.admission.validation import list_errors, validate
from provisioner.schema.fields import DEEPEST, OMITTED, FieldError, Schema, invalid, is_too_deep
from provisioner.schema.forms import readable
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object that is to be admitted by `schema`; with `old`, the object as it is stored now, as an update of it."""

    schema: Schema
    obj: JsonObject
    old: JsonObject | None = None


def admit(schema: Schema, obj: JsonObject, *, old: JsonObject | None = None) -> Admission:
    """Prune, default and validate `obj` by `schema`, an openAPIV3Schema, as API server 1.36 does.

    With `old`, the object as it is stored now, `obj` is an update of it and `errors` are those that remain after
    ratcheting. Nothing given is changed. A CEL rule that cannot be evaluated here is an error that says so. Raises
    InvalidManifest for a schema that has not the form of one.
    """
    (found,) = admit_all([Candidate(schema, obj, old)])
    return found


def admit_all(candidates: Iterable[Candidate]) -> list[Admission]:
    """`admit` for many objects, of which the rules are evaluated together."""
    judged = [_judge_without_rules(candidate) for candidate in candidates]
    changes = [(found.schema, found.change) for found in judged if found.change is not None]
    errors_by_rules = iter(errors_of_rules(changes))
    admissions = []
    for found in judged:
        if not found.is_judged:
            admissions.append(Admission(found.after, [], found.errors, refusals=tuple(found.errors)))
            continue
        by_rules = next(errors_by_rules) if found.change is not None else _skipped(found.schema)
        is_stopped_inside = any(error.stops_rules for error in found.embedded)
        answered = _skipped(found.schema) if is_stopped_inside else by_rules
        refusals = (*found.errors, *found.embedded, *answered)
        errors = [*found.errors, *by_rules]
        admissions.append(Admission(found.after, found.pruned, errors, found.embedded, refusals))
    return admissions


@dataclass(frozen=True, slots=True)
class _Judged:
    """A candidate without its rules; `change` is what they are to judge, None where they are not run."""

    schema: Schema
    after: JsonObject
    pruned: list[str]
    errors: list[FieldError]
    embedded: tuple[FieldError, ...] = ()
    change: ObjectUpdate | None = None
    is_judged: bool = True


def _judge_without_rules(candidate: Candidate) -> _Judged:
    schema, obj, old = candidate.schema, candidate.obj, candidate.old
    readable(schema)
    if is_too_deep(obj) or (old is not None and is_too_deep(old)):
        unjudged = invalid("", OMITTED, f"nested deeper than {DEEPEST} levels: not judged")
        return _Judged(schema, obj, [], [unjudged], is_judged=False)
    after, pruned = prepared(schema, obj)
    before = prepared(schema, old)[0] if old is not None else None
    related = Correlation(after, before, schema) if before is not None else None
    errors = validate(schema, after, related)
    if before is None or not list_errors(schema, before):
        errors += list_errors(schema, after)
    embedded = tuple(embedded_errors(schema, after))
    change = None if any(error.stops_rules for error in errors) else ObjectUpdate(after, before, related)
    return _Judged(schema, after, list(pruned), errors, embedded, change)


def _skipped(schema: Schema) -> list[FieldError]:
    """What is said of rules that are not run; whether there are any takes a look at the whole schema."""
    return [invalid("", None, RULES_SKIPPED)] if has_rules(schema) else []
