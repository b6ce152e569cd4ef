"""Content that sets optional fields to nothing: "", 0, false, [], {} and null leave them to the server.

Each field of each specimen is set so, applied as the service does it and looked at twice, on the real API server. What
the server refuses is no case. Whatever it takes was approved, so that its answer may not be held against the content.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from provisioner.builtin.schemas import MINORS, Schemas, schemas_of
from provisioner.cluster.annotations import Tracking
from provisioner.cluster.apply.correction import look_at
from provisioner.cluster.client.api import MUST_NOT_EXIST
from provisioner.cluster.drift import OwnObject, scaled_by
from provisioner.cluster.plan.inputs import body_of
from provisioner.errors import PratiqueError
from provisioner.values import Manifest, ObjectOutcome, ObjectRef, OutcomeState
from tests.support.folders import ROOT
from tests.support.kubernetes.live import wait_until
from tests.support.provisioner.cluster_scene import MANAGER, Scene
from tests.support.provisioner.shapes import JsonDict

pytestmark = [pytest.mark.controlplane, pytest.mark.thorough]

SPECIMENS = ROOT / "tests/provisioner/builtin/specimens.yaml"
Where = tuple[str | int, ...]
# The name of the one says what it is for; the others would limit who else writes to this API server.
LEFT_OUT = {"APIService", "PriorityLevelConfiguration", "FlowSchema"}
# Given once in a cluster, so that two objects of a test cannot both have them.
GIVEN_ONCE: tuple[Where, ...] = (
    ("spec", "clusterIP"),
    ("spec", "healthCheckNodePort"),
    ("spec", "ports", 0, "nodePort"),
)
EMPTY: dict[Any, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
# Pods are the same in every kind that makes some.
PODS = "io.k8s.api.core.v1.PodSpec"
# Beside those of the facts: what only an apply and a second look tell.
MORE = """
- apiVersion: v1
  kind: Pod
  metadata: {name: with-token}
  spec:
    serviceAccountName: default
    containers: [{name: web, image: "example.com/web:1", volumeMounts: [{name: data, mountPath: /data}]}]
    volumes: [{name: data, emptyDir: {}}]
- apiVersion: v1
  kind: Service
  metadata: {name: one-port-given}
  spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: 0}, {name: b, port: 53, protocol: UDP}, {name: c, port: 53}]}
- apiVersion: v1
  kind: Secret
  metadata: {name: still}
  immutable: true
  data: {a: YQ==}
"""


def specimens() -> list[JsonDict]:
    found = [*yaml.load(SPECIMENS.read_text(), Loader=yaml.CSafeLoader), *yaml.safe_load(MORE)]
    return [one for one in found if one["kind"] not in LEFT_OUT]


def cases(specimen: JsonDict) -> Iterator[tuple[str, JsonDict]]:
    """The specimen with one field set to nothing, by the path of the field and what it is set to."""
    schemas = schemas_of(MINORS[-1])
    schema = schemas.of(specimen["apiVersion"], specimen["kind"]) if schemas else None
    assert schemas is not None and schema is not None
    base = copy.deepcopy(specimen)
    for path in GIVEN_ONCE:
        holder = at(base, path[:-1])
        if isinstance(holder, dict) and holder.get(path[-1]) != "None":
            holder.pop(path[-1], None)
    for path, empty in fields(schemas, schema, base, ()):
        if path[0] in ("apiVersion", "kind", "metadata", "status"):
            continue
        for value in (empty, None):
            made = copy.deepcopy(base)
            at(made, path[:-1])[path[-1]] = copy.deepcopy(value)
            yield f"{'.'.join(map(str, path))}: {value!r}", made


def fields(schemas: Schemas, schema: Any, value: Any, path: Where) -> Iterator[tuple[Where, Any]]:
    """Each field that the schema knows of the objects of `value`, with what is nothing there."""
    name, schema = schemas.resolved(schema)
    if name == PODS and path[0] != "spec":
        return
    for key, inner in (schema.get("properties") or {}).items() if isinstance(value, dict) else ():
        _, known = schemas.resolved(inner)
        kinds = known.get("type", "object" if "properties" in known else "string")
        kind = next((one for one in kinds if one != "null"), "") if isinstance(kinds, list) else kinds
        yield (*path, key), EMPTY[kind]
        yield from fields(schemas, inner, value.get(key), (*path, key))
    if isinstance(value, list) and value:
        yield from fields(schemas, schema.get("items") or {}, value[0], (*path, 0))


def at(value: Any, path: Where) -> Any:
    for step in path:
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def named(scene: Scene, objects: dict[str, JsonDict]) -> dict[str, JsonDict]:
    """The objects of `objects` under names of the scene's own, by kind and name."""
    is_namespaced = {(one.kind, one.version): one.is_namespaced for one in scene.cluster.served().resources}
    found = {}
    for number, (words, obj) in enumerate(objects.items()):
        ref = ObjectRef.of(obj)
        inside = is_namespaced[(ref.kind, ref.version)]
        meta = (
            {"name": f"n{number}", "namespace": scene.namespace} if inside else {"name": f"{scene.namespace}-{number}"}
        )
        found[words] = {**obj, "metadata": {**obj["metadata"], **meta}}
    return found


def accepted(scene: Scene, objects: dict[str, JsonDict]) -> dict[str, JsonDict]:
    """Those that the API server takes."""
    with ThreadPoolExecutor(8) as pool:
        taken = pool.map(lambda obj: is_taken(scene, obj), objects.values())
        return {words: obj for (words, obj), is_so in zip(objects.items(), taken, strict=True) if is_so}


def is_taken(scene: Scene, obj: JsonDict) -> bool:
    body = body_of(Manifest(obj), resource_version=MUST_NOT_EXIST)
    try:
        scene.cluster.apply(body, field_manager=MANAGER, dry_run=True)
    except PratiqueError:
        return False
    return True


def drifts(scene: Scene, objects: dict[str, JsonDict]) -> list[str]:
    items = scene.inventory.items()
    known = {words: items[ObjectRef.of(obj).identity] for words, obj in objects.items()}
    held = [OwnObject(Manifest(objects[words]), item.uid, Tracking.of(item.nonce)) for words, item in known.items()]
    seen = look_at(scene.cluster, held, manager=MANAGER, is_scaled=scaled_by(scene.cluster, [scene.namespace]))
    pairs = zip(known, seen, strict=True)
    return [f"{words} has drifted: {one.drift} {one.problem}" for words, one in pairs if one.drift or one.problem]


def wrong(outcomes: list[ObjectOutcome], objects: dict[str, JsonDict]) -> list[str]:
    words = {ObjectRef.of(obj).identity: text for text, obj in objects.items()}
    return [
        f"{words[one.ref.identity]}: {one.message} {one.server_words}"
        for one in outcomes
        if one.state is OutcomeState.FAILED
    ]


@pytest.mark.parametrize(
    "specimen", [pytest.param(one, id=f"{one['kind']}-{one['metadata']['name']}") for one in specimens()]
)
def test_a_field_that_is_set_to_nothing_is_left_to_the_server(real_scene: Scene, specimen: JsonDict):
    account = ObjectRef("", "v1", "ServiceAccount", real_scene.namespace, "default")
    wait_until(lambda: real_scene.cluster.get(account) is not None, "the account of the namespace")
    made = accepted(real_scene, named(real_scene, dict(cases(specimen))))
    assert made
    failed = wrong(real_scene.deploy(*made.values()), made)
    found = [*failed, *drifts(real_scene, made), *drifts(real_scene, made)]
    assert not found, "\n".join(found)
