"""An apply that is killed between any two steps is carried on by the same call, and ends as if nothing had happened."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.cluster.annotations import nonce_of
from provisioner.cluster.apply.run import Terms, apply
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import cleaned
from provisioner.cluster.inventory import MemoryInventory
from provisioner.json_values import uid_of
from provisioner.values import Action, CollisionProtection, InventoryItem, ObjectIdentity, ObjectRef
from tests.provisioner.cluster.apply.mortal import KILLED, FileInventory, Work, run_and_die
from tests.support.provisioner.cluster_scene import MANAGER, Scene, content, failures

pytestmark = pytest.mark.thorough
UNDISTURBED: dict[str, Any] = {}
IF_NO_CONTROLLER = CollisionProtection.IF_NO_CONTROLLER
MOVING = ("clusterIP", "clusterIPs")


def first(scene: Scene) -> list[Any]:
    return [
        scene.definition(),
        scene.widget(size=1),
        scene.config_map(version="1"),
        scene.config_map("dropped"),
        scene.secret(version="1"),
        scene.service(),
        scene.deployment(replicas=0),
        scene.job(image="example.com/migrate:1"),
    ]


def second(scene: Scene) -> list[Any]:
    """Something of everything: unchanged, updated, replaced, created, adopted, deleted."""
    return [
        scene.definition(),
        scene.widget(size=2),
        scene.config_map(version="2"),
        scene.config_map("new"),
        scene.config_map("adopted", ours="2"),
        scene.secret(version="2"),
        scene.service(),
        scene.deployment(image="example.com/web:2", replicas=0),
        scene.job(image="example.com/migrate:2"),
    ]


def meet_a_stranger(scene: Scene) -> None:
    """What the second content is going to adopt."""
    scene.cluster.create(scene.config_map("adopted", theirs="1"), field_manager="somebody")


def picture(scene: Scene, objects: list[Any], items: dict[ObjectIdentity, InventoryItem]) -> Any:
    """The end state in a form that two scenes share: every object, who owns it, how often its spec was written."""
    found = {}
    for obj in objects:
        live = scene.live(obj)
        assert live is not None, f"{ObjectRef.of(obj)} is missing"
        item = items.get(ObjectRef.of(obj).identity)
        shown = cleaned(live)
        shown["metadata"].pop("annotations", None)  # a controller's own, sooner or later
        for field in MOVING:
            shown.get("spec", {}).pop(field, None)
        if live["kind"] == "Job":
            shown["metadata"].pop("labels")
            shown["spec"] = shown["spec"]["template"]["spec"]
        is_ours = item is not None and item.uid == uid_of(live) and item.nonce == nonce_of(live)
        writers = sorted({f["manager"] for f in live["metadata"]["managedFields"] if f["operation"] == "Apply"})
        generation = live["metadata"].get("generation")
        found[f"{live['kind']}/{live['metadata']['name']}"] = [shown, is_ours, generation, writers]
    return json.loads(json.dumps(found, sort_keys=True).replace(scene.namespace, "SCENE"))


def orphans(scene: Scene, items: dict[ObjectIdentity, InventoryItem]) -> list[str]:
    """Objects that carry a nonce of ours and that the inventory does not hold."""
    found = []
    for kind in (("", "ConfigMap"), ("", "Secret"), ("", "Service"), ("apps", "Deployment"), ("batch", "Job")):
        resource = scene.cluster.resource_of(kind[0], "v1", kind[1])
        assert resource is not None
        for live in scene.cluster.list(resource, scene.namespace):
            item = items.get(ObjectRef.of(live).identity)
            if nonce_of(live) and (item is None or item.uid != uid_of(live)):
                found.append(str(ObjectRef.of(live)))
    return found


@pytest.fixture
def kubeconfig(request: pytest.FixtureRequest, kubernetes_api: ClusterClient) -> str:
    """Of the server that `kubernetes_api` is."""
    name = request.node.callspec.params["api_server"]
    return str(request.getfixturevalue(name).kubeconfig("admin"))


# Installing makes 2 calls per object, the upgrade some more; a point past the end is an undisturbed run.
POINTS = [(die_at, is_after) for die_at in range(1, 20) for is_after in (False, True)]


@pytest.mark.parametrize(
    ("die_at", "is_after"), POINTS, ids=[f"{'after' if after else 'before'} call {n}" for n, after in POINTS]
)
def test_a_killed_apply_is_carried_on_to_the_undisturbed_end(scene: Scene, kubeconfig, tmp_path, die_at, is_after):
    file = tmp_path / "inventory"
    for objects, before in ((first(scene), []), (second(scene), first(scene))):
        if before:
            meet_a_stranger(scene)
        scene.inventory = MemoryInventory(FileInventory(file).items().values())
        planned, bundle = scene.plan(*objects, collision_protection=IF_NO_CONTROLLER), content(objects)
        dying = FileInventory(file, die_at=die_at, is_after=is_after)
        assert run_and_die(Work(kubeconfig, bundle, planned), dying) in {KILLED, 0}
        again = FileInventory(file)
        outcomes = list(apply(scene.cluster, bundle, planned, again, Terms(MANAGER)))
        assert failures(outcomes) == []
        items = again.items()
        assert {item.ref for item in items.values()} == {ObjectRef.of(obj) for obj in objects}
        assert orphans(scene, items) == []
        gone = [obj for obj in before if ObjectRef.of(obj).identity not in items]
        assert [scene.live(obj) for obj in gone] == [None] * len(gone)
        scene.inventory = MemoryInventory(items.values())
    assert picture(scene, second(scene), items) == undisturbed(scene)


def undisturbed(scene: Scene) -> Any:
    """What the same two contents come to without a kill, in a namespace of its own; once per server."""
    server = scene.cluster.uid()
    if server not in UNDISTURBED:
        UNDISTURBED[server] = _undisturbed(scene)
    return UNDISTURBED[server]


def _undisturbed(scene: Scene) -> Any:
    calm = Scene(scene.cluster, f"{scene.namespace}-calm")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": calm.namespace}}
    calm.cluster.create(namespace)
    try:
        assert failures(calm.deploy(*first(calm))) == []
        meet_a_stranger(calm)
        planned = calm.plan(*second(calm), collision_protection=IF_NO_CONTROLLER)
        assert {one.action for one in planned.actions} == set(Action) - {Action.SKIP, Action.RERUN, Action.ORPHAN}, (
            "hooks have deaths of their own, and of an orphan nothing is written"
        )
        assert failures(calm.apply(planned, *second(calm))) == []
        return picture(calm, second(calm), calm.inventory.items())
    finally:
        calm.cluster.delete(ObjectRef.of(calm.definition()))
        calm.cluster.delete(ObjectRef.of(namespace))


def test_a_worker_killed_at_every_step_still_gets_there(scene: Scene, kubeconfig, tmp_path):
    """Each worker lives one step longer than the one before."""
    file = tmp_path / "inventory"
    objects = first(scene)
    work = Work(kubeconfig, content(objects), scene.plan(*objects))
    deaths = [run_and_die(work, FileInventory(file, die_at=step, is_after=bool(step % 2))) for step in range(1, 30)]
    assert deaths[-1] == 0
    items = FileInventory(file).items()
    assert orphans(scene, items) == []
    assert all(is_ours for _, is_ours, _, _ in picture(scene, objects, items).values())
