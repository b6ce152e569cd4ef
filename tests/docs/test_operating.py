"""The steps of the manual for operators, as they are written and in that order: whatever a step refers to is there by then."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.journeys.machine import Machine, environment
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.patience import scaled

MANUAL = ROOT / "docs/operating"
STEPS = {"README.md": "## Install", "upgrading.md": "## In Kubernetes"}
IN_POD = "kubectl exec -n pratique deploy/web -c web -- "
# What is there without a step: made by the API server's controllers, and by a StatefulSet.
ALWAYS = {("ConfigMap", "kube-root-ca.crt")}


def done() -> str:
    """The status of the Job once its pod has ended, as its controller writes it: no kubelet runs the pod here."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("SuccessCriteriaMet", "Complete")]
    counts = {"active": 0, "ready": 0, "succeeded": 1, "uncountedTerminatedPods": {}}
    return json.dumps({"status": {**counts, "completionTime": now, "conditions": ended}})


def commands() -> list[str]:
    """Every line of the code blocks of both pages' steps."""
    found = []
    for page, heading in STEPS.items():
        section = (MANUAL / page).read_text().split(f"{heading}\n")[1].split("\n## ")[0]
        for block in re.findall(r"^ *```\n(.*?)^ *```", section, re.DOTALL | re.MULTILINE):
            found += [line.strip() for line in block.splitlines()]
    return found


def made_by(command: str) -> list[dict[str, Any]]:
    """What a command writes to the cluster, as far as files and its own words say."""
    words = shlex.split(command)
    if words[:2] == ["kubectl", "create"]:
        kind = {"secret": "Secret", "configmap": "ConfigMap"}[words[2]]
        name = words[4] if kind == "Secret" else words[3]
        return [{"kind": kind, "metadata": {"name": name, "namespace": words[words.index("-n") + 1]}}]
    named = [ROOT / after for word, after in itertools.pairwise(words) if word == "-f" and after != "-"]
    files = [file for path in named for file in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])]
    return [made for file in files for made in yaml.safe_load_all(file.read_text()) if made]


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Kind and name of all that an object mounts, reads, binds or runs as, but for what is optional."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    if not isinstance(value, dict) or value.get("optional"):
        return
    for key, item in value.items():
        match key, item:
            case "persistentVolumeClaim", {"claimName": name}:
                yield "PersistentVolumeClaim", name
            case "secret", {"secretName": name} if not item.get("optional"):
                yield "Secret", name
            case "secretRef" | "secretKeyRef", {"name": name} if not item.get("optional"):
                yield "Secret", name
            case "configMap" | "configMapRef" | "configMapKeyRef", {"name": name} if not item.get("optional"):
                yield "ConfigMap", name
            case "serviceAccountName", str(name):
                yield "ServiceAccount", name
            case "roleRef", {"kind": kind, "name": name}:
                yield kind, name
            case "subjects", [{"kind": "ServiceAccount", "name": name}]:
                yield "ServiceAccount", name
        yield from references(item)


def test_each_step_refers_to_what_an_earlier_one_made() -> None:
    there = set(ALWAYS)
    for command in commands():
        for made in made_by(command):
            if namespace := made["metadata"].get("namespace"):
                assert ("Namespace", namespace) in there, f"{command}: no namespace {namespace}"
            missing = set(references(made)) - there
            assert not missing, f"{command}: {made['kind']} {made['metadata']['name']} refers to {missing}"
            there.add((made["kind"], made["metadata"]["name"]))
        for job in re.findall(r"job/(\w+)", command):
            assert ("Job", job) in there, command
    assert {("Job", "migrate"), ("Deployment", "worker"), ("NetworkPolicy", "default-deny")} <= there
    assert {path.name for path in (ROOT / "deploy/kubernetes").iterdir()} - {"bucket.yaml"} == {
        Path(word).name for command in commands() for word in command.split() if word.startswith("deploy/kubernetes/")
    }


@pytest.mark.thorough
def test_a_real_api_server_takes_all_steps(own_controlplane: ControlPlane, redis: str, tmp_path: Path) -> None:
    """No kubelet runs there: what a pod would do is done here, by the very commands that the manual has pods run."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(own_controlplane.kubeconfig("admin"))
    machine = Machine(tmp_path, environment(tmp_path, redis))
    machine.make_database()
    row = next(line for line in (MANUAL / "README.md").read_text().splitlines() if "| Secret `pratique` |" in line)
    (tmp_path / "pratique.env").write_text("".join(f"{name}=x\n" for name in re.findall("`(PRATIQUE_[A-Z_]+)", row)))
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    path = f"{own_controlplane.kubectl.parent}:{ROOT}/.venv/bin:{os.environ['PATH']}"
    bash: dict[str, Any] = {
        "env": {**machine.environment, "KUBECONFIG": str(kubeconfig), "PATH": path},
        "cwd": tmp_path,
    }
    for command in commands():
        if command.startswith("kubectl wait"):
            patch = ["kubectl", "patch", "job", "migrate", "-n", "pratique", "--subresource=status", "--type=merge"]
            subprocess.run([*patch, "-p", done()], check=True, **bash)
        here = command.replace(IN_POD, "").replace("--in-cluster", f"--kubeconfig {kubeconfig}").replace("NAME", "prod")
        ran = subprocess.run(
            ["bash", "-o", "pipefail", "-c", here],
            capture_output=True, text=True, check=False, timeout=scaled(60), **bash,
        )  # fmt: skip
        is_question = command.endswith("--check")  # 1 where a right is missing, which it says
        assert ran.returncode in ((0, 1) if is_question else (0,)), (
            f"{command}: {ran.stdout[-500:]}{ran.stderr[-1500:]}"
        )
        assert "Traceback" not in ran.stderr
