"""Stored objects in the place of guesses."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing
from provisioner.review.checks.objects import crds
from provisioner.review.crd_diff import differences
from provisioner.review.crds.object_fates import masked
from provisioner.review.crds.references import DEPENDENTS
from provisioner.schema import FieldError
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import content_with, facts, judged_by, planned
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd, crd_of, obj, root, thing, version

BREAKING, DANGEROUS, SAFE = Severity.BREAKING, Severity.DANGEROUS, Severity.SAFE
KEEP: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}


WEBHOOK: JsonDict = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://x.example"}},
}


def judged(old: JsonDict, new: JsonDict, objects: list[JsonDict]) -> list[Finding]:
    """As `pratique crd-diff --objects` judges."""
    name = ObjectRef.of(new).name
    (found,) = differences({name: old}, {name: new}, objects)
    return list(found.findings)


def reported(old: JsonDict, new: JsonDict, objects: list[JsonDict]) -> list[Finding]:
    """As the report on a request judges, whose objects come from the cluster."""
    listing = Listing(new["spec"]["group"], "v1", new["spec"]["names"]["kind"])
    lists = {listing: Listed(tuple(objects), len(objects))}
    lists |= {one: Listed() for one in DEPENDENTS}
    given = facts(
        planned(new, Action.UPDATE, before=old),
        content=content_with(new),
        live={ObjectRef.of(old).identity: old},
        around=ClusterSurroundings(lists=lists),
    )
    return judged_by(given, [crds.DEFINITIONS_CHECK, crds.OBJECTS_CHECK])


def settled(old: JsonDict, new: JsonDict, *specs: Any) -> dict[str, Finding]:
    return {one.rule: one for one in judged(crd_of(old), crd_of(new), [thing(spec) for spec in specs])}


@pytest.mark.parametrize(
    ("old", "new", "rule", "clean", "affected"),
    [
        pytest.param(obj(a=TEXT, b=TEXT), obj(a=TEXT), "SCH-01", {"a": "x"}, {"b": "x"}, id="field removed"),
        pytest.param(obj(a=TEXT), obj("a", a=TEXT), "SCH-08", {"a": "x"}, {}, id="required"),
        pytest.param(obj(a=WHOLE), obj(a={**WHOLE, "maximum": 5}), "SCH-25", {"a": 5}, {"a": 6}, id="bound"),
        pytest.param(obj(a=TEXT), obj(a={**TEXT, "enum": ["x"]}), "SCH-20", {"a": "x"}, {"a": "y"}, id="enum"),
        pytest.param(obj(a=TEXT), obj(a={**TEXT, "pattern": r"\bx"}), "SCH-29", {"a": "x"}, {"a": "y"}, id="undecided"),
        pytest.param(obj(a=TEXT, more=KEEP), obj(a=TEXT), "SCH-51", {"a": "x"}, {"c": 1}, id="pruning begins"),
        pytest.param(
            obj(a=TEXT),
            obj(a=TEXT, more={"x-kubernetes-validations": [{"rule": "has(self.a)"}]}),
            "SCH-38",
            {"a": "x"},
            {},
            id="a CEL rule",
        ),
        pytest.param(
            obj(a={**TEXT, "x-kubernetes-validations": [{"rule": "self.size() < 5"}]}),
            obj(a={**TEXT, "x-kubernetes-validations": [{"rule": "self.size() < 4"}]}),
            "SCH-39",
            {"a": "x"},
            {"a": "abcd"},
            id="another CEL rule",
        ),
    ],
)
def test_what_no_object_minds_is_dangerous_and_what_one_minds_breaks(
    old: JsonDict, new: JsonDict, rule: str, clean: Any, affected: Any
) -> None:
    harmless = settled(old, new, clean)[rule]
    seen = harmless.evidence["seen"]["count"]
    assert (harmless.severity, harmless.verdicts["stored"], seen) == (DANGEROUS, SAFE, 0)
    broken = settled(old, new, clean, affected)
    assert (broken[rule].severity, broken[rule].evidence["seen"]["count"]) == (BREAKING, 1)
    assert BREAKING in {broken[one].severity for one in broken.keys() & {"LIV-01", "LIV-02"}}


# The report names the CRD and version before the words of the schemas; crd-diff has them in fields of their own.
PLACE = re.compile(r"CRD things\.example\.com v1(, spec[^:]*)?: ")
CHANGES = [
    pytest.param(obj(a=TEXT, b=TEXT), obj(a=TEXT), {"b": "Pl4nted"}, id="lost"),
    pytest.param(obj(a=TEXT), obj(a={**TEXT, "maxLength": 3}), {"a": "Pl4nted"}, id="refused"),
    pytest.param(obj(a=TEXT), obj(a=WHOLE), {"a": "Pl4nted"}, id="of another type"),
    pytest.param(obj(a=TEXT), obj(a=TEXT, b={**TEXT, "default": "x"}), {"a": "Pl4nted"}, id="defaulted"),
    pytest.param(obj(a=TEXT), obj("b", a=TEXT, b=TEXT), {"a": "Pl4nted"}, id="required"),
]


@pytest.mark.parametrize(("old", "new", "spec"), CHANGES)
def test_S09_crd_diff_and_the_report_say_the_same_and_repeat_no_value(old: JsonDict, new: JsonDict, spec: Any) -> None:
    given = crd_of(old), crd_of(new), [thing(spec)]

    def told(judge: Callable[..., list[Finding]]) -> list[tuple[Any, ...]]:
        about = [one for one in judge(*given) if one.rule.startswith(("SCH", "LIV-01", "LIV-02", "LIV-03"))]
        return sorted(
            (one.rule, one.severity, PLACE.sub("", one.message, count=1), repr(one.evidence)) for one in about
        )

    assert told(judged) == told(reported)
    assert any(one[0].startswith("LIV") for one in told(judged))
    assert "Pl4nted" not in repr(told(judged))


@pytest.mark.parametrize("specs", [[{"a": 5}], [{"a": 5}, {"a": 6}]], ids=["valid", "one is not"])
def test_a_file_and_a_cluster_that_hold_the_same_objects_settle_a_bound_alike(specs: list[Any]) -> None:
    objects = [{**thing(spec), "metadata": {"name": f"o{at}"}} for at, spec in enumerate(specs)]
    given = crd_of(obj(a=WHOLE)), crd_of(obj(a={**WHOLE, "maximum": 5})), objects
    (of_file,), (of_cluster,) = ([one for one in judge(*given) if one.rule == "SCH-25"] for judge in (judged, reported))
    assert (of_file.severity, of_file.verdicts) == (of_cluster.severity, of_cluster.verdicts)
    assert of_file.severity is (BREAKING if {"a": 6} in specs else DANGEROUS)


def test_an_error_that_an_object_had_before_is_no_news() -> None:
    found = settled(obj(a={**WHOLE, "maximum": 5}, b=TEXT), obj(a={**WHOLE, "maximum": 5}), {"a": 9})
    assert found["LIV-01"].severity is SAFE


def test_a_refusal_by_the_api_server_is_not_settled_by_objects() -> None:
    old = crd_of(obj(a=TEXT))
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    assert [one.severity for one in judged(old, new, []) if one.rule.startswith("CRD")] == [BREAKING]


def test_a_rule_that_only_the_server_can_evaluate_stays_unknown() -> None:
    def ruled(text: str) -> JsonDict:
        return obj(a={**TEXT, "x-kubernetes-validations": [{"rule": text}]})

    server_only = "format.dns1123Label().validate(self).hasValue() == false"
    found = settled(ruled(f"{server_only} || self == 'q'"), ruled(server_only), {"a": "x"})
    assert (found["SCH-39"].severity, found["SCH-39"].evidence["basis"]) == (Severity.UNKNOWN, "schemas")
    assert found["LIV-01"].severity is Severity.UNKNOWN


@pytest.mark.parametrize(("spec", "severity"), [({"a": "x"}, DANGEROUS), ({"c": 1}, BREAKING)], ids=["clean", "loses"])
def test_that_pruning_begins_concerns_any_place_of_an_object(spec: JsonDict, severity: Severity) -> None:
    old, new = crd_of(obj(a=TEXT)), crd_of(obj(a=TEXT))
    old["spec"]["preserveUnknownFields"] = True
    (found,) = (one for one in judged(old, new, [thing(spec)]) if one.rule == "CRD-27")
    assert found.severity is severity


def two(a: JsonDict, b: JsonDict, **spec: Any) -> JsonDict:
    found = crd(version("v1", root(a)), version("v2", root(b), storage=False))
    return {**found, "spec": {**found["spec"], **spec}}


def as_v2(obj: JsonDict) -> JsonDict:
    return {**obj, "apiVersion": obj["apiVersion"].replace("/v1", "/v2")}


@pytest.mark.parametrize("written", [lambda it: it, as_v2], ids=["as stored", "as another served version"])
def test_every_version_is_tried_and_told_apart(written: Callable[[JsonDict], JsonDict]) -> None:
    old, new = two(obj(a=TEXT), obj(a=TEXT)), two(obj(a=TEXT), obj("a", a=TEXT))
    found = [one for one in judged(old, new, [written(thing({}))]) if one.rule == "SCH-08"]
    assert [(finding.evidence["version"], finding.severity) for finding in found] == [("v2", BREAKING)]


def test_behind_a_webhook_objects_in_only_some_versions_take_nothing_back() -> None:
    old = two(obj(a=TEXT), obj(a=TEXT), conversion=WEBHOOK)
    new = two(obj(a=TEXT), obj("a", a=TEXT), conversion=WEBHOOK)
    first, second = thing({"a": "x"}), as_v2(thing({"a": "x"}))
    other = {**second, "metadata": {**second["metadata"], "name": "other"}}
    severities = {
        name: next(one.severity for one in judged(old, new, objects) if one.rule == "SCH-08")
        for name, objects in {"one": [first], "mixed": [first, other], "both": [first, second]}.items()
    }
    assert severities == {"one": BREAKING, "mixed": BREAKING, "both": DANGEROUS}


def test_objects_of_another_kind_are_passed_over() -> None:
    old, new = crd_of(obj(a=TEXT)), crd_of(obj())
    strangers = [{**thing({"a": "x"}), "kind": "Other"}, {**thing({"a": "x"}), "apiVersion": "other.example.com/v1"}]
    (found,) = (one for one in judged(old, new, strangers) if one.rule == "SCH-01")
    assert (found.severity, found.evidence["seen"]["checked"]) == (DANGEROUS, 0)


def test_the_objects_in_which_a_new_default_shows_are_counted() -> None:
    found = settled(obj(a=TEXT), obj(a={**TEXT, "default": "x"}), {"a": "y"}, {})
    assert (found["SCH-33"].evidence["seen"]["count"], found["LIV-03"].evidence["count"]) == (1, 1)


def test_nothing_given_is_changed() -> None:
    given = crd_of(obj(a=TEXT)), crd_of(obj("b", b=TEXT)), [thing({"a": "x"})]
    kept = copy.deepcopy(given)
    judged(*given)
    assert given == kept


def test_S09_a_text_of_an_object_is_masked_though_the_server_escapes_it() -> None:
    error = FieldError("spec.a", 'Forbidden: not {"b":"\\u003chunter2\\u003e"}')
    words = masked(error, thing({"a": "<hunter2>"}))
    assert words == 'spec.a: Forbidden: not {"b":"…"}'
