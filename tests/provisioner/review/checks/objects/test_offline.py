"""Objects held against the schemas of their own bundle."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.objects.offline import try_offline
from provisioner.values import ObjectRef
from tests.support.provisioner.contents import content_with, facts
from tests.support.provisioner.shapes import TEXT, crd_of, obj, thing


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
