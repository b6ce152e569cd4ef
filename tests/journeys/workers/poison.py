"""Bundles that use up a worker's memory, the kernel that kills for it, and a source that takes its time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from approvals.management.demo.seeds import bundle_checksums, pack_bundles

# Two bytes of memory each, and as incompressible as an archive has to be.
LETTERS = "0123456789abcdef€"
KILOBYTES, MAPS = 500, 72
SERVER = b"multiprocessing.forkserver"
DRIP_SECONDS = 0.5


def hostile(folder: Path, name: str) -> None:
    """A bundle within every limit of the parser that takes a multiple of its 40 MB to be prepared."""
    path = folder / name / "1.0.0" / "manifests"
    path.mkdir(parents=True)
    drawn = random.Random(name)
    text = "".join(drawn.choices(LETTERS, k=KILOBYTES * 1000))
    for part in range(4):
        (path / f"{part}.json").write_text(
            "\n---\n".join(_map(f"large-{part}-{number}", text[number:]) for number in range(MAPS // 4))
        )


def harmless(folder: Path, name: str) -> None:
    path = folder / name / "1.0.0" / "manifests"
    path.mkdir(parents=True)
    (path / "map.json").write_text(_map(name, "harmless"))


def _map(name: str, text: str) -> str:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
    return json.dumps(obj, ensure_ascii=False)


class Source:
    """Serves archives over HTTP; one that is `held` comes byte by byte until that says False."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.held: dict[str, Callable[[], bool]] = {}
        self.asked: list[str] = []
        source = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                source.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def pack_bundles(self, bundles: Path) -> dict[str, dict[str, str]]:
        """The http source of every bundle, by the name of its deployment."""
        pack_bundles(bundles, self.folder)
        return {
            file.removesuffix("-1.0.0.tar.gz"): {"url": f"{self.url}/{file}", "checksum": checksum}
            for file, checksum in bundle_checksums(bundles).items()
        }

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        name = handler.path.removeprefix("/").removesuffix("-1.0.0.tar.gz")
        self.asked.append(name)
        body = (self.folder / handler.path.removeprefix("/")).read_bytes()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        is_held = self.held.get(name, lambda: False)
        with contextlib.suppress(OSError):
            for number, byte in enumerate(body):
                if not is_held():
                    handler.wfile.write(body[number:])
                    break
                handler.wfile.write(bytes([byte]))
                time.sleep(DRIP_SECONDS)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Kernel:
    """Does what Linux does to a container that may have `most` MiB: where all need more, the largest is killed (-9).

    How large one is, it may say itself: oom_score_adj adds so many thousandths of `most`.
    The processes of a container are those with `mark` in their environment.
    """

    def __init__(self, mark: str, most: int):
        self.killed: list[str] = []
        self.sizes: list[list[int]] = []
        self._mark, self._most = mark.encode(), most
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            sizes = {pid: _resident(pid) for pid in _pids(self._mark)}
            if sum(sizes.values()) > self._most:
                largest = max(sizes, key=lambda pid: sizes[pid] + _adjustment(pid) * self._most // 1000)
                self.killed.append("apart" if _is_apart(largest) else "worker")
                self.sizes.append(sorted(sizes.values()))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(largest, signal.SIGKILL)
                self._stop.wait(0.3)


def _pids(mark: bytes) -> Iterator[int]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and mark in _read(int(path.name), "environ"):
            command = _read(int(path.name), "cmdline")
            if b"worker" in command.split(b"\0") or SERVER in command:
                yield int(path.name)


def _is_apart(pid: int) -> bool:
    """Whether it is a process of its own, forked from the one that has loaded the code."""
    parent = _read(pid, "stat").rpartition(b")")[2].split()[1:2]
    return SERVER in _read(pid, "cmdline") and SERVER in _read(int(b"".join(parent) or b"0"), "cmdline")


def _resident(pid: int) -> int:
    """In MiB, what it shares with others counted in part."""
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) // 1024
    return 0


def _adjustment(pid: int) -> int:
    return int(_read(pid, "oom_score_adj") or 0)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def processes_apart(mark: str) -> list[int]:
    """The processes of their own of the workers with `mark` in their environment."""
    return [pid for pid in _pids(mark.encode()) if _is_apart(pid)]


def fork_servers(mark: str) -> list[int]:
    """What they are forked from."""
    found = [pid for pid in _pids(mark.encode()) if SERVER in _read(pid, "cmdline")]
    return [pid for pid in found if not _is_apart(pid)]


SEED = """
import json, pathlib
from approvals.management.commands import demo_seed
from approvals.management.demo.seeds import ACCOUNT, NAMESPACE, PEOPLE
from approvals import services
from approvals.management.commands.demo_seed import acting
from provisioner.cluster.client.api import ClusterClient as Api
text = pathlib.Path({kubeconfig!r}).read_text()
api = Api.connect(text, timeout_seconds=120, trusted=True)
demo_seed.prepare_cluster(api)
own = demo_seed.kubeconfig_of_service(api, text)
cluster = services.register_cluster(name="demo", kubeconfig=own, by=demo_seed.OPERATOR)
people = {{name: demo_seed.create_person(name, cluster) for name in PEOPLE}}
"""
ASK = """
import json
from django.contrib.auth.models import User
from approvals import services
from approvals.management.commands.demo_seed import acting
from approvals.management.demo.seeds import ACCOUNT, NAMESPACE
from approvals.models import Cluster
for name, http in json.loads({sources!r}).items():
    spec = dict(installNamespace=NAMESPACE, serviceAccountName=ACCOUNT, sources=[dict(kind="http", http=http)])
    services.create_deployment(by=acting(User.objects.get(username="rita")), cluster=Cluster.objects.get(), name=name,
        spec=spec, labels={{}}, via="shell")
"""
APPROVE = """
from django.contrib.auth.models import User
from approvals import services
from approvals.management.commands.demo_seed import acting
from approvals.models import Request
request = Request.objects.get(deployment__name={name!r}, state="in_review")
services.review(by=acting(User.objects.get(username="ada")), request_id=request.pk, decision="Approve", channel="browser",
    subject_digest=request.subject_digest, reason="", acknowledges=services.to_acknowledge(request))
"""
AGAIN = """
from django.contrib.auth.models import User
from approvals import services
from approvals.management.commands.demo_seed import acting
from approvals.models import BundleDeployment
services.ask_again(by=acting(User.objects.get(username="rita")), deployment=BundleDeployment.objects.get(name={name!r}), via="shell")
"""


def seed(kubeconfig: Path) -> str:
    return SEED.format(kubeconfig=str(kubeconfig))


def ask(sources: dict[str, Any]) -> str:
    return ASK.format(sources=json.dumps(sources))
