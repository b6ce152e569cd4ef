"""What the tests of plan and apply build with: small objects, contents, and one deployment's inventory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from provisioner.cluster.apply.run import Terms, apply
from provisioner.cluster.apply.waits import Patience
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryInventory, uids
from provisioner.cluster.plan.content_plan import plan
from provisioner.cluster.plan.helm_releases import IS_HELM, LABEL, NAME, NAMESPACE
from provisioner.cluster.plan.inputs import Options
from provisioner.values import (
    AccessRequest,
    Action,
    Content,
    Identity,
    Manifest,
    ObjectOutcome,
    ObjectRef,
    OutcomeState,
    Plan,
    PlannedAction,
)
from tests.support.kubernetes.live import edit, until_may
from tests.support.patience import scaled

MANAGER = "pratique-test"


@dataclass
class Scene:
    """One deployment on one cluster."""

    cluster: ClusterClient
    namespace: str
    inventory: MemoryInventory = field(default_factory=MemoryInventory)

    def content(self, *objects: dict[str, Any]) -> Content:
        return content(objects)

    def plan(self, *objects: dict[str, Any], previous: Content | None = None, **options: Any) -> Plan:
        return plan(
            self.cluster,
            content(objects),
            inventory=uids(self.inventory.items().values()),
            previous=previous,
            field_manager=MANAGER,
            options=Options(**{"is_removal": not objects, **options}),
        )

    def apply(
        self, planned: Plan, *objects: dict[str, Any], wait_seconds: float | None = None, **terms: Any
    ) -> list[ObjectOutcome]:
        """`wait_seconds` is for each wait; the writes have all of the time, so that a slow machine fails none."""
        agreed = Terms(MANAGER, **{"timeout_seconds": scaled(60.0), **terms})
        with pytest.MonkeyPatch.context() as patch:
            if wait_seconds is not None:
                patch.setattr(Patience, "left", wait_seconds)
            return list(apply(self.cluster, content(objects), planned, self.inventory, agreed))

    def deploy(self, *objects: dict[str, Any], **terms: Any) -> list[ObjectOutcome]:
        return self.apply(self.plan(*objects), *objects, **terms)

    def live(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        return self.cluster.get(ObjectRef.of(obj))

    def edit(self, obj: dict[str, Any], change: Callable[[Any], object], *, manager: str) -> None:
        edit(self.cluster, ObjectRef.of(obj), change, manager=manager)

    def until_may(self, who: Identity, verb: str, resource: str, group: str = "", name: str = "") -> None:
        """Until the server has seen what was granted to `who` here a moment ago."""
        until_may(self.cluster, who, AccessRequest(verb, group, resource, namespace=self.namespace, name=name))

    def config_map(self, name: str = "settings", **values: str) -> dict[str, Any]:
        return self.namespaced("v1", "ConfigMap", name, data=values)

    def secret(self, name: str = "token", **values: str) -> dict[str, Any]:
        return self.namespaced("v1", "Secret", name, stringData=values)

    def namespaced(self, api_version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
        meta = {"name": name, "namespace": self.namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}

    def deployment(self, name: str = "web", *, image: str = "example.com/web:1", replicas: int = 1) -> dict[str, Any]:
        labels = {"app": name}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
        return self.namespaced("apps/v1", "Deployment", name, spec=spec)

    def service(self, name: str = "web") -> dict[str, Any]:
        return self.namespaced("v1", "Service", name, spec={"selector": {"app": name}, "ports": [{"port": 80}]})

    def autoscaler(self, name: str = "web") -> dict[str, Any]:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}
        return self.namespaced("autoscaling/v2", "HorizontalPodAutoscaler", name, spec=spec)

    def of_helm(self, obj: dict[str, Any], release: str = "shop") -> dict[str, Any]:
        """As `helm install` leaves an object: by an update, with its marks."""
        meta = {
            **obj["metadata"],
            "annotations": {NAME: release, NAMESPACE: self.namespace},
            "labels": {LABEL: IS_HELM},
        }
        return self.cluster.create({**obj, "metadata": meta}, field_manager="helm")

    def job(self, name: str = "migrate", *, image: str = "example.com/migrate:1") -> dict[str, Any]:
        limits = {"limits": {"cpu": "1000m", "memory": "1024Mi"}}
        container = {"name": "main", "image": image, "resources": limits}
        pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        return self.namespaced("batch/v1", "Job", name, spec={"template": pod})

    @property
    def group(self) -> str:
        return f"{self.namespace}.example.com"

    def definition(self, *, plural: str = "widgets", kind: str = "Widget", fields: Iterable[str] = ("size",)) -> Any:
        properties = {name: {"type": "integer"} for name in fields} | {"colour": {"type": "string", "default": "red"}}
        spec = {"type": "object", "properties": properties}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        }

    def widget(self, name: str = "one", **spec: int) -> dict[str, Any]:
        return self.namespaced(f"{self.group}/v1", "Widget", name, spec=spec or {"size": 1})


def content(objects: Iterable[dict[str, Any]]) -> Content:
    return Content(tuple(Manifest(obj) for obj in objects), "default", "installer", (), "sha256:0")


def action_of(planned: Plan, obj: dict[str, Any]) -> PlannedAction:
    identity = ObjectRef.of(obj).identity
    return next(one for one in planned.actions if one.ref.identity == identity)


def actions(planned: Plan) -> dict[str, Action]:
    return {f"{one.ref.kind}/{one.ref.name}": one.action for one in planned.actions}


def states(outcomes: Iterable[ObjectOutcome]) -> dict[str, OutcomeState]:
    return {f"{one.ref.kind}/{one.ref.name}": one.state for one in outcomes}


def failures(outcomes: Iterable[ObjectOutcome]) -> list[str]:
    return [f"{one.ref}: {one.message}" for one in outcomes if one.state is OutcomeState.FAILED]


def a_bundle(scene: Scene, image: str = "1") -> list:
    return [
        scene.definition(),
        scene.widget(size=int(image)),
        scene.config_map(version=image),
        scene.secret(version=image),
        scene.service(),
        scene.deployment(image=f"example.com/web:{image}", replicas=0),
        scene.job(image=f"example.com/migrate:{image}"),
    ]
