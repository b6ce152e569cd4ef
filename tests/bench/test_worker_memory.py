"""What a worker holds at most while it prepares and applies 5,000 mixed objects, and 100 MB of them.

Run by `make bench`, on a real API server; every step is a process of its own, as the kernel counts it (VmHWM).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.management.demo.bundles import pack
from tests.bench.mixed import objects
from tests.controlplane.endpoint import Endpoint

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 1800
MEMORY_MIB = 300
# Below the limit of one file.
PER_FILE = 100
MAPS, MAP_KIB = 2000, 50


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return None


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


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str, Bundle], list[str]]]:
    """Serves the two versions of a bundle; answers with their addresses."""
    packed = tmp_path / "bundles"
    packed.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(packed)))
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def served(namespace: str, bundle: Bundle) -> list[str]:
        for version in (1, 2):
            folder = tmp_path / "source" / namespace / str(version) / "manifests"
            folder.mkdir(parents=True)
            every = bundle(namespace, version)
            for first in range(0, len(every), PER_FILE):
                part = yaml.dump_all(every[first : first + PER_FILE], Dumper=yaml.CSafeDumper)
                (folder / f"{first:05}.yaml").write_text(part)
        pack(tmp_path / "source", packed)
        return [f"http://127.0.0.1:{server.server_port}/{namespace}-{version}.tar.gz" for version in (1, 2)]

    yield served
    server.shutdown()
    server.server_close()


@pytest.mark.controlplane
@pytest.mark.parametrize(
    ("bundle", "most"), [(mixed, MEMORY_MIB), (large, None)], ids=["5,000 mixed objects", "100 MB"]
)
def test_figures_of_a_worker(
    bundle: Bundle,
    most: int | None,
    serve: Callable[[str, Bundle], list[str]],
    controlplane: Endpoint,
    tmp_path: Path,
) -> None:
    namespace, kubeconfig = f"memory-{uuid.uuid4().hex[:8]}", tmp_path / "kubeconfig"
    controlplane.write(kubeconfig)
    environment = {
        **os.environ,
        "PRATIQUE_SECRET_KEY": "x" * 50,
        "PRATIQUE_DATABASE_URL": f"sqlite:///{tmp_path / 'bench.sqlite3'}",
        "PRATIQUE_CONTENT_DIR": str(tmp_path / "content"),
        "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PRATIQUE_PLAIN_HTTP": "true",
        "PRATIQUE_MUTABLE_HTTP": "true",
        "PRATIQUE_CLUSTER_TIMEOUT_SECONDS": "60",
        "PRATIQUE_REDIS_URL": "memory://",
        "PRATIQUE_LOG_FORMAT": "console",
    }
    run = partial(
        subprocess.run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    migrated = run([sys.executable, "manage.py", "migrate", "--verbosity", "0"])
    assert migrated.returncode == 0, migrated.stderr
    words = ["go", str(kubeconfig), namespace, *serve(namespace, bundle)]
    done = run([sys.executable, "-m", "tests.bench.workload", *words])
    assert done.returncode == 0, done.stderr[-4000:]
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    print(f"\na worker under {bundle.__name__} objects:")
    for one in steps:
        print(
            f"  version {one['version']} {one['step']:<8} {one['peak_mib']:7.1f} MiB at most, of which"
            f" {one['idle_mib']:.1f} before it began; {one['seconds']:.1f} s"
        )
    assert most is None or max(one["peak_mib"] for one in steps) <= most
