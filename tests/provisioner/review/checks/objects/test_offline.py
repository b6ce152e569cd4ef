"""Objects held against the schemas of their own bundle."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.objects import objects
from provisioner.review.checks.objects.objects import try_offline
from provisioner.values import Action, ObjectRef
from tests.support.provisioner.contents import content_with, facts, judged_by, planned
from tests.support.provisioner.shapes import TEXT, crd, crd_of, obj, root, thing, version


def test_an_object_is_tried_on_the_schema_that_comes_with_it() -> None:
    content = content_with(crd_of(obj(a=TEXT)), thing({"a": 1}))
    found = try_offline(facts(content=content), ObjectRef.of(thing({})))
    assert found.is_tried
    assert found.errors[0].startswith("spec.a: Invalid value")


@pytest.mark.parametrize("odd", [{"type": ["string"]}, {"enum": "a"}, {"maxLength": "5"}], ids=str)
def test_a_schema_that_has_not_the_form_of_one_tries_nothing_and_says_so(odd: dict[str, Any]) -> None:
    content = content_with(crd_of(obj(a=odd)), thing({"a": 1}))
    found = try_offline(facts(content=content), ObjectRef.of(thing({})))
    assert not found.is_tried
    assert found.why
    assert found.why.variant == "schema-unreadable"
    assert "properties[spec].properties[a]" in dict(found.why.params)["problem"]


@pytest.mark.parametrize(
    ("defined", "spec", "told"),
    [
        pytest.param(version("v1"), {}, ("OBJ-04", "no-schema"), id="no schema"),
        pytest.param(version("v1", root(obj(a={"enum": "a"}))), {}, ("OBJ-04", "schema-unreadable"), id="bad"),
        pytest.param(version("v2", obj()), {}, ("OBJ-07", "version-not-served"), id="another version"),
        pytest.param(version("v1", root(obj())), {"b": 1}, ("OBJ-07", "pruned"), id="unknown field"),
        pytest.param(version("v1", root(obj(a=TEXT))), {"a": 1}, ("OBJ-07", "unfit"), id="wrong type"),
        pytest.param(version("v1", root(obj(a=TEXT))), {"a": "b"}, ("OBJ-03", "fits-own-schema"), id="fits"),
    ],
)
def test_what_comes_of_trying_is_said_of_the_object(defined: Any, spec: Any, told: tuple[str, str]) -> None:
    new = thing(spec)
    actions = planned(crd(defined), Action.CREATE), planned(new, Action.CREATE, is_proved=False)
    found = [one for one in judged_by(facts(*actions), [objects.OBJECTS_CHECK]) if one.ref == ObjectRef.of(new)]
    assert told in [(one.rule, one.variant) for one in found]


def test_of_many_errors_the_first_are_shown_and_the_others_counted() -> None:
    new = thing(dict.fromkeys("abcde", 1))
    definition = crd_of(obj(**dict.fromkeys("abcde", TEXT)))
    actions = planned(definition, Action.CREATE), planned(new, Action.CREATE, is_proved=False)
    (found,) = [one for one in judged_by(facts(*actions), [objects.OBJECTS_CHECK]) if one.rule == "OBJ-07"]
    assert len(found.evidence["errors"]) == 5
    assert found.message.endswith("; and 2 more")
