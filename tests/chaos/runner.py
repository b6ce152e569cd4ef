"""`python -m tests.support.program tests.chaos.runner`: approved requests carried out again and again, each time hurt elsewhere.

Prints a JSON line for every run. A process of its own, because its database, its cluster and its workers are real and
are killed: nothing of that goes well inside a test run. Started by test_chaos.py.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.cache import cache
from django.db import connections

from approvals import tasks
from approvals.access import port
from approvals.ledger import drifts
from approvals.lifecycle import OPEN
from approvals.models import BundleDeployment, Cluster, InventoryItem, OptionalObject, Request, Stray, TaskClaim
from approvals.project.celery import app
from approvals.watch.own_kinds import SeenReviews
from provisioner.cluster.client.api import ClusterClient as Api
from tests.chaos.draw import ACCOMPANIED, CLUSTER_HARMS, Harm, Kind, Scenario, begins_of, can_be, drawn, drawn_by_class
from tests.chaos.found import found, uids
from tests.chaos.harms import Claim, Hurting
from tests.chaos.keeper import KUBECONFIG, SOCKET, Keeper
from tests.chaos.rewind import Rewound
from tests.chaos.scenarios import agree, ask, taking
from tests.support.folders import ROOT
from tests.support.journeys import deployed_site
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled, wait_for
from tests.support.servers.process import Options, Server

START_SECONDS = 240.0
MAX_TURNS = 12
# Of the sweep, once a worker that was stopped goes on beside what its successors have done.
TURNS_AFTERWARDS = 2
SETTLE_SECONDS = 180.0
RIVAL_SECONDS = 0.05
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
ADVANCE, LOOK_AFTER, CORRECT = "approvals.advance", "approvals.look_after", "approvals.correct"
COUNT = "approvals.count_kubectl_reviews"
# Not from the queue: what the watch does whenever it begins.
SEE = "see reviews"
Message = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Case:
    """An approved request with the messages that its approval sent, or what it left out with those of its API.

    `before` are the uids of the objects that were there then.
    """

    scenario: Scenario
    request_id: int
    deployment_id: int
    namespace: str
    before: dict[str, str]

    @property
    def due(self) -> Message:
        """The message without which nothing goes on."""
        if self.scenario is Scenario.OPTIONAL:
            return CORRECT, self.deployment_id
        return ADVANCE, self.request_id

    @property
    def messages(self) -> list[Message]:
        return [self.due, (LOOK_AFTER, self.deployment_id)]

    @property
    def claim(self) -> Claim:
        model = BundleDeployment if self.scenario is Scenario.OPTIONAL else Request
        return Claim(model._meta.db_table, self.due[1])

    def is_open(self) -> bool:
        """Whether something is still to be done of it."""
        waiting = OptionalObject.objects.filter(revision__request=self.request_id, state=OptionalObject.State.WAITING)
        return Request.objects.filter(pk=self.request_id, state__in=OPEN).exists() or waiting.exists()


@dataclass
class Chaos:
    folder: Path
    bundles: str
    is_real: bool
    keeper: Keeper
    rewound: Rewound
    site: DeployedSite = field(init=False)
    cases: dict[Scenario, Case] = field(default_factory=dict)

    def prepare(self) -> None:
        """A cluster with everything that is there before anything is asked for; the sandbox with the requests too."""
        self.furnish()
        if self.is_real:
            return
        asked = {one: ask(one, self.site, self.bundles, f"chaos-{one.name.lower()}") for one in Scenario}
        self.cases = {scenario: self._approved(scenario, wish) for scenario, wish in asked.items()}
        self._save()

    def furnish(self) -> None:
        endpoint = self._endpoint()
        cluster = deployed_site.register(endpoint.kubeconfig("pratique"))
        api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60))
        self.site = DeployedSite(cluster, api, "", Path("kubectl"), self.folder / KUBECONFIG)
        self.site.people = {name: deployed_site.user(name, cluster) for name in deployed_site.PEOPLE}
        deployed_site.prepare(api, "chaos")

    def _save(self) -> None:
        self._let_go()
        self.keeper.ask("save")
        self.rewound.save()

    def run(self, harm: Harm, number: int) -> dict[str, Any]:
        """Carry out the scenario with the harm; returns what is found afterwards."""
        case = self._begin(harm.scenario, number)
        log = self.folder / f"{number}.log"
        log.touch()
        told = self._work(case, harm, log)
        events = log.read_text().splitlines()
        has_happened = told["is_killed"] or log.with_suffix(".happened").exists()
        what = found(case.scenario, self._endpoint(), Request.objects.get(pk=case.request_id), case.before)
        return {
            "scenario": case.scenario,
            "kind": harm.kind,
            "event": harm.event,
            "events": events,
            "has_happened": has_happened,
            **told,
            "found": what,
        }

    def _begin(self, scenario: Scenario, number: int) -> Case:
        if not self.is_real:
            self._rewind()
            return self.cases[scenario]
        self._let_go()
        self.site.api = Api.connect(self._endpoint().kubeconfig("admin"), timeout_seconds=scaled(60))
        wish = ask(scenario, self.site, self.bundles, f"chaos-{number}x")
        return self._approved(scenario, wish)

    def _rewind(self) -> None:
        self.keeper.ask("load")
        self.rewound.load()

    def _approved(self, scenario: Scenario, wish: BundleDeployment) -> Case:
        request_id, namespace = agree(scenario, self.site, wish), str(wish.spec["installNamespace"])
        return Case(scenario, request_id, wish.pk, namespace, uids(self._endpoint(), namespace))

    def _endpoint(self) -> Endpoint:
        return Endpoint.read(self.folder / KUBECONFIG, Path("kubectl"))

    def _work(self, case: Case, harm: Harm, log: Path) -> dict[str, Any]:
        """Workers, one after the other as the sweep wakes them, until all is done: the first is hurt, or two are."""
        is_killed, messages, turns, stopped = False, case.messages, 0, 0
        quiet = replace(harm, kind=Kind.NOTHING)
        while messages and turns < MAX_TURNS:
            self._let_go()
            hurt = self._fork(case, quiet if turns else harm, log if not turns else Path(os.devnull), messages)
            beside = [self._fork_beside(case, quiet) for _ in range(ACCOMPANIED.get(harm.kind, 0) if not turns else 0)]
            status = self._waited(hurt)
            if os.WIFSTOPPED(status):
                stopped = hurt
            for pid in beside:
                self._waited(pid)
            turns += 1
            is_killed |= os.WIFSIGNALED(status)
            self.keeper.ask("ready?")
            is_open = case.is_open()
            if turns > 1 and status == 0 and not is_open:
                break
            messages = [message for message in self._swept(case) if message in case.messages]
            if is_open and case.due not in messages:
                return {"is_killed": is_killed, "turns": turns, "is_forgotten": True}
        if stopped:
            self._go_on(stopped, case, harm)
        return {"is_killed": is_killed, "turns": turns, "is_forgotten": False}

    def _go_on(self, stopped: int, case: Case, harm: Harm) -> None:
        """Let it run to its end, and then whoever the sweep and the watch wake because of what it did.

        Its end is an error only where PostgreSQL has ended the transaction that it was stopped in.
        """
        os.kill(stopped, signal.SIGCONT)
        if self._waited(stopped):
            error = self._error_of(harm).read_text().splitlines()[-1]
            assert error.endswith("terminating connection due to idle-in-transaction timeout"), error
        quiet = replace(harm, kind=Kind.NOTHING)
        for _ in range(TURNS_AFTERWARDS):
            self._let_go()
            everything = InventoryItem.objects.filter(deployment=case.deployment_id)
            drifts.mark(everything.values_list("pk", flat=True), LONG_AGO)
            mine = [*case.messages, (CORRECT, case.deployment_id)]
            messages = [message for message in self._swept(case) if message in mine]
            self._let_go()
            self._waited(self._fork(case, quiet, Path(os.devnull), messages))

    def _swept(self, case: Case) -> list[Message]:
        """What the sweep wakes once claims have lapsed and waits are over: real messages, from a queue in memory."""
        Request.objects.filter(pk=case.request_id).exclude(claimed_until=None).update(claimed_until=LONG_AGO)
        Request.objects.filter(pk=case.request_id).exclude(look_again_at=None).update(look_again_at=LONG_AGO)
        held = BundleDeployment.objects.filter(pk=case.deployment_id)
        held.update(looked_after_at=LONG_AGO)
        held.exclude(claimed_until=None).update(claimed_until=LONG_AGO)
        TaskClaim.objects.exclude(claimed_until=None).update(claimed_until=LONG_AGO)
        OptionalObject.objects.exclude(look_at=None).update(look_at=LONG_AGO)
        Stray.objects.update(look_at=LONG_AGO)
        list(_messages())
        tasks.sweep()
        return list(_messages())

    def _fork(self, case: Case, harm: Harm, log: Path, messages: Sequence[Message]) -> int:
        def work() -> None:
            self._hurting(case, harm, log).install()
            act(messages)

        return forked(work, self._error_of(harm))

    def _error_of(self, harm: Harm) -> Path:
        return self.folder / f"{harm}.error".replace(" ", "-")

    def _fork_beside(self, case: Case, quiet: Harm) -> int:
        """A worker that gets the same messages, the last one first, until the request is settled."""

        def work() -> None:
            self._hurting(case, quiet, Path(os.devnull)).install()
            end = time.monotonic() + scaled(SETTLE_SECONDS)
            while case.is_open() and time.monotonic() < end:
                time.sleep(RIVAL_SECONDS)
                act(case.messages[::-1])

        return forked(work, Path(os.devnull))

    def _hurting(self, case: Case, harm: Harm, log: Path) -> Hurting:
        takes = taking(case.scenario, self._endpoint(), case.namespace)
        return Hurting(harm, case.claim, os.environ["PRATIQUE_DATABASE_URL"], log, self.keeper, takes)

    def _waited(self, pid: int) -> int:
        _, status = wait_for(
            lambda: os.waitpid(pid, os.WNOHANG | os.WUNTRACED),
            "the end of a worker",
            SETTLE_SECONDS,
            is_so=lambda found: found[0],
            every=0.005,
        )
        return status

    def _let_go(self) -> None:
        """A fork shares sockets: nothing that is open may be used on both sides."""
        connections.close_all()
        cache.clear()
        port._current[:] = [port.RealKubernetes()]


def forked(work: Callable[[], None], error: Path) -> int:
    """The pid of a fork of this process that does `work`, and nothing else; why it failed is written to `error`."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    # It lives for a second: what is garbage by then is none of its concern.
    gc.disable()
    try:
        work()
        code = 0
    finally:  # whatever it raises: nothing of a fork may go on in its parent's code
        if code:
            error.write_text(traceback.format_exc())
        os._exit(code)


