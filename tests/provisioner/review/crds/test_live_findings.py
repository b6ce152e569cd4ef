"""What a changed CRD does to the objects that exist, and how that settles what the schemas alone say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import Facts, Listed, Listing
from provisioner.review.checks.objects import crds
from provisioner.review.frame import listings
from provisioner.values import Action, Severity
from tests.provisioner.review.crds.orders import (
    GROUP,
    HPA,
    SIZES,
    TEXT,
    crd,
    found_by,
    one_of,
    order,
    props,
    scene,
    version,
)
from tests.support.provisioner.contents import an_object, content_with, facts, planned


def owned(manager: str, *fields: str, by: str = "v1") -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for name in fields:
        inner[f"f:{name}"] = {"k:{}": {}} if name == "items" else {}
    return {"manager": manager, "apiVersion": f"{GROUP}/{by}", "fieldsV1": {"f:spec": inner}}


@pytest.mark.parametrize(
    ("old", "new", "objects", "rule", "severity"),
    [
        pytest.param(
            props(a=TEXT, b=TEXT), props(a=TEXT), [order(a="x")], "SCH-01", Severity.DANGEROUS, id="field nobody has"
        ),
        pytest.param(
            props(a=TEXT, b=TEXT), props(a=TEXT), [order(b="x")], "SCH-01", Severity.BREAKING, id="field somebody has"
        ),
        pytest.param(
            props(a=TEXT),
            props(a={**TEXT, "maxLength": 3}),
            [order(a="xyz")],
            "SCH-25",
            Severity.DANGEROUS,
            id="bound that all meet",
        ),
        pytest.param(
            props(a=TEXT),
            props(a={**TEXT, "maxLength": 3}),
            [order(a="xyz"), order("two", a="too long")],
            "SCH-25",
            Severity.BREAKING,
            id="bound that one breaks",
        ),
        pytest.param(
            props(a=TEXT),
            version(properties={"a": TEXT}, required=["a"]),
            [order(a="x")],
            "SCH-08",
            Severity.DANGEROUS,
            id="required and there",
        ),
        pytest.param(
            props(a=TEXT),
            version(properties={"a": TEXT}, required=["a"]),
            [order()],
            "SCH-08",
            Severity.BREAKING,
            id="required and missing",
        ),
        pytest.param(
            props(a=SIZES),
            version(properties={"a": SIZES}, **{"x-kubernetes-validations": [{"rule": "self.a > 2"}]}),
            [order(a=3)],
            "SCH-38",
            Severity.DANGEROUS,
            id="rule that all meet",
        ),
        pytest.param(
            props(a=SIZES),
            version(properties={"a": SIZES}, **{"x-kubernetes-validations": [{"rule": "self.a > 2"}]}),
            [order(a=1)],
            "SCH-38",
            Severity.BREAKING,
            id="rule that one breaks",
        ),
        pytest.param(
            version(**{"x-kubernetes-preserve-unknown-fields": True}),
            props(a=TEXT),
            [order(a="x")],
            "SCH-51",
            Severity.DANGEROUS,
            id="pruning begins and finds nothing",
        ),
        pytest.param(
            version(**{"x-kubernetes-preserve-unknown-fields": True}),
            props(a=TEXT),
            [order(b="x")],
            "SCH-51",
            Severity.BREAKING,
            id="pruning begins and finds something",
        ),
    ],
)
def test_objects_settle_what_schemas_only_suspect(
    old: dict[str, Any], new: dict[str, Any], objects: list[dict[str, Any]], rule: str, severity: Severity
) -> None:
    found = one_of(scene(crd(old), crd(new), *objects), rule)
    assert found.severity is severity
    assert found.evidence["basis"] == "objects"


def test_what_nobody_could_read_leaves_the_schemas_their_word() -> None:
    unread = {Listing(GROUP, "v1", "Order"): Listed(total=None, problem="list orders: forbidden")}
    given = scene(crd(props(a=TEXT, b=TEXT)), crd(props(a=TEXT)), lists=unread)
    found = one_of(given, "SCH-01")
    assert (found.severity, found.evidence["basis"]) == (Severity.BREAKING, "schemas")
    assert "forbidden" in found.message
    assert one_of(given, "LIV-07").severity is Severity.UNKNOWN


def test_objects_that_nobody_may_read_are_no_question_where_the_schemas_leave_none_open() -> None:
    unread = {Listing(GROUP, "v1", "Order"): Listed(total=None, problem="list orders: forbidden")}
    given = scene(crd(props(a=TEXT)), crd(props(a=TEXT, b=TEXT)), lists=unread)
    assert one_of(given, "LIV-07").severity is Severity.NOTABLE


def test_objects_are_not_read_for_words_alone() -> None:
    old = crd(props(a=TEXT))
    new = crd({**old["spec"]["versions"][0], "additionalPrinterColumns": [{"name": "a"}]})
    assert listings(scene(old, new), [crds.OBJECTS_CHECK]) == []


def test_an_empty_list_of_a_kind_that_is_not_served_proves_nothing() -> None:
    given = scene(crd(props(a=TEXT, b=TEXT)), crd(props(a=TEXT)))
    given = replace(given, around=replace(given.around, kinds=()))
    found = one_of(given, "SCH-01")
    assert (found.severity, found.evidence["basis"]) == (Severity.BREAKING, "schemas")


def test_a_part_of_the_objects_proves_nothing_but_a_hit_in_it_does() -> None:
    def partly(*objects: dict[str, Any]) -> Facts:
        lists = {Listing(GROUP, "v1", "Order"): Listed(objects, 9000)}
        return scene(crd(props(a=TEXT, b=TEXT)), crd(props(a=TEXT)), lists=lists)

    clean, hit = one_of(partly(order(a="x")), "SCH-01"), one_of(partly(order(b="x")), "SCH-01")
    assert (clean.severity, clean.evidence["basis"]) == (Severity.BREAKING, "schemas")
    assert (hit.severity, hit.evidence["basis"]) == (Severity.BREAKING, "objects")
    quality = one_of(partly(order(a="x")), "LIV-07")
    assert quality.severity is Severity.NOTABLE
    assert "only the first 1 of 9,000" in quality.message


def test_objects_are_told_apart_by_when_they_are_refused() -> None:
    rules = [{"rule": "self.a > 2"}]
    new = version(properties={"a": SIZES, "b": TEXT, "c": {"type": "array", "items": TEXT}})
    spec = new["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = rules
    spec["properties"]["c"] |= {"x-kubernetes-list-type": "set"}
    old = props(a=SIZES, b=TEXT, c={"type": "array", "items": TEXT})
    objects = [order("good", a=3), order("later", a=1), order("good-too", a=4, c=["x"])]
    found = [finding for finding in found_by(scene(crd(old), crd(new), *objects)) if finding.rule == "LIV-01"]
    (later,) = found
    assert later.severity is Severity.BREAKING
    assert (later.evidence["rejectsNextWrite"], later.evidence["rejectsWhenEdited"]) == (0, 1)
    assert later.evidence["valid"] == 2
    assert [one["object"] for one in later.evidence["examples"]] == ["shop/later"]


def test_a_rule_about_changes_cannot_be_ratcheted_away() -> None:
    rule = {"rule": "self.a == oldSelf.a && self.a > 2"}
    new = version(properties={"a": SIZES}, **{"x-kubernetes-validations": [rule]})
    given = scene(crd(props(a=SIZES)), crd(new), order(a=1, managed=[owned("argocd", "a")]))
    assert one_of(given, "SCH-38t").evidence["seen"] == {"managers": ["argocd"]}
    refused = one_of(given, "LIV-01")
    assert refused.severity is Severity.BREAKING
    assert (refused.evidence["rejectsNextWrite"], refused.evidence["rejectsWhenEdited"]) == (1, 0)


def test_what_was_refused_before_is_no_news() -> None:
    bounded = {**TEXT, "maxLength": 1}
    given = scene(crd(props(a=bounded, b=TEXT)), crd(props(a=bounded)), order(a="too long"))
    assert one_of(given, "LIV-01").severity is Severity.SAFE


def test_every_lost_field_is_in_the_evidence() -> None:
    names = [f"field{number:03}" for number in range(120)]
    given = scene(crd(props(**dict.fromkeys(names, TEXT))), crd(props()), order(**dict.fromkeys(names, "x")))
    found = one_of(given, "LIV-02")
    assert (sorted(found.evidence["paths"]), found.evidence["left_out"]) == ([f"spec.{one}" for one in names], 0)


def test_lost_fields_are_counted_and_shown_without_their_values() -> None:
    objects = [order("one", token="Pl4nted", list=[{"x": 1}]), order("two", token="Pl4nted-too")]
    old = props(token=TEXT, list={"type": "array", "items": {"type": "object", "properties": {"x": SIZES}}})
    new = props(list={"type": "array", "items": {"type": "object", "properties": {}}})
    given = scene(crd(old), crd(new), *objects)
    found = one_of(given, "LIV-02")
    assert found.evidence["paths"]["spec.token"] == {
        "objects": 2,
        "example": {"object": "shop/one", "value": "a text of 7 characters"},
    }
    assert found.evidence["paths"]["spec.list[].x"]["objects"] == 1
    assert "Pl4nted" not in str(found_by(given))


@pytest.mark.parametrize(
    ("old", "new", "obj"),
    [
        pytest.param(TEXT, {**TEXT, "maxLength": 3}, {"a": "Pl4nted"}, id="too long"),
        pytest.param(TEXT, {**TEXT, "enum": ["x"]}, {"a": "Pl4nted"}, id="not in an enum"),
        pytest.param(TEXT, {**TEXT, "pattern": "^x$"}, {"a": 'Pl4nted: "x"'}, id="not of a pattern"),
        pytest.param(TEXT, SIZES, {"a": "Pl4nted"}, id="of another type"),
        pytest.param(
            TEXT,
            {**TEXT, "x-kubernetes-validations": [{"rule": "false", "messageExpression": "'no: ' + self"}]},
            {"a": "Pl4nted"},
            id="quoted by a rule",
        ),
    ],
)
def test_S09_a_refusal_is_told_without_the_value_that_it_quotes(
    old: dict[str, Any], new: dict[str, Any], obj: dict[str, Any]
) -> None:
    given = scene(crd(props(a=old)), crd(props(a=new)), order(**obj))
    refused = [finding for finding in found_by(given) if finding.rule == "LIV-01"]
    assert "spec.a" in str(refused[0].evidence["examples"])
    assert "Pl4nted" not in str(found_by(given))


def test_a_new_default_names_the_objects_that_will_read_it() -> None:
    given = scene(crd(props(a=TEXT)), crd(props(a={**TEXT, "default": "x"})), order("own", a="y"), order("none"))
    found = one_of(given, "LIV-03")
    assert (found.evidence["count"], found.evidence["objects"]) == (1, ["shop/none"])
    assert one_of(given, "SCH-33").evidence["seen"]["objects"] == ["shop/none"]


def test_a_changed_default_names_the_objects_whose_value_nobody_wrote() -> None:
    old, new = props(a={**TEXT, "default": "x"}), props(a={**TEXT, "default": "y"})
    objects = [order("own", a="x", managed=[owned("kubectl", "a")]), order("none", a="x", managed=[owned("kubectl")])]
    assert one_of(scene(crd(old), crd(new), *objects), "SCH-34").evidence["seen"]["objects"] == ["shop/none"]


def test_every_new_served_version_is_tried() -> None:
    both = [version(properties={"a": TEXT}), version("v2", storage=False, properties={"a": SIZES})]
    found = found_by(scene(crd(both[0]), crd(*both), order(a="x")))
    fates = {finding.evidence["version"]: finding.severity for finding in found if finding.rule == "LIV-01"}
    assert fates == {"v1": Severity.SAFE, "v2": Severity.BREAKING}


def behind_webhook(v2_limit: int, **lists: Any) -> Facts:
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "x"}}}
    first, second = version(properties={"a": TEXT}), version("v2", storage=False, properties={"a": SIZES})
    narrower = version("v2", storage=False, properties={"a": {**SIZES, "maximum": v2_limit}})
    return scene(
        crd(first, second, conversion=conversion), crd(first, narrower, conversion=conversion), order(a="5"), **lists
    )


def test_behind_a_webhook_nothing_is_known_of_versions_that_nobody_read() -> None:
    found = found_by(behind_webhook(3))
    assert not [finding for finding in found if finding.rule == "LIV-01" and finding.evidence["version"] == "v2"]
    assert any(finding.rule == "LIV-07" and finding.evidence["versions"] == ["v2"] for finding in found)
    assert {finding.evidence["basis"] for finding in found if finding.rule == "SCH-25"} == {"schemas"}


@pytest.mark.parametrize(
    ("limit", "severity"),
    [pytest.param(3, Severity.BREAKING, id="refused"), pytest.param(9, Severity.DANGEROUS, id="fits")],
)
def test_behind_a_webhook_each_version_is_tried_on_what_it_made_of_the_objects(limit: int, severity: Severity) -> None:
    converted = {**order(a=5), "apiVersion": f"{GROUP}/v2"}
    given = behind_webhook(limit, lists={Listing(GROUP, "v2", "Order"): Listed((converted,), 1)})
    found = one_of(given, "SCH-25")
    assert (found.severity, found.evidence["basis"]) == (severity, "objects")
    assert Listing(GROUP, "v2", "Order") in listings(given, [crds.OBJECTS_CHECK])


def test_a_version_without_a_schema_takes_every_object_as_it_is() -> None:
    old, new = crd(props(a=TEXT)), crd({"name": "v1", "served": True, "storage": True})
    found = found_by(scene(old, new, order(a="x")))
    assert [finding.severity for finding in found if finding.rule == "LIV-01"] == [Severity.SAFE]
    assert not [finding for finding in found if finding.rule == "LIV-02"]


def test_who_writes_a_version_that_goes_is_named() -> None:
    old = [version(properties={"a": TEXT}), version("v1beta1", storage=False, properties={"a": TEXT})]
    managed = [owned("argocd", "a", by="v1beta1"), owned("kubectl", "a")]
    found = one_of(scene(crd(*old), crd(old[0]), order(a="x", managed=managed)), "LIV-04")
    assert found.evidence["managers"] == {"argocd": 1}


def autoscaler(kind: str) -> dict[str, Any]:
    target = {"apiVersion": f"{GROUP}/v1", "kind": kind, "name": "one"}
    return an_object("autoscaling/v2", "HorizontalPodAutoscaler", "grow", "shop", spec={"scaleTargetRef": target})


@pytest.mark.parametrize(
    ("kind", "severity"),
    [pytest.param("Order", Severity.BREAKING, id="used"), pytest.param("Other", Severity.DANGEROUS, id="unused")],
)
def test_a_scale_that_goes_is_breaking_where_an_autoscaler_uses_it(kind: str, severity: Severity) -> None:
    scale = {"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}}
    old, new = version(properties={"a": SIZES}, subresources=scale), version(properties={"a": SIZES})
    lists = {HPA: Listed((autoscaler(kind),), 1)}
    found = one_of(scene(crd(old), crd(new), order(a=1), lists=lists), "CRD-31")
    assert found.severity is severity
    assert ("HorizontalPodAutoscaler shop/grow" in found.message) is (severity is Severity.BREAKING)


LIST = {"type": "array", "items": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}}
BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
PARTS = {"type": "object", "additionalProperties": TEXT}
REFERENCE = {"type": "object", "properties": {"name": TEXT, "namespace": TEXT}}
ATOMIC = {"x-kubernetes-map-type": "atomic"}


@pytest.mark.parametrize(
    ("managers", "severity"),
    [
        pytest.param(["helm"], Severity.DANGEROUS, id="one owner"),
        pytest.param(["helm", "argocd"], Severity.BREAKING, id="two owners"),
    ],
)
@pytest.mark.parametrize(
    ("old", "new", "value", "rule"),
    [
        pytest.param({**LIST, **BY_NAME}, {**LIST, "x-kubernetes-list-type": "atomic"}, [{"name": "a"}], "SCH-48"),
        pytest.param(PARTS, {**PARTS, **ATOMIC}, {"a": "b"}, "SCH-49"),
        pytest.param(REFERENCE, {**REFERENCE, **ATOMIC}, {"name": "b"}, "SCH-50"),
    ],
)
def test_who_owns_what_matters_where_several_do(
    old: dict[str, Any], new: dict[str, Any], value: Any, rule: str, managers: list[str], severity: Severity
) -> None:
    objects = order(items=value, managed=[owned(name, "items") for name in managers])
    found = one_of(scene(crd(props(items=old)), crd(props(items=new)), objects), rule)
    assert found.severity is severity


@pytest.mark.parametrize(
    ("written_as", "severity"), [("v1", Severity.BREAKING), ("v2", Severity.DANGEROUS)], ids=["older", "newer"]
)
def test_an_older_version_that_lacks_a_field_breaks_where_somebody_writes_by_it(
    written_as: str, severity: Severity
) -> None:
    both = {"a": TEXT, "b": TEXT}
    older, newer = version(storage=False, properties=both), version("v2", properties=both)
    narrower = version(storage=False, properties={"a": TEXT})
    stored = order(a="x", b="y", managed=[owned("helm", "a", by=written_as)]) | {"apiVersion": f"{GROUP}/v2"}
    lists = {Listing(GROUP, "v2", "Order"): Listed((stored,), 1)}
    found = one_of(scene(crd(older, newer), crd(narrower, newer), lists=lists), "SRV-02")
    assert found.severity is severity


@pytest.mark.parametrize(
    ("old", "new", "severity", "words"),
    [
        pytest.param(
            crd(props(a=TEXT)),
            crd(props(a=TEXT, b=TEXT)),
            Severity.NOTABLE,
            "rolling back would lose data written to",
            id="loses a field",
        ),
        pytest.param(
            crd(props(a=TEXT)),
            crd(version(storage=False, properties={"a": TEXT}), version("v2", properties={"a": TEXT})),
            Severity.DANGEROUS,
            "cannot be rolled back",
            id="stored in a version that the old CRD has not",
        ),
        pytest.param(
            crd(props(a={**TEXT, "maxLength": 3})),
            crd(props(a=TEXT)),
            Severity.SAFE,
            "can be rolled back without losing",
            id="open",
        ),
    ],
)
def test_the_way_back_is_judged_as_a_change_of_its_own(
    old: dict[str, Any], new: dict[str, Any], severity: Severity, words: str
) -> None:
    found = one_of(scene(old, new), "LIV-06")
    assert found.severity is severity
    assert words in found.message


def test_the_objects_are_asked_for_in_the_version_they_are_stored_in() -> None:
    old = crd(version("v1", storage=False), version("v2"))
    given = scene(old, crd(version("v1", storage=False), version("v2", properties={"a": TEXT})))
    assert Listing(GROUP, "v2", "Order") in listings(given, [crds.OBJECTS_CHECK])


def test_without_a_cluster_nothing_is_said_of_objects() -> None:
    new = crd(props(a=TEXT))
    given = facts(planned(new, Action.UPDATE, before=new), previous=content_with(crd(props(b=TEXT))), is_offline=True)
    assert not [finding for finding in found_by(given) if finding.rule.startswith("LIV")]
