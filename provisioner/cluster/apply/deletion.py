"""Take away what the new content has no more, or let go of it; in the inventory, an object is ours until it is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from provisioner.cluster.annotations import nonce_of
from provisioner.cluster.apply.object_writer import ObjectWriter
from provisioner.cluster.apply.waits import Patience
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.health.watch import until_gone
from provisioner.cluster.inventory import Inventory
from provisioner.cluster.order import is_system_namespace
from provisioner.cluster.plan.prune import in_served_version
from provisioner.errors import Overtaken, PratiqueError, PreconditionFailed, UnknownKind, Unreachable, Withheld
from provisioner.values import Action, InventoryItem, ObjectIdentity, ObjectOutcome, OutcomeState, PlannedAction, Why

# Recorded at once; the next chunk is written while the outcomes of one are recorded.
CHUNK = 64
T = TypeVar("T")


def chunks(todo: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(todo)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


@dataclass(frozen=True, slots=True)
class Deleter:
    """Deletes by the threads of `pool`. The inventory is only met in the caller's thread."""

    cluster: ClusterClient
    inventory: Inventory
    writer: ObjectWriter
    patience: Patience
    pool: ThreadPoolExecutor

    def delete(self, planned: list[PlannedAction]) -> Iterator[ObjectOutcome]:
        """Delete all at once and wait until they are gone; what is gone is forgotten."""
        patience = self.patience
        asked = patience.results([self.pool.submit(self._delete, each) for each in planned])
        uids = {outcome.ref: outcome.uid for outcome in asked if outcome.state is OutcomeState.DONE}
        left = until_gone(self.cluster, uids, timeout_seconds=patience.left, while_waiting=patience.pulse)
        for outcome in asked:
            still = left.get(outcome.ref, Why())
            words, said = outcome.message or still.words, outcome.server_words or still.server_words
            is_failed = outcome.state is OutcomeState.FAILED or outcome.ref in left
            if not is_failed:
                self.inventory.forget(outcome.ref, outcome.uid)
            state = OutcomeState.FAILED if is_failed else outcome.state
            yield ObjectOutcome(outcome.ref, Action.DELETE, state, words, outcome.uid, server_words=said)

    def release(self, planned: list[PlannedAction]) -> Iterator[ObjectOutcome]:
        """Take our tracking from what stays, and forget it."""
        for chunk in chunks(planned):
            for each, released in [(action, self.pool.submit(self._release, action)) for action in chunk]:
                outcome = self.patience.result(released)
                if outcome.state is not OutcomeState.FAILED:
                    self.inventory.forget(each.ref, each.uid)
                yield outcome

    def forget_vain(self, items: Mapping[ObjectIdentity, InventoryItem], wished: set[ObjectIdentity]) -> None:
        """End the record of writes that were refused and that nobody wishes for any more: no plan knows the object.

        Where it cannot be seen whether it is ours, the record stays.
        """
        for identity, item in sorted(items.items()):
            if item.uid or identity in wished:
                continue
            try:
                found = partial(self.cluster.get, in_served_version(self.cluster, item.ref))
                live = self.patience.result(self.pool.submit(self.writer.patiently, found))
            except UnknownKind:
                live = None
            except PratiqueError as exc:
                if exc is self.patience.ended_by:
                    raise
                continue
            if live is None or nonce_of(live) != item.nonce:
                self.inventory.forget(item.ref, "")
            else:
                self.inventory.let_go(item.ref, item.nonce)

    def _delete(self, planned: PlannedAction) -> ObjectOutcome:
        ref, uid = planned.ref, planned.uid
        if is_system_namespace(ref):
            return ObjectOutcome(ref, Action.DELETE, OutcomeState.FAILED, f"{ref} belongs to Kubernetes itself", uid)
        try:
            self.writer.delete(in_served_version(self.cluster, ref), planned)
        except Overtaken as exc:
            return ObjectOutcome(ref, Action.DELETE, OutcomeState.FAILED, str(exc), uid, server_words=exc.server_words)
        except PreconditionFailed:
            return ObjectOutcome(
                ref, Action.DELETE, OutcomeState.UNCHANGED, f"{ref} was made again by somebody else", uid
            )
        except UnknownKind:
            return ObjectOutcome(ref, Action.DELETE, OutcomeState.DONE, "gone with its kind", uid)
        except Withheld:
            raise
        except PratiqueError as exc:
            return ObjectOutcome(ref, Action.DELETE, OutcomeState.FAILED, str(exc), uid, server_words=exc.server_words)
        return ObjectOutcome(ref, Action.DELETE, OutcomeState.DONE, "", uid)

    def _release(self, planned: PlannedAction) -> ObjectOutcome:
        """Tracking that may not be taken away stays: it is no reason to go on holding what nobody wants held."""
        words, state, said = list(planned.notes), OutcomeState.UNCHANGED, ""
        try:
            self.writer.release(in_served_version(self.cluster, planned.ref), planned.uid)
        except UnknownKind:
            words.append("gone with its kind")
        except (Unreachable, Overtaken) as exc:
            words, state, said = [str(exc)], OutcomeState.FAILED, exc.server_words
        except Withheld:
            raise
        except PratiqueError as exc:
            words.append(f"it still names its owner: {exc}")
            said = exc.server_words
        return ObjectOutcome(planned.ref, planned.action, state, "; ".join(words), planned.uid, server_words=said)
