"""The process that renders, as its parent sees it: started with nothing of ours, given charts, and bounded.

It is the module of `chart_engine` with Helm 4, or our program with Helm 3 (deploy/helm3); both speak alike.

One that has rendered a chart may render the next one of the same namespace and cluster (`keep_engine`), as long as it
is in all that can be seen what it was before. It never does so after a lookup or an error, and what it says against a
chart counts only from one that is new.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from provisioner.chart_engine.frames import packed_frame, read_frame
from provisioner.chart_engine.limits import (
    CPU_SECONDS,
    MAX_KEPT_BYTES,
    MAX_KEPT_CHARTS,
    MAX_OUTPUT_BYTES,
    MEMORY_BYTES,
    WALL_SECONDS,
)
from provisioner.child_process import started
from provisioner.errors import BadBundle, BundleTooLarge, TryLater
from provisioner.own_programs import NOT_STARTED, OwnProgram
from provisioner.render.helm.packed_charts import checked_files
from provisioner.render.helm.values import without_credentials
from provisioner.render.targets import LookedUp
from provisioner.sentences import some

logger = logging.getLogger(__name__)

MODULE = "provisioner.chart_engine.process"
LOOKUP_MODULE = "provisioner.chart_engine.lookup_process"
PACKAGE = "helm_python"
# The version is that of helm.sh/helm/v3.
HELM_3 = OwnProgram(
    "helm3", "Helm", "v3.22.0", "config.helmVersion: 3 needs", "docs/operating/sources.md#helm-3-and-helm-4"
)
_CHUNK = 1 << 20
_PLACE = re.compile(r"[\w.-]{1,250}/((?:charts/[\w.-]{1,250}/){0,16}templates/[\w./-]{1,250}:\d{1,9})")
_SCHEMA, _VALUE = "values don't meet the specifications of the schema", re.compile(r"- at '(/[^']{1,250})': ")
_LIMITS = "a chart must render within its limits: look for a loop or a text that grows without end in its templates"


@dataclass(frozen=True, slots=True)
class ChartJob:
    """One chart to render. `kube_version` is "" where no cluster is known: Helm's own defaults count then.

    `lookups` are what `lookup` finds; None where it finds nothing, whatever it is asked for. It may ask for anything
    else where it `is_open`, and finds nothing there. What renders it renders no other chart where it `is_alone`, as
    where its values hold those of a Secret or marks of them. Where it `runs_tests`, these are hooks, too.
    `helm_version` is 3 or 4.
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
    is_alone: bool = False
    runs_tests: bool = False
    helm_version: int = 4


@dataclass(frozen=True, slots=True)
class Output:
    """`templates` and `crds` by their path in the chart; `again` has those templates that rendered otherwise twice.
    `version` is that of the Helm that rendered them, such as v4.2.3."""

    templates: Mapping[str, str]
    again: Mapping[str, str]
    crds: Mapping[str, str]
    version: str


def render(job: ChartJob) -> Output:
    """Raises BadBundle for a chart that Helm refuses, BundleTooLarge for one past a limit, and TryLater where the
    machine had no time for it.

    Helm's own words may quote values, as those of `fail` do: they are the error's `server_words`.
    """
    program = HELM_3.find() if job.helm_version == 3 else ""
    if not program and importlib.util.find_spec(PACKAGE) is None:
        raise BadBundle("Helm charts need the package helm-python-sdk here: install `pratique[helm]`")
    try:
        question = packed_frame(_question(job), checked_files(job.files))
    except BadBundle as exc:
        raise (BundleTooLarge if isinstance(exc, BundleTooLarge) else BadBundle)(f"the chart: {exc}") from exc
    kept = _kept.get()
    # One that is told of objects of the cluster is never asked again.
    if job.lookups is not None or job.is_alone or kept is None or kept.pid != os.getpid():
        with closing(_Engine(program or (MODULE if job.lookups is None else LOOKUP_MODULE))) as engine:
            return engine.render(question)
    return kept.render(question, (job.namespace, job.kube_version, job.api_versions), program or MODULE)


def _question(job: ChartJob) -> dict[str, Any]:
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
    return {part.name: getattr(job, part.name) for part in fields(job) if part.name != "files"} | {"lookups": known}


@contextmanager
def keep_engine(*, starts: bool = False) -> Iterator[None]:
    """Inside, one process renders the charts of one namespace and cluster, one after the other, and not each its own.

    With `starts` it starts at once, beside what is done before there is a chart. One thread uses it, and no fork of it.
    """
    outer = _kept.get()
    if outer is not None and outer.pid == os.getpid():
        if starts and importlib.util.find_spec(PACKAGE) is not None:
            outer.start()
        yield
        return
    kept = _Kept()
    token = _kept.set(kept)
    try:
        if starts and importlib.util.find_spec(PACKAGE) is not None:
            kept.start()
        yield
    finally:
        _kept.reset(token)
        kept.close()


