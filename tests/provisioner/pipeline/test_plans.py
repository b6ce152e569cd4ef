"""Into the cluster: exactly what was reviewed, observed and removed again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from provisioner import pipeline
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryInventory, uids
from provisioner.errors import DigestMismatch
from provisioner.source import LocalSource
from provisioner.values import Action, HealthState, OutcomeState, Plan, Severity
from tests.provisioner.pipeline.staging import bundle, prepare
from tests.support.patience import scaled


def test_promise_1_other_bytes_than_the_reviewed_ones_are_refused_before_anything_is_touched(tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))))
    forged = replace(content, manifests=prepare(LocalSource(str(bundle(tmp_path / "b", one="y")))).manifests)
    nobody = ClusterClient.connect(_kubeconfig_to_nowhere(), timeout_seconds=1.0)
    with pytest.raises(DigestMismatch, match="reviewed was"):
        pipeline.deploy(nobody, forged, Plan((), ""), inventory=MemoryInventory())


def _kubeconfig_to_nowhere() -> dict[str, object]:
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    }


def test_a_bundle_is_looked_at_deployed_observed_and_removed(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x", two="y"))), namespace=namespace)
    inventory = MemoryInventory()
    first = pipeline.look(api, content, previous=None, inventory={})
    assert {one.action for one in first.plan.actions} == {Action.CREATE}
    assert first.worst is Severity.SAFE
    assert pipeline.plan_again(api, content, previous=None, inventory={}).digest == first.plan.digest

    done = list(pipeline.deploy(api, content, first.plan, inventory=inventory, deadline_seconds=scaled(60)))
    assert {one.state for one in done} == {OutcomeState.DONE}
    refs = [one.ref for one in content.manifests]
    assert {one.state for one in pipeline.observe(api, refs).values()} == {HealthState.CURRENT}

    owned = uids(inventory.items().values())
    again = pipeline.look(api, content, previous=content, inventory=owned)
    assert {one.action for one in again.plan.actions} == {Action.NONE}

    gone = list(pipeline.remove(api, inventory, deadline_seconds=scaled(60)))
    assert {one.state for one in gone} == {OutcomeState.DONE}
    assert {one.state for one in pipeline.observe(api, refs).values()} == {HealthState.NOT_FOUND}
    assert inventory.items() == {}
