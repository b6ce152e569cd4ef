"""Whatever happens between any two writes: after it, all is as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.management.demo.bundles import pack
from tests.services.postgresql import Postgres
from tests.services.process import free_port

ROOT = Path(__file__).resolve().parents[2]
# The first ones of the same seed are always the same; more take longer than a run of all tests should.
RUNS = int(os.environ.get("PRATIQUE_CHAOS_RUNS", "40"))
SEED = int(os.environ.get("PRATIQUE_SEED", "20261121"))
SECONDS = 1500


def boat(version: str) -> list[dict[str, Any]]:
    """Two versions that create, change, leave alone and delete."""
    labels = {"app.kubernetes.io/name": "boat"}
    config = {"apiVersion": "v1", "kind": "ConfigMap"}
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "serviceAccountName": "boat",
            "containers": [{"name": "boat", "image": f"registry.example.com/boat:{version}"}],
        },
    }
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "boat"}},
        {**config, "metadata": {"name": "settings"}, "data": {"version": version}},
        {**config, "metadata": {"name": "new" if version == "2" else "old"}, "data": {"a": "b"}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "boat"},
            "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "boat", "labels": labels},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        },
    ]
    return objects


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture
def bundles(tmp_path: Path) -> Any:
    for version in ("1", "2"):
        folder = tmp_path / "source" / "boat" / version / "manifests"
        folder.mkdir(parents=True)
        (folder / "all.yaml").write_text(yaml.safe_dump_all(boat(version)))
    pack(tmp_path / "source", tmp_path / "bundles")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "bundles")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """What was found that was not expected, by its path."""
    told: dict[str, Any] = {}
    for key in sorted(found.keys() | expected.keys()):
        ours, theirs = found.get(key), expected.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            told |= {f"{key}: {path}": value for path, value in differences(ours, theirs).items()}
        elif ours != theirs:
            told[key] = (ours, theirs)
    return told


@pytest.mark.services
def test_whatever_happens_between_two_writes_all_is_as_if_nothing_had_happened(
    bundles: str, postgres: Postgres, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "PRATIQUE_SECRET_KEY": "x" * 50,
        "PRATIQUE_DATABASE_URL": postgres.fresh_database(),
        "PRATIQUE_CONTENT_DIR": str(tmp_path / "content"),
        "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PRATIQUE_PLAIN_HTTP": "true",
        "PRATIQUE_MUTABLE_HTTP": "true",
        # Nobody listens: the runner looks again by itself, as the sweep does.
        "PRATIQUE_REDIS_URL": "memory://",
        "PRATIQUE_LOG_FORMAT": "console",
    }
    folder = tmp_path / "chaos"
    folder.mkdir()
    run = partial(
        subprocess.run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    migrated = run([sys.executable, "manage.py", "migrate", "--verbosity", "0"])
    assert migrated.returncode == 0, migrated.stderr
    words = ["--folder", folder, "--bundles", bundles, "--port", free_port(), "--runs", RUNS, "--seed", SEED]
    done = run([sys.executable, "-m", "tests.chaos.runner", *map(str, words)])
    assert done.returncode == 0, done.stderr[-4000:]
    undisturbed, *hurt = [json.loads(line) for line in done.stdout.splitlines()]
    assert undisturbed["found"]["state"] == "applied", undisturbed
    assert undisturbed["found"]["strangers"] == []
    assert (undisturbed["found"]["starts"], undisturbed["found"]["finishes"]) == (1, 1)
    assert undisturbed["found"]["is_old_gone"]
    assert len(hurt) == RUNS
    different = {one["harm"]: told for one in hurt if (told := differences(one["found"], undisturbed["found"]))}
    assert different == {}, f"{len(different)} of {RUNS} runs ended otherwise (seed {SEED})"
