"""The preflight held to its word by a real API server: with the rules that it names a bundle is installed, not before."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import yaml

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.order import phases
from provisioner.errors import ClusterError, PratiqueError
from provisioner.pipeline import FIELD_MANAGER, preflight
from provisioner.rbac import RbacSubject
from provisioner.review.preflight.answer import Preflight
from provisioner.review.preflight.findings import as_yaml
from provisioner.values import Content, ObjectRef, Severity
from tests.support.patience import scaled, wait_for
from tests.support.provisioner.contents import an_object, content_with
from tests.support.provisioner.roles import account, bound, cluster_role, role, rule

pytestmark = pytest.mark.controlplane


@dataclass(frozen=True)
class Scene:
    cluster: ClusterClient
    namespace: str
    installer: RbacSubject
    content: Content

    def preflight(self) -> Preflight:
        return preflight(self.cluster, self.content, account=self.installer)

    def grant(self, objects: list[dict[str, Any]]) -> None:
        for obj in objects:
            self.cluster.apply(obj, field_manager="test")

    def install(self) -> None:
        """Apply everything in its order as the installer; what was made a moment ago may not be seen at once."""
        acting = self.cluster.acting_as(self.installer.identity)
        for manifest in (one for phase in phases(self.content.manifests) for one in phase.manifests):
            wait_for(partial(_refusal, acting, manifest.body), "it is applied", is_so=lambda found: found is None)


def _refusal(acting: ClusterClient, obj: dict[str, Any]) -> ClusterError | None:
    try:
        acting.apply(obj, field_manager=FIELD_MANAGER)
    except ClusterError as exc:
        return exc
    return None


@pytest.fixture
def scene(controlplane: Any) -> Iterator[Scene]:
    cluster = ClusterClient.connect(controlplane.kubeconfig("admin"), timeout_seconds=scaled(60))
    name = f"preflight-{uuid.uuid4().hex[:8]}"
    cluster.create(an_object("v1", "Namespace", name))
    cluster.create(an_object("v1", "ServiceAccount", "installer", name))
    content = content_with(*bundle(name))
    yield Scene(cluster, name, RbacSubject("ServiceAccount", "installer", name), content)
    refs = [manifest.ref for manifest in content.manifests if not manifest.ref.namespace]
    refs += [ObjectRef("rbac.authorization.k8s.io", "v1", kind, "", f"{name}-installer-preflight") for kind in KINDS]
    for ref in (*refs, ObjectRef("", "v1", "Namespace", "", name)):
        with contextlib.suppress(PratiqueError):  # cleaning up is no part of the test
            cluster.delete(ref)


KINDS = ("ClusterRole", "ClusterRoleBinding")


def bundle(name: str) -> tuple[dict[str, Any], ...]:
    """A namespace, a CRD with an object of it, roles that grant, one that aggregates, bindings, and what runs."""
    group, place = f"{name}.example.com", f"{name}-more"
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    names = {"plural": "orders", "singular": "order", "kind": "Order", "listKind": "OrderList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    definition = an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"orders.{group}", spec=spec)
    selector = {"matchLabels": {name: "yes"}}
    mine = rule("get create patch", "configmaps")
    return (
        an_object("v1", "Namespace", place),
        definition,
        an_object(f"{group}/v1", "Order", "one", place),
        an_object("v1", "ServiceAccount", "robot", name),
        cluster_role(f"{name}-robot", rule("get list", "secrets"), rule("get", urls="/metrics")),
        bound(f"{name}-robot", account("robot", name)),
        cluster_role(f"{name}-sum", aggregationRule={"clusterRoleSelectors": [selector]}),
        role(place, "own", rule("*", "orders", group=group)),
        bound("own", account("robot", name), namespace=place, kind="Role"),
        bound("view", account("robot", name), namespace=name),
        role(place, "gift", mine),
        bound("gift", account("installer", name), namespace=place, kind="Role"),
        an_object("v1", "ConfigMap", "settings", name, data={"a": "b"}),
    )


def test_a_bundle_is_installed_with_the_rules_that_were_missing_and_not_before(scene: Scene) -> None:
    before = scene.preflight()
    assert before.verdict is Severity.BREAKING
    assert {"PRE-01", "PRE-02", "PRE-03", "PRE-04"} <= {finding.rule for finding in before.findings}
    scene.grant(list(yaml.safe_load_all(as_yaml(before))))
    after = _settled(scene)
    assert (after.verdict, after.missing, after.excess) == (Severity.SAFE, (), ())
    scene.install()


def test_each_missing_rule_is_denied_by_the_api_server_itself(scene: Scene) -> None:
    said = [
        words
        for finding in scene.preflight().findings
        if finding.rule == "PRE-01"
        for words in finding.evidence["said"]
    ]
    assert said
    assert all("the API server says no" in words for words in said)


def test_what_the_server_refuses_for_another_reason_is_said(scene: Scene) -> None:
    boss = bound("cluster-admin", account("installer", scene.namespace))
    boss["metadata"]["name"] = f"{scene.namespace}-installer-preflight"
    quota = an_object("v1", "ResourceQuota", "none", scene.namespace, spec={"hard": {"count/configmaps": "0"}})
    scene.grant([boss, quota])
    answer = _settled(scene, wanted="PRE-09")
    refused = [finding for finding in answer.findings if finding.rule == "PRE-09"]
    assert [one.ref.kind for one in refused if one.ref] == ["ConfigMap"]
    assert "the API server refuses it (Forbidden)" in refused[0].message
    assert "quota" in refused[0].server_words
    assert any(finding.rule == "PRE-10" and finding.severity is Severity.DANGEROUS for finding in answer.findings)


def _settled(scene: Scene, wanted: str = "") -> Preflight:
    """The preflight once the API server's authorizer and quota have seen what was granted."""

    def is_settled(answer: Preflight) -> bool:
        found = {finding.rule for finding in answer.findings}
        return wanted in found and "PRE-01" not in found if wanted else answer.verdict is Severity.SAFE

    return wait_for(scene.preflight, f"the preflight finds {wanted or 'nothing'}", is_so=is_settled, every=0.5)
