"""`python -m tests.support.program tests.chaos.together`: workers that get the same messages, in any order, and start at once.

Prints a JSON line for every round: what the workers wrote to the cluster, each write with its object, and what there is
afterwards. Started by test_together.py. The workers are processes; a barrier lets them begin in the same moment, and
where two deployments are applied another one lets neither write before both have passed their gates.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from approvals.audit import verify_chain
from approvals.models import BundleDeployment, Request
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import PratiqueError
from provisioner.values import ObjectRef
from tests.chaos.draw import Scenario
from tests.chaos.found import found, live_objects
from tests.chaos.harms import is_own
from tests.chaos.rewind import Rewound
from tests.chaos.runner import MAX_TURNS, Case, Chaos, Message, act, forked, kept
from tests.chaos.scenarios import ask, source, taking
from tests.support.journeys.deployed_site import prepare_namespace
from tests.support.patience import scaled

FORKS = get_context("fork")
MEETING_SECONDS = 60.0
WRITES = ("apply", "create", "replace", "merge", "delete")
# In a namespace each, and in one namespace with an object that both of them hold.
APART = {"apart-one": "1", "apart-two": "1"}
RIVALS = {"rivals-this": "this", "rivals-that": "that"}


@dataclass
class Writing:
    """Installed in a worker: tells of every write of the bundle, and waits before the first for the others of `meet`."""

    log: Path
    takes: Callable[[], None]
    meet: Barrier | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _has_begun: bool = False

    def install(self) -> None:
        for name in WRITES:
            setattr(ClusterClient, name, self._telling(getattr(ClusterClient, name), name))

    def _telling(self, original: Callable[..., Any], verb: str) -> Callable[..., Any]:
        def write(*words: Any, **named: Any) -> Any:
            if named.get("dry_run") or is_own(words[1]):
                return original(*words, **named)
            self._begin()
            try:
                answer = original(*words, **named)
            except PratiqueError as exc:
                self._tell(verb, words[1], type(exc).__name__)
                raise
            self._tell(verb, words[1], "")
            return answer

        return write

    def _begin(self) -> None:
        """Several threads write; all of them wait until the first may."""
        with self._lock:
            if not self._has_begun:
                self._has_begun = True
                self.takes()
                if self.meet is not None:
                    self._meet(self.meet)

    def _meet(self, meet: Barrier) -> None:
        """The product goes on after whatever is raised here, so it is written down as well."""
        try:
            meet.wait(scaled(MEETING_SECONDS))
        except threading.BrokenBarrierError:
            self.log.with_name(f"together-{os.getpid()}.error").write_text("it alone had begun to write")
            raise

    def _tell(self, verb: str, written: ObjectRef | dict[str, Any], refusal: str) -> None:
        ref = written if isinstance(written, ObjectRef) else ObjectRef.of(written)
        line = json.dumps([verb, f"{ref.kind} {ref.namespace} {ref.name}", refusal])
        # One write of less than a page to a file that is opened to append: whole, whoever else writes.
        with self.log.open("a") as log:
            log.write(line + "\n")


class Together(Chaos):
    """Cases of the scenarios by themselves, and of deployments that are applied in the same moment."""

    def prepare(self) -> None:
        self.furnish()
        asked = {one: ask(one, self.site, self.bundles, f"chaos-{one.name.lower()}") for one in Scenario}
        for name, version in APART.items():
            self._ask(name, name, version, asked)
        for name, version in RIVALS.items():
            self._ask(name, "harbour", version, asked)
        self.every = {key: self._approved(self._scenario(key), wish) for key, wish in asked.items()}
        self._save()

    def _ask(self, name: str, namespace: str, version: str, asked: dict[Any, BundleDeployment]) -> None:
        self.site.namespace = namespace
        prepare_namespace(self.site.api, namespace)
        asked[name] = self.site.submit_spec(name, source(self.bundles, version))
        self.site.work()

    def _scenario(self, key: Scenario | str) -> Scenario:
        return key if isinstance(key, Scenario) else Scenario.FIRST

    def round(self, keys: Sequence[Scenario | str], workers: int, seed: int) -> dict[str, Any]:
        """`workers` at once, each with all messages of these cases; one alone gets them once and in order."""
        self._rewind()
        cases = [self.every[key] for key in keys]
        log = self.folder / "writes.log"
        log.write_text("")
        self._let_go()
        begin = FORKS.Barrier(workers)
        meet = FORKS.Barrier(workers) if len(cases) > 1 and workers > 1 else None
        pids = []
        for number in range(workers):
            messages = [message for case in cases for message in case.messages]
            if workers > 1:
                messages = _mixed(messages, number, random.Random(f"{seed} {number}"), is_led=meet is not None)
            pids.append(self._fork_one(cases[0], messages, log, begin, meet))
        ended = [self._waited(pid) for pid in pids]
        turns = max(self._settle(case, log) for case in cases)
        return {
            "cases": [str(key) for key in keys],
            "workers": workers,
            "ended": ended,
            "turns": turns,
            "writes": [json.loads(line) for line in log.read_text().splitlines()],
            "found": [self._found(case) for case in cases],
            "is_chain_whole": verify_chain().is_whole,
            "errors": [path.read_text() for path in self.folder.glob("together-*.error")],
        }

    def _settle(self, case: Case, log: Path) -> int:
        """What the sweep wakes, one worker after the other, until nothing of it is left to do."""
        for turn in range(MAX_TURNS):
            messages = [message for message in self._swept(case) if message in case.messages]
            self._let_go()
            self._waited(self._fork_one(case, messages, log, None, None))
            if not case.is_open():
                return turn + 1
        return MAX_TURNS

    def _fork_one(
        self, case: Case, messages: Sequence[Message], log: Path, begin: Barrier | None, meet: Barrier | None
    ) -> int:
        def work() -> None:
            Writing(log, taking(case.scenario, self._endpoint(), case.namespace), meet).install()
            if begin is not None:
                begin.wait(scaled(MEETING_SECONDS))
            act(messages)

        return forked(work, self.folder / f"together-{uuid.uuid4().hex}.error")

    def _found(self, case: Case) -> dict[str, Any]:
        request = Request.objects.get(pk=case.request_id)
        deployment = request.deployment
        what = found(case.scenario, self._endpoint(), request, case.before)
        live = live_objects(self._endpoint(), case.namespace)
        owners = {
            name: (obj["metadata"].get("annotations") or {}).get("core.rukpak.io/owner", "")
            for name, obj in live.items()
        }
        held = deployment.inventory.exclude(uid="").values_list("kind", "name")
        return {**what, "name": deployment.name, "owners": owners, "held": sorted(map(" ".join, held))}


def _mixed(messages: list[Message], number: int, chance: random.Random, *, is_led: bool) -> list[Message]:
    """Twice each, in any order; where each worker is to be at another deployment first, it begins with that one's."""
    mixed = messages * 2
    chance.shuffle(mixed)
    return [messages[2 * number], *mixed] if is_led else mixed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--bundles", required=True)
    parser.add_argument("--rounds", type=int, required=True, help="of each kind")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    with kept(options.folder, None) as keeper:
        rewound = Rewound(os.environ["PRATIQUE_DATABASE_URL"])
        together = Together(options.folder, options.bundles, False, keeper, rewound)
        together.prepare()
        for scenario in Scenario:
            _say(together.round([scenario], 1, 0))
        for number in range(options.rounds):
            scenario = list(Scenario)[number % len(Scenario)]
            _say(together.round([scenario], 2 + (number + number // len(Scenario)) % 2, options.seed + number))
            _say(together.round(list(APART), 2, options.seed + number))
            _say(together.round(list(RIVALS), 2, options.seed + number))


def _say(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
