"""The plug-in beside a cluster and a service, with a configuration folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provisioner.cli.kubectl import main
from tests.provisioner.cli.kubectl.scene import Recorder, recording, wish
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("PRATIQUE_SERVICE", "PRATIQUE_SERVICE_CA", "KUBECONFIG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    # Nothing merges kubeconfigs then: what is tested is the plug-in, with any kubectl of this machine or none.
    monkeypatch.setenv("PATH", "")
    return tmp_path / "config" / "kubectl-pratique"


@pytest.fixture
def service() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def run(own_sandbox: Endpoint, service: Recorder, tmp_path: Path) -> Run:
    """A command as admin of a cluster with the request web-2, whose page is at the service."""
    wish(own_sandbox, tmp_path, page=f"{service.url}/requests/some-uid")
    path = kubeconfig(own_sandbox, tmp_path)

    def one(*words: str) -> int:
        return main([*words, "--kubeconfig", str(path)])

    return one
