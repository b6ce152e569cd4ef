"""One deployment on the sandbox whose objects become healthy, or not, as a test has them painted."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import BundleDeployment, Content, InventoryItem, Request, Revision
from approvals.steps.mirroring import conditions
from approvals.steps.running import observe
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import Health, HealthState, ObjectRef
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled

BLUE = {"apiVersion": "v1", "kind": "ConfigMap", "fieldValue": {"path": "data.colour", "value": "blue"}}


class Quay:
    """One deployment with ConfigMaps in the sandbox, applied long enough ago to be late."""

    def __init__(self, env: World, sandbox: Endpoint) -> None:
        env.cluster.kubeconfig = sandbox.kubeconfig("admin")
        env.cluster.save()
        self.env, self.api = env, Api.connect(env.cluster.kubeconfig, timeout_seconds=scaled(60))
        self.namespace = f"quay-{uuid.uuid4().hex[:8]}"
        self.account = f"system:serviceaccount:{self.namespace}:installer"
        self._make("v1", "Namespace", self.namespace, "")
        self._make("v1", "ServiceAccount", "installer", self.namespace)
        self.allow()

    def _make(self, api_version: str, kind: str, name: str, namespace: str, **rest: Any) -> dict[str, Any]:
        meta = {"name": name} | ({"namespace": namespace} if namespace else {})
        return self.api.create({"apiVersion": api_version, "kind": kind, "metadata": meta, **rest})

    def allow(self) -> None:
        account = {"kind": "ServiceAccount", "name": "installer", "namespace": self.namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        api_version = "rbac.authorization.k8s.io/v1"
        self._make(api_version, "ClusterRoleBinding", self.namespace, "", subjects=[account], roleRef=role)

    def deployment(self, *, minutes_ago: int = 20, **options: Any) -> BundleDeployment:
        spec = world.spec(**{"installNamespace": self.namespace, "progressDeadlineMinutes": 10, **options})
        deployment = world.submit_spec(self.env.cluster, world.seen("web", spec), self.env.rita)
        request = world.in_review(deployment.requests.get())
        Request.objects.filter(pk=request.pk).update(state="applied")
        applied = timezone.now() - timedelta(minutes=minutes_ago)
        facts = {"content": Content.objects.get(), "state": "active", "started_at": applied, "finished_at": applied}
        deployment.active_revision = Revision.objects.create(deployment=deployment, number=1, request=request, **facts)
        deployment.save(update_fields=["active_revision"])
        return deployment

    def own(self, deployment: BundleDeployment, name: str, **values: str) -> None:
        made = self._make("v1", "ConfigMap", name, self.namespace, data=values)
        place = {"version": "v1", "kind": "ConfigMap", "namespace": self.namespace, "name": name}
        InventoryItem.objects.create(deployment=deployment, nonce=name, uid=made["metadata"]["uid"], **place)

    def paint(self, name: str, colour: str) -> None:
        obj = self.api.get(ObjectRef("", "v1", "ConfigMap", self.namespace, name))
        assert obj is not None
        self.api.replace({**obj, "data": {"colour": colour}})

    def look(self, deployment: BundleDeployment) -> Health:
        observe.observe(deployment)
        deployment.refresh_from_db()
        return Health(HealthState(deployment.health), deployment.health_message)


@pytest.fixture
def quay(env: World, sandbox: Endpoint) -> Quay:
    return Quay(env, sandbox)


def healthy_condition(deployment: BundleDeployment) -> tuple[bool, str]:
    (one,) = [it for it in conditions.of_deployment(deployment, None, "", "") if it.type == "Healthy"]
    return one.is_true, one.reason
