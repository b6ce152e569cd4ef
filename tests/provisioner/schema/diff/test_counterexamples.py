from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.schema import admit, compare, validate
from provisioner.schema.diff import counterexamples as module
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd_of, listed, mapped, obj, root, thing

NUMBER: JsonDict = {"type": "number"}
KEPT: JsonDict = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def ruled(schema: JsonDict, *rules: str) -> JsonDict:
    return {**schema, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}


def test_an_example_of_a_new_type_is_not_refused_by_a_new_limit_alone() -> None:
    found = {it.rule: it.evidence for it in compare(crd_of(NUMBER), crd_of({**WHOLE, "minimum": 1}))}
    assert found["SCH-15"]["counterexample"] == 0.5


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        pytest.param("SCH-13", TEXT, WHOLE, id="another type"),
        pytest.param("SCH-15", NUMBER, WHOLE, id="whole numbers only"),
        pytest.param("SCH-08", obj(a=TEXT), obj("a", a=TEXT), id="a field newly required"),
        pytest.param("SCH-08", obj("a", a=WHOLE), obj("a", "b", a=WHOLE, b=TEXT), id="a new field required"),
        pytest.param(
            "SCH-58", obj(a=TEXT), obj(a=TEXT, more={"not": {"required": ["a"]}}), id="a field forbidden by not"
        ),
        pytest.param("SCH-58", TEXT, {**TEXT, "not": {"enum": ["a"]}}, id="a text forbidden by not"),
        pytest.param("SCH-46", listed(TEXT), listed(TEXT, x_kubernetes_list_type="set"), id="a list became a set"),
        pytest.param(
            "SCH-47",
            listed(obj("a", a=TEXT)),
            listed(obj("a", a=TEXT), x_kubernetes_list_type="map", x_kubernetes_list_map_keys=["a"]),
            id="a list became a map",
        ),
        pytest.param("SCH-25", mapped(TEXT), mapped(TEXT, maxProperties=3), id="fewer keys"),
        pytest.param("SCH-25", mapped({}), mapped({}, maxProperties=3), id="fewer keys with any values"),
        pytest.param("SCH-25", listed(WHOLE), listed(WHOLE, maxItems=2), id="fewer items"),
        pytest.param("SCH-38", WHOLE, ruled(WHOLE, "self > 3"), id="a rule over a number"),
        pytest.param("SCH-38", TEXT, ruled(TEXT, "self != 'abc'"), id="a rule that names a text"),
        pytest.param(
            "SCH-38",
            obj("a", "b", a=WHOLE, b=WHOLE),
            ruled(obj("a", "b", a=WHOLE, b=WHOLE), "self.a != self.b"),
            id="a rule over two fields",
        ),
        pytest.param("SCH-55", TEXT, {**TEXT, "allOf": [{"maxLength": 3}]}, id="allOf over a text"),
        pytest.param(
            "SCH-55", obj(a=TEXT), obj(a=TEXT, more={"allOf": [{"required": ["a"]}]}), id="allOf asks a field"
        ),
        pytest.param("SCH-19", obj(a=TEXT), mapped(WHOLE), id="fields became a map of another type"),
        pytest.param("SCH-51", KEPT, mapped(TEXT), id="unknown fields must be texts"),
        pytest.param("SCH-51", KEPT, mapped(WHOLE), id="unknown fields must be numbers"),
        pytest.param("SCH-53", KEPT, {**KEPT, "x-kubernetes-embedded-resource": True}, id="a resource inside"),
    ],
)
def test_what_is_narrower_shows_a_value_that_is_lost(rule: str, old: JsonDict, new: JsonDict) -> None:
    (found,) = [it for it in compare(crd_of(old), crd_of(new)) if it.rule == rule]
    shown = thing(found.evidence["counterexample"])
    before, after = admit(root(old), shown), admit(root(new), shown)
    assert (before.errors, before.pruned, before.after) == ([], [], shown)
    assert after.refusals


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        pytest.param("SCH-19", mapped(TEXT), obj(a=TEXT), id="a map became fields"),
        pytest.param("SCH-19", mapped({}), obj(a=TEXT), id="a map of anything became fields"),
        pytest.param("SCH-51", KEPT, obj(a=TEXT), id="unknown fields are kept no more"),
    ],
)
def test_what_is_pruned_now_shows_an_object_that_loses_fields(rule: str, old: JsonDict, new: JsonDict) -> None:
    (found,) = [it for it in compare(crd_of(old), crd_of(new)) if it.rule == rule]
    shown = thing(found.evidence["counterexample"])
    assert not admit(root(old), shown).pruned
    assert admit(root(new), shown).pruned


