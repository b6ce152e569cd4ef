"""The process that renders, as its parent sees it: started with nothing of ours, given one chart, and bounded."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import select
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from typing import Any

from provisioner.child_process import started
from provisioner.errors import BadBundle, BundleTooLarge, TryLater
from provisioner.render.helm.limits import CPU_SECONDS, MAX_OUTPUT_BYTES, MEMORY_BYTES, WALL_SECONDS
from provisioner.render.helm.values import without_credentials
from provisioner.render.targets import LookedUp
from provisioner.sentences import some

logger = logging.getLogger(__name__)

MODULE = "provisioner.render.helm.process"
PACKAGE = "helm_python"
_CHUNK = 1 << 20
_PLACE = re.compile(r"[\w.-]{1,250}/((?:charts/[\w.-]{1,250}/){0,16}templates/[\w./-]{1,250}:\d{1,9})")
_SCHEMA, _VALUE = "values don't meet the specifications of the schema", re.compile(r"- at '(/[^']{1,250})': ")
_LIMITS = "a chart must render within its limits: look for a loop or a text that grows without end in its templates"


@dataclass(frozen=True, slots=True)
class ChartJob:
    """One chart to render. `kube_version` is "" where no cluster is known: Helm's own defaults count then.

    `lookups` are what `lookup` finds; None where it finds nothing, whatever it is asked for. It may ask for anything
    else where it `is_open`, and finds nothing there.
    """

    files: Mapping[str, bytes]
    values: Mapping[str, Any]
    release_name: str
    namespace: str
    kube_version: str
    api_versions: tuple[str, ...]
    is_upgrade: bool
    lookups: tuple[LookedUp, ...] | None = field(default=None, repr=False)
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """`templates` and `crds` by their path in the chart; `again` has those templates that rendered otherwise twice."""

    templates: Mapping[str, str]
    again: Mapping[str, str]
    crds: Mapping[str, str]


def render(job: ChartJob) -> Output:
    """Raises BadBundle for a chart that Helm refuses, and BundleTooLarge for one past a limit.

    Helm's own words may quote values, as those of `fail` do: they are the error's `server_words`.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise BadBundle("Helm charts need the package helm-python-sdk here: install `pratique[helm]`")
    files = {path: b64encode(data).decode() for path, data in job.files.items()}
    known = None
    if job.lookups is not None:
        known = [
            {
                "api_version": lookup.ref.api_version,
                "kind": lookup.ref.kind,
                "namespace": lookup.ref.namespace,
                "name": lookup.ref.name,
                "body": lookup.answer,
            }
            for lookup in job.lookups
        ]
    # Not asdict: what a chart is told of Secrets never has their values.
    question = {part.name: getattr(job, part.name) for part in fields(job)} | {"files": files, "lookups": known}
    answer = _asked(json.dumps(question).encode())
    try:
        found = json.loads(answer)
        if found["left"]:
            logger.warning("the kernel leaves what renders charts more than it needs", extra={"left": found["left"]})
        if "error" in found:
            said = without_credentials(found["said"]).strip()
            words = found["error"].strip() or _refusal(said)
            raise (BundleTooLarge if found["is_too_large"] else BadBundle)(f"the chart: {words}", server_words=said)
        return Output(dict(found["templates"]), dict(found["again"]), dict(found["crds"]))
    except (ValueError, KeyError, TypeError) as exc:
        raise BadBundle("the chart: what renders it ended without an answer") from exc


def _refusal(said: str) -> str:
    """What Helm refuses, as everybody may know it: which template and line, or the paths of values."""
    if said.startswith(_SCHEMA):
        return f"values.schema.json refuses its values at {some(sorted(set(_VALUE.findall(said))) or ['/'])}"
    place = _PLACE.search(said)
    return f"{place[1]}: Helm cannot render it" if place else "Helm cannot render it"


def _asked(question: bytes) -> bytes:
    process = _started()
    with ExitStack() as stack:
        stack.callback(process.wait)
        stack.callback(process.kill)  # which does nothing once it ended
        stack.enter_context(process)
        answer = _conversation(process, question, time.monotonic() + WALL_SECONDS)
        process.wait(timeout=WALL_SECONDS)
    if -process.returncode in {signal.SIGXCPU, signal.SIGKILL}:
        raise BundleTooLarge(f"the chart took more than {CPU_SECONDS} s of processor time; {_LIMITS}")
    if process.returncode:
        raise BundleTooLarge(f"the chart needs more than {MEMORY_BYTES // 2**20} MiB of memory; {_LIMITS}")
    return answer


def _started() -> subprocess.Popen[bytes]:
    # Whatever would ask the network asks a port where nobody listens.
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    try:
        return started(MODULE, GOMAXPROCS="2", **nowhere)
    except OSError as exc:
        raise TryLater(f"what renders charts could not be started ({type(exc).__name__})") from exc


def _conversation(process: subprocess.Popen[bytes], question: bytes, deadline: float) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    to, out = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(to, False)
    left, answer = memoryview(question), bytearray()
    while True:
        pause = deadline - time.monotonic()
        readable, writable, _ = select.select([out], [to] if left else [], [], max(pause, 0))
        if not readable and not writable:
            raise BundleTooLarge(f"the chart took longer than {WALL_SECONDS:g} s; {_LIMITS}")
        if writable:
            left = _written(to, left)
            if not left:
                process.stdin.close()
        if readable:
            read = os.read(out, _CHUNK)
            if not read:
                return bytes(answer)
            answer += read
            if len(answer) > MAX_OUTPUT_BYTES:
                raise BundleTooLarge(f"the chart renders more than {MAX_OUTPUT_BYTES // 2**20} MiB; {_LIMITS}")


def _written(to: int, left: memoryview) -> memoryview:
    """What is still to be written; nothing where the child reads no more."""
    try:
        return left[os.write(to, left[:_CHUNK]) :]
    except BrokenPipeError:
        return left[:0]
