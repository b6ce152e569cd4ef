"""What holds data, or may, among the objects of a deletion (security-rules.md S15)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.policy import holdings
from provisioner.values import Action, ObjectRef, PlannedAction

CONFIG = {"data": {"a": "1"}, "binaryData": {"b": "Mg=="}}


def goes(group: str, kind: str, live: Any = None, **more: Any) -> PlannedAction:
    ref = ObjectRef(group, "v1", kind, "harbour", "it")
    return PlannedAction(ref, **{"action": Action.DELETE, "uid": "u", "before": {} if live is None else live, **more})


PLAIN = {
    "nothing at all": [],
    "a Deployment": [goes("apps", "Deployment")],
    "a StatefulSet without claims": [goes("apps", "StatefulSet", {"spec": {"replicas": 1}})],
    "a ConfigMap as it was approved": [goes("", "ConfigMap", CONFIG)],
    "roles and accounts": [goes("rbac.authorization.k8s.io", "ClusterRole"), goes("", "ServiceAccount")],
    "what is gone already, whatever it was": [
        goes("", "Secret", before=None),
        goes("example.com", "Case", before=None),
    ],
}
HOLDING = {
    "a claim": goes("", "PersistentVolumeClaim"),
    "a volume": goes("", "PersistentVolume"),
    "a Secret": goes("", "Secret"),
    "a Namespace": goes("", "Namespace"),
    "a CRD": goes("apiextensions.k8s.io", "CustomResourceDefinition"),
    "a custom resource": goes("example.com", "Case"),
    "a custom resource with a plain name": goes("example.com", "Deployment"),
    "a bare Pod": goes("", "Pod"),
    "a StatefulSet with claims": goes("apps", "StatefulSet", {"spec": {"volumeClaimTemplates": [{}]}}),
    "a ConfigMap with another value": goes("", "ConfigMap", {**CONFIG, "data": {"a": "2"}}),
    "a ConfigMap with a value more": goes("", "ConfigMap", {**CONFIG, "data": {"a": "1", "state": "x"}}),
    "a ConfigMap with another file": goes("", "ConfigMap", {**CONFIG, "binaryData": {}}),
    "what could not be tried": goes("apps", "Deployment", is_proved=False),
    "what is refused": goes("apps", "Deployment", problem="no", problem_code="forbidden"),
    "what stays": goes("apps", "Deployment", action=Action.NONE),
}


def found(*actions: PlannedAction) -> list[str]:
    return holdings(actions, {goes("", "ConfigMap").ref.identity: CONFIG})


@pytest.mark.parametrize("actions", PLAIN.values(), ids=PLAIN)
def test_S15_it_holds_no_data(actions: list[PlannedAction]) -> None:
    assert found(*actions) == []


@pytest.mark.parametrize("one", HOLDING.values(), ids=HOLDING)
def test_S15_it_may_hold_data(one: PlannedAction) -> None:
    assert found(goes("apps", "Deployment"), one) == [str(one.ref)]


def test_S15_a_config_map_that_nobody_approved_may_hold_data() -> None:
    assert holdings([goes("", "ConfigMap", {})], {}) == ["ConfigMap harbour/it"]
