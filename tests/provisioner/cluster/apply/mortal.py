"""A worker that dies at a chosen step, in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.cluster.apply.run import Terms, apply
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryInventory
from provisioner.values import Content, InventoryItem, ObjectIdentity, ObjectRef, Plan
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import MANAGER, failures

KILLED = 137
LIFETIME_SECONDS = 90.0

# Children come from a server without threads: a fork of the test run itself would inherit its locks.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


class FileInventory:
    """An inventory that survives the process, and kills it at a chosen call: before the call counts, or right after."""

    def __init__(self, file: Path, *, die_at: int = 0, is_after: bool = False):
        self._file = file
        self._die_at = die_at
        self._is_after = is_after
        self.calls = 0

    def items(self) -> dict[ObjectIdentity, InventoryItem]:
        return pickle.loads(self._file.read_bytes()) if self._file.exists() else {}

    def intend(self, ref: ObjectRef, nonce: str) -> None:
        self._do("intend", ref, nonce)

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self._do("confirm", ref, nonce, uid)

    def intend_many(self, intents: Sequence[tuple[ObjectRef, str]]) -> None:
        """One by one, so that death may come in between: harder than what the promise asks for."""
        for ref, nonce in intents:
            self.intend(ref, nonce)

    def confirm_many(self, made: Sequence[tuple[ObjectRef, str, str]]) -> None:
        for ref, nonce, uid in made:
            self.confirm(ref, nonce, uid)

    def forget(self, ref: ObjectRef, uid: str) -> None:
        self._do("forget", ref, uid)

    def _do(self, word: str, *arguments: Any) -> None:
        self.calls += 1
        if self.calls == self._die_at and not self._is_after:
            os._exit(KILLED)
        memory = MemoryInventory(self.items().values())
        getattr(memory, word)(*arguments)
        scratch = self._file.with_suffix(".new")
        scratch.write_bytes(pickle.dumps(memory.items()))
        scratch.replace(self._file)
        if self.calls == self._die_at:
            os._exit(KILLED)


@dataclass(frozen=True)
class Work:
    kubeconfig: str
    content: Content
    plan: Plan


def run_and_die(work: Work, inventory: FileInventory) -> int:
    """Apply in a process of its own; its exit status: KILLED, 0 for a good end, else something went wrong."""
    process = _processes.Process(target=_run, args=(work, inventory))
    process.start()
    process.join(scaled(LIFETIME_SECONDS))
    if process.exitcode is None:
        process.kill()
        process.join()
    return int(process.exitcode or 0)


def _run(work: Work, inventory: FileInventory) -> None:
    cluster = ClusterClient.connect(work.kubeconfig, timeout_seconds=scaled(60))
    failed = failures(apply(cluster, work.content, work.plan, inventory, Terms(MANAGER)))
    os._exit(2 if failed else 0)
