"""`kubectl pratique rbac` on a real API server: with what it prints a bundle is installed, and with less it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.cluster.client.api import ClusterClient
from provisioner.values import Identity
from tests.provisioner.cli.kubectl.extensions.installers import LeastInstaller, printed, rules_in
from tests.provisioner.cli.kubectl.extensions.scene import RBAC, ExtensionScene
from tests.support.folders import CORPUS
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.kubernetes.kubectl import kubeconfig

HOOK = {"helm.sh/hook": "pre-install", "helm.sh/hook-delete-policy": "hook-succeeded"}

PLAIN, HELM, REGISTRY = ("--format", "plain"), ("--format", "helm"), ("--format", "registry-v1")
CORPUS_BUNDLES = (
    ("charts/grafana-operator/v5.6.0", *HELM),
    ("charts/ingress-nginx/4.15.1", *HELM),
    ("charts/kube-state-metrics/8.4.0", *HELM),
    ("charts/prometheus-node-exporter/4.56.1", *HELM),
    ("charts/strimzi-kafka-operator/1.0.0", *HELM),
    ("bundles/cockroachdb/5.0.4", *REGISTRY),
    ("bundles/grafana-operator/v5.10.0", *REGISTRY),
    ("bundles/keda/2.0.0", *REGISTRY),
    ("bundles/kiali/1.36.0", *REGISTRY),
    ("bundles/kogito-operator/1.7.0", *REGISTRY),
    ("bundles/service-binding-operator/0.8.0", *REGISTRY),
    ("plain/argo-cd/v2.14.0", *PLAIN),
    ("plain/ingress-nginx/controller-v1.15.1/provider/cloud", *PLAIN),
)


def chart(folder: Path, mark: str) -> Path:
    """A setting, an operator's rights, and a hook that is deleted once it succeeded."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    v1 = f"{RBAC}/v1"
    wide = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"], "resourceNames": ["one"]}
    subject = {"kind": "ServiceAccount", "name": "shop", "namespace": mark}
    job = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/migrate:1"}]}
    objects = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "shop"}},
        {"apiVersion": v1, "kind": "ClusterRole", "metadata": {"name": f"{mark}-shop"}, "rules": [wide]},
        {"apiVersion": v1, "kind": "Role", "metadata": {"name": "shop"}, "rules": [secrets]},
        {
            "apiVersion": v1,
            "kind": "RoleBinding",
            "metadata": {"name": "shop"},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "shop"},
            "subjects": [subject],
        },
        {
            "apiVersion": v1,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{mark}-view"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
            "subjects": [subject],
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "migrate", "annotations": HOOK},
            "spec": {"template": {"spec": job}},
        },
    ]
    (folder / "templates/all.yaml").write_text(yaml.safe_dump_all(objects))
    return folder


@pytest.mark.thorough
def test_a_chart_with_hooks_is_installed_by_what_is_printed_and_by_no_rule_less(
    scene: ExtensionScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = chart(tmp_path / "chart", scene.mark)
    words = (str(place), "--format", "helm", "--install-namespace", scene.mark, "--role-name", f"{scene.mark}-least")
    status, objects, said = printed(capsys, kubeconfig(scene.endpoint, tmp_path), *words)
    assert (status, said) == (0, "")
    kinds = [one["kind"] for one in objects]
    assert kinds == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    installer = LeastInstaller(scene.api, Identity.of_service_account(scene.mark, "installer"), words)
    assert_each_rule_is_needed(installer, objects)


def test_a_namespace_that_is_not_there_and_a_kind_that_nobody_serves_are_said(
    scene: ExtensionScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "one.yaml"
    place.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}))
    config = kubeconfig(scene.endpoint, tmp_path)
    status, objects, said = printed(capsys, config, str(place), "--install-namespace", f"{scene.mark}-no")
    assert (status, len(objects)) == (1, 3)
    assert f"there is no namespace {scene.mark}-no for the account" in said
    place.write_text(yaml.safe_dump({"apiVersion": f"{scene.group}/v1", "kind": "Widget", "metadata": {"name": "one"}}))
    status, objects, said = printed(capsys, config, str(place), "--install-namespace", scene.mark)
    assert (status, len(objects)) == (2, 1)
    assert f"Nobody serves Widget in {scene.group}/v1" in said


def test_with_deletion_the_account_may_delete_all_of_it_and_hooks_of_deletions_too(
    scene: ExtensionScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = chart(tmp_path / "chart", scene.mark)
    farewell = place / "templates/farewell.yaml"
    farewell.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: farewell, annotations: {helm.sh/hook: pre-delete}}\n"
    )
    words = (str(place), "--format", "helm", "--install-namespace", scene.mark, "--role-name", f"{scene.mark}-least")
    status, objects, said = printed(capsys, kubeconfig(scene.endpoint, tmp_path), *words, "--with-deletion")
    assert (status, said) == (0, "")
    installer = LeastInstaller(scene.api, Identity.of_service_account(scene.mark, "installer"), words)
    installer.give(objects)
    assert installer.refusals() == []
    for ref in installer.written:
        installer.acting.delete(ref)
    installer.acting.apply(
        yaml.safe_load(farewell.read_text()) | {"metadata": {"name": "farewell", "namespace": scene.mark}},
        field_manager="pratique",
    )


@pytest.mark.thorough
@pytest.mark.corpus
@pytest.mark.parametrize("bundle", CORPUS_BUNDLES, ids=lambda one: one[0])
def test_bundles_of_the_corpus_are_installed_by_what_is_printed_and_by_no_rule_less(
    own_controlplane: ControlPlane, bundle: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = bundle
    words = (str(CORPUS / name), *options, "--install-namespace", "inst")
    config = kubeconfig(own_controlplane.endpoint, tmp_path)
    api = ClusterClient.connect(config.read_text(), trusted=True)
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "inst"}}, field_manager="administrator")
    status, objects, said = printed(capsys, config, *words)
    assert (status, said) == (0, "")
    installer = LeastInstaller(api, Identity.of_service_account("inst", "installer"), words)
    assert_each_rule_is_needed(installer, objects)


def assert_each_rule_is_needed(installer: LeastInstaller, objects: list[dict[str, Any]]) -> None:
    """Rules for definitions first, while none of them is there."""
    installer.give(objects)
    places = list(rules_in(objects))
    of_definitions = [
        one for one in places if "customresourcedefinitions" in rule_at(objects, one).get("resources", ())
    ]
    for missing in of_definitions:
        assert_it_is_needed(installer, objects, missing)
    assert installer.refusals() == []
    for missing in places:
        installer.clear()
        if missing not in of_definitions:
            assert_it_is_needed(installer, objects, missing)


def assert_it_is_needed(installer: LeastInstaller, objects: list[dict[str, Any]], missing: tuple[int, int]) -> None:
    installer.lose(objects, missing)
    assert installer.refusals(), f"nothing needs {rule_at(objects, missing)}"
    installer.clear()
    installer.give(objects)


def rule_at(objects: list[dict[str, Any]], place: tuple[int, int]) -> dict[str, Any]:
    found: dict[str, Any] = objects[place[0]]["rules"][place[1]]
    return found
