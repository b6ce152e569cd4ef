"""Every change of a CRD around its schemas (names, versions, conversion, size) has its rule and its severity."""

from __future__ import annotations

import copy

import pytest

from provisioner.schema import compare
from provisioner.values import Severity
from tests.support.provisioner.compared import BREAKING, DANGEROUS, SAFE, UNKNOWN, rules
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd, crd_of, obj, root, version

V1, V2 = version("v1", root(TEXT)), version("v2", root(TEXT), storage=False)
WEBHOOK: JsonDict = {
    "conversion": {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "x", "namespace": "y"}}},
    }
}
ELSEWHERE = copy.deepcopy(WEBHOOK)
ELSEWHERE["conversion"]["webhook"]["clientConfig"]["service"]["path"] = "/other"
OLD_REVIEWS = copy.deepcopy(WEBHOOK)
OLD_REVIEWS["conversion"]["webhook"]["conversionReviewVersions"] = ["v1beta1"]
WITH_CA = copy.deepcopy(WEBHOOK)
WITH_CA["conversion"]["webhook"]["clientConfig"]["caBundle"] = "x"
INJECTED: JsonDict = {"name": "things.example.com", "annotations": {"cert-manager.io/inject-ca-from": "shop/ca"}}
WORD, NOT_COMPARED = ({**TEXT, "pattern": pattern} for pattern in ("^a$", "\\ba"))
NAMES = crd()["spec"]["names"]
SCALE: JsonDict = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


