"""The changed branches of a schema, and nothing but counts of the others."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.review.base.record import Mark
from provisioner.review.crds.schema_tree import MAX_BRANCHES, MAX_DEPTH, Branch, SchemaPicture, schema_picture, walk
from provisioner.schema import compare
from tests.support.provisioner.example_crd import TEXT, crd


def drawn(old: dict[str, Any], new: dict[str, Any]) -> SchemaPicture:
    return schema_picture(old, new, compare(old, new))


def lines(branch: Branch | None, depth: int = 0) -> list[str]:
    """The tree as text: mark, name and kind, with what differs, what was found and what stays folded."""
    if branch is None:
        return []
    said = [f"{one.keyword} {one.before} > {one.after}".replace('"', "") for one in branch.differences]
    said += [finding.rule for finding in branch.findings]
    said += [f"{branch.same} same"] if branch.same else []
    first = f"{'.' * depth}{branch.mark.sign} {branch.name or '*'} {branch.kind}"
    return ["; ".join([first, *said]), *(line for one in branch.branches for line in lines(one, depth + 1))]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing": ({"a": TEXT}, {"a": TEXT}, []),
    "a description": ({"a": TEXT}, {"a": {**TEXT, "description": "more"}}, ["= * object", ".= spec.a string; SCH-37"]),
    "a field goes": (
        {"a": TEXT, "b": TEXT, "c": TEXT},
        {"a": TEXT, "b": TEXT},
        ["= * object", ".= spec object; 2 same", "..– c string; SCH-01"],
    ),
    "a field with fields comes": (
        {"a": TEXT},
        {"a": TEXT, "b": {"type": "object", "properties": {"x": TEXT, "description": TEXT}}},
        ["= * object", ".= spec object; 1 same", "..+ b object; SCH-05; 2 same"],
    ),
    "a field is shorter": (
        {"a": TEXT},
        {"a": {**TEXT, "maxLength": 3}},
        ["= * object", ".± spec.a string; maxLength  > 3; SCH-25"],
    ),
    "items of a list": (
        {"a": {"type": "array", "items": TEXT}},
        {"a": {"type": "array", "items": {"type": "integer"}}},
        ["= * object", ".± spec.a[] string → integer; type string > integer; SCH-13"],
    ),
    "values of a map": (
        {"a": {"type": "object", "additionalProperties": TEXT}},
        {"a": {"type": "object", "additionalProperties": {"type": "integer"}}},
        ["= * object", ".± spec.a{} string → integer; type string > integer; SCH-13"],
    ),
    "an allowed value goes": (
        {"a": {**TEXT, "enum": ["x", "y"]}},
        {"a": {**TEXT, "enum": ["x"]}},
        ["= * object", ".± spec.a string; enum [y] > ; SCH-21"],
    ),
    "a field that is named as the list of fields": (
        {"properties": TEXT, "items": TEXT},
        {"properties": TEXT, "items": {"type": "integer"}},
        ["= * object", ".= spec object; 1 same", "..± items string → integer; type string > integer; SCH-13"],
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=CASES)
def test_only_what_changes_is_opened(old: dict[str, Any], new: dict[str, Any], expected: list[str]) -> None:
    (tree,) = drawn(crd(old), crd(new)).trees
    assert lines(tree.root) == expected


def test_each_version_has_its_tree_and_what_names_none_stands_before_them() -> None:
    old, new = crd({"a": TEXT}, "v1", "v1beta1"), crd({"a": TEXT}, "v1", "v2")
    new["spec"]["names"]["singular"] = "vessel"
    picture = drawn(old, new)
    assert [(tree.version, tree.mark) for tree in picture.trees] == [
        ("v1", Mark.SAME),
        ("v2", Mark.NEW),
        ("v1beta1", Mark.GONE),
    ]
    assert "CRD-05" in [one.rule for one in picture.about]
    assert "CRD-11" in [one.rule for one in picture.trees[2].about]


def test_no_finding_is_lost_between_the_tree_and_the_lists_beside_it() -> None:
    old = crd({"a": TEXT, "b": TEXT, "c": {"type": "object", "properties": {"d": TEXT}}}, "v1", "v2")
    new = crd({"a": {"type": "integer"}, "c": {"type": "object", "properties": {}}}, "v1", "v3")
    found = compare(old, new)
    picture = schema_picture(old, new, found)
    placed = [*picture.about, *(one for tree in picture.trees for one in tree.about)]
    placed += [one for tree in picture.trees for branch in walk(tree.root) for one in branch.findings]
    assert sorted(one.fingerprint for one in placed) == sorted(finding.fingerprint for finding in found)


def test_a_large_schema_keeps_its_worst_branches_and_counts_the_others() -> None:
    many: dict[str, Any] = {
        f"group{at:03}": {"type": "object", "properties": {f"f{one}": TEXT for one in range(40)}} for at in range(100)
    }
    other = copy.deepcopy(many)
    for group in other.values():
        group["properties"] |= {f"f{one}": {**TEXT, "maxLength": 9} for one in range(39)}
        group["properties"]["wider"] = TEXT
    other["group099"]["properties"]["f39"] = {"type": "integer"}
    (tree,) = drawn(crd(many), crd(other)).trees
    assert tree.fields > 4000
    assert tree.drawn == MAX_BRANCHES
    assert tree.left_out == 1 + 1 + 100 + 100 * 39 + 1 + 100 - MAX_BRANCHES
    # All that narrows breaks; what only widens is left out first.
    assert {finding.rule for branch in walk(tree.root) for finding in branch.findings} <= {"SCH-25", "SCH-13"}
    assert sum(branch.left_out for branch in walk(tree.root)) == tree.left_out


def test_the_picture_does_not_grow_deeper_than_a_page_can_nest() -> None:
    old: dict[str, Any] = {"x": TEXT}
    new: dict[str, Any] = {"x": {"type": "integer"}}
    for _ in range(40):
        old, new = ({"n": {"type": "object", "properties": one}, "s": TEXT} for one in (old, new))
    (tree,) = drawn(crd(old), crd(new)).trees
    deepest = max(len(line) - len(line.lstrip(".")) for line in lines(tree.root))
    assert deepest == MAX_DEPTH + 1
    assert lines(tree.root)[-1].startswith("." * deepest + "± n.n.n")
    assert "SCH-13" in lines(tree.root)[-1]


def test_what_is_nested_too_deep_is_not_drawn_and_says_so() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"n": deep}}
    picture = drawn(crd({"a": TEXT}), crd({"a": deep}))
    assert (picture.trees, [one.rule for one in picture.about]) == ((), ["SCH-60"])
    assert "cannot be drawn" in picture.problem


@pytest.mark.parametrize(
    "schema", [None, {}, {"properties": None}, {"properties": {"a": None}}, {"items": [1]}, {"type": 3}], ids=str
)
def test_a_schema_that_is_none_is_drawn_as_far_as_it_goes(schema: Any) -> None:
    broken = crd({"a": TEXT})
    broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    for sides in ((crd({"a": TEXT}), broken), (broken, crd({"a": TEXT}))):
        assert [tree.version for tree in schema_picture(*sides, []).trees] == ["v1"]


def test_an_old_definition_is_drawn_as_well() -> None:
    beta = crd({"a": TEXT})
    beta["apiVersion"] = "apiextensions.k8s.io/v1beta1"
    (tree,) = drawn(beta, crd({"a": {**TEXT, "maxLength": 1}})).trees
    assert tree.root is not None
