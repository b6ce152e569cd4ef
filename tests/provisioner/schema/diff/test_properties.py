from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from provisioner.schema import admit, compare
from provisioner.schema.admission.pruning import default, prune
from provisioner.schema.admission.validation import validate
from provisioner.values import Severity
from tests.support.provisioner.shapes import (
    ROOTS,
    SCHEMAS,
    THINGS,
    JsonDict,
    crd,
    edited,
    root,
    thing,
    values_of,
    version,
)

pytestmark = pytest.mark.thorough
STEADY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@st.composite
def admitted(draw: st.DrawFn) -> tuple[JsonDict, JsonDict]:
    """A schema and an object that has a fair chance to fit it."""
    schema = draw(SCHEMAS)
    return root(schema), thing(draw(values_of(schema)))


@STEADY
@given(admitted())
def test_pruning_twice_is_pruning_once(case: tuple[JsonDict, JsonDict]) -> None:
    schema, obj = case
    once, _ = prune(schema, obj)
    assert prune(schema, once) == (once, [])


@STEADY
@given(admitted())
def test_defaulting_twice_is_defaulting_once(case: tuple[JsonDict, JsonDict]) -> None:
    schema, obj = case
    once = default(schema, obj)
    assert default(schema, once) == once


@STEADY
@given(admitted(), THINGS)
def test_admission_changes_nothing_that_it_is_given(case: tuple[JsonDict, JsonDict], old: JsonDict) -> None:
    schema, obj = case
    kept = copy.deepcopy((schema, obj, old))
    admit(schema, obj, old=old)
    assert (schema, obj, old) == kept


@STEADY
@given(admitted())
def test_what_was_admitted_is_admitted_again_as_it_is(case: tuple[JsonDict, JsonDict]) -> None:
    schema, obj = case
    first = admit(schema, obj)
    if not first.errors:
        again = admit(schema, first.after)
        assert (again.after, again.pruned, again.errors) == (first.after, [], [])


@STEADY
@given(admitted())
def test_an_unchanged_object_is_never_refused(case: tuple[JsonDict, JsonDict]) -> None:
    schema, obj = case
    # The server does not compare fields that no schema describes, so it takes an object with such fields for changed.
    assume("preserve-unknown" not in repr(schema) and "'additionalProperties': True" not in repr(schema))
    assert admit(schema, obj, old=obj).errors == []


@STEADY
@given(ROOTS, THINGS, THINGS)
def test_an_update_is_never_judged_harder_than_a_creation(schema: JsonDict, new: JsonDict, old: JsonDict) -> None:
    remaining = set(admit(schema, new, old=old).errors)
    assert remaining <= set(admit(schema, new).errors)


@STEADY
@given(ROOTS)
def test_a_schema_compared_with_itself_has_not_changed(schema: JsonDict) -> None:
    body = crd(version(schema=schema))
    assert compare(body, copy.deepcopy(body)) == []


@st.composite
def upgrades(draw: st.DrawFn) -> tuple[JsonDict, JsonDict, list[Any]]:
    old = draw(SCHEMAS)
    new = edited(draw, old)
    return root(old), root(new), draw(st.lists(values_of(old), min_size=4, max_size=8))


@settings(STEADY, max_examples=400)
@given(upgrades())
def test_no_change_that_is_called_harmless_refuses_or_prunes_what_was_accepted(
    case: tuple[JsonDict, JsonDict, list[Any]],
) -> None:
    old, new, values = case
    findings = compare(crd(version(schema=old)), crd(version(schema=new)))
    if any(it.severity is not Severity.SAFE for it in findings):
        return
    for value in values:
        stored = admit(old, thing(value))
        if stored.errors:
            continue
        now = admit(new, stored.after)
        assert not now.errors, findings
        assert not now.pruned, findings


def is_refused(schema: JsonDict, obj: JsonDict) -> bool:
    return bool(validate(schema, obj) or admit(schema, obj).errors)


def is_pruned(schema: JsonDict, obj: JsonDict) -> bool:
    return bool(admit(schema, obj).pruned)


@settings(STEADY, max_examples=400)
@given(upgrades())
def test_a_counterexample_is_accepted_by_the_old_schema_and_refused_by_the_new(
    case: tuple[JsonDict, JsonDict, list[Any]],
) -> None:
    old, new, _ = case
    for found in compare(crd(version(schema=old)), crd(version(schema=new))):
        holder = found.path[:-1] if found.rule == "SCH-08" else found.path
        if holder == ("spec",) and found.evidence.get("counterexample") is not None:
            shown = thing(found.evidence["counterexample"])
            assert not validate(old, shown), found
            assert is_refused(new, shown) or (found.rule == "SCH-51" and is_pruned(new, shown)), found


@settings(STEADY, max_examples=400)
@given(upgrades())
def test_what_an_object_proves_broken_is_never_called_less(case: tuple[JsonDict, JsonDict, list[Any]]) -> None:
    old, new, values = case
    # The server takes lists where a text with a format belongs, which no comparison speaks of.
    assume("'format'" not in repr(old))
    sides = crd(version(schema=old)), crd(version(schema=new))
    worst = min((it.severity for it in compare(*sides)), key=lambda it: it.rank, default=Severity.SAFE)
    for value in values:
        stored = admit(old, thing(value))
        if not stored.errors and admit(new, stored.after).errors:
            assert worst in (Severity.BREAKING, Severity.UNKNOWN)
