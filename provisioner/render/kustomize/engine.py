"""The program that runs kustomize (deploy/kustomize), as its parent sees it: started, given one tree, and bounded."""

from __future__ import annotations

import json
import os
import signal
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from threading import Timer

from provisioner.confined_program import CPU_SECONDS, MEMORY_BYTES
from provisioner.errors import BadBundle, BundleTooLarge, TryLater
from provisioner.own_programs import NOT_STARTED, OwnProgram

# The version is that of sigs.k8s.io/kustomize/api.
KUSTOMIZE = OwnProgram(
    "kustomize", "kustomize", "v0.21.2", "kustomizations need", "docs/operating/sources.md#kustomizations"
)
WALL_SECONDS = 60.0
MAX_OUTPUT_BYTES = 32 * 2**20
_LIMITS = "look for bases that include each other many times, or for an alias that grows without end"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Built:
    """What kustomize made: YAML texts of objects, each with the file that it came from, "" where that is not known;
    the files that it read; and its words where it refused."""

    objects: tuple[tuple[str, str], ...]
    used: tuple[str, ...]
    refusal: str


def build(files: Mapping[str, bytes], folder: str) -> Built:
    """Raises BadBundle where the program cannot be had, BundleTooLarge past a limit, and TryLater."""
    program = KUSTOMIZE.find()
    contents = {path: b64encode(data).decode() for path, data in files.items()}
    answer = _asked(program, json.dumps({"files": contents, "folder": folder}).encode())
    try:
        found = json.loads(answer)
        version = found["version"]
        objects = tuple((str(each["text"]), str(each["file"])) for each in found["objects"])
        built = Built(objects, tuple(map(str, found["used"])), str(found["error"]))
    except (ValueError, KeyError, TypeError) as exc:
        raise BadBundle("the kustomization: what builds it ended without an answer") from exc
    KUSTOMIZE.check_version(program, version)
    return built


def _asked(program: str, question: bytes) -> bytes:
    process = KUSTOMIZE.start(program)
    assert process.stdin is not None
    assert process.stdout is not None
    with ExitStack() as stack:
        stack.callback(process.wait)
        stack.callback(process.kill)  # which does nothing once it ended
        # It reads all before it writes anything; a child that does neither is ended.
        timer = Timer(WALL_SECONDS, os.kill, (process.pid, signal.SIGKILL))
        stack.callback(timer.cancel)
        timer.start()
        left = memoryview(question)
        with suppress(BrokenPipeError), process.stdin:
            while left:
                left = left[process.stdin.write(left) :]
        answer = bytearray()
        while len(answer) <= MAX_OUTPUT_BYTES and (read := process.stdout.read(_CHUNK)):
            answer += read
        if len(answer) > MAX_OUTPUT_BYTES:
            raise BundleTooLarge(f"the kustomization builds more than {MAX_OUTPUT_BYTES // 2**20} MiB; {_LIMITS}")
        _, status, use = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    _check_end(process.returncode, program, use.ru_utime + use.ru_stime)
    return bytes(answer)


def _check_end(status: int, program: str, seconds: float) -> None:
    """`seconds` are those of processor time, which is what is limited: before their end somebody else ended it, or we
    did, because the machine was busy."""
    if status < 0 and seconds < CPU_SECONDS * 0.9:
        raise TryLater(
            f"the machine was too busy to build the kustomization within {WALL_SECONDS:g} s, or somebody ended what"
            f" builds it (signal {-status}, after {seconds:.0f} s of processor time)"
        )
    if status < 0:
        raise BundleTooLarge(f"the kustomization took more than {CPU_SECONDS} s of processor time; {_LIMITS}")
    if status == NOT_STARTED:
        raise KUSTOMIZE.broken(program)
    if status:
        raise BundleTooLarge(f"the kustomization needs more than {MEMORY_BYTES // 2**20} MiB of memory; {_LIMITS}")
