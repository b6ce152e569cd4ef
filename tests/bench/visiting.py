"""People's browsers at the shipped service, and how long its answers took."""

from __future__ import annotations

import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from tests.bench.service import environment
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.postgresql import Postgres
from tests.support.servers.site import Site

MAKE_SECONDS = 900
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass
class Visitor:
    """One person's browser."""

    port: int
    session: str

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path: str) -> tuple[str, float]:
        """What the address answers, and after how many seconds all of it was there."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers={"Cookie": f"sessionid={self.session}"})
        answer = self._connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, (path, answer.status, text[:500])
        return text, time.perf_counter() - began

    def beyond(self, path: str, number: int) -> str:
        """The address of the page after the one of this number."""
        sign = "&" if "?" in path else "?"
        text, _ = self.get(f"{path}{sign}page={number}")
        if path.startswith("/api/"):
            return str(json.loads(text)["next"]).partition(f":{self.port}")[2]
        found = re.search(r'href="([^"]+)"\s+rel="next"', text)
        assert found, path
        return path.partition("?")[0] + unescape(found[1])


@dataclass
class Installation:
    """A site, and what was told of the rows that it has."""

    site: Site
    told: dict[str, Any]

    def visitor(self, name: str) -> Visitor:
        return Visitor(self.site.port, self.told["sessions"][name])


@contextmanager
def installed(
    controlplane: Endpoint, postgres: Postgres, redis: str, folder: Path, *, rights: list[dict[str, Any]], module: str
) -> Iterator[Installation]:
    """The shipped service in a fresh database with the rows that `module` makes, on a cluster that gives `rights`."""
    for obj in rights:
        controlplane.ask("POST", f"{RBAC}/{obj['kind'].lower()}s", obj)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(controlplane.kubeconfig("admin"))
    about = environment(folder, database=postgres.fresh_database(), queue=redis)
    site = Site(folder, redis, **{name: value for name, value in about.items() if name.startswith("PRATIQUE_")})
    try:
        yield Installation(site, made(about, module, str(kubeconfig)))
    finally:
        site.stop()


def made(about: Mapping[str, str], module: str, *words: str) -> dict[str, Any]:
    """What a module of the tests says of the rows that it made in the database of this environment."""
    command = [sys.executable, "-m", "tests.support.program", module, *words]
    done = subprocess.run(
        command, cwd=ROOT, env=about, capture_output=True, text=True, check=False, timeout=MAKE_SECONDS
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return told


def p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1]


def late(taken: Mapping[str, list[float]], bounds: Mapping[str, float]) -> dict[str, int]:
    """The milliseconds of each address whose 95th percentile is over its bound."""
    return {path: round(1000 * p95(seconds)) for path, seconds in taken.items() if p95(seconds) > bounds[path]}


def show(title: str, taken: Mapping[str, list[float]]) -> None:
    print(f"\n{title}, in milliseconds: median, 95th percentile, most")
    for path, seconds in taken.items():
        figures = (statistics.median(seconds), p95(seconds), max(seconds))
        print(f"  {path[:70]:<70} " + " ".join(f"{1000 * one:6.0f}" for one in figures))