def act(messages: Sequence[Message]) -> None:
    acts = {
        ADVANCE: tasks.advance_request,
        LOOK_AFTER: tasks.look_after_deployment,
        CORRECT: tasks.correct_deployment,
        COUNT: tasks.count_kubectl_reviews,
        SEE: _see_reviews,
    }
    for name, pk in messages:
        acts[name](pk)


def _see_reviews(cluster_id: int) -> None:
    watch = SeenReviews(cluster=Cluster.objects.get(pk=cluster_id))
    watch.stop.set()
    watch.look(port.connect(watch.cluster))


def _messages() -> Iterator[Message]:
    """What lies in the queue, taken out of it."""
    with app.connection_for_read() as broker, broker.SimpleQueue(app.conf.task_default_queue, no_ack=True) as queue:
        while True:
            try:
                message = queue.get_nowait()
            except queue.Empty:
                return
            yield str(message.headers["task"]), int(message.decode()[0][0])


@contextlib.contextmanager
def kept(folder: Path, binaries: Path | None) -> Iterator[Keeper]:
    command = [sys.executable, "-m", "tests.chaos.keeper", "--folder", folder]
    command += ["--binaries", binaries] if binaries else []
    server = Server("keeper", command, folder / "keeper.log", Options(env={"PYTHONPATH": str(ROOT)}))
    server.wait((folder / SOCKET).exists, START_SECONDS)
    keeper = Keeper(folder)
    try:
        yield keeper
    finally:
        keeper.ask("end")
        server.stop(hard=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--bundles", required=True)
    parser.add_argument("--runs", type=int, required=True, help="of all parts together at most; 0: all that are drawn")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", type=Kind, help="only these; without them all that are drawn")
    parser.add_argument("--scenarios", nargs="*", type=Scenario, help="only these; without them all that are drawn")
    parser.add_argument("--binaries", type=Path, help="those of a real Kubernetes; without them it is the sandbox")
    options = parser.parse_args()
    with kept(options.folder, options.binaries) as keeper:
        _run(options, keeper)


def _run(options: argparse.Namespace, keeper: Keeper) -> None:
    rewound = Rewound(os.environ["PRATIQUE_DATABASE_URL"])
    chaos = Chaos(options.folder, options.bundles, options.binaries is not None, keeper, rewound)
    chaos.prepare()
    events = {}
    for number, scenario in enumerate(Scenario):
        undisturbed = chaos.run(Harm(scenario, Kind.NOTHING, 0), number)
        events[scenario] = undisturbed["events"]
        _say(undisturbed)
    for number, harm in enumerate(_harms(options, events), start=len(events)):
        _say(chaos.run(harm, number))


def _harms(options: argparse.Namespace, events: dict[Scenario, list[str]]) -> list[Harm]:
    if options.binaries:
        kinds, begins = options.kinds or CLUSTER_HARMS, begins_of(events)
        return drawn_by_class(events, kinds, options.runs, options.seed, begins)
    points = {scenario: len(names) for scenario, names in events.items()}
    harms = drawn(points, options.seed, part=options.part, parts=options.parts)
    kinds, scenarios = options.kinds or list(Kind), options.scenarios or list(Scenario)
    begins = begins_of(events)
    harms = [harm for harm in harms if harm.kind in kinds and harm.scenario in scenarios and can_be(harm, begins)]
    return harms[: len(range(options.part, options.runs, options.parts))] if options.runs else harms


def _say(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