@pytest.mark.parametrize(
    ("old", "new", "rule", "severity"),
    [
        (crd(V1), crd(V1, spec={"scope": "Cluster"}), "CRD-01", BREAKING),
        (crd(V1), crd(V1, spec={"group": "example.org"}), "CRD-02", BREAKING),
        (crd(V1), crd(V1, spec={"names": {**NAMES, "plural": "thingies"}}), "CRD-03", BREAKING),
        (crd(V1), crd(V1, spec={"names": {**NAMES, "kind": "Thingy"}}), "CRD-04", BREAKING),
        (crd(V1), crd(V1, spec={"names": {**NAMES, "singular": "item"}}), "CRD-05", DANGEROUS),
        (crd(V1, spec={"names": {**NAMES, "shortNames": ["t"]}}), crd(V1), "CRD-06", DANGEROUS),
        (crd(V1), crd(version("v2", root(TEXT))), "CRD-10", BREAKING),
        (crd(V1, V2), crd(V1), "CRD-11", BREAKING),
        (crd(V1, {**V2, "served": False}), crd(V1), "CRD-11", SAFE),
        (crd(V1, V2), crd(V1, {**V2, "served": False}), "CRD-12", BREAKING),
        (crd(V1, V2), crd({**V1, "storage": False}, {**V2, "storage": True}), "CRD-13", DANGEROUS),
        (crd(V1), crd({**V1, "storage": False}, {**V2, "storage": True}), "CRD-13b", DANGEROUS),
        (crd(V1), crd({**V1, "served": False}), "CRD-14", BREAKING),
        (crd(V1), crd(V1, V2), "CRD-15", SAFE),
        (crd(V1, {**V2, "served": False}), crd(V1, V2), "CRD-15", SAFE),
        (crd(V1), crd({**V1, "deprecated": True}), "CRD-16", SAFE),
        (crd(V1), crd(V1, V2), "CRD-17", SAFE),
        (crd(V1), crd(V1, spec=WEBHOOK), "CRD-21", DANGEROUS),
        (crd(V1, spec=WEBHOOK), crd(V1), "CRD-22", BREAKING),
        (crd(V1, spec=WEBHOOK), crd(V1, spec=ELSEWHERE), "CRD-23", DANGEROUS),
        (crd(V1, spec=WITH_CA), crd(V1, spec=WEBHOOK), "CRD-25", DANGEROUS),
        (crd(V1, spec=WEBHOOK, metadata=INJECTED), crd(V1, spec=WEBHOOK), "CRD-25", DANGEROUS),
        (crd(V1, spec=WEBHOOK), crd(V1, spec=OLD_REVIEWS), "CRD-26", BREAKING),
        (crd(V1, spec={"preserveUnknownFields": True}), crd(V1), "CRD-27", BREAKING),
        (crd(V1), crd(V1, spec={"preserveUnknownFields": True}), "CRD-28", BREAKING),
        (crd({**V1, "subresources": {"status": {}}}), crd(V1), "CRD-29", BREAKING),
        (crd(V1), crd({**V1, "subresources": {"status": {}}}), "CRD-30", DANGEROUS),
        (crd({**V1, "subresources": {"scale": SCALE}}), crd(V1), "CRD-31", DANGEROUS),
        (
            crd({**V1, "subresources": {"scale": SCALE}}),
            crd({**V1, "subresources": {"scale": {**SCALE, "specReplicasPath": ".spec.size"}}}),
            "CRD-32",
            DANGEROUS,
        ),
        (
            crd(V1),
            crd({**V1, "additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".a"}]}),
            "CRD-33",
            SAFE,
        ),
        (crd({**V1, "selectableFields": [{"jsonPath": ".spec"}]}), crd(V1), "CRD-34", DANGEROUS),
        (crd(V1), crd({**V1, "selectableFields": [{"jsonPath": ".spec"}]}), "CRD-35", SAFE),
        (crd(V1), crd(version("v1", root({}))), "CRD-19", BREAKING),
        (
            crd(V1),
            crd(version("v1", root({**TEXT, "x-kubernetes-validations": [{"rule": "self > 1"}]}))),
            "SCH-44",
            BREAKING,
        ),
        (crd(V1), crd(V1, {**V2, "schema": {"openAPIV3Schema": root(TEXT, extra=TEXT)}}), "SRV-02", DANGEROUS),
        (crd(V1), crd({**V1, "schema": {"openAPIV3Schema": root(TEXT, extra=TEXT)}}, V2), "SRV-01", BREAKING),
        (crd(V1), crd(V1, {**V2, "schema": {"openAPIV3Schema": root(WHOLE)}}), "SRV-03", BREAKING),
        (crd(V1), crd(version("v1", root(WORD)), version("v2", root(NOT_COMPARED), storage=False)), "SRV-03", UNKNOWN),
        (crd(V1), crd(V1, {**V2, "schema": {"openAPIV3Schema": root({**TEXT, "default": "x"})}}), "SRV-04", DANGEROUS),
        (crd(V1, spec=WEBHOOK), crd(V1, V2, spec=WEBHOOK), "SRV-06", UNKNOWN),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_change_of_the_crd_is_found_under_its_rule(
    old: JsonDict, new: JsonDict, rule: str, severity: Severity
) -> None:
    assert (rule, severity) in rules(compare(old, new))


def test_a_difference_between_served_versions_that_was_there_before_is_said_once_and_harmless() -> None:
    body = crd(V1, {**V2, "schema": {"openAPIV3Schema": root(WHOLE, extra=TEXT)}})
    assert rules(compare(body, body)) == [("SRV-05", SAFE)]


def test_a_lifted_restriction_of_the_name_is_safe() -> None:
    named = root(TEXT, metadata=obj(name={**TEXT, "maxLength": 9}))
    assert rules(compare(crd(version(schema=named)), crd(version(schema=root(TEXT, metadata={"type": "object"}))))) == [
        ("SCH-04", SAFE)
    ]


TWO = [version("v1", root(obj(a=TEXT))), version("v2", root(obj(a=TEXT)), storage=False)]


def test_a_webhook_that_goes_between_equal_versions_breaks_nothing() -> None:
    assert rules(compare(crd(*TWO, spec=WEBHOOK), crd(*TWO))) == [("CRD-22", DANGEROUS)]


def test_the_default_port_of_a_webhook_may_be_written_down() -> None:
    service = {"name": "s", "namespace": "n"}
    sides = [
        {"conversion": {**WEBHOOK["conversion"], "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": it}}}
        for it in ({"service": service}, {"service": {**service, "port": 443}})
    ]
    assert compare(crd(*TWO, spec=sides[0]), crd(*TWO, spec=sides[1])) == []


def test_a_stored_version_that_is_missing_on_both_sides_is_refused_all_the_same() -> None:
    old = crd(version("v1", root(obj(a=TEXT))), status={"storedVersions": ["v0", "v1"]})
    assert rules(compare(old, crd(version("v1", root(obj(a=TEXT)))))) == [("CRD-10", BREAKING)]


def test_a_protected_group_without_approval_is_refused() -> None:
    approved = {"name": "things.example.k8s.io", "annotations": {"api-approved.kubernetes.io": "https://github.com/a"}}
    names = {"group": "example.k8s.io"}
    old = crd(version(schema=root(TEXT)), spec=names, metadata=approved)
    new = crd(version(schema=root(TEXT)), spec=names, metadata={"name": "things.example.k8s.io"})
    assert rules(compare(old, new)) == [("CRD-18", BREAKING)]


@pytest.mark.parametrize(
    ("size", "severity"),
    [
        pytest.param(200_000, None, id="small"),
        pytest.param(300_000, Severity.NOTABLE, id="too large for client-side apply"),
        pytest.param(1_100_000, DANGEROUS, id="large"),
        pytest.param(1_600_000, BREAKING, id="too large for etcd"),
    ],
)
def test_a_crd_that_grows_large_is_told(size: int, severity: Severity | None) -> None:
    old, new = (crd_of({**TEXT, "description": "x" * length}) for length in (0, size))
    found = [it.severity for it in compare(old, new) if it.rule == "CRD-20"]
    assert found == ([] if severity is None else [severity])
    assert not [it for it in compare(new, new) if it.rule == "CRD-20"]


def test_a_certificate_that_is_none_is_refused() -> None:
    def with_ca(bundle: str) -> JsonDict:
        client = {"service": {"name": "s", "namespace": "n"}, "caBundle": bundle}
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
        return crd(*TWO, spec={"conversion": {"strategy": "Webhook", "webhook": webhook}})

    pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
    assert ("CRD-24", BREAKING) in rules(compare(with_ca(pem), with_ca("AA==")))
    assert not [it for it in compare(with_ca("AA=="), with_ca("AQ==")) if it.rule == "CRD-24"]
