"""Objects by kind and name, with resource versions, a history for watches, and a file that survives a restart."""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.sandbox.calls import StatusRefusal

HISTORY = 5000
# (group, plural), then namespace and name: versions of one kind share their objects.
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class StoreChange:
    version: int
    type: str
    key: Key
    object: dict[str, Any]
    before: dict[str, Any] | None


class ObjectStore:
    """Safe for threads: every write happens under `lock`, which callers hold over read and write."""

    def __init__(self, path: Path):
        self.lock = threading.RLock()
        self.moved = threading.Condition(self.lock)
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._file.execute("PRAGMA journal_mode=WAL")
        self._file.execute("PRAGMA synchronous=NORMAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS object (key TEXT PRIMARY KEY, body TEXT NOT NULL)")
        self._file.execute("CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        # By kind, then namespace: a list is as long as what it lists, however much else there is.
        self._kinds: dict[tuple[str, str], dict[str, dict[Key, dict[str, Any]]]] = {}
        # How many objects have a uid, and which name it as their owner's.
        self._uids: Counter[str] = Counter()
        self._owned: dict[str, set[Key]] = defaultdict(set)
        for text, body in self._file.execute("SELECT key, body FROM object"):
            key = _parse_key(text)
            self._shelf(key)[key] = json.loads(body)
            self._index(key, None, self._shelf(key)[key])
        self.version = int(self.fact("version") or 100)
        self._oldest = self.version
        self._history: deque[StoreChange] = deque(maxlen=HISTORY)

    def close(self) -> None:
        with self.lock:
            self._file.close()

    def fact(self, name: str) -> str:
        row = self._file.execute("SELECT value FROM fact WHERE name = ?", [name]).fetchone()
        return str(row[0]) if row else ""

    def remember(self, name: str, value: str) -> None:
        with self.lock:
            self._file.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", [name, value])

    def get(self, key: Key) -> dict[str, Any] | None:
        with self.lock:
            return self._kinds.get(key[:2], {}).get(key[2], {}).get(key)

    def all(self, group: str, plural: str, namespace: str = "", at: int | None = None) -> list[dict[str, Any]]:
        """Every object of a kind, by namespace and name, now or as it was `at` a version.

        Raises StatusRefusal 410 where that version is no longer known.
        """
        with self.lock:
            shelves = self._kinds.get((group, plural), {})
            chosen = [shelves.get(namespace, {})] if namespace else shelves.values()
            found = {key: obj for shelf in chosen for key, obj in shelf.items()}
            if at is not None:
                for change in reversed(self.since(at)):
                    if change.key[:2] != (group, plural) or (namespace and change.key[2] != namespace):
                        continue
                    if change.before is None:
                        del found[change.key]
                    else:
                        found[change.key] = change.before
        return [obj for _, obj in sorted(found.items(), key=lambda it: it[0])]

    def put(self, key: Key, obj: dict[str, Any]) -> dict[str, Any]:
        """Store a new state; what did not change keeps its resourceVersion and wakes nobody."""
        with self.lock:
            before = self.get(key)
            if before is not None and (_without_times(before) == _without_times(obj)):
                return before
            self.version += 1
            stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
            self._shelf(key)[key] = stored
            self._index(key, before, stored)
            self._store_object(key, stored)
            self._tell(StoreChange(self.version, "MODIFIED" if before else "ADDED", key, stored, before))
            return stored

    def remove(self, key: Key) -> dict[str, Any] | None:
        with self.lock:
            gone = self.get(key)
            if gone is None:
                return None
            del self._shelf(key)[key]
            self._index(key, gone, None)
            self.version += 1
            last = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
            self._store_object(key, None)
            self._tell(StoreChange(self.version, "DELETED", key, last, gone))
            return last

    def since(self, version: int) -> list[StoreChange]:
        """What happened after `version`; raises StatusRefusal 410 where that is no longer known."""
        with self.lock:
            if version < self._oldest:
                raise StatusRefusal(410, "Expired", f"too old resource version: {version} ({self._oldest})")
            newer = itertools.takewhile(lambda change: change.version > version, reversed(self._history))
            return list(newer)[::-1]

    def all_keys(self) -> list[Key]:
        with self.lock:
            return [key for shelves in self._kinds.values() for shelf in shelves.values() for key in shelf]

    def keys_in(self, namespace: str) -> list[Key]:
        with self.lock:
            return [key for shelves in self._kinds.values() for key in shelves.get(namespace, ())]

    def has_uid(self, uid: str) -> bool:
        with self.lock:
            return self._uids[uid] > 0

    def owned_by(self, uid: str) -> list[Key]:
        """The objects of which that of this uid is an owner, whether it is still there or not."""
        with self.lock:
            return sorted(self._owned.get(uid, ()))

    def _index(self, key: Key, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        if before is not None:
            self._uids[before["metadata"].get("uid", "")] -= 1
            for uid in owners_of(before):
                self._owned[uid].discard(key)
        if after is not None:
            self._uids[after["metadata"].get("uid", "")] += 1
            for uid in owners_of(after):
                self._owned[uid].add(key)

    def _shelf(self, key: Key) -> dict[Key, dict[str, Any]]:
        return self._kinds.setdefault(key[:2], {}).setdefault(key[2], {})

    def _tell(self, change: StoreChange) -> None:
        if len(self._history) == HISTORY:
            self._oldest = self._history[0].version
        self._history.append(change)
        self.moved.notify_all()

    def _store_object(self, key: Key, obj: dict[str, Any] | None) -> None:
        name = json.dumps(key)
        self._file.execute("BEGIN")
        if obj is None:
            self._file.execute("DELETE FROM object WHERE key = ?", [name])
        else:
            self._file.execute("INSERT OR REPLACE INTO object VALUES (?, ?)", [name, json.dumps(obj)])
        self._file.execute("INSERT OR REPLACE INTO fact VALUES ('version', ?)", [str(self.version)])
        self._file.execute("COMMIT")


def owners_of(obj: dict[str, Any]) -> list[str]:
    """The uids of the owners that an object names."""
    return [str(owner.get("uid", "")) for owner in obj["metadata"].get("ownerReferences") or []]


def _parse_key(text: str) -> Key:
    group, plural, namespace, name = json.loads(text)
    return (group, plural, namespace, name)


def _without_times(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    managed = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in obj["metadata"].get("managedFields") or []
    ]
    return {**obj, "metadata": {**meta, "managedFields": managed}}
