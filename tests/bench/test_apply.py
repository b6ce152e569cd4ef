"""500 mixed objects: first apply, all changed, 10 changed; against other tools on the same API server in the same run.

Run by `make bench`. The median of the ratios of each round counts, because a machine is never equally busy twice; it
fails where a goal is missed, once all is printed. "prepare" (from the wish to the report), "written" (from approved to
all written) and "applied" (until it is called so) are of a whole service with its database and queue; the others are of
the library alone: "gate" is the plan that is made again between approval and apply, and "apply" is that and the writes.
"""

from __future__ import annotations

import statistics
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from provisioner import pipeline
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryInventory, uids
from provisioner.values import Content, OutcomeState, Plan
from tests.bench.mixed import OBJECTS, content_of, objects
from tests.bench.rivals import rivals
from tests.bench.service import Service
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.postgresql import Postgres

ROUNDS = 5
FEW = 10
# (what is written, version, how many of the objects are in that version)
STAGES = (
    ("first apply", 1, OBJECTS),
    *(("all changed", version, OBJECTS) for version in (2, 1, 2, 1)),
    (f"{FEW} changed", 2, FEW),
)
PAIRS = (
    ("review", "kubectl diff"),
    ("prepare", "kubectl diff"),
    ("gate", "kubectl"),
    ("write", "kubectl"),
    *((own, rival) for own in ("apply", "written", "applied") for rival in ("kubectl", "kapp", "helm", "bare")),
)
# Ours over theirs, at most. The bare client makes no plan, has no preconditions and proves nothing.
GOALS = {
    **{
        (own, rival, stage): goal
        for own in ("apply", "written")
        for rival, stage, goal in (
            ("kubectl", "first apply", 0.9),
            ("kubectl", "all changed", 1.0),
            ("kubectl", f"{FEW} changed", 0.3),
            ("kapp", "all changed", 0.5),
            ("helm", "all changed", 0.25),
            ("bare", "first apply", 1.33),
            ("bare", "all changed", 1.33),
        )
    },
    **{
        (own, "kubectl diff", stage): goal
        for own in ("review", "prepare")
        for stage, goal in (("all changed", 0.7), (f"{FEW} changed", 0.25))
    },
}
T = TypeVar("T")


@dataclass
class Clock:
    """Seconds by (what, stage), one for each round."""

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def time(self, what: str, stage: str, work: Callable[[], T]) -> T:
        began = time.perf_counter()
        done = work()
        self.keep(what, stage, time.perf_counter() - began)
        return done

    def keep(self, what: str, stage: str, seconds: float) -> None:
        self.seconds.setdefault((what, stage), []).append(seconds)

    def lines(self) -> Iterator[str]:
        for ours, theirs in PAIRS:
            for stage in dict.fromkeys(name for name, *_ in STAGES):
                yield self._line(ours, theirs, stage)

    def missed(self) -> list[str]:
        """The lines whose goal is not met; what was not measured meets it."""
        return [
            self._line(*row)
            for row, goal in GOALS.items()
            if (ratios := self._ratios(*row)) and statistics.median(ratios) > goal
        ]

    def _line(self, ours: str, theirs: str, stage: str) -> str:
        ratios = self._ratios(ours, theirs, stage)
        goal = f", goal {GOALS[ours, theirs, stage]}" if (ours, theirs, stage) in GOALS else ""
        head = f"{ours:>7} {stage:<11} {statistics.median(self._of(ours, stage)):6.2f} s, {theirs:<13}"
        if not ratios:
            return f"{head} not measured{goal}"
        return (
            f"{head} {statistics.median(self.seconds[theirs, stage]):6.2f} s,"
            f" ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}{goal})"
        )

    def _ratios(self, ours: str, theirs: str, stage: str) -> list[float]:
        """Ours over theirs, of each round; empty where nobody measured theirs."""
        other = self.seconds.get((theirs, stage))
        return [mine / its for mine, its in zip(self._of(ours, stage), other, strict=True)] if other else []

    def _of(self, what: str, stage: str) -> list[float]:
        """From "approved" to "all written" it is the gate and the writes."""
        if what != "apply":
            return self.seconds[what, stage]
        both = (self.seconds[part, stage] for part in ("gate", "write"))
        return [sum(parts) for parts in zip(*both, strict=True)]


@dataclass
class Ours:
    """One deployment of ours in a namespace, with what runs of it."""

    cluster: ClusterClient
    clock: Clock
    namespace: str
    inventory: MemoryInventory = field(default_factory=MemoryInventory)
    running: Content | None = None

    def pass_through(self, stage: str, version: int, changed: int) -> None:
        content = content_of(self.namespace, version, changed=changed)
        owned = uids(self.inventory.items().values())
        about = {"previous": self.running, "inventory": owned}
        report = self.clock.time("review", stage, lambda: pipeline.look(self.cluster, content, **about))
        again = self.clock.time(
            "gate", stage, lambda: pipeline.plan_again(self.cluster, content, reviewed=report.plan, **about)
        )
        assert again.digest == report.plan.digest
        self.clock.time("write", stage, lambda: self._write(content, report.plan))
        self.running = content

    def _write(self, content: Content, plan: Plan) -> None:
        outcomes = list(pipeline.deploy(self.cluster, content, plan, inventory=self.inventory))
        assert {one.state for one in outcomes} <= {OutcomeState.DONE, OutcomeState.UNCHANGED}


@pytest.mark.controlplane
def test_figures_of_500_mixed_objects(controlplane: Endpoint, postgres: Postgres, redis: str, tmp_path: Path) -> None:
    cluster = ClusterClient.connect(controlplane.kubeconfig("admin"), timeout_seconds=60)
    kubeconfig = tmp_path / "kubeconfig"
    controlplane.write(kubeconfig)
    clock = Clock()

    def kubectl(*words: str, ok: tuple[int, ...] = (0,)) -> None:
        command = [str(controlplane.kubectl), "--kubeconfig", str(kubeconfig), *words]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode in ok, done.stderr.decode()

    for number in range(ROUNDS):
        tag, folder = uuid.uuid4().hex[:8], tmp_path / str(number)
        with closing(
            Service(f"bench-{tag}-service", kubeconfig, folder, database=postgres.fresh_database(), queue=redis)
        ) as service:
            others = [service, *rivals(controlplane, kubeconfig, folder, tag)]
            namespaces = [f"bench-{tag}", *(one.namespace for one in others)]
            for namespace in set(namespaces) - {service.namespace}:
                kubectl("create", "namespace", namespace)
            own = Ours(cluster, clock, namespaces[0])
            for stage, version, changed in STAGES:
                own.pass_through(stage, version, changed)
                for one in others:
                    one.ready(objects(one.namespace, version, changed=changed))
                diff = ("diff", "--server-side", "-f", str(folder / "kubectl.yaml"))
                clock.time("kubectl diff", stage, partial(kubectl, *diff, ok=(0, 1)))
                clock.time("prepare", stage, service.prepare)
                for one in others:
                    clock.time(one.name, stage, one.apply)
                clock.keep("written", stage, service.written)
            # Waited for: what is still being deleted would be a load on the next round.
            kubectl("delete", "namespace", *namespaces)
    print("", *clock.lines(), sep="\n")
    assert clock.missed() == []
