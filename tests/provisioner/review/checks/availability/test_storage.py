"""Storage classes that claims ask for."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing
from provisioner.review.checks.availability import pod_needs
from provisioner.review.frame import listings, mentioned
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, facts, judged_by, planned

FAST = ObjectRef("storage.k8s.io", "v1", "StorageClass", "", "fast")
SPEC: dict[str, Any] = {"accessModes": ["ReadWriteOnce"]}


def claim(**spec: Any) -> dict[str, Any]:
    return an_object("v1", "PersistentVolumeClaim", "data", "shop", spec={**SPEC, "storageClassName": "fast", **spec})


def stateful_set() -> dict[str, Any]:
    templates = [{"metadata": {"name": "data"}, "spec": {**SPEC, "storageClassName": "fast"}}]
    return an_object("apps/v1", "StatefulSet", "db", "shop", spec={"volumeClaimTemplates": templates})


CLASSES = Listing("storage.k8s.io", "v1", "StorageClass", metadata_only=True)


def storage_class(name: str, *, is_default: bool) -> dict[str, Any]:
    made = an_object("storage.k8s.io/v1", "StorageClass", name)
    made["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": str(is_default).lower()}
    return made


def with_claim_of_its_own(kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    template = {"spec": {**SPEC, **spec}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    return an_object("apps/v1", kind, "web", "shop", spec={"template": {"spec": {"volumes": volumes}}})


def found_by(*actions: Any, exists: bool | None = None, classes: Listed | None = None) -> list[Finding]:
    lists = {} if classes is None else {CLASSES: classes}
    around = ClusterSurroundings(exists={} if exists is None else {FAST.identity: exists}, lists=lists)
    found = judged_by(facts(*actions, around=around), [pod_needs.STORAGE_CHECK])
    return [one for one in found if one.rule != "UNCLAIMED"]


@pytest.mark.parametrize(
    ("obj", "action", "exists", "severities"),
    [
        pytest.param(claim(), Action.CREATE, True, [], id="there"),
        pytest.param(claim(), Action.CREATE, False, [Severity.DANGEROUS], id="nowhere"),
        pytest.param(claim(), Action.CREATE, None, [Severity.UNKNOWN], id="nobody may look"),
        pytest.param(claim(), Action.NONE, False, [], id="a claim that has its volume"),
        pytest.param(claim(volumeName="v"), Action.CREATE, False, [], id="a claim for one volume"),
        pytest.param(claim(storageClassName=""), Action.CREATE, None, [], id="no class"),
        pytest.param(stateful_set(), Action.UPDATE, False, [Severity.DANGEROUS], id="a template"),
        pytest.param(
            with_claim_of_its_own(storageClassName="fast"), Action.UPDATE, False, [Severity.DANGEROUS], id="of each pod"
        ),
    ],
)
def test_a_class_that_claims_ask_for_has_to_be_there(
    obj: dict[str, Any], action: Action, exists: bool | None, severities: list[Severity]
) -> None:
    found = found_by(planned(obj, action, before=obj), exists=exists)
    assert [(one.rule, one.severity) for one in found] == [("AVL-06", it) for it in severities]


def test_a_volume_of_the_bundle_needs_no_class() -> None:
    volume = an_object("v1", "PersistentVolume", "v", spec={"storageClassName": "fast"})
    assert found_by(planned(volume, Action.CREATE), planned(claim(), Action.CREATE), exists=False) == []


def test_a_class_that_the_change_deletes_is_missing_although_it_exists() -> None:
    gone = an_object("storage.k8s.io/v1", "StorageClass", "fast")
    actions = [planned(claim(), Action.CREATE), planned(gone, Action.DELETE, before=gone)]
    assert [one.severity for one in found_by(*actions, exists=True)] == [Severity.BREAKING]


def test_only_the_existence_of_a_class_is_asked() -> None:
    assert mentioned(facts(planned(claim(), Action.CREATE)), [pod_needs.STORAGE_CHECK]) == [FAST]


WITHOUT_CLASS = an_object("v1", "PersistentVolumeClaim", "data", "shop", spec=SPEC)


@pytest.mark.parametrize(
    ("obj", "action", "classes", "severities"),
    [
        pytest.param(WITHOUT_CLASS, Action.CREATE, Listed(), [Severity.DANGEROUS], id="no class at all"),
        pytest.param(
            WITHOUT_CLASS,
            Action.CREATE,
            Listed((storage_class("slow", is_default=False),), 1),
            [Severity.DANGEROUS],
            id="no default",
        ),
        pytest.param(
            WITHOUT_CLASS, Action.CREATE, Listed((storage_class("fast", is_default=True),), 1), [], id="a default"
        ),
        pytest.param(WITHOUT_CLASS, Action.CREATE, None, [Severity.UNKNOWN], id="not read"),
        pytest.param(
            WITHOUT_CLASS,
            Action.CREATE,
            Listed(total=None, problem="forbidden"),
            [Severity.UNKNOWN],
            id="nobody may look",
        ),
        pytest.param(WITHOUT_CLASS, Action.NONE, Listed(), [], id="a claim that is there"),
        pytest.param(claim(storageClassName=""), Action.CREATE, Listed(), [], id="none on purpose"),
        pytest.param(with_claim_of_its_own(), Action.CREATE, Listed(), [Severity.DANGEROUS], id="of each pod"),
    ],
)
def test_a_claim_without_a_class_needs_a_default(
    obj: dict[str, Any], action: Action, classes: Listed | None, severities: list[Severity]
) -> None:
    found = found_by(planned(obj, action, before=obj), classes=classes)
    assert [(one.rule, one.severity) for one in found] == [("AVL-06", it) for it in severities]


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param(storage_class("own", is_default=True), id="a default class"),
        pytest.param(an_object("v1", "PersistentVolume", "v", spec={}), id="a volume without a class"),
    ],
)
def test_a_bundle_may_bring_what_its_claims_need(beside: dict[str, Any]) -> None:
    assert found_by(planned(beside, Action.CREATE), planned(WITHOUT_CLASS, Action.CREATE), classes=Listed()) == []


def test_classes_are_listed_only_for_new_claims_without_one() -> None:
    assert listings(facts(planned(WITHOUT_CLASS, Action.CREATE)), [pod_needs.STORAGE_CHECK]) == [CLASSES]
    for action, obj in ((Action.NONE, WITHOUT_CLASS), (Action.CREATE, claim())):
        assert listings(facts(planned(obj, action, before=obj)), [pod_needs.STORAGE_CHECK]) == []
