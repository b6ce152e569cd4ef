"""Fixtures of the real Kubernetes: one control plane for the whole test run, shared by all its workers.

Whoever needs it first starts `tests/controlplane/run`, which watches the process of the test run itself and stops when
that ends, however it ends. Tests share the cluster and use namespaces and names of their own. A test that must restart
the API server takes `own_controlplane`.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.built import build_environment
from tests.support.folders import ROOT
from tests.support.kubernetes.controlplane import START_SECONDS, ControlPlane
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.process import ServiceFailed, wait_until

CONTROLPLANE = ROOT / "tests/controlplane"
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The folder of Kubernetes' binaries, built now (minutes) if they never were."""
    built = subprocess.run(
        [sys.executable, CONTROLPLANE / "build"],
        env=build_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        pytest.fail(f"tests/controlplane/build failed:\n{built.stderr[-4000:]}")
    return Path(built.stdout.splitlines()[0])


@pytest.fixture(scope="session")
def kubectl(binaries: Path) -> Path:
    """The real kubectl 1.36.3."""
    return binaries / "kubectl"


@pytest.fixture(scope="session")
def controlplane(kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Endpoint:
    """The run's one real cluster: `.server`, `.ca_pem`, `.kubectl`, `.kubeconfig(user)`, `.ask(...)`.

    Tests of policies that refuse what others write to the cluster have one of their own.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if IS_WORKER else base) / "controlplane"
    folder.mkdir(exist_ok=True)
    kubeconfig = folder / "kubeconfig"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kubeconfig.exists():
            _start(folder, kubeconfig)
    return Endpoint.read(kubeconfig, kubectl)


def _start(folder: Path, kubeconfig: Path) -> None:
    test_run = os.getppid() if IS_WORKER else os.getpid()
    output = folder / "run.log"
    command = [sys.executable, CONTROLPLANE / "run", "--kubeconfig", kubeconfig, "--logs", folder, "--until", test_run]
    with output.open("wb") as log:
        keeper = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: kubeconfig.exists() or keeper.poll() is not None, "the control plane", 2 * START_SECONDS)
    except ServiceFailed as exc:
        keeper.terminate()
        pytest.fail(f"{exc}\n{output.read_text()}")
    if keeper.poll() is not None:
        pytest.fail(f"the control plane did not start:\n{output.read_text()}")


@pytest.fixture
def own_controlplane(binaries: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of this test alone, which may be restarted and broken."""
    with ControlPlane(binaries, logs=tmp_path / "controlplane-logs") as control_plane:
        yield control_plane