class _Kept:
    """The process that is kept, if there is one, for one namespace and cluster at a time."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._engine: _Engine | None = None
        self._place: object = None

    def start(self) -> None:
        with suppress(TryLater):
            self._engine = self._engine or _Engine(MODULE)

    def render(self, question: bytes, place: object, what: str) -> Output:
        """`place` is the namespace and the cluster; `what` renders, a module of ours or the path of a program."""
        engine, self._engine = self._engine, None
        is_another = engine is not None and (engine.what != what or self._place not in (None, place))
        if engine is not None and (is_another or not engine.is_as_it_was()):
            engine.close()
            engine = None
        engine = engine or _Engine(what)
        try:
            output = engine.render(question)
        except BadBundle:
            if not engine.charts:
                raise
            engine = _Engine(what)
            output = engine.render(question)
        self._engine, self._place = engine, place
        return output

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


class _Engine:
    """One process and its pipes. `charts` says how many it has rendered; it is closed with its first error."""

    def __init__(self, what: str) -> None:
        self.what, self.charts, self._version = what, 0, ""
        self._state: object = None  # what it said of itself last
        self._process = _started(what)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        self._unsent, self._unread = memoryview(b""), bytearray()
        self._deadline = 0.0

    def is_as_it_was(self) -> bool:
        """Whether it waits for another chart, has said nothing else, and is what it was before its first one."""
        before = self._state
        self._deadline = time.monotonic() + WALL_SECONDS
        try:
            self._read_state()
        except (BadBundle, TryLater, ValueError, KeyError, TypeError):
            return False
        if self._unread or select.select([self._from], [], [], 0)[0]:
            return False
        is_small = self.charts < MAX_KEPT_CHARTS and _resident_bytes(self._process.pid) <= MAX_KEPT_BYTES
        return is_small and before in (None, self._state)

    def render(self, question: bytes) -> Output:
        self._unsent, self._deadline = memoryview(question), time.monotonic() + WALL_SECONDS
        try:
            if self._state is None:
                self._read_state()
            found = self._receive()
            if "error" in found:
                said = without_credentials(found["said"]).strip()
                words = found["error"].strip() or _refusal(said)
                raise (BundleTooLarge if found["is_too_large"] else BadBundle)(f"the chart: {words}", server_words=said)
            output = Output(dict(found["templates"]), dict(found["again"]), dict(found["crds"]), self._version)
        except (ValueError, KeyError, TypeError) as exc:
            self.close()
            raise BadBundle("the chart: what renders it ended without an answer") from exc
        except BaseException:
            self.close()
            raise
        self.charts += 1
        return output

    def _read_state(self) -> None:
        """What it says before each chart, and of its Helm before the first one."""
        said = self._receive()
        if not self._version:
            self._version = str(said["version"])
            if os.path.isabs(self.what):
                HELM_3.check_version(self.what, self._version)
        self._state = said["state"]

    def close(self) -> None:
        with self._process:  # which closes its pipes and waits
            self._process.kill()

    def _receive(self) -> dict[str, Any]:
        found, _ = read_frame(self._read_bytes)
        if found.get("left"):
            logger.warning("the kernel leaves what renders charts more than it needs", extra={"left": found["left"]})
        return found

    def _read_bytes(self, size: int) -> bytes:
        """The next bytes that it says, while it is told what it was not told yet."""
        if size > MAX_OUTPUT_BYTES:
            raise BundleTooLarge(f"the chart renders more than {MAX_OUTPUT_BYTES // 2**20} MiB; {_LIMITS}")
        while len(self._unread) < size:
            pause = self._deadline - time.monotonic()
            readable, writable, _ = select.select([self._from], [self._to] if self._unsent else [], [], max(pause, 0))
            if not readable and not writable:
                # By itself it would have come to the end of its processor time by now.
                raise TryLater(f"the machine was too busy to render the chart within {WALL_SECONDS:g} s")
            if writable:
                try:
                    self._unsent = self._unsent[os.write(self._to, self._unsent[:_CHUNK]) :]
                except BrokenPipeError:  # it reads no more
                    self._unsent = self._unsent[:0]
            if readable:
                read = os.read(self._from, _CHUNK)
                if not read:
                    raise self._lost()
                self._unread += read
        found = bytes(self._unread[:size])
        del self._unread[:size]
        return found

    def _lost(self) -> Exception:
        """Why it ended."""
        try:
            status = self._process.wait(max(self._deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return TryLater(f"the machine was too busy to render the chart within {WALL_SECONDS:g} s")
        if self._state is None and os.path.isabs(self.what) and status == NOT_STARTED:
            return HELM_3.broken(self.what)
        if self._state is None:
            return TryLater(f"what renders charts could not be started (status {status})")
        if -status in {signal.SIGXCPU, signal.SIGKILL}:
            return BundleTooLarge(f"the chart took more than {CPU_SECONDS} s of processor time; {_LIMITS}")
        if status:
            return BundleTooLarge(f"the chart needs more than {MEMORY_BYTES // 2**20} MiB of memory; {_LIMITS}")
        return BadBundle("the chart: what renders it ended without an answer")


def _refusal(said: str) -> str:
    """What Helm refuses, as everybody may know it: which template and line, or the paths of values."""
    if said.startswith(_SCHEMA):
        return f"values.schema.json refuses its values at {some(sorted(set(_VALUE.findall(said))) or ['/'])}"
    place = _PLACE.search(said)
    return f"{place[1]}: Helm cannot render it" if place else "Helm cannot render it"


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):  # no Linux, or it has ended
        return 0


def _started(what: str) -> subprocess.Popen[bytes]:
    if os.path.isabs(what):
        return HELM_3.start(what)
    # Whatever would ask the network asks a port where nobody listens.
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    try:
        return started(what, GOMAXPROCS="2", **nowhere)
    except OSError as exc:
        raise TryLater(f"what renders charts could not be started ({type(exc).__name__})") from exc
