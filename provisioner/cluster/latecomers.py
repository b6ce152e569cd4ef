"""What was created in a CRD or a namespace that is deleted since somebody was shown what is in it, and goes with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from provisioner.cluster.client.api import Cluster
from provisioner.cluster.evidence import Query, Sample, samples
from provisioner.errors import Forbidden, InvalidObject, TryLater, UnknownKind
from provisioner.values import GroupKind, JsonObject, ObjectRef, created_at

NAMESPACE = GroupKind("", "Namespace")
# Owners that no plan names are looked up one by one. What more there are own is taken for new.
MAX_OWNERS = 50


@dataclass(frozen=True, slots=True)
class Shown:
    """What was shown of one kind: how many there were, and when the last of them had been created, "" of none.

    `last` is None where there were more than were looked through.
    """

    count: int
    last: str | None


@dataclass(frozen=True, slots=True)
class Holder:
    """A CRD or a namespace that is deleted, what was shown of the kinds in it, and the uids of all that is deleted."""

    ref: ObjectRef
    shown: Mapping[GroupKind, Shown]
    going: Collection[str] = ()

    @property
    def namespace(self) -> str:
        return self.ref.name if self.ref.group_kind == NAMESPACE else ""


def latecomers(readers: Sequence[Cluster], holder: Holder) -> dict[GroupKind, int | None]:
    """How many of each kind were created since they were shown; None where there are too many to look through.

    What a controller made of another object that goes as well, and was there before, is none of them. Each list is
    read, without values, as the first of `readers` who may. Raises TryLater where nobody can tell.
    """
    owners, found = _Owners(readers, holder), {}
    for kind, shown in holder.shown.items():
        after = shown.last or ""
        query = Query(kind.group, "", kind.kind, holder.namespace, metadata_only=True, is_counted=True, after=after)
        there = samples(readers, [query])[query]
        if there.problem:
            raise TryLater(f"the objects that would be deleted with {holder.ref} could not be read: {there.problem}")
        found[kind] = _late(there, shown, owners)
    return found


def _late(there: Sample, shown: Shown, owners: _Owners) -> int | None:
    """Where nobody had looked through all, each may be new."""
    if there.total is None or there.last is None:
        return None
    if shown.last is None:
        return there.total
    made = [one for one in there.objects if not owners.go_with(one)]
    # Whose owner goes is known of those only that were kept.
    beyond = there.late - len(there.objects)
    # What was created in the same second as the last that was shown.
    more = there.total - there.late - shown.count
    return len(made) + beyond + max(0, more)


@dataclass
class _Owners:
    """Whose controllers go with the holder; each is looked up once."""

    readers: Sequence[Cluster]
    holder: Holder
    known: dict[str, bool] = field(default_factory=dict)

    def go_with(self, obj: JsonObject) -> bool:
        """Whether the controller of `obj` goes, and is not new itself."""
        owners = obj["metadata"].get("ownerReferences") or []
        owner = next((one for one in owners if one.get("controller") is True), None)
        if owner is None:
            return False
        uid = str(owner.get("uid") or "")
        if uid in self.holder.going:
            return True
        if uid not in self.known and len(self.known) < MAX_OWNERS:
            self.known[uid] = False  # whoever owns itself goes with nothing
            live = self._live(owner, str(obj["metadata"].get("namespace") or ""))
            is_it = live is not None and live["metadata"].get("uid") == uid
            self.known[uid] = is_it and live is not None and (self._was_there(live) or self.go_with(live))
        return self.known.get(uid, False)

    def _live(self, owner: Mapping[str, Any], namespace: str) -> JsonObject | None:
        """The owner as it stands, of which nothing is known but its name."""
        group, _, version = str(owner.get("apiVersion") or "").rpartition("/")
        kind, name = str(owner.get("kind") or ""), str(owner.get("name") or "")
        for reader in self.readers if name else ():
            try:
                served = reader.resource_of(group, version, kind)
                place = namespace if served is not None and served.is_namespaced else ""
                return reader.get(ObjectRef(group, version, kind, place, name), metadata_only=True) if served else None
            except (Forbidden, InvalidObject, UnknownKind):
                continue
        return None

    def _was_there(self, owner: JsonObject) -> bool:
        """Whether it is in the holder, and was when that was shown; of a kind that is not shown, by the last of all."""
        ref, shown = ObjectRef.of(owner), self.holder.shown
        is_inside = ref.namespace == self.holder.namespace if self.holder.namespace else ref.group_kind in shown
        known = [shown[ref.group_kind]] if ref.group_kind in shown else shown.values()
        return is_inside and "" < created_at(owner) <= max(one.last or "" for one in known)
