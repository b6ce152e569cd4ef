"""What a report says of what a bundle asks of its cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Facts, ServedKind
from provisioner.review.checks.bundle import provenance
from provisioner.values import Action, Finding, Requirement, RequirementKind, Severity
from tests.support.provisioner.contents import an_object, config_map, facts, judged_by, planned

DATABASE = Requirement(RequirementKind.API, "Database", "db.example.com", "v1")
SERVED = ServedKind("db.example.com", "v1", "Database", "databases")
CRD = an_object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "databases.db.example.com",
    spec={
        "group": "db.example.com",
        "names": {"kind": "Database", "plural": "databases"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
)
OPENSHIFT = ServedKind("config.openshift.io", "v1", "ClusterVersion", "clusterversions")


def asked_of(asked: Requirement, *objects: dict[str, Any], is_offline: bool = False, **around: Any) -> Facts:
    actions = [planned(one, Action.CREATE) for one in objects or [config_map()]]
    made = facts(*actions, around=ClusterSurroundings(**around))
    return replace(made, content=replace(made.content, requirements=(asked,)), is_offline=is_offline)


def only(found: Facts) -> Finding:
    (finding,) = (one for one in judged_by(found, [provenance.REQUIREMENTS_CHECK]) if one.rule.startswith("REQ"))
    return finding


def kubernetes(version: str) -> Requirement:
    return Requirement(RequirementKind.KUBERNETES, version=version)


@pytest.mark.parametrize(
    ("least", "cluster", "severity", "words"),
    [
        ("1.25.0", "v1.36.3", Severity.SAFE, "Kubernetes 1.25.0 or later; the cluster has v1.36.3"),
        ("1.36.3", "v1.36.3", Severity.SAFE, "the cluster has v1.36.3"),
        ("1.30.4", "v1.30.4-gke.100", Severity.SAFE, "the cluster has v1.30.4-gke.100"),
        ("1.37.0", "v1.36.3", Severity.BREAKING, "needs Kubernetes 1.37.0 or later; the cluster has v1.36.3"),
        ("1.9", "v1.36.3", Severity.SAFE, "Kubernetes 1.9 or later"),
        ("1.25.0", "", Severity.UNKNOWN, "The cluster's version is not known"),
        ("new", "v1.36.3", Severity.UNKNOWN, "which is not a version"),
    ],
)
def test_REQ_01_the_lowest_kubernetes_is_compared(least: str, cluster: str, severity: Severity, words: str) -> None:
    found = only(asked_of(kubernetes(least), version=cluster))
    assert (found.rule, found.severity) == ("REQ-01", severity)
    assert words in found.message


def test_REQ_01_offline_nobody_was_asked() -> None:
    assert only(asked_of(kubernetes("1.25.0"), is_offline=True)).severity == Severity.NOTABLE


@pytest.mark.parametrize(
    ("around", "severity"),
    [
        ({"kinds": ()}, Severity.SAFE),
        ({"kinds": (OPENSHIFT,)}, Severity.NOTABLE),
        ({"kinds": (), "unanswered": frozenset({"config.openshift.io"})}, Severity.NOTABLE),
        ({"kinds": None}, Severity.NOTABLE),
    ],
    ids=["no OpenShift", "OpenShift", "its API does not answer", "discovery is not known"],
)
def test_REQ_01_the_highest_openshift_matters_on_openshift(around: dict[str, Any], severity: Severity) -> None:
    found = only(asked_of(Requirement(RequirementKind.OPENSHIFT, version="4.12"), **around))
    assert (found.rule, found.severity) == ("REQ-01", severity)
    assert "OpenShift 4.12 at most" in found.message


@pytest.mark.parametrize(
    ("objects", "around", "severity"),
    [
        ([], {"kinds": (SERVED,)}, Severity.SAFE),
        ([CRD], {"kinds": ()}, Severity.SAFE),
        ([], {"kinds": ()}, Severity.BREAKING),
        ([], {"kinds": (replace(SERVED, version="v2"),)}, Severity.BREAKING),
        ([], {"kinds": (), "unanswered": frozenset({"db.example.com"})}, Severity.UNKNOWN),
        ([], {"kinds": None}, Severity.UNKNOWN),
        ([], {"kinds": None, "is_offline": True}, Severity.NOTABLE),
        ([CRD], {"kinds": None, "is_offline": True}, Severity.SAFE),
    ],
    ids=["served", "brought", "missing", "another version", "no answer", "not known", "offline", "offline, brought"],
)
def test_REQ_02_a_required_api_is_looked_up(
    objects: list[dict[str, Any]], around: dict[str, Any], severity: Severity
) -> None:
    found = only(asked_of(DATABASE, *objects, **around))
    assert (found.rule, found.severity) == ("REQ-02", severity)
    assert "Database in db.example.com/v1" in found.message


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        pytest.param(
            Requirement(RequirementKind.API, "Ingress", "extensions", "v1beta1"),
            "The bundle needs Ingress in extensions/v1beta1. The cluster serves no Ingress in extensions/v1beta1, which "
            "Kubernetes no longer serves as of 1.22; networking.k8s.io/v1 takes its place",
            id="removed",
        ),
        pytest.param(
            Requirement(RequirementKind.API, "Database", "db.example.com", "v2"),
            "The bundle needs Database in db.example.com/v2. The cluster serves no Database in db.example.com/v2; it serves "
            "this kind in db.example.com/v1",
            id="in another version",
        ),
        pytest.param(
            Requirement(RequirementKind.API, "Backup", "db.example.com", "v1"),
            "The bundle needs Backup in db.example.com/v1. The cluster does not serve it",
            id="not defined",
        ),
    ],
)
def test_REQ_02_why_a_required_api_is_not_served_is_said(asked: Requirement, words: str) -> None:
    assert only(asked_of(asked, kinds=(SERVED,))).message == words


def test_REQ_03_a_package_cannot_be_looked_up() -> None:
    found = only(asked_of(Requirement(RequirementKind.PACKAGE, "store", version=">=1.0.0")))
    assert (found.rule, found.severity) == ("REQ-03", Severity.NOTABLE)
    assert "needs the package store in version >=1.0.0" in found.message


def test_REQ_04_a_constraint_is_not_evaluated() -> None:
    found = only(asked_of(Requirement(RequirementKind.CONSTRAINT, "cel", version="needs a\u202e big cluster")))
    assert (found.rule, found.severity) == ("REQ-04", Severity.UNKNOWN)
    assert "\u202e" not in found.message
    assert "\u202e" not in str(found.evidence)


def test_REQ_05_fields_that_were_left_out_are_listed() -> None:
    left_out = Requirement(RequirementKind.FIELD, "Deployment manager", version="spec.template.containers")
    found = only(asked_of(left_out))
    assert (found.rule, found.severity) == ("REQ-05", Severity.NOTABLE)
    assert (
        "Deployment manager has fields that Kubernetes does not have: spec.template.containers. They" in found.message
    )


@pytest.mark.parametrize("kind", RequirementKind)
def test_a_requirement_that_names_nothing_is_said(kind: RequirementKind) -> None:
    assert only(asked_of(Requirement(kind), kinds=())).evidence["name"] == ""


def test_a_requirement_is_new_unless_the_bundle_had_it_before() -> None:
    asked = asked_of(DATABASE, kinds=())
    before = replace(asked.content, requirements=(DATABASE,))
    assert only(replace(asked, previous=before)).is_new is False
    assert only(replace(asked, previous=replace(before, requirements=()))).is_new is True