def test_a_size_shows_what_the_size_refuses_where_the_values_of_a_map_are_limited_too() -> None:
    found = compare(crd_of(mapped(WHOLE)), crd_of(mapped({**WHOLE, "minimum": 5}, maxProperties=3)))
    (shown,) = [it.evidence["counterexample"] for it in found if it.evidence.get("limit") == "maxProperties"]
    assert len(shown) == 4


@pytest.mark.parametrize("odd", [{"enum": [1]}, {"default": ["x"]}], ids=lambda it: next(iter(it)))
def test_an_object_whose_default_or_enum_is_none_is_no_base_for_others(odd: JsonDict) -> None:
    held = obj(a={**obj(b=TEXT), **odd})
    found = compare(crd_of(held), crd_of({**held, "maxProperties": 0}))
    assert [it.rule for it in found if it.path == ("spec",)] == ["SCH-25"]


@pytest.mark.parametrize(
    ("longest", "shown"),
    [
        pytest.param(1024, {"minLength": "", "maxLength": "x" * 1025}, id="long"),
        pytest.param(32768, {"minLength": "", "maxLength": None}, id="too long to be shown"),
    ],
)
def test_of_two_limits_each_shows_a_text_that_it_refuses_itself(longest: int, shown: dict[str, str | None]) -> None:
    new = {**TEXT, "minLength": 1, "maxLength": longest}
    found = [it.evidence for it in compare(crd_of(TEXT), crd_of(new))]
    assert {it["limit"]: it.get("counterexample") for it in found} == shown


def test_a_field_of_the_resource_itself_that_is_missing_is_shown_by_the_rest() -> None:
    old, new = obj(spec=TEXT), obj("spec", spec=TEXT)
    found = [it.evidence["counterexample"] for it in compare(crd_at(old), crd_at(new)) if it.rule == "SCH-08"]
    assert found == [{}]


def crd_at(schema: JsonDict) -> JsonDict:
    found = crd_of({})
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({**obj(a=TEXT)}, {**obj(a=TEXT), "maxProperties": 2}, id="there are not so many fields"),
        pytest.param(WHOLE, ruled(WHOLE, "self < 1000000000000000000000"), id="a rule that does not compile"),
        pytest.param(WHOLE, ruled(WHOLE, "self != 123456789 + 7"), id="a value that nobody finds"),
    ],
)
def test_none_is_shown_where_none_is_proved(old: JsonDict, new: JsonDict) -> None:
    assert not [it for it in compare(crd_of(old), crd_of(new)) if "counterexample" in it.evidence]


def test_what_is_shown_changes_nothing_else_of_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = crd_of(obj(a=TEXT, b=TEXT)), crd_of(obj("b", a=WHOLE, b=TEXT))
    with_values = compare(copy.deepcopy(old), copy.deepcopy(new))
    monkeypatch.setattr(module, "MAX_CHANGES", 0)
    without = compare(old, new)
    assert [same(it) for it in with_values] == [same(it) for it in without]
    assert not any("counterexample" in it.evidence for it in without)
    assert all("counterexample" in it.evidence for it in with_values)


def same(found: Any) -> tuple[Any, ...]:
    return (found.rule, found.path, found.variant, found.severity, found.fingerprint)


def test_a_missing_field_is_not_explained_by_what_else_changed() -> None:
    old, new = obj("a", a=TEXT, b=TEXT), obj("a", "b", a=WHOLE, b=TEXT)
    (found,) = [it for it in compare(crd_of(old), crd_of(new)) if it.rule == "SCH-08"]
    errors = [str(it) for it in validate(root(new), thing(found.evidence["counterexample"]))]
    assert any(it.startswith("spec.b: Required") for it in errors)


def test_what_is_only_pruned_is_told_from_what_is_refused() -> None:
    for old, new, lost in ((KEPT, obj(), "pruned"), (TEXT, WHOLE, None)):
        (found,) = [it for it in compare(crd_of(old), crd_of(new)) if "counterexample" in it.evidence]
        assert found.evidence.get("lost") == lost
