"""The answers of this library held against those of the real API server, on random roles.

The seed is printed with every failure; PRATIQUE_SEED repeats a run.
"""

from __future__ import annotations

import contextlib
import os
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from provisioner.cluster.client.access import ask_many
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import ClusterError, PratiqueError
from provisioner.rbac import RbacObjects, allows, allows_in, effective_rules, may_write_binding, may_write_role
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.provisioner.rbac.random_roles import AGGREGATED, World, question, rules, world
from tests.support.kubernetes.live import until_may, wait_until
from tests.support.patience import scaled
from tests.support.provisioner.roles import API, bound, cluster_role, role, rule, user

pytestmark = [pytest.mark.controlplane, pytest.mark.thorough]

KINDS = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
WORLDS = 12
QUESTIONS_PER_IDENTITY = 50
WRITES = 240


@dataclass(frozen=True)
class Scene:
    cluster: ClusterClient
    seed: int
    worlds: tuple[World, ...]
    live: RbacObjects


@pytest.fixture(scope="module")
def scene(controlplane: Any) -> Iterator[Scene]:
    """Several worlds on one API server, once its authorizer has seen all of them."""
    seed = int(os.environ.get("PRATIQUE_SEED") or 20261121)
    cluster = ClusterClient.connect(controlplane.kubeconfig("admin"), timeout_seconds=scaled(60))
    run, dice = uuid.uuid4().hex[:8], random.Random(seed)
    spaces = (f"rbac-{run}-0", f"rbac-{run}-1")
    for name in spaces:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    worlds = tuple(world(dice, f"{run}-{index}", spaces) for index in range(WORLDS))
    made = [obj for one in worlds for obj in one.objects]
    for obj in made:
        cluster.create(obj)
    wait_until(lambda: _are_aggregated(cluster, worlds))
    made += _until_all_is_seen(cluster, f"{run}-last", spaces[0])
    yield Scene(cluster, seed, worlds, _live(cluster))
    refs = [ObjectRef.of(obj) for obj in made if not ObjectRef.of(obj).namespace]
    for ref in (*refs, *(ObjectRef("", "v1", "Namespace", "", name) for name in spaces)):
        with contextlib.suppress(PratiqueError):  # cleaning up is no part of the test
            cluster.delete(ref)


def _until_all_is_seen(cluster: ClusterClient, name: str, namespace: str) -> list[dict[str, Any]]:
    """Make one more object of each kind, and wait for these: an authorizer that sees them has seen all before."""
    made = [
        cluster_role(name, rule("get", "nodes")),
        role(namespace, name, rule("get", "pods")),
        bound(name, user(name)),
        bound(name, user(name), namespace=namespace, kind="Role"),
    ]
    for obj in made:
        cluster.create(obj)
    until_may(cluster, Identity(name), AccessRequest("get", resource="nodes"))
    until_may(cluster, Identity(name), AccessRequest("get", resource="pods", namespace=namespace))
    return made


def _are_aggregated(cluster: ClusterClient, worlds: tuple[World, ...]) -> bool:
    """Whether the controller has given every aggregated role as many rules as those have that it selects."""
    for one in worlds:
        selected = [obj for obj in one.objects if (obj["metadata"].get("labels") or {}).get("world") == one.prefix]
        found = cluster.get(ObjectRef(API, "v1", "ClusterRole", "", f"{one.prefix}-{AGGREGATED}")) or {}
        different = {str(entry) for obj in selected for entry in obj["rules"]}
        if len(found.get("rules") or []) < len(different):
            return False
    return True


def _live(cluster: ClusterClient) -> RbacObjects:
    found: list[dict[str, Any]] = []
    for kind in KINDS:
        resource = cluster.resource_of(API, "v1", kind)
        assert resource is not None
        found += cluster.list(resource)
    return RbacObjects.of(found)


def test_allows_answers_as_the_api_server_does(scene: Scene) -> None:
    dice, asked, allowed, different = random.Random(scene.seed + 1), 0, 0, []
    for one in scene.worlds:
        for identity in one.identities:
            effective = effective_rules(identity, scene.live)
            questions = {question(dice, one) for _ in range(QUESTIONS_PER_IDENTITY)}
            answers = ask_many(scene.cluster, identity, sorted(questions, key=str))
            for request, answer in answers.items():
                asked, allowed = asked + 1, allowed + answer.allowed
                held = effective.rules_in("" if request.path else request.namespace)
                if {allows(held, request), allows_in(effective, request)} != {answer.allowed}:
                    different.append(f"{identity.username}: {request}: the server says {answer}")
    assert not different, f"seed {scene.seed}: {different[:5]}"
    assert asked >= 2000
    assert min(allowed, asked - allowed) >= asked / 20, "questions with one answer only prove nothing"


