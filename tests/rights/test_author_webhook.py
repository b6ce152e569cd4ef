"""The webhook's manifests: the real API server takes them, and what runs has no token, no rights and nobody to meet."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.cluster.client.api import ClusterClient as Api
from tests.rights.conftest import Noted
from tests.rights.household import prepare
from tests.support.folders import ROOT
from tests.support.patience import scaled

FILE = ROOT / "deploy/admission/author-webhook.yaml"
OBJECTS: list[dict[str, Any]] = [*yaml.safe_load_all(FILE.read_text())]


def only(kind: str) -> dict[str, Any]:
    (found,) = [one for one in OBJECTS if one["kind"] == kind]
    return found


def test_the_api_server_takes_the_file_without_a_warning(noted: Noted, tmp_path: Path) -> None:
    prepare(Api.connect(noted.control_plane.kubeconfig("admin"), timeout_seconds=scaled(60)))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(noted.control_plane.kubeconfig("admin"))
    words = ["apply", "--server-side", "--dry-run=server", "-f", str(FILE)]
    command = [str(noted.control_plane.kubectl), "--kubeconfig", str(kubeconfig), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(60))
    assert (done.returncode, done.stderr) == (0, "")


def test_S31_it_has_no_token_no_role_and_no_way_out() -> None:
    spec = only("Deployment")["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert only("ServiceAccount")["automountServiceAccountToken"] is False
    assert not [one for one in OBJECTS if one["kind"].endswith(("Role", "Binding"))]
    (container,) = spec["containers"]
    assert "envFrom" not in container
    policy = only("NetworkPolicy")["spec"]
    assert "egress" not in policy
    assert policy["policyTypes"] == ["Ingress", "Egress"]


@pytest.mark.parametrize("kind", ["Service", "NetworkPolicy", "PodDisruptionBudget"])
def test_each_selector_finds_the_pods(kind: str) -> None:
    labels = only("Deployment")["spec"]["template"]["metadata"]["labels"]
    spec = only(kind)["spec"]
    selector = spec.get("selector") or spec["podSelector"]
    assert selector.get("matchLabels", selector) == labels


def test_the_configuration_names_the_service_and_the_certificate_its_name() -> None:
    (hook,) = only("MutatingWebhookConfiguration")["webhooks"]
    service, about = hook["clientConfig"]["service"], only("Service")["metadata"]
    assert (service["name"], service["namespace"]) == (about["name"], about["namespace"])
    _, certificate = yaml.safe_load_all((FILE.parent / "author-webhook-certificate.yaml").read_text())
    assert certificate["spec"]["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
    volumes = only("Deployment")["spec"]["template"]["spec"]["volumes"]
    (secret,) = [one["secret"]["secretName"] for one in volumes if "secret" in one]
    assert certificate["spec"]["secretName"] == secret
    issued = only("MutatingWebhookConfiguration")["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert issued == f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
