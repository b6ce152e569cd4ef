"""What was created in a CRD or a namespace that is deleted since somebody was shown what is in it, and goes with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.evidence import Query, Sample, Unread, samples
from provisioner.errors import Forbidden, InvalidObject, TryLater, UnknownKind, Unreachable
from provisioner.values import GroupKind, JsonObject, ObjectIdentity, ObjectRef, created_at

NAMESPACE = GroupKind("", "Namespace")
# Owners that no plan names are looked up one by one. What more there are own is taken for new.
MAX_OWNERS = 50


@dataclass(frozen=True, slots=True)
class Shown:
    """What was shown of one kind: how many there were, and when the last of them had been created, "" of none.

    `count` is None where nobody could count them; `last` where there were more than were looked through, and, not
    `is_dated`, where it was not kept. They were listed in `version`, "" for the one that the server prefers.
    """

    count: int | None
    last: str | None
    version: str = ""
    is_dated: bool = True


@dataclass(frozen=True, slots=True)
class Holder:
    """A CRD or a namespace that is deleted, what was shown of the kinds in it, and the uids of all that is deleted.

    `written` are the objects that the same plan writes, so that they were shown as well.
    """

    ref: ObjectRef
    shown: Mapping[GroupKind, Shown]
    going: Collection[str] = ()
    written: Collection[ObjectIdentity] = ()

    @property
    def namespace(self) -> str:
        return self.ref.name if self.ref.group_kind == NAMESPACE else ""

    def had(self, owner: JsonObject) -> bool:
        """Whether it is in here, and was when that was shown; of a kind that is not shown, by the last of all."""
        ref = ObjectRef.of(owner)
        is_inside = ref.namespace == self.namespace if self.namespace else ref.group_kind in self.shown
        known = [self.shown[ref.group_kind]] if ref.group_kind in self.shown else self.shown.values()
        return is_inside and "" < created_at(owner) <= max((one.last or "" for one in known), default="")


@dataclass(frozen=True, slots=True)
class Late:
    """What is there now of one kind: `count` objects that are new, None where there are too many to look through.

    `total` are all. `unasked` controllers could not be asked about: what they made counts as new. `problem` says why
    the kind could not be listed, where that is no error that passes, and `server_words` what the server said of it.
    """

    count: int | None
    total: int | None = None
    unasked: int = 0
    problem: str = ""
    server_words: str = ""


def latecomers(
    readers: Sequence[ClusterClient], holder: Holder, others: Sequence[Holder] = ()
) -> dict[GroupKind, Late]:
    """What of each kind was created since it was shown.

    What a controller made of another object that goes as well, and was there before, is none of them; it may be in one
    of the `others`, which go too. Each list is read, without values, as the first of `readers` who may. Raises TryLater
    where nobody can tell.
    """
    owners, found = _Owners(readers, (holder, *others)), {}
    for kind, shown in holder.shown.items():
        after = shown.last or ""
        query = Query(
            kind.group, shown.version, kind.kind, holder.namespace, metadata_only=True, is_counted=True, after=after
        )
        there = samples(readers, [query])[query]
        if there.why is Unread.TOO_LARGE:
            found[kind] = Late(None)
        elif there.problem and shown.count is None:
            found[kind] = Late(0)  # as it was shown: nobody can count them
        elif there.why is Unread.CONVERSION:
            found[kind] = Late(0, problem=there.problem, server_words=there.server_words)
        elif there.problem:
            raise TryLater(f"the objects that would be deleted with {holder.ref} could not be read: {there.problem}")
        else:
            count = _late(there, shown, owners.going_of(kind, holder))
            found[kind] = Late(count, there.total, owners.taken_unasked())
    return found


def _late(there: Sample, shown: Shown, goes: Callable[[JsonObject], bool]) -> int | None:
    """Where nobody had looked through all, each may be new."""
    if there.total is None or there.last is None:
        return None
    if shown.count is None or (shown.last is None and shown.is_dated):
        return there.total
    if not shown.is_dated:
        return max(0, there.total - shown.count)
    made = [one for one in there.objects if not goes(one)]
    # Whose owner goes is known of those only that were kept.
    beyond = there.late - len(there.objects)
    # What was created in the same second as the last that was shown.
    more = there.total - there.late - shown.count
    return len(made) + beyond + max(0, more)


@dataclass
class _Owners:
    """Whose controllers go with one of the holders; each is looked up once."""

    readers: Sequence[ClusterClient]
    holders: Sequence[Holder]
    known: dict[str, bool] = field(default_factory=dict)
    unasked: int = 0

    def going_of(self, kind: GroupKind, holder: Holder) -> Callable[[JsonObject], bool]:
        """Tells of an object of this kind in `holder` whether it was shown all the same: by the plan, or its owner."""

        def goes(obj: JsonObject) -> bool:
            meta = obj["metadata"]
            identity = (kind.group, kind.kind, str(meta.get("namespace") or ""), str(meta.get("name") or ""))
            return identity in holder.written or self.go_with(obj)

        return goes

    def taken_unasked(self) -> int:
        """How many controllers could not be asked about since this was last called."""
        found, self.unasked = self.unasked, 0
        return found

    def go_with(self, obj: JsonObject) -> bool:
        """Whether the controller of `obj` goes, and is not new itself."""
        owners = obj["metadata"].get("ownerReferences") or []
        owner = next((one for one in owners if one.get("controller") is True), None)
        if owner is None:
            return False
        uid = str(owner.get("uid") or "")
        if any(uid in one.going for one in self.holders):
            return True
        if uid not in self.known and len(self.known) < MAX_OWNERS:
            self.known[uid] = False  # whoever owns itself goes with nothing
            live = self._live(owner, str(obj["metadata"].get("namespace") or ""))
            is_it = live is not None and live["metadata"].get("uid") == uid
            self.known[uid] = is_it and live is not None and (self._was_there(live) or self.go_with(live))
        return self.known.get(uid, False)

    def _was_there(self, owner: JsonObject) -> bool:
        return any(one.had(owner) for one in self.holders)

    def _live(self, owner: Mapping[str, Any], namespace: str) -> JsonObject | None:
        """The owner as it stands, of which nothing is known but its name.

        None as well where the server behind its kind does not answer: anybody may name such an owner. That the API
        server itself does not is Unreachable.
        """
        group, _, version = str(owner.get("apiVersion") or "").rpartition("/")
        kind, name = str(owner.get("kind") or ""), str(owner.get("name") or "")
        for reader in self.readers if name else ():
            ref = ObjectRef(group, version, kind, namespace, name)
            try:
                return _read(reader, ref)
            except (Forbidden, InvalidObject, UnknownKind):
                continue
            except Unreachable:
                reader.uid()  # raises where nothing answers
            try:
                return _read(reader, ref)
            except (Forbidden, InvalidObject, UnknownKind):
                continue
            except Unreachable:
                self.unasked += 1
                return None
        return None


def _read(reader: ClusterClient, ref: ObjectRef) -> JsonObject | None:
    served = reader.resource_of(ref.group, ref.version, ref.kind)
    if served is None:
        return None
    place = ref.namespace if served.is_namespaced else ""
    return reader.get(replace(ref, namespace=place), metadata_only=True)
