"""One suite, two API servers: where they differ, the sandbox is wrong."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.endpoint import Endpoint


@dataclass(frozen=True)
class Server:
    """An API server with kubectl, and a namespace of the test's own."""

    endpoint: Endpoint
    kubectl: str
    kubeconfig: Path
    namespace: str

    def run(self, *words: str, user: str = "admin", given: str = "") -> subprocess.CompletedProcess[str]:
        command = [self.kubectl, "--kubeconfig", str(self.kubeconfig), "--context", user, *words]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=60)

    def ctl(self, *words: str, user: str = "admin", given: Any = None) -> str:
        text = given if isinstance(given, str) else json.dumps(given) if given is not None else ""
        done = self.run(*words, user=user, given=text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, *words: str) -> Any:
        shown = self.ctl("get", *words, "-n", self.namespace, "-o", "json", "--show-managed-fields")
        return json.loads(shown)

    def apply(self, obj: dict[str, Any], manager: str = "one", *flags: str) -> subprocess.CompletedProcess[str]:
        words = ("apply", "--server-side", f"--field-manager={manager}", "-n", self.namespace, "-f", "-", *flags)
        return self.run(*words, given=json.dumps(obj))


@pytest.fixture(params=[pytest.param("controlplane", marks=pytest.mark.controlplane), "sandbox"])
def server(request: pytest.FixtureRequest, kubectl: str, tmp_path: Path) -> Iterator[Server]:
    endpoint = request.getfixturevalue(request.param)
    kubeconfig = tmp_path / "kubeconfig"
    endpoint.write(kubeconfig)
    made = Server(endpoint, str(kubectl), kubeconfig, f"contract-{uuid.uuid4().hex[:8]}")
    made.ctl("create", "namespace", made.namespace)
    yield made
    made.ctl("delete", "namespace", made.namespace, "--wait=false")
