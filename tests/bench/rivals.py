"""Who else writes the same objects to the same API server: kubectl, kapp, helm, and a client that does nothing else."""

from __future__ import annotations

import ssl
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import urllib3
import yaml

from provisioner.values import ObjectRef
from tests.support.built import built
from tests.support.kubernetes.endpoint import Endpoint

THREADS = 8
_PLURALS = {"apps": "apis/apps/v1", "rbac.authorization.k8s.io": "apis/rbac.authorization.k8s.io/v1", "": "api/v1"}


class Rival(ABC):
    """One tool with a namespace of its own; `ready` is not timed, `apply` is."""

    def __init__(self, name: str, namespace: str):
        self.name = name
        self.namespace = namespace

    @abstractmethod
    def ready(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Put `objects` where the tool wants to find them."""

    @abstractmethod
    def apply(self) -> None:
        """Write what was made ready, and wait for nothing else."""


class Tool(Rival):
    """A program that reads a file; the words FILE, NAME and NAMESPACE of its command are filled in."""

    def __init__(self, name: str, namespace: str, file: Path, command: Sequence[str | Path]):
        super().__init__(name, namespace)
        self.file = file
        self._command = [str(word).format(NAMESPACE=namespace) for word in command]

    def ready(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(yaml.dump_all(objects, Dumper=yaml.CSafeDumper))

    def apply(self) -> None:
        done = subprocess.run(self._command, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


class Bare(Rival):
    """Nothing but server-side apply on kept connections: what the API server lets anybody do from Python."""

    def __init__(self, namespace: str, endpoint: Endpoint):
        super().__init__("bare", namespace)
        self._server = endpoint.server
        self._pool = urllib3.PoolManager(
            maxsize=THREADS, ssl_context=ssl.create_default_context(cadata=endpoint.ca_pem), retries=False
        )
        self._headers = {
            "Authorization": f"Bearer {endpoint.tokens['admin']}",
            "Content-Type": "application/apply-patch+yaml",
        }
        self._todo: list[tuple[str, Mapping[str, Any]]] = []

    def ready(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self._todo = [(self._address(ObjectRef.of(one)), one) for one in objects]

    def apply(self) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            found = set(pool.map(self._write, self._todo))
        assert found <= {200, 201}, found

    def _write(self, job: tuple[str, Mapping[str, Any]]) -> int:
        address, body = job
        return self._pool.request("PATCH", address, body=orjson.dumps(body), headers=self._headers).status

    def _address(self, ref: ObjectRef) -> str:
        place = f"{self._server}/{_PLURALS[ref.group]}/namespaces/{ref.namespace}/{ref.kind.lower()}s/{ref.name}"
        return f"{place}?fieldManager=bare&fieldValidation=Strict"


def rivals(endpoint: Endpoint, kubeconfig: Path, folder: Path, tag: str) -> list[Rival]:
    """Everybody who is to be had here, each with the namespace bench-`tag`-NAME; kubectl comes first."""
    at = f"--kubeconfig={kubeconfig}"
    found: list[Rival] = [_kubectl(endpoint, f"bench-{tag}-kubectl", folder, at), Bare(f"bench-{tag}-bare", endpoint)]
    if kapp := built("kapp", "carvel.dev/kapp/cmd/kapp"):
        file = folder / "kapp.yaml"
        words = ["deploy", "-a", "bench", "-n", "{NAMESPACE}", "-f", file, "--yes", "--wait=false", "--tty=false"]
        found.append(Tool("kapp", f"bench-{tag}-kapp", file, [kapp, *words, at]))
    if helm := built("helm", "helm.sh/helm/v3/cmd/helm"):
        chart = folder / "chart"
        words = ["upgrade", "--install", "bench", chart, "--namespace", "{NAMESPACE}"]
        found.append(Tool("helm", f"bench-{tag}-helm", _chart(chart), [helm, *words, at]))
    return found


def _kubectl(endpoint: Endpoint, namespace: str, folder: Path, at: str) -> Tool:
    file = folder / "kubectl.yaml"
    return Tool("kubectl", namespace, file, [endpoint.kubectl, at, "apply", "--server-side", "-f", file])


def _chart(folder: Path) -> Path:
    """A chart without any values; where its one template is to be written."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: bench\nversion: 0.1.0\n")
    return folder / "templates" / "objects.yaml"
