"""What a preparation leaves behind is waited for: in a container the worker is process 1, to which it would fall."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from tests.support.patience import scaled

PREPARATIONS = 4
# Adopts whatever nobody else does, as process 1 of a container; prints what it has besides its fork server in the end.
WORKER = f"""
import ctypes, multiprocessing, os
from multiprocessing import forkserver, resource_tracker
from tests.support.patience import wait_for

def prepare():
    from provisioner.expressions.child import Child
    Child()
    os._exit(0)

def children(pid):
    with open(f"/proc/{{pid}}/task/{{pid}}/children") as file:
        return set(map(int, file.read().split()))

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(36, 1)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["approvals.project.fork_server"])
    for _ in range({PREPARATIONS}):
        process = context.Process(target=prepare)
        process.start()
        process.join()
    server = forkserver._forkserver._forkserver_pid
    own = {{server, resource_tracker._resource_tracker._pid}}
    def left():
        return sorted(children(server) | children(os.getpid()) - own)
    print(wait_for(left, "no child is left", is_so=lambda pids: not pids))
"""


def test_S26_no_preparation_leaves_a_zombie_behind(tmp_path: Path) -> None:
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    known = {**os.environ, "PRATIQUE_DEBUG": "true", "PYTHONPATH": str(settings.BASE_DIR)}
    done = subprocess.run(
        [sys.executable, program], env=known, capture_output=True, text=True, check=False, timeout=scaled(240)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert "unexpected pid" not in done.stderr
