"""What the kernel takes from a process of ours, and from whom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

# Each must fail; the first word is what it is called where it does not.
_TRIES = """
import ctypes, json, os, socket, subprocess, sys, threading
from provisioner import confinement
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
parent, thread = os.getppid(), []
opened = socket.socket()
tries = {
    "open": lambda: open("/etc/hostname"), "open through a descriptor": lambda: os.open("/proc/self/fd/0", 0),
    "open of the parent": lambda: os.open(f"/proc/{parent}/fd/0", 0), "stat": lambda: os.stat("/"),
    "stat of what is not there": lambda: os.stat("/absent"), "list": lambda: os.listdir("/"),
    "read a link": lambda: os.readlink("/proc/self/exe"), "socket": socket.socket, "pair": socket.socketpair,
    "connect": lambda: opened.connect(("127.0.0.1", 1)), "bind": lambda: opened.bind(("127.0.0.1", 0)),
    "fork": os.fork, "run": lambda: os.execv("/bin/true", ["true"]), "signal": lambda: os.kill(parent, 0),
    "signal to a thread": lambda: call(sys.argv[1] == "x86_64" and 234 or 131, parent, parent, 0),
    "io_uring": lambda: call(425, 1, 0), "ptrace": lambda: call(sys.argv[1] == "x86_64" and 101 or 117, 16, parent),
    "read memory": lambda: call(sys.argv[1] == "x86_64" and 310 or 270, parent, 0, 0, 0, 0, 0),
    "pidfd": lambda: call(434, parent, 0), "pidfd_getfd": lambda: call(438, 0, 0, 0),
    "namespace": lambda: call(sys.argv[1] == "x86_64" and 272 or 97, 0x10000000),
    "handle": lambda: call(sys.argv[1] == "x86_64" and 304 or 265, 0, 0, 0),
    "limits of the parent": lambda: call(sys.argv[1] == "x86_64" and 302 or 261, parent, 0, 0, 0),
    "an older way in": lambda: call(0x40000000 | 2, b"/etc/hostname", 0),
}
found = {}
def attempt(place):
    for name, act in tries.items():
        try:
            act()
        except OSError as exc:
            found[f"{place} {name}"] = exc.errno
        else:
            found[f"{place} {name}"] = "done"
begin = threading.Event()
early = threading.Thread(target=lambda: (begin.wait(), attempt("early")))
early.start()
assert confinement.take_system_calls()
begin.set()
early.join()
late = threading.Thread(target=attempt, args=["late"])
late.start()
late.join()
attempt("main")
print(json.dumps(found), flush=True)
os._exit(0)
"""


def test_S37_nothing_is_reached_once_the_calls_are_taken_from_all_threads() -> None:
    code = [sys.executable, "-c", _TRIES, os.uname().machine]
    done = subprocess.run(code, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    assert {name for name, outcome in found.items() if outcome == "done"} == set()
    assert len(found) == 3 * 24
    there, absent = (
        {found[f"{place} {name}"] for place in ("early", "late", "main")}
        for name in ("stat", "stat of what is not there")
    )
    assert there == absent, "nobody learns what exists"


@pytest.mark.parametrize("has_filters", [True, False])
def test_S37_a_parent_hides_where_its_children_could_look_into_it(*, has_filters: bool) -> None:
    code = (
        "import ctypes; from provisioner import child_process, confinement;"
        f"confinement._has_filters = lambda: {has_filters};"
        "child = child_process.started('this'); child.stdin.close(); child.wait();"
        "print(ctypes.CDLL(None).prctl(3))"  # whether it is dumpable, as the kernel calls it
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{int(has_filters)}\n"
