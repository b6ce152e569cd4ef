"""Every change of a schema has its rule and its severity, and nothing else is said."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.review.base.messages import without_place
from provisioner.review.crd_diff import differences
from provisioner.schema import compare
from provisioner.values import Section, Severity
from tests.support.provisioner.compared import (
    A_OR_B,
    BREAKING,
    DANGEROUS,
    IDIOM,
    KEEP,
    SAFE,
    UNKNOWN,
    changes,
    ruled,
    rules,
)
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd, crd_of, listed, mapped, obj, root, version

# Objects in which a is set, said by branches.
A_ALWAYS = obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}, {"required": ["a", "b"]}]})
ARRAY: JsonDict = {"type": "array"}
FIVE = dict.fromkeys("abcde", TEXT)
NEEDS: list[JsonDict] = [{"required": ["a"]}, {"required": ["b"]}]
BOTH: JsonDict = {"required": ["a", "b"]}
CHANGES = [
    (obj(a=TEXT), obj(), "SCH-01", BREAKING),
    (obj(a=TEXT, more=KEEP), obj(more=KEEP), "SCH-02", DANGEROUS),
    (obj(), obj(a=TEXT), "SCH-05", SAFE),
    (obj(), obj(a={**TEXT, "default": "x"}), "SCH-06", DANGEROUS),
    (obj(more=KEEP), obj(a=TEXT, more=KEEP), "SCH-07", BREAKING),
    (obj(a=TEXT), obj("a", a=TEXT), "SCH-08", BREAKING),
    (obj(a={**TEXT, "default": "x"}), obj("a", a={**TEXT, "default": "x"}), "SCH-09", SAFE),
    (listed(obj(a=TEXT)), listed(obj("a", a=TEXT)), "SCH-11", BREAKING),
    (mapped(obj(a=TEXT)), mapped(obj("a", a=TEXT)), "SCH-11", BREAKING),
    (listed(A_ALWAYS), listed(obj("a", a=TEXT, b=TEXT)), "SCH-11", SAFE),
    (obj("a", a=TEXT), obj(a=TEXT), "SCH-12", SAFE),
    (TEXT, WHOLE, "SCH-13", BREAKING),
    (WHOLE, {"type": "number"}, "SCH-14", SAFE),
    ({"type": "number"}, WHOLE, "SCH-15", BREAKING),
    (TEXT, IDIOM, "SCH-16", SAFE),
    (IDIOM, TEXT, "SCH-17", BREAKING),
    (TEXT, KEEP, "SCH-18", SAFE),
    (obj(a=TEXT), mapped(TEXT), "SCH-19", DANGEROUS),
    (obj(a=TEXT), mapped(WHOLE), "SCH-19", BREAKING),
    (mapped(TEXT), obj(a=TEXT), "SCH-19", BREAKING),
    (mapped(TEXT), {"type": "object"}, "SCH-01", BREAKING),
    (TEXT, {**TEXT, "enum": ["a"]}, "SCH-20", BREAKING),
    ({"type": "boolean"}, {"type": "boolean", "enum": [False, True]}, "SCH-20", SAFE),
    ({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["a"]}, "SCH-21", BREAKING),
    ({**TEXT, "enum": ["a"]}, {**TEXT, "enum": ["a", "b"]}, "SCH-22", SAFE),
    ({**TEXT, "enum": ["a"]}, TEXT, "SCH-23", SAFE),
    ({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["b", "a"]}, "SCH-24", SAFE),
    ({**WHOLE, "maximum": 9}, {**WHOLE, "maximum": 5}, "SCH-25", BREAKING),
    (WHOLE, {**WHOLE, "minimum": 0}, "SCH-25", BREAKING),
    ({**WHOLE, "maximum": 5}, WHOLE, "SCH-25r", SAFE),
    ({**WHOLE, "format": "int32"}, {**WHOLE, "format": "int32", "maximum": 2**31}, "SCH-25n", SAFE),
    (WHOLE, {**WHOLE, "maximum": 2**63 - 1}, "SCH-25n", SAFE),
    (TEXT, {**TEXT, "minLength": 0}, "SCH-25n", SAFE),
    (TEXT, {**TEXT, "minLength": 1}, "SCH-25", BREAKING),
    ({**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 9}, "SCH-25r", SAFE),
    (listed(TEXT, maxItems=5), listed(TEXT, maxItems=2), "SCH-25", BREAKING),
    (mapped(TEXT), mapped(TEXT, maxProperties=2), "SCH-25", BREAKING),
    (TEXT, {**TEXT, "maxItems": 2}, "SCH-25n", SAFE),
    ({**WHOLE, "minimum": 1}, {**WHOLE, "minimum": 1, "exclusiveMinimum": True}, "SCH-26", BREAKING),
    ({**WHOLE, "minimum": 1}, {**WHOLE, "minimum": 0, "exclusiveMinimum": True}, "SCH-26", SAFE),
    (WHOLE, {**WHOLE, "multipleOf": 2}, "SCH-27", BREAKING),
    ({**WHOLE, "multipleOf": 4}, {**WHOLE, "multipleOf": 2}, "SCH-27", SAFE),
    ({**WHOLE, "multipleOf": 2}, {**WHOLE, "multipleOf": 3}, "SCH-27", BREAKING),
    (listed(TEXT), {**listed(TEXT), "uniqueItems": True}, "SCH-28", BREAKING),
    (TEXT, {**TEXT, "pattern": "^a"}, "SCH-29", BREAKING),
    (TEXT, {**TEXT, "pattern": ".*"}, "SCH-29", SAFE),
    ({**TEXT, "pattern": "^a$"}, {**TEXT, "pattern": "^a+$"}, "SCH-30", SAFE),
    ({**TEXT, "pattern": "^a+$"}, {**TEXT, "pattern": "^a$"}, "SCH-30", BREAKING),
    ({**TEXT, "pattern": "^[a-c]$"}, {**TEXT, "pattern": "^(a|b|c)$"}, "SCH-30", SAFE),
    ({**TEXT, "pattern": "^a+$", "maxLength": 1}, {**TEXT, "pattern": "^a$", "maxLength": 1}, "SCH-30", SAFE),
    ({**TEXT, "pattern": "^a$"}, {**TEXT, "pattern": "\\ba"}, "SCH-30", UNKNOWN),
    ({**TEXT, "pattern": "^[ab]$"}, {**TEXT, "pattern": "^[ab]$", "enum": ["a", "b"]}, "SCH-20", SAFE),
    ({**TEXT, "pattern": "^a{3}$"}, {**TEXT, "pattern": "^a{3}$", "maxLength": 5}, "SCH-25n", SAFE),
    ({**TEXT, "pattern": "x"}, {**TEXT, "pattern": "^y"}, "SCH-30", BREAKING),
    ({**TEXT, "enum": ["a"], "pattern": "^a$"}, {**TEXT, "enum": ["a"], "pattern": "^[ab]$"}, "SCH-30", SAFE),
    ({**TEXT, "pattern": "^a"}, TEXT, "SCH-31", SAFE),
    (TEXT, {**TEXT, "format": "email"}, "SCH-32", BREAKING),
    ({**TEXT, "format": "email"}, TEXT, "SCH-32", SAFE),
    (TEXT, {**TEXT, "format": "nonsense"}, "SCH-32", SAFE),
    ({**WHOLE, "format": "int64"}, {**WHOLE, "format": "int32"}, "SCH-32", BREAKING),
    (
        {**WHOLE, "format": "int64", "minimum": 0, "maximum": 9},
        {**WHOLE, "format": "int32", "minimum": 0, "maximum": 9},
        "SCH-32",
        SAFE,
    ),
    (TEXT, {**TEXT, "default": "x"}, "SCH-33", DANGEROUS),
    ({**TEXT, "default": "x"}, {**TEXT, "default": "y"}, "SCH-34", DANGEROUS),
    (
        {**obj(a=TEXT, b=TEXT), "default": {"a": "1", "b": "2"}},
        {**obj(a=TEXT, b=TEXT), "default": {"b": "2", "a": "1"}},
        "SCH-34",
        SAFE,
    ),
    ({**TEXT, "default": "x"}, TEXT, "SCH-35", DANGEROUS),
    (obj("a", a={**TEXT, "default": "x"}), obj("a", a=TEXT), "SCH-35", BREAKING),
    ({**TEXT, "nullable": True}, TEXT, "SCH-36", DANGEROUS),
    (listed({**TEXT, "nullable": True}), listed(TEXT), "SCH-36", BREAKING),
    (TEXT, {**TEXT, "nullable": True}, "SCH-36", SAFE),
    (TEXT, {**TEXT, "description": "x"}, "SCH-37", SAFE),
    ({**TEXT, "maxLength": 9}, ruled("self == 'x'"), "SCH-38", BREAKING),
    ({**TEXT, "maxLength": 9}, ruled("self == oldSelf"), "SCH-38t", DANGEROUS),
    (ruled("self == 'x'", message="m"), ruled("self == 'y'", message="m"), "SCH-39", UNKNOWN),
    (ruled("self == 'x'"), {**TEXT, "maxLength": 9}, "SCH-40", SAFE),
    (ruled("self == 'x'"), ruled("self  ==  'x'"), "SCH-41", SAFE),
    (ruled("self == oldSelf"), ruled("self == oldSelf", optionalOldSelf=False), "SCH-41", SAFE),
    (listed(TEXT), listed(TEXT, **{"x-kubernetes-list-type": "atomic"}), "SCH-45", SAFE),
    (listed(TEXT), listed(TEXT, **{"x-kubernetes-list-type": "set"}), "SCH-46", BREAKING),
    (
        listed(obj("k", k=TEXT)),
        listed(obj("k", k=TEXT), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        "SCH-47",
        BREAKING,
    ),
    (listed(TEXT, **{"x-kubernetes-list-type": "set"}), listed(TEXT), "SCH-48", DANGEROUS),
    (mapped(TEXT), mapped(TEXT, **{"x-kubernetes-map-type": "atomic"}), "SCH-49", DANGEROUS),
    (obj(more=KEEP), obj(), "SCH-51", BREAKING),
    (obj(), obj(more=KEEP), "SCH-52", SAFE),
    (obj(more=KEEP), obj(more={**KEEP, "x-kubernetes-embedded-resource": True}), "SCH-53", BREAKING),
    (IDIOM, {"x-kubernetes-int-or-string": True}, "SCH-54", SAFE),
    (obj(a=TEXT), obj(a=TEXT, more={"allOf": [{"required": ["a"]}]}), "SCH-55", BREAKING),
    (obj(a=TEXT, more={"allOf": [{"required": ["a"]}]}), obj(a=TEXT), "SCH-55", SAFE),
    (obj(a=TEXT, b=TEXT), obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}]}), "SCH-56", BREAKING),
    (
        obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}]}),
        obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        "SCH-56",
        SAFE,
    ),
    (obj(a=TEXT, b=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT), "SCH-57", SAFE),
    (obj(a=TEXT, b=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT, more={"oneOf": A_OR_B["oneOf"][::-1]}), "SCH-57", SAFE),
    (obj(a=TEXT, b=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT, more={"oneOf": A_OR_B["oneOf"][:1]}), "SCH-57", BREAKING),
    (obj(a=TEXT), obj(a=TEXT, more={"not": {"required": ["a"]}}), "SCH-58", BREAKING),
    (obj(a=TEXT, more={"not": {"required": ["a"]}}), obj(a=TEXT), "SCH-58", SAFE),
    (TEXT, {**TEXT, "x-kubernetes-future": 1}, "SCH-60", UNKNOWN),
    # The same rules in other words, of which each has to be shown (tests/provisioner/review/rules/test_severities.py).
    (listed(TEXT), ARRAY, "SCH-01", BREAKING),
    (mapped(obj(a=TEXT)), mapped(True), "SCH-01", BREAKING),
    (obj(**FIVE, more=KEEP), obj(more=KEEP), "SCH-02", DANGEROUS),
    (mapped(TEXT), {"type": "object", **KEEP}, "SCH-02", DANGEROUS),
    (listed(obj(a=TEXT)), listed(obj("b", a=TEXT, b=TEXT)), "SCH-11", BREAKING),
    (ARRAY, listed(TEXT), "SCH-13", BREAKING),
    (mapped(True), mapped(TEXT), "SCH-13", BREAKING),
    (mapped(TEXT), mapped(True), "SCH-18", SAFE),
    (TEXT, {**TEXT, "minimum": 1}, "SCH-25n", SAFE),
    ({**TEXT, "nullable": True, "default": "x"}, {**TEXT, "default": "x"}, "SCH-36", DANGEROUS),
    (obj(a=TEXT, b=TEXT), obj(a={**TEXT, "title": "x"}, b={**TEXT, "title": "x"}), "SCH-37", SAFE),
    ({"type": "object", **KEEP}, mapped(TEXT), "SCH-51", BREAKING),
    (obj(a=TEXT, more={"allOf": NEEDS}), obj(a=TEXT, more={"allOf": NEEDS[::-1]}), "SCH-55", SAFE),
    (obj(a=TEXT, more={"anyOf": NEEDS}), obj(a=TEXT, more={"anyOf": NEEDS[::-1]}), "SCH-56", SAFE),
    ({**TEXT, "anyOf": [{"pattern": "^a"}]}, {**TEXT, "anyOf": [{"pattern": "\\ba"}]}, "SCH-56", UNKNOWN),
    (obj(a=TEXT, more={"oneOf": NEEDS}), obj(a=TEXT, more={"oneOf": [*NEEDS, NEEDS[0]]}), "SCH-57", BREAKING),
    (obj(a=TEXT, more={"not": BOTH}), obj(a=TEXT, more={"not": {"required": ["b", "a"]}}), "SCH-58", SAFE),
    (obj(a=TEXT, b=TEXT, more={"not": NEEDS[0]}), obj(a=TEXT, b=TEXT, more={"not": NEEDS[1]}), "SCH-58", BREAKING),
]
EACH = pytest.mark.parametrize(
    ("old", "new", "rule", "severity"), CHANGES, ids=lambda it: it if isinstance(it, str) else ""
)


@EACH
def test_a_change_of_a_schema_is_found_under_its_rule(
    old: JsonDict, new: JsonDict, rule: str, severity: Severity
) -> None:
    found = changes(old, new)
    assert (rule, severity) in rules(found)
    assert min((it.severity for it in found), key=lambda it: it.rank) is severity


@EACH
def test_a_change_that_objects_settle_is_dangerous_where_none_is_stored(
    old: JsonDict, new: JsonDict, rule: str, severity: Severity
) -> None:
    name, (before, after) = "things.example.com", (crd_of(old), crd_of(new))
    (judged,) = differences({name: before}, {name: after}, [])
    said = min((it for it in judged.findings if it.rule == rule), key=lambda it: it.severity.rank)
    is_settled = said.evidence.get("basis") == "objects" and severity in (BREAKING, UNKNOWN)
    assert said.severity is (DANGEROUS if is_settled else severity)


def test_a_removed_field_is_one_finding_however_much_is_below_it() -> None:
    deep = obj(a=obj(b=obj(c=TEXT, d=listed(obj(e=TEXT)))))
    (found,) = compare(crd_of(obj(f=deep)), crd_of(obj()))
    assert (found.rule, found.path, found.evidence["below"]) == ("SCH-01", ("spec", "f"), 5)
    assert found.evidence["live"] is True


def test_a_removed_status_field_is_no_loss_of_data() -> None:
    for fields in ({"a": TEXT}, FIVE):
        old, new = (crd(version(schema=root(TEXT, status=obj(**one)))) for one in (fields, {}))
        assert rules(compare(old, new)) == [("SCH-03", DANGEROUS)]


def test_names_with_dots_are_no_paths() -> None:
    old = obj(**{"a": obj(b=TEXT), "a.b": TEXT})
    new = obj(**{"a": obj(), "a.b": TEXT})
    (found,) = compare(crd_of(old), crd_of(new))
    assert found.path == ("spec", "a", "b")


def test_a_required_field_inside_a_new_optional_parent_harms_nobody() -> None:
    assert rules(changes(obj(), obj(n=obj("x", x=TEXT)))) == [("SCH-05", SAFE), ("SCH-10", SAFE)]


def test_the_same_crd_has_no_changes() -> None:
    body = crd_of(
        {
            **obj("a", a={**TEXT, "enum": ["x"]}, b=listed(IDIOM)),
            "x-kubernetes-validations": [{"rule": "self.a == 'x'"}],
        }
    )
    assert compare(body, copy.deepcopy(body)) == []


def test_a_finding_says_what_a_reviewer_needs() -> None:
    (found,) = changes({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["a"]})
    assert found.section is Section.CRDS
    assert found.ref is not None
    assert found.ref.name == "things.example.com"
    assert found.evidence["version"] == "v1"
    assert found.evidence["counterexample"] == "b"
    assert set(found.verdicts) == {"api", "stored", "writers", "readers", "rollback"}
    assert found.fingerprint
    (again,) = changes({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["a"]})
    assert again == found


def test_what_only_readers_notice_is_safe_and_says_so() -> None:
    (found,) = changes({**TEXT, "enum": ["a"]}, {**TEXT, "enum": ["a", "b"]})
    assert found.severity is SAFE
    assert found.verdicts["readers"] is DANGEROUS


BETA: JsonDict = {
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {"group": "example.com", "version": "v1", "names": {"plural": "things", "kind": "Thing"}},
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BETA, SAFE_CRD := crd_of(obj(a=TEXT))),
        (SAFE_CRD, BETA),
        (BETA, BETA),
        (crd(version()), SAFE_CRD),
        (SAFE_CRD, crd(version())),
        ({}, SAFE_CRD),
        (SAFE_CRD, {}),
        ({"spec": {"versions": "x"}}, {"spec": {"versions": [{"schema": 1}]}}),
        (crd({"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"a": 1}, "required": ["a"]}}}), SAFE_CRD),
    ],
    ids=[
        "v1beta1 to v1",
        "v1 to v1beta1",
        "v1beta1",
        "schema added",
        "schema removed",
        "from nothing",
        "to nothing",
        "odd",
        "odd schema",
    ],
)
def test_whatever_is_compared_nothing_crashes_and_nothing_is_changed(old: JsonDict, new: JsonDict) -> None:
    kept = copy.deepcopy((old, new))
    compare(old, new)
    assert (old, new) == kept


def test_a_schema_that_appears_starts_pruning() -> None:
    assert ("SCH-51", BREAKING) in rules(compare(crd(version()), crd_of(obj(a=TEXT))))


def test_items_that_nothing_is_said_of_any_more_are_kept_where_everything_is() -> None:
    found = changes(listed(TEXT), {**ARRAY, **KEEP})
    assert [(it.variant, it.severity) for it in found if it.rule == "SCH-18"] == [("items-undescribed", SAFE)]


def test_fields_added_to_a_crd_that_kept_everything_are_one_finding() -> None:
    old = {**crd_of(obj()), "spec": {**crd_of(obj())["spec"], "preserveUnknownFields": True}}
    found = [it for it in compare(old, crd_of(obj(a=TEXT, b=TEXT, c=obj(d=TEXT)))) if it.rule == "SCH-07"]
    assert [it.evidence["count"] for it in found] == [3]


@pytest.mark.parametrize(
    ("added", "words"),
    [
        pytest.param("a", "field spec.a added; what objects hold under that name already is typed now", id="one"),
        pytest.param("ab", "2 fields added (spec.a, spec.b); what objects hold", id="two"),
        pytest.param(
            "abcdefgh", "8 fields added (spec.a, spec.b, spec.c, spec.d, spec.e, spec.f and 2 more)", id="many"
        ),
    ],
)
def test_fields_that_are_typed_now_are_named(added: str, words: str) -> None:
    old = {**crd_of(obj()), "spec": {**crd_of(obj())["spec"], "preserveUnknownFields": True}}
    found = [it for it in compare(old, crd_of(obj(**dict.fromkeys(added, TEXT)))) if it.rule == "SCH-07"]
    assert [without_place(it).message.startswith(words) for it in found] == [True]


def test_of_many_fields_that_go_it_is_said_how_many_are_not_named() -> None:
    (found,) = changes(obj(**{f"f{number:02d}": TEXT for number in range(30)}), obj())
    assert "f18, f19 and 10 more)" in without_place(found).message


@pytest.mark.parametrize(
    ("values", "rule", "severity"),
    [
        pytest.param(mapped({"type": "object"}), "SCH-07", BREAKING, id="of one type"),
        pytest.param(mapped(TEXT), "SCH-07", BREAKING, id="texts"),
        pytest.param(mapped(KEEP), "SCH-52", SAFE, id="anything"),
        pytest.param(mapped({}), "SCH-52", SAFE, id="unsaid"),
        pytest.param(mapped(True), "SCH-52", SAFE, id="any"),
    ],
)
def test_keys_that_an_old_crd_kept_unseen_are_typed_by_map_values(
    values: JsonDict, rule: str, severity: Severity
) -> None:
    old = crd_of(obj(a={"type": "object"}))
    old = {**old, "spec": {**old["spec"], "preserveUnknownFields": True}}
    new = crd_of(obj(a=values))
    found = [(it.rule, it.severity) for it in compare(old, new) if it.path[:2] == ("spec", "a")]
    assert found == [(rule, severity)]


def test_a_deep_schema_is_said_to_be_too_deep_and_does_not_crash() -> None:
    old: JsonDict = TEXT
    new: JsonDict = WHOLE
    for _ in range(220):
        old, new = obj(a=old), obj(a=new)
    assert any(it.rule == "SCH-60" for it in changes(old, new))


REFERENCE = obj(name=TEXT, namespace=TEXT, kind=TEXT)
SELECTOR = obj(matchLabels=mapped(TEXT), matchExpressions=listed(TEXT))
ATOMIC: JsonDict = {"x-kubernetes-map-type": "atomic"}


@pytest.mark.parametrize(
    ("node", "rule"),
    [
        pytest.param(REFERENCE, "SCH-50", id="a reference"),
        pytest.param(SELECTOR, "SCH-50", id="a selector"),
        pytest.param(obj(a=TEXT), "SCH-49", id="a struct"),
        pytest.param(obj(name=TEXT, size=WHOLE), "SCH-49", id="a struct with a name"),
        pytest.param(mapped(TEXT), "SCH-49", id="a map"),
    ],
)
def test_a_reference_that_becomes_atomic_is_said_apart(node: JsonDict, rule: str) -> None:
    assert rules(changes(node, {**node, **ATOMIC})) == [(rule, DANGEROUS)]
    assert rules(changes({**node, **ATOMIC}, node)) == [("SCH-49", DANGEROUS)]


@pytest.mark.parametrize(
    ("wrap", "place"),
    [
        pytest.param(mapped, "{}", id="values of a map"),
        pytest.param(listed, "[]", id="items of a list"),
        pytest.param(lambda node: obj(x=node), "x", id="a field"),
    ],
)
def test_what_changes_below_is_said_at_the_child_only(wrap: Any, place: str) -> None:
    found = changes(wrap({**TEXT, "maxLength": 5}), wrap({**TEXT, "maxLength": 3}))
    assert [(it.rule, it.path) for it in found] == [("SCH-25", ("spec", "f", place))]
