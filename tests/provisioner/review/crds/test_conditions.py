"""What a finding that depends on stored objects says of them, and what settles it."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.facts import Stored
from provisioner.review.base.record import to_record
from provisioner.review.crd_diff import differences
from provisioner.review.output.headline import headline
from provisioner.values import Certainty, Finding, GroupKind, Report, Severity
from tests.support.provisioner.cases import FOLDER, report_of
from tests.support.provisioner.contents import content_with
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd, crd_of, listed, mapped, obj, root, version

KEPT = {"x-kubernetes-preserve-unknown-fields": True}
THINGS = frozenset({GroupKind("example.com", "Thing")})


def report(old: JsonDict, new: JsonDict, objects: list[Any] | None = None) -> Report:
    stored = Stored(tuple(objects), THINGS) if objects is not None else None
    return look_offline(content_with(crd_of(obj(a=new))), content_with(crd_of(obj(a=old))), stored=stored)


def of_schema(found: Report) -> Finding:
    (one,) = [
        finding
        for finding in found.findings
        if finding.rule.startswith("SCH-") and finding.severity is not Severity.SAFE
    ]
    return one


def thing(name: str, **spec: Any) -> JsonDict:
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (TEXT, {**TEXT, "maxLength": 253}, "an object has more than 253 characters there"),
        (TEXT, {**TEXT, "minLength": 1}, "an object has fewer than 1 character there"),
        (listed(TEXT), listed(TEXT, maxItems=2), "an object has more than 2 items there"),
        (mapped(TEXT), mapped(TEXT, maxProperties=1), "an object has more than 1 key there"),
        (WHOLE, {**WHOLE, "maximum": 5}, "an object has a number there that is above 5"),
        (WHOLE, {**WHOLE, "minimum": 1, "maximum": 5}, "an object has a number there that is below 1 or above 5"),
        (WHOLE, {**WHOLE, "maximum": 5, "exclusiveMaximum": True}, "an object has a number there that is 5 or more"),
        ({**TEXT, "enum": ["<a>", "é"]}, {**TEXT, "enum": ["é"]}, 'an object has "<a>" there'),
        (TEXT, {**TEXT, "enum": ["a"]}, "an object has a value there that is not listed"),
        (TEXT, {**TEXT, "pattern": "^a$"}, "an object has a text there that does not match"),
        (TEXT, WHOLE, "an object has something else there than an integer"),
        (KEPT, obj("value", value=TEXT), "an object has something else there than an object with value"),
        (obj(b=TEXT), obj("b", b=TEXT), "an object has that part without b"),
        (listed(obj(b=TEXT)), listed(obj("b", b=TEXT)), "an object has an item without b"),
        (obj(b=TEXT), obj(), "an object has a value there"),
        ({**WHOLE, "nullable": True}, WHOLE, "an object has null there"),
    ],
)
def test_it_says_which_objects_it_is_true_of(old: JsonDict, new: JsonDict, words: str) -> None:
    found = of_schema(report(old, new))
    verb = "breaks" if found.severity is Severity.BREAKING else "matters"
    assert found.message.endswith(f"; {verb} only if {words}")
    assert found.certainty is Certainty.DEPENDS_ON_OBJECTS


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (obj("b", b=TEXT), "an object has that part without b"),
        (obj(b={**TEXT, "maxLength": 3}), "an object has more than 3 characters there"),
        (obj(b=WHOLE), "an object has something else there than an integer"),
    ],
)
def test_what_differs_between_versions_says_so_too(other: JsonDict, words: str) -> None:
    """Whichever rule the difference would be within one version."""
    sides = [
        [version(schema=root(obj(b=TEXT)))],
        [version(schema=root(obj(b=TEXT))), version("v2", root(other), storage=False)],
    ]
    old, new = (content_with(crd(*side)) for side in sides)
    found = [
        finding
        for finding in look_offline(new, old).findings
        if finding.rule == "SRV-03" and finding.evidence.get("to") == "v2"
    ]
    assert [finding.message.rpartition(" only if ")[2] for finding in found] == [words]


def test_the_headline_and_the_record_say_so_too() -> None:
    found = report_of(FOLDER / "crd-limit-that-depends-on-objects")
    assert "spec.note: maxLength changes from none to 253; breaks only if an object has more than" in found.headline[0]
    certain = {one["rule"]: one["certainty"] for one in to_record(found)["findings"]}
    assert certain == {"SCH-25": "depends-on-objects", "OBJ-02": "proved"}


def test_an_object_that_exceeds_a_limit_proves_it_and_is_named() -> None:
    found = report(TEXT, {**TEXT, "maxLength": 3}, [thing("short", a="x"), thing("long", a="xxxx")])
    one = of_schema(found)
    assert (one.severity, one.certainty) == (Severity.BREAKING, Certainty.PROVED)
    assert "1 stored object is concerned (shop/long); 2 of 2 objects checked" in one.message
    assert "only if" not in one.message
    (refused,) = [finding for finding in found.findings if finding.rule == "LIV-01"]
    assert "shop/long" in refused.message


def test_where_no_object_exceeds_it_the_finding_is_lowered() -> None:
    one = of_schema(report(TEXT, {**TEXT, "maxLength": 3}, [thing("short", a="x")]))
    assert (one.severity, one.certainty) == (Severity.DANGEROUS, Certainty.PROVED)
    assert "only if" not in one.message


def test_objects_of_another_kind_settle_nothing() -> None:
    stored = Stored((), frozenset({GroupKind("other.example.com", "Other")}))
    old, new = (content_with(crd_of(obj(a=it))) for it in (TEXT, {**TEXT, "maxLength": 3}))
    found = look_offline(new, old, stored=stored)
    assert (of_schema(found).severity, of_schema(found).certainty) == (Severity.BREAKING, Certainty.DEPENDS_ON_OBJECTS)
    (quality,) = [finding for finding in found.findings if finding.rule == "LIV-07"]
    assert "they settle nothing here" in quality.message


def test_offline_and_with_the_same_objects_crd_diff_says_the_same() -> None:
    objects = [thing("short", a="x"), thing("long", a="xxxx")]
    old, new = crd_of(obj(a=TEXT)), crd_of(obj(a={**TEXT, "maxLength": 3}))
    name = old["metadata"]["name"]
    (theirs,) = differences({name: old}, {name: new}, objects, THINGS)
    ours = report(TEXT, {**TEXT, "maxLength": 3}, objects)
    known = {
        (finding.rule, finding.severity, finding.certainty)
        for finding in theirs.findings
        if finding.rule.startswith(("SCH", "LIV-01"))
    }
    assert known == {
        (finding.rule, finding.severity, finding.certainty)
        for finding in ours.findings
        if finding.rule.startswith(("SCH", "LIV-01"))
    }


def test_a_deleted_crd_breaks_only_if_there_is_an_object() -> None:
    gone, kept = content_with(crd_of(TEXT)), content_with()
    (open_one,) = [finding for finding in look_offline(kept, gone).findings if finding.rule == "CRD-08"]
    assert (open_one.severity, open_one.certainty) == (Severity.BREAKING, Certainty.DEPENDS_ON_OBJECTS)
    assert open_one.message.endswith("; breaks only if there is such an object")
    for objects, severity in ((), Severity.DANGEROUS), ((thing("a"),), Severity.BREAKING):
        found = look_offline(kept, gone, stored=Stored(objects, THINGS)).findings
        told = [
            (finding.severity, finding.certainty, finding.also)
            for finding in found
            if finding.rule in ("CRD-08", "DEL-01")
        ]
        assert told == [(severity, Certainty.PROVED, ("DEL-01",))]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(TEXT, {**TEXT, "default": "<a>&é"}, 'read "<a>&é" from now on', id="a default"),
        pytest.param(TEXT, {**TEXT, "enum": ["<a>"]}, 'only "<a>" allowed now', id="an enum"),
        pytest.param(KEPT, obj("value", value=TEXT), "must be an object with `value` now", id="any value before"),
        pytest.param(KEPT, {**TEXT}, "must be a string now, where anything was accepted", id="any value, now a text"),
        pytest.param(obj(b=TEXT), obj(), "field spec.a.b removed: what it holds is pruned", id="a field removed"),
    ],
)
def test_words_are_those_of_people(old: JsonDict, new: JsonDict, words: str) -> None:
    assert words in of_schema(report(old, new)).message


def test_a_resource_is_an_object_whether_or_not_its_schema_said_so() -> None:
    old, new = crd_of(TEXT), crd_of(TEXT)
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = dict(KEPT)
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = obj("spec", spec=obj(a=TEXT))
    rules = {finding.rule for finding in look_offline(content_with(new), content_with(old)).findings}
    assert "SCH-08" in rules
    assert "SCH-13" not in rules


def test_a_field_whose_path_begins_another_one_is_named_all_the_same() -> None:
    old, new = crd_of(obj(a=TEXT, ab=obj(c=TEXT))), crd_of(obj(a={**TEXT, "maxLength": 1}, ab=obj(c=TEXT)))
    found = look_offline(content_with(new), content_with(old))
    assert of_schema(found).message.startswith("CRD things.example.com v1, spec.a: ")
    assert "spec.a" in headline(found.findings, found.plan)[0]