def test_escalation_and_bind_are_decided_as_the_api_server_does(scene: Scene) -> None:
    """Roles and bindings written by a dry-run as somebody who may write them, but not grant what they do not hold."""
    dice, run = random.Random(scene.seed + 2), scene.worlds[0].prefix.partition("-")[0]
    writers = [_writer(scene, dice, f"{run}-writer-{index}") for index in range(WORLDS)]
    _until_all_is_seen(scene.cluster, f"{run}-last-writer", scene.worlds[0].namespaces[0])
    live = _live(scene.cluster)
    refused, different = 0, []
    for index in range(WRITES):
        identity = dice.choice(writers)
        obj = _written(dice, scene, f"{run}-written-{index}")
        expected = _allowed_here(identity, obj, live)
        words = _refusal(scene.cluster.acting_as(identity), obj)
        refused += bool(words)
        if expected is bool(words):
            different.append(f"{identity.username} writes {obj}: the server says {words or 'yes'}")
    assert not different, f"seed {scene.seed}: {different[:3]}"
    assert min(refused, WRITES - refused) >= WRITES / 20, "writes with one answer only prove nothing"


def _writer(scene: Scene, dice: random.Random, name: str) -> Identity:
    """Somebody who may write roles and bindings, and holds something at random, now and then escalate or bind."""
    held = [rule("create patch get", "roles clusterroles rolebindings clusterrolebindings", group=API)]
    held += rules(dice, at_most=6)
    if dice.random() < 0.5:
        held.append(rule(dice.choice(("escalate", "bind")), dice.choice(("roles", "clusterroles")), group=API))
    if dice.random() < 0.2:
        held += [rule("*", "*", group="*"), rule("*", urls="*")]
    bindings = (bound(name, user(name)), bound(name, user(name), namespace=scene.worlds[0].namespaces[0]))
    made = [cluster_role(name, *held), *(bindings[:1] if dice.random() < 0.7 else bindings[1:])]
    if made[-1]["kind"] == "RoleBinding":
        made += [cluster_role(f"{name}-w", held[0]), bound(f"{name}-w", user(name))]
    for obj in made:
        scene.cluster.create(obj)
    return Identity(name, ("system:authenticated",))


def _written(dice: random.Random, scene: Scene, name: str) -> dict[str, Any]:
    place = dice.choice(scene.worlds[0].namespaces)
    whom = user("somebody")
    match dice.choice(("Role", "ClusterRole", "Aggregated", "RoleBinding", "ClusterRoleBinding")):
        case "Role":
            return role(place, name, *rules(dice, at_most=1, with_urls=False))
        case "ClusterRole":
            return cluster_role(name, *rules(dice, at_most=1))
        case "Aggregated":
            selector = {"matchLabels": {"world": "none"}}
            return cluster_role(name, aggregationRule={"clusterRoleSelectors": [selector]})
        case "RoleBinding":
            of_role = dice.random() < 0.3
            picked = dice.choice(scene.worlds).prefix
            to = f"{picked}-{scene.worlds[0].namespaces.index(place)}" if of_role else f"{picked}-{dice.randrange(5)}"
            made = bound(to, whom, namespace=place, kind="Role" if of_role else "ClusterRole")
        case _:
            made = bound(f"{dice.choice(scene.worlds).prefix}-{dice.randrange(5)}", whom)
    return {**made, "metadata": {**made["metadata"], "name": name}}


def _allowed_here(identity: Identity, obj: dict[str, Any], live: RbacObjects) -> bool:
    requester = effective_rules(replace(identity), live)
    if obj["kind"].endswith("Binding"):
        return may_write_binding(requester, obj, live).allowed
    return may_write_role(requester, obj).allowed


def _refusal(cluster: ClusterClient, obj: dict[str, Any]) -> str:
    try:
        cluster.apply(obj, field_manager="differential", dry_run=True)
    except ClusterError as exc:
        return str(exc)
    return ""
