"""What is read of live objects for a report: bounded, counted, and with the reason where nothing could be read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.evidence import Bounds, Query, find_existing, published_schemas, read_samples
from provisioner.schema import admit
from provisioner.values import Identity, ObjectRef
from tests.support.kubernetes.live import wait_until

LEASES = 7
LEASE = "coordination.k8s.io/v1"
MANY = 20


@pytest.fixture
def api(kubernetes_api: ClusterClient) -> ClusterClient:
    return kubernetes_api


@pytest.fixture
def namespace(api: ClusterClient) -> Iterator[str]:
    name = f"evidence-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for number in range(LEASES):
        meta = {"name": f"lease-{number}", "namespace": name}
        api.create({"apiVersion": LEASE, "kind": "Lease", "metadata": meta, "spec": {"holderIdentity": "x" * 1000}})
    yield name
    api.delete(ObjectRef("", "v1", "Namespace", "", name))


def leases_in(namespace: str, **rest: bool) -> Query:
    return Query("coordination.k8s.io", "", "Lease", namespace, **rest)


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        pytest.param(Bounds(), LEASES, id="everything"),
        pytest.param(Bounds(page=2), LEASES, id="everything, in pages"),
        pytest.param(Bounds(objects=3), 3, id="as many as may be"),
        pytest.param(Bounds(total_bytes=3500), 2, id="as many bytes as may be"),
        pytest.param(Bounds(seconds=-1.0), 0, id="no time left"),
    ],
)
def test_a_list_is_read_in_bounds_and_says_how_many_there_are(
    api: ClusterClient, namespace: str, bounds: Bounds, count: int
) -> None:
    query = leases_in(namespace)
    found = read_samples([api], [query], bounds=bounds)[query]
    assert len(found.objects) == count
    assert found.total == LEASES
    assert not found.problem


def test_of_metadata_alone_no_value_leaves_the_cluster(api: ClusterClient, namespace: str) -> None:
    query = leases_in(namespace, metadata_only=True)
    found = read_samples([api], [query])[query]
    assert len(found.objects) == LEASES
    assert not [one for one in found.objects if "spec" in one]


def test_what_nobody_may_list_has_a_reason(api: ClusterClient, namespace: str) -> None:
    nobody = api.acting_as(Identity.of_service_account(namespace, "nobody"))
    found = read_samples([nobody], [leases_in(namespace)])[leases_in(namespace)]
    assert 'cannot list resource "leases"' in found.problem
    assert found.total is None


def test_the_second_reader_is_asked_where_the_first_may_not(api: ClusterClient, namespace: str) -> None:
    nobody = api.acting_as(Identity.of_service_account(namespace, "nobody"))
    assert read_samples([nobody, api], [leases_in(namespace)])[leases_in(namespace)].total == LEASES


def test_a_kind_that_is_not_served_is_an_empty_list(api: ClusterClient) -> None:
    query = Query("nowhere.example.com", "", "Thing")
    found = read_samples([api], [query])[query]
    assert (found.objects, found.total, found.problem) == ((), 0, "")


def test_existence_is_told_without_values_and_left_out_where_nobody_may_ask(api: ClusterClient, namespace: str) -> None:
    there, gone = (ObjectRef("coordination.k8s.io", "v1", "Lease", namespace, name) for name in ("lease-1", "lease-99"))
    unserved = ObjectRef("nowhere.example.com", "v1", "Thing", namespace, "a")
    assert find_existing([api], [there, gone, unserved]) == {there: True, gone: False, unserved: False}
    nobody = api.acting_as(Identity.of_service_account(namespace, "nobody"))
    assert find_existing([nobody], [there]) == {}


DEPLOYMENT = ("apps", "v1", "Deployment")


def deployment(**container: object) -> dict[str, object]:
    labels = {"app": "a"}
    pod = {"containers": [{"name": "main", "image": "example.com/a:1", **container}]}
    template = {"metadata": {"labels": labels, "creationTimestamp": None}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "pruned", "errors"),
    [
        pytest.param(deployment(), [], [], id="sound"),
        pytest.param(
            deployment(
                ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                resources={"limits": {"cpu": 1, "memory": "1Gi"}},
                livenessProbe={"httpGet": {"path": "/", "port": "http"}},
                env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            ),
            [],
            [],
            id="with numbers or words where both may stand",
        ),
        pytest.param(deployment(comand=["a"]), ["spec.template.spec.containers[0].comand"], [], id="a field misspelt"),
        pytest.param(deployment(command="a"), [], ["spec.template.spec.containers[0].command"], id="a wrong type"),
        pytest.param(
            {**deployment(), "spec": {"template": {}}}, [], ["spec.selector"], id="something missing that must be there"
        ),
    ],
)
def test_published_schemas_tell_sound_objects_from_others(
    api: ClusterClient, obj: dict[str, object], pruned: list[str], errors: list[str]
) -> None:
    schema = published_schemas([api], [DEPLOYMENT])[DEPLOYMENT]
    found = admit(schema, obj)
    assert list(found.pruned) == pruned
    assert [one.path for one in found.refusals] == errors


def published(api: ClusterClient, *verbs: str) -> dict[ServedResource, dict[str, Any]]:
    """Every kind with these verbs, and its schema; but what other tests define meanwhile, break and take away again."""
    found: dict[ServedResource, dict[str, Any]] = {}

    def is_complete() -> bool:
        api.forget_discovery()
        kinds = [one for one in api.resources() if one.verbs.issuperset(verbs) and ".example.com" not in one.group]
        schemas = published_schemas([api], [(one.group, one.version, one.kind) for one in kinds])
        found.clear()
        found.update({one: schemas[key] for one in kinds if (key := (one.group, one.version, one.kind)) in schemas})
        return len(found) == len(kinds)

    wait_until(is_complete, "a schema of each kind")
    return found


def test_every_kind_that_objects_can_be_made_of_has_a_schema(api: ClusterClient) -> None:
    assert len(published(api, "patch")) > MANY


def test_live_objects_fit_the_schemas_that_the_server_publishes(api: ClusterClient) -> None:
    # Old event recorders leave out what the kind demands; the server lets those, and only those, in.
    schemas = published(api, "patch", "list")
    kinds = [one for one in schemas if one.is_preferred and one.kind != "Event"]
    wrong = []
    for kind in kinds:
        for obj in api.excerpt(kind, at_most=20).objects:
            found = admit(schemas[kind], obj)
            wrong += [(kind.kind, *found.pruned, *map(str, found.refusals))] if found.pruned or found.refusals else []
    assert not wrong
