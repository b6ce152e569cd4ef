"""Whoever asked for it is told of every call: what kind, how it was answered, how long it took; never what was said."""

from __future__ import annotations

import dataclasses
import time

import pytest

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.transport import Exchange
from provisioner.errors import ClusterError, Unreachable
from provisioner.values import ObjectRef
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import Scene
from tests.support.servers.process import free_port

ABSENT = ObjectRef("", "v1", "ConfigMap", "default", "absent-canary")


def observed(kubeconfig: str) -> tuple[ClusterClient, list[Exchange]]:
    told: list[Exchange] = []
    return ClusterClient.connect(kubeconfig, timeout_seconds=scaled(60), observe=told.append), told


def test_calls_are_told_with_verb_status_and_time(scene: Scene, api_server) -> None:
    began = time.perf_counter()
    cluster, told = observed(api_server.kubeconfig("admin"))
    assert cluster.get(ABSENT) is None
    new = scene.config_map("observed", a="1")
    cluster.apply(new, field_manager="observed")
    with pytest.raises(ClusterError):
        cluster.create(new)
    found = [(one.verb, one.status) for one in told if one.verb not in ("read", "list")]
    assert found == [("get", 404), ("apply", 201), ("create", 409)]
    assert all(one.seconds > 0 for one in told)
    assert sum(one.seconds for one in told) <= time.perf_counter() - began


def test_a_watch_is_told_when_it_begins(scene: Scene, api_server) -> None:
    cluster, told = observed(api_server.kubeconfig("admin"))
    resource = cluster.resource_of("", "v1", "ConfigMap")
    snapshot = cluster.snapshot(resource, namespace=scene.namespace)
    watch = cluster.watch(resource, resource_version=snapshot.resource_version, timeout_seconds=60)
    watch.close()
    assert [(one.verb, one.status) for one in told if one.verb == "watch"] == [("watch", 200)]


def test_a_call_without_an_answer_is_told(api_server) -> None:
    gone = api_server.kubeconfig("admin").replace(api_server.server, f"https://127.0.0.1:{free_port()}")
    cluster, told = observed(gone)
    with pytest.raises(Unreachable):
        cluster.get(ABSENT)
    assert {one.status for one in told} == {0}


def test_S27_nothing_of_an_object_is_told(scene: Scene, api_server) -> None:
    cluster, told = observed(api_server.kubeconfig("admin"))
    cluster.get(ABSENT)
    assert {one.name for one in dataclasses.fields(Exchange)} == {"verb", "status", "seconds"}
    assert "canary" not in repr(told)
