"""What an apply waits for before it continues: that what later phases stand on has settled, and is served."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.health.observation import until_sound
from provisioner.cluster.health.reasons import failing_pods
from provisioner.cluster.health.watch import until_settled
from provisioner.cluster.order import Phase, is_workload
from provisioner.errors import PratiqueError, TryLater
from provisioner.health_checks import HealthCheck
from provisioner.values import (
    WORST_FIRST,
    Action,
    Health,
    HealthState,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    PlannedAction,
    Why,
)

MAX_WATCHES = 16
# Planned, and nothing is done.
IDLE = frozenset({Action.NONE, Action.SKIP})
_SERVED_PAUSE_SECONDS = 0.25
_PULSE_SECONDS = 5.0
T = TypeVar("T")

Actions = Mapping[ObjectIdentity, PlannedAction]


def in_phase(name: str, why: Why) -> Why:
    """`why` with the phase named in its words."""
    return replace(why, words=f"phase {name}: {why.words}") if why else why


def changes(phase: Phase, actions: Actions) -> bool:
    """Whether anything of the phase is written."""
    return any(actions[manifest.ref.identity].action not in IDLE for manifest in phase.manifests)


class Patience:
    """How long one apply may take, and what is asked while nothing is heard of it.

    `ended_by` is what that raised: then the apply is to end at once, and it is no failure of an object.
    """

    def __init__(self, seconds: float, while_waiting: Callable[[], None]):
        self.end = time.monotonic() + seconds
        self.ended_by: PratiqueError | None = None
        self._while_waiting = while_waiting
        self._pulsed_at = time.monotonic()

    @property
    def left(self) -> float:
        """Seconds."""
        return max(self.end - time.monotonic(), 0.0)

    def pulse(self) -> None:
        self._pulsed_at = time.monotonic()
        self.ask(self._while_waiting)

    def ask(self, question: Callable[[], None]) -> None:
        """A no is no failure of an object: it ends the apply."""
        try:
            question()
        except PratiqueError as exc:
            self.ended_by = exc
            raise

    def give_up(self) -> None:
        """Have no thread try anything again."""
        self.end = time.monotonic()

    def result(self, future: Future[T]) -> T:
        """What a thread came to."""
        (found,) = self.results([future])
        return found

    def results(self, futures: Sequence[Future[T]]) -> list[T]:
        """What threads came to, when all have."""
        if time.monotonic() - self._pulsed_at >= _PULSE_SECONDS:
            self.pulse()
        while wait(futures, timeout=_PULSE_SECONDS).not_done:
            self.pulse()
        return [future.result() for future in futures]


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """Who looks at the objects, the deployment's own checks, and who is told which objects are waited for."""

    observer: ClusterClient
    checks: Sequence[HealthCheck]
    before_wait: Callable[[Sequence[ObjectRef]], None]

    def checks_select(self, ref: ObjectRef) -> bool:
        return any(check.selects(ref) for check in self.checks)


class Waits:
    """The waits of one apply; what has settled once is not waited for again."""

    def __init__(self, cluster: ClusterClient, actions: Actions, asked: WaitOptions, patience: Patience):
        self._cluster = cluster
        self._actions = actions
        self._asked = asked
        self._patience = patience
        self._settled: set[ObjectRef] = set()

    def of_phase(self, phase: Phase, later: list[Phase], *, is_stood_on: bool = False) -> Why:
        """Wait for what the later phases stand on, or hooks; nothing if it stands, else why not."""
        if not is_stood_on and not any(changes(phase_after, self._actions) for phase_after in later):
            return Why()
        return in_phase(phase.name, self.of(self.stood_on(phase))) or Why(self._unserved(phase))

    def stood_on(self, phase: Phase) -> list[ObjectRef]:
        """What of a phase the later ones stand on."""
        return [manifest.ref for manifest in phase.manifests if self._is_waited_for(phase, manifest)]

    def of(self, refs: list[ObjectRef]) -> Why:
        """Wait for these objects; nothing where they have settled, else which has not, and why."""
        left_out = {action.ref for action in self._actions.values() if action.action is Action.SKIP}
        refs = [ref for ref in refs if ref not in self._settled | left_out]
        if not refs:
            return Why()
        self._asked.before_wait(refs)
        try:
            found = self._health(refs)
        except PratiqueError as exc:
            if exc is self._patience.ended_by or isinstance(exc, TryLater):  # which carries on later, and is no failure
                raise
            return Why(f"could not see whether it settled: {exc}", exc.server_words, refs[0])
        for ref, health in sorted(found.items(), key=lambda it: (WORST_FIRST.index(it[1].state), it[0])):
            if health.state is not HealthState.CURRENT:
                words = f"{ref} is {health.state}{f': {health.message}' if health.message else ''}"
                pods: list[str] = []
                if ref.group in {"apps", "batch"}:
                    with suppress(PratiqueError):  # only the why is missing; that it is not well has been said
                        pods = failing_pods(self._asked.observer, self._asked.observer.get(ref) or {})
                said = [health.server_words, *(pod for pod in pods if pod not in health.server_words)]
                return Why(words, "; ".join(filter(None, said)), ref)
        self._settled.update(refs)
        return Why()

    def _is_waited_for(self, phase: Phase, manifest: Manifest) -> bool:
        """Claims, load balancers and certificates are not: some settle only through what comes later.

        What does not stop being ready (a namespace, a definition) only where it is written; a workload and what a check
        selects always: else an apply that is tried again would go on over what held it before.
        """
        if phase.name in {"namespaces", "crds"} and changes(phase, self._actions):
            return True
        return is_workload(manifest.body) or self._asked.checks_select(manifest.ref)

    def _health(self, refs: list[ObjectRef]) -> dict[ObjectRef, Health]:
        """By a watch of each place where that is a few, else by looking again and again, as for checks."""
        observer, checks, patience = self._asked.observer, self._asked.checks, self._patience
        checked, found = refs, dict[ObjectRef, Health]()
        if len({(ref.group_kind, ref.namespace) for ref in refs}) <= MAX_WATCHES:
            checked = [ref for ref in refs if self._asked.checks_select(ref)]
            found = until_settled(observer, refs, timeout_seconds=patience.left, while_waiting=patience.pulse)
        if any(health.state is HealthState.FAILED for health in found.values()):
            return found
        return found | until_sound(
            observer, checked, checks, timeout_seconds=patience.left, while_waiting=patience.pulse
        )

    def _unserved(self, phase: Phase) -> str:
        """A CRD may be established a moment before its kind is served."""
        if phase.name != "crds" or not changes(phase, self._actions):
            return ""
        self._cluster.forget_discovery()
        for manifest in phase.manifests:
            spec = manifest.body.get("spec") or {}
            group, kind = str(spec.get("group") or ""), str((spec.get("names") or {}).get("kind") or "")
            while self._cluster.resource_of(group, "", kind) is None:
                if self._patience.left <= _SERVED_PAUSE_SECONDS:
                    return f"phase crds: {kind}.{group} is established and not served"
                self._patience.pulse()
                time.sleep(_SERVED_PAUSE_SECONDS)
        return ""
