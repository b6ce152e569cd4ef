"""What is lost with objects that are deleted, beyond the objects that a plan names.

Objects that were created in a deleted CRD or namespace since somebody was shown what is in it; the data of claims whose
volumes were said to stay; and what the API server's garbage collector takes, whoever made it: what names a deleted
object as its owner, and the tokens of accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.evidence import Query, Sample, Unread, read_objects, read_samples
from provisioner.errors import ClusterError, Forbidden, InvalidObject, TryLater, UnknownKind, Unreachable
from provisioner.json_values import mapping
from provisioner.retention import claims_of, takes_claims_along
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
        return is_inside and "" < created_at(owner) <= max(
            (owner_known.last or "" for owner_known in known), default=""
        )


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


def find_latecomers(
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
        there = read_samples(readers, [query])[query]
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
    made = [obj for obj in there.objects if not goes(obj)]
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
        owner = next((reference for reference in owners if reference.get("controller") is True), None)
        if owner is None:
            return False
        uid = str(owner.get("uid") or "")
        if any(uid in holder.going for holder in self.holders):
            return True
        if uid not in self.known and len(self.known) < MAX_OWNERS:
            self.known[uid] = False  # whoever owns itself goes with nothing
            live = self._live(owner, str(obj["metadata"].get("namespace") or ""))
            is_it = live is not None and live["metadata"].get("uid") == uid
            self.known[uid] = (
                is_it and live is not None and (any(holder.had(live) for holder in self.holders) or self.go_with(live))
            )
        return self.known.get(uid, False)

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
                return _read_owner(reader, ref)
            except (Forbidden, InvalidObject, UnknownKind):
                continue
            except Unreachable:
                reader.uid()  # raises where nothing answers
            try:
                return _read_owner(reader, ref)
            except (Forbidden, InvalidObject, UnknownKind):
                continue
            except Unreachable:
                self.unasked += 1
                return None
        return None


def _read_owner(reader: ClusterClient, ref: ObjectRef) -> JsonObject | None:
    served = reader.resource_of(ref.group, ref.version, ref.kind)
    if served is None:
        return None
    place = ref.namespace if served.is_namespaced else ""
    return reader.get(replace(ref, namespace=place), metadata_only=True)


_KEPT = "Retain"


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A claim that goes, as it was shown: its volume ("" none yet), and what was to become of that ("" unknown)."""

    ref: ObjectRef
    volume: str
    policy: str

    @property
    def was_to_stay(self) -> bool:
        """Whether it was said that no data goes; worse than what was said of others nothing can come."""
        return self.policy == _KEPT or not self.volume


def find_lost_volumes(readers: Sequence[ClusterClient], shown: Iterable[VolumeClaim]) -> list[str]:
    """Of each claim that `was_to_stay` and loses its data now how, in words.

    Also by the volume that it has now: a claim may have been made again under its name. Each is read as the first of
    `readers` who may. Raises TryLater where nobody can tell.
    """
    asked = list(shown)
    live = _read_live(readers, [claim.ref for claim in asked])
    named = []
    for claim in asked:
        bound = str(mapping((live[claim.ref] or {}).get("spec")).get("volumeName") or "")
        named += [(claim.ref, name) for name in dict.fromkeys((claim.volume, bound)) if name]
    volumes = {name: ObjectRef("", "v1", "PersistentVolume", "", name) for _, name in named}
    there = _read_live(readers, volumes.values())
    words = []
    for ref, name in named:
        volume = there[volumes[name]]
        policy = str(mapping((volume or {}).get("spec")).get("persistentVolumeReclaimPolicy") or _KEPT)
        if volume is not None and policy != _KEPT:
            words.append(f"{volumes[name]} would be deleted with {ref} ({policy})")
    return words


def find_new_claims(
    readers: Sequence[ClusterClient], stateful_set: JsonObject, ref: ObjectRef, known: Collection[str]
) -> list[str]:
    """The names of claims that go with a StatefulSet and are none of the `known` ones; raises TryLater as above."""
    if not takes_claims_along(stateful_set):
        return []
    query = Query("", "v1", "PersistentVolumeClaim", ref.namespace, metadata_only=True)
    there = read_samples(readers, [query])[query]
    if there.problem or there.total != len(there.objects):
        raise TryLater(f"the claims that would be deleted with {ref} could not be read: {there.problem or 'too many'}")
    made = claims_of({**stateful_set, "metadata": {"name": ref.name}}, there.objects)
    names = sorted(str(obj["metadata"]["name"]) for obj in made)
    return [name for name in names if name not in known]


def _read_live(readers: Sequence[ClusterClient], refs: Iterable[ObjectRef]) -> dict[ObjectRef, dict[str, Any] | None]:
    try:
        return read_objects(readers, refs)
    except ClusterError as exc:
        raise TryLater(f"whether data stays could not be looked up: {exc}") from exc


_KEEPING = ("ConfigMap", "PersistentVolumeClaim", "Secret")
_ACCOUNT = GroupKind("", "ServiceAccount")
_SERVED_ACCOUNT = "kubernetes.io/service-account.name"


def find_dependents(readers: Sequence[ClusterClient], going: Iterable[tuple[ObjectRef, str]]) -> list[str]:
    """In words, what goes along with `going`, objects and their uids, and is none of them; and what nobody could see.

    Each list is read, without values, as the first of `readers` who may. Raises Unreachable.
    """
    uids = {uid: ref for ref, uid in going}
    known = {ref.identity for ref in uids.values()}
    places = {ref.namespace for ref in uids.values()} - {""}
    queries = [Query("", "v1", kind, place, metadata_only=True) for place in sorted(places) for kind in _KEEPING]
    words = []
    for query, found in read_samples(readers, queries).items():
        if found.problem or found.total != len(found.objects):
            words.append(f"whether a {query.kind} of {query.namespace} goes along: {found.problem or 'too many'}")
        for meta in (obj["metadata"] for obj in found.objects):
            ref = ObjectRef("", "v1", query.kind, query.namespace, str(meta["name"]))
            if ref.identity not in known:
                owners = [uids[owner["uid"]] for owner in meta.get("ownerReferences") or [] if owner.get("uid") in uids]
                served = (meta.get("namespace"), (meta.get("annotations") or {}).get(_SERVED_ACCOUNT))
                owners += [
                    ref for ref in uids.values() if ref.group_kind == _ACCOUNT and (ref.namespace, ref.name) == served
                ]
                words += [f"{ref} goes along with {owner}" for owner in owners]
    return words
