"""The real Kubernetes is whole: controllers work, tokens and rights count, and nothing of it is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.kubernetes.endpoint import USERS, Endpoint, Refused
from tests.support.patience import scaled
from tests.support.servers.process import wait_until

WAIT_SECONDS = 60


@pytest.fixture
def namespace(controlplane: Endpoint) -> str:
    name = f"whole-{uuid4().hex[:8]}"
    controlplane.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.mark.thorough
def test_a_namespace_that_is_deleted_goes_with_what_it_holds(controlplane: Endpoint, namespace: str) -> None:
    controlplane.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a"}})
    controlplane.ask("DELETE", f"/api/v1/namespaces/{namespace}")

    def is_gone() -> bool:
        try:
            controlplane.ask("GET", f"/api/v1/namespaces/{namespace}")
        except Refused as exc:
            return exc.status == 404
        return False

    wait_until(is_gone, "the end of the namespace", WAIT_SECONDS)


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
def test_each_user_is_known_by_name_uid_and_groups(controlplane: Endpoint, user: Any) -> None:
    review = controlplane.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, user=user.name)
    info = review["status"]["userInfo"]
    assert (info["username"], info["uid"]) == (user.name, user.uid)
    assert set(info["groups"]) == {*user.groups, "system:authenticated"}


def test_kubectl_of_the_same_version_accepts_the_kubeconfig(controlplane: Endpoint, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(controlplane.kubeconfig("alice"))
    command = [str(controlplane.kubectl), "--kubeconfig", str(config), "version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split(": ")[1] for line in said.splitlines() if "Version" in line and "Kustomize" not in line] == [
        "v1.36.3",
        "v1.36.3",
    ]


@pytest.mark.thorough
def test_everything_is_still_there_after_the_api_server_or_etcd_was_killed(own_controlplane: ControlPlane) -> None:
    before = own_controlplane.endpoint
    path = "/api/v1/namespaces/default/configmaps"
    before.ask("POST", path, {"metadata": {"name": "kept"}})
    own_controlplane.restart_apiserver()
    uid = before.ask("GET", f"{path}/kept")["metadata"]["uid"]
    own_controlplane.stop_store()
    own_controlplane.start_store()
    assert before.ask("GET", f"{path}/kept")["metadata"]["uid"] == uid
    before.ask("POST", path, {"metadata": {"name": "written-after"}})


def _run(binaries: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("run")), *map(str, arguments)]
    env = {**os.environ, "PRATIQUE_CONTROLPLANE": str(binaries)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _end(running: subprocess.Popen[str], number: signal.Signals) -> list[int]:
    """Send the signal; returns the processes that the control plane had, once none of them is left."""
    children = _children(running.pid)
    running.send_signal(number)
    wait_until(lambda: not any(map(_is_alive, children)), f"the end of everything after {number.name}", WAIT_SECONDS)
    return children


@pytest.mark.thorough
def test_run_keeps_its_state_and_stops_everything_however_it_ends(binaries: Path, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    seen = []
    for number in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
        with _run(binaries, "--state", tmp_path / "state", "--kubeconfig", kubeconfig) as running:
            assert running.stdout is not None
            ready = next((line for line in running.stdout if line.startswith("Ready: ")), "")
            found = Endpoint.read(kubeconfig, binaries / "kubectl").ask("GET", "/api/v1/namespaces/kube-system")
            seen.append((ready, kubeconfig.read_text(), found["metadata"]["uid"]))
            assert len(_end(running, number)) == 5
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.thorough
def test_run_ends_with_the_process_that_it_is_told_to_watch(binaries: Path, tmp_path: Path) -> None:
    watched = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with _run(binaries, "--kubeconfig", tmp_path / "kubeconfig", "--until", str(watched.pid)) as running:
        assert running.stdout is not None
        assert any(line.startswith("Ready: https://127.0.0.1:") for line in running.stdout)
        watched.communicate(b"\n")
        assert running.wait(scaled(WAIT_SECONDS)) == 0
