"""What a worker holds at most while it prepares and applies 5,000 mixed objects, and 100 MB of them.

Run by `make bench`, on a real API server; every step is a process of its own, as the kernel counts it (VmHWM).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.mixed import objects
from tests.bench.service import environment, migrate
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.downloads import archive, served

SECONDS = 1800
# By the objects: of the usual size, and of 50 kB each.
MOST_MIB = {"mixed": 300, "large": 1024}
MAPS, MAP_KIB = 2000, 50


Bundle = Callable[[str, int], list[dict[str, Any]]]


def mixed(namespace: str, version: int) -> list[dict[str, Any]]:
    return objects(namespace, version, times=10)


def large(namespace: str, version: int) -> list[dict[str, Any]]:
    drawn = random.Random(version)
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"large-{number:04}", "namespace": namespace},
            "data": {"version": str(version), "text": drawn.randbytes(MAP_KIB * 512).hex()},
        }
        for number in range(MAPS)
    ]


@pytest.mark.controlplane
@pytest.mark.parametrize("bundle", [mixed, large], ids=["5,000 mixed objects", "100 MB"])
def test_figures_of_a_worker(bundle: Bundle, controlplane: Endpoint, tmp_path: Path) -> None:
    namespace, kubeconfig = f"memory-{uuid.uuid4().hex[:8]}", tmp_path / "kubeconfig"
    controlplane.write(kubeconfig)
    about = environment(tmp_path, database=f"sqlite:///{tmp_path / 'bench.sqlite3'}", queue="memory://")
    migrate(about)
    files = [archive(bundle(namespace, one), f"{namespace}-{one}", tmp_path, tmp_path / "served") for one in (1, 2)]
    with served(tmp_path / "served") as address:
        command = [
            sys.executable,
            "-m",
            "tests.support.program",
            "tests.bench.workload",
            "go",
            str(kubeconfig),
            namespace,
        ]
        done = subprocess.run(
            [*command, *(f"{address}/{file}" for file in files)],
            cwd=ROOT, env=about, capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    print(f"\na worker under {bundle.__name__} objects:")
    for one in steps:
        print(
            f"  version {one['version']} {one['step']:<8} {one['peak_mib']:7.1f} MiB at most, of which"
            f" {one['idle_mib']:.1f} before it began; {one['seconds']:.1f} s"
        )
    assert max(one["peak_mib"] for one in steps) <= MOST_MIB[bundle.__name__]
