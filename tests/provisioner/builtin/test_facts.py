"""The table of facts: what the real server says now, and what is made of it."""

from __future__ import annotations

import uuid
from difflib import unified_diff
from typing import Any

import pytest

from provisioner.builtin.facts import defaulted, fixed_fields, has_facts
from provisioner.cluster.client.api import ClusterClient
from provisioner.values import GroupKind, ObjectRef
from tests.provisioner.builtin.asking import MANAGER, TABLE, table, written


@pytest.mark.thorough
@pytest.mark.controlplane
def test_the_table_is_what_the_real_server_answers_now(api: ClusterClient) -> None:
    """Made anew by `python -m tests.provisioner.builtin.asking KUBECONFIG`."""
    name = f"facts-{uuid.uuid4().hex[:8]}"
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, field_manager=MANAGER)
    try:
        found = written(table(api, name))
    finally:
        api.delete(ObjectRef("", "v1", "Namespace", "", name))
    assert "\n".join(unified_diff(TABLE.read_text().splitlines(), found.splitlines(), lineterm="", n=0)) == ""


def spec_of(api_version: str, kind: str, **spec: Any) -> Any:
    return defaulted({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})["spec"]


def test_what_is_absent_has_the_default_of_the_server() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    assert spec_of("apps/v1", "Deployment")["strategy"] == rolling
    assert spec_of("apps/v1", "StatefulSet")["podManagementPolicy"] == "OrderedReady"
    assert spec_of("v1", "Service", ports=[{"port": 81}])["ports"] == [
        {"port": 81, "protocol": "TCP", "targetPort": 81}
    ]
    made = defaulted({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"})
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")


def test_a_default_that_depends_on_another_field_follows_it() -> None:
    assert spec_of("apps/v1", "Deployment", strategy={"type": "Recreate"})["strategy"] == {"type": "Recreate"}
    for image, policy in (
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:b", "IfNotPresent"),
    ):
        (container,) = spec_of("v1", "Pod", containers=[{"name": "a", "image": image}])["containers"]
        assert container["imagePullPolicy"] == policy
    assert spec_of("batch/v1", "Job", parallelism=2).get("completions") is None
    assert spec_of("networking.k8s.io/v1", "NetworkPolicy", egress=[{}])["policyTypes"] == ["Ingress", "Egress"]


def test_defaults_are_put_into_a_copy() -> None:
    sent: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"strategy": {}}}
    defaulted(sent)
    assert sent["spec"] == {"strategy": {}}


def test_fields_that_never_change_are_known_by_kind_in_any_version() -> None:
    assert ("spec", "selector") in fixed_fields(GroupKind("apps", "Deployment"))
    assert ("reclaimPolicy",) in fixed_fields(GroupKind("storage.k8s.io", "StorageClass"))
    assert fixed_fields(GroupKind("shop.example.com", "Order")) == ()
    assert has_facts("apps/v1", "Deployment")
    assert not has_facts("apps/v1beta1", "Deployment")
