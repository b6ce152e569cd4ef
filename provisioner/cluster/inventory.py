"""What is ours: the objects of one BundleDeployment on one cluster, recorded before they are touched (S20)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from provisioner.values import HookMoment, HookRun, InventoryItem, ObjectIdentity, ObjectRef


class Inventory(Protocol):
    """The record. Every call is durable when it returns. Called from one thread only."""

    def items(self) -> dict[ObjectIdentity, InventoryItem]:
        """All items, by `ref.identity`."""

    def intend(self, ref: ObjectRef, nonce: str) -> None:
        """Record that `ref` is about to be written with `nonce`.

        The uid of an item that stands already is kept with the same nonce, and cleared with another.
        """

    def intend_many(self, intents: Sequence[tuple[ObjectRef, str]]) -> None:
        """`intend` for each (ref, nonce), made durable together."""

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        """Record that the object exists and is ours: it has this `uid`."""

    def confirm_many(self, made: Sequence[tuple[ObjectRef, str, str]]) -> None:
        """`confirm` for each (ref, nonce, uid), made durable together."""

    def forget(self, ref: ObjectRef, uid: str) -> None:
        """Record that the object is gone. An item with another uid stays."""

    def let_go(self, ref: ObjectRef, nonce: str) -> None:
        """Record that a write which nobody had heard of has made the object, although nobody wishes for it any more.

        No plan knows it: to take it away is for whoever keeps the inventory.
        """


class MemoryInventory:
    """An inventory that ends with the process, for the command line and for tests."""

    def __init__(self, items: Iterable[InventoryItem] = ()):
        self._lock = threading.Lock()
        self._items = {item.ref.identity: item for item in items}

    def items(self) -> dict[ObjectIdentity, InventoryItem]:
        with self._lock:
            return dict(self._items)

    def intend(self, ref: ObjectRef, nonce: str) -> None:
        with self._lock:
            known = self._items.get(ref.identity)
            uid = known.uid if known and known.nonce == nonce else ""
            self._items[ref.identity] = InventoryItem(ref, nonce, uid)

    def intend_many(self, intents: Sequence[tuple[ObjectRef, str]]) -> None:
        for ref, nonce in intents:
            self.intend(ref, nonce)

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        with self._lock:
            known = self._items.get(ref.identity, InventoryItem(ref, nonce))
            self._items[ref.identity] = replace(known, nonce=nonce, uid=uid)

    def confirm_many(self, made: Sequence[tuple[ObjectRef, str, str]]) -> None:
        for ref, nonce, uid in made:
            self.confirm(ref, nonce, uid)

    def forget(self, ref: ObjectRef, uid: str) -> None:
        with self._lock:
            known = self._items.get(ref.identity)
            if known and known.uid == uid:
                del self._items[ref.identity]

    def let_go(self, ref: ObjectRef, nonce: str) -> None:
        """It stays in the record, without a uid: it ends with the process."""


class HookRuns(Protocol):
    """The record of the hooks that have run: the last run of each. Every call is durable when it returns."""

    def items(self) -> dict[ObjectIdentity, HookRun]:
        """The last run of each hook, by `ref.identity`."""

    def begin(self, ref: ObjectRef, moment: HookMoment, nonce: str) -> None:
        """Record that a run begins, whose object is about to be written with `nonce`."""

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        """Record that the object of the run with this `nonce` exists."""

    def succeed(self, ref: ObjectRef, nonce: str) -> None:
        """Record that the run with this `nonce` has done what it is there for."""


class MemoryHookRuns:
    """A record that ends with the process."""

    def __init__(self, runs: Iterable[HookRun] = ()):
        self._runs = {run.ref.identity: run for run in runs}

    def items(self) -> dict[ObjectIdentity, HookRun]:
        return dict(self._runs)

    def begin(self, ref: ObjectRef, moment: HookMoment, nonce: str) -> None:
        self._runs[ref.identity] = HookRun(ref, moment, nonce)

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self._change(ref, nonce, uid=uid)

    def succeed(self, ref: ObjectRef, nonce: str) -> None:
        self._change(ref, nonce, has_succeeded=True)

    def end_request(self) -> None:
        """From now on its runs are those of an earlier request."""
        self._runs = {identity: replace(run, is_current=False) for identity, run in self._runs.items()}

    def _change(self, ref: ObjectRef, nonce: str, **changes: Any) -> None:
        known = self._runs.get(ref.identity)
        if known and known.nonce == nonce:
            self._runs[ref.identity] = replace(known, **changes)


def uids(items: Iterable[InventoryItem]) -> dict[ObjectIdentity, str]:
    """The form that `plan` asks for: the uid of each object that is known to exist and be ours."""
    return {item.ref.identity: item.uid for item in items if item.uid}
