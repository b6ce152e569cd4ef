"""One changed CRD with what is known of its objects: what the checks of live objects judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from provisioner.review.base.facts import Facts, Listed, Listing
from provisioner.review.crds.given import kind_of
from provisioner.review.crds.stored import Fate, fates, triable_versions
from provisioner.review.crds.writers import managers_by_version
from provisioner.schema.definition.crd import Crd
from provisioner.schema.fields import copied, same_json
from provisioner.schema.forms import is_crd
from provisioner.values import Action, GroupKind, JsonObject, ObjectRef, PlannedAction

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_CHANGING = frozenset({Action.UPDATE, Action.REPLACE})


@dataclass(frozen=True)
class CrdObjects:
    """A CRD before and after, and its objects as they were read: by `read_as`, the version they are stored in, and,
    where a webhook converts, by every other that is served before and after."""

    ref: ObjectRef
    old: Crd
    new: Crd
    read_as: str
    read: Mapping[str, Listed]

    @property
    def listed(self) -> Listed:
        return self.read[self.read_as]

    @cached_property
    def by_version(self) -> dict[str, list[Fate]]:
        return fates(self.old, self.new, self.read_as, {version: one.objects for version, one in self._usable.items()})

    @property
    def _usable(self) -> dict[str, Listed]:
        """What says something about all objects; of several lists each must be as good as the first."""
        return {
            version: one
            for version, one in self.read.items()
            if version == self.read_as or (not one.problem and len(one.objects) == len(self.listed.objects))
        }

    @cached_property
    def managers(self) -> dict[str, Counter[str]]:
        return managers_by_version(self.listed.objects)

    @property
    def is_empty(self) -> bool:
        """Whether no object exists, for certain: each list was read whole, and is empty."""
        return all(one.is_whole and not one.objects for one in self.read.values())

    @property
    def kind(self) -> str:
        return str(self.old.names.get("kind") or "")

    @property
    def untried(self) -> list[str]:
        """Versions that will be served, and at which nobody knows what an object looks like; none where none exists."""
        if self.is_empty:
            return []
        tried = {one.name for one in triable_versions(self.old, self.new, self._usable)}
        return [one.name for one in self.new.served_versions if one.name not in tried]

    @property
    def looked_at(self) -> dict[str, Any]:
        """How many objects were checked; `quality` says how good that is, in the messages `shared/objects`."""
        listed = self.listed
        quality = "unread" if listed.problem else "part"
        if listed.is_whole:
            quality = "whole" if listed.objects else "none"
        known = {"problem": listed.problem or None, "quality": quality}
        return {"checked": len(listed.objects), "total": listed.total, **known}


def changed(facts: Facts) -> Iterator[tuple[PlannedAction, JsonObject, JsonObject]]:
    """(action, CRD as it is, CRD as it will be) of each CRD whose present state is known, and which changes in what its
    objects meet: words and columns alone are not worth reading them."""
    if facts.is_offline and facts.stored is None:
        return
    wished = {one.ref.identity: one.body for one in facts.content.manifests if one.ref.group_kind == CRD}
    known = facts.live
    if facts.is_offline:
        known = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    for planned in facts.plan.actions:
        old, new = known.get(planned.ref.identity), wished.get(planned.ref.identity)
        if planned.ref.group_kind != CRD or planned.action not in _CHANGING or old is None or new is None:
            continue
        if not same_json(_met_by_objects(Crd(old)), _met_by_objects(Crd(new))):
            yield planned, old, new


def _met_by_objects(crd: Crd) -> dict[str, Any]:
    versions = {
        one.name: [one.is_served, one.is_storage, copied(one.schema), one.has_status, copied(one.scale)]
        for one in crd.versions
    }
    return {
        "versions": versions,
        "conversion": crd.uses_webhook,
        "preserves": crd.preserves_unknown,
        "scope": crd.scope,
    }


def scenes(facts: Facts) -> Iterator[CrdObjects]:
    """A scene for each changed CRD; one whose objects nobody read says so. Offline of those whose objects are given."""
    for planned, before, after in changed(facts):
        if facts.is_offline:
            if facts.stored is not None and facts.stored.tells_of(kind_of(before)):
                yield scene_of(before, after, facts.stored.objects)
            continue
        old, new = Crd(before), Crd(after)
        first, *others = listings_of(old, new)
        unread = _untriable(before, after)
        read = {one.version: unread or _listed(facts, one) for one in (first, *others)}
        yield CrdObjects(planned.ref, old, new, first.version, read)


def scene_of(before: JsonObject, after: JsonObject, objects: Iterable[JsonObject]) -> CrdObjects:
    """A scene of a change where `objects` are all that is stored; those of other CRDs are passed over.

    Each may be written in any version. Where a webhook converts, one stands for itself only in that version.
    """
    old, new = Crd(before), Crd(after)
    first = objects_of(old)
    own = [one for one in objects if ObjectRef.of(one).group_kind == GroupKind(old.group, first.kind)]
    total = len({ObjectRef.of(one).identity for one in own})
    if old.uses_webhook or new.uses_webhook:
        written = {first.version, *(ObjectRef.of(one).version for one in own)}
        held = {name: [one for one in own if ObjectRef.of(one).version == name] for name in sorted(written)}
    else:
        held = {first.version: own}
    unread = _untriable(before, after)
    read = {name: unread or Listed(tuple(_once(several)), total) for name, several in held.items()}
    return CrdObjects(ObjectRef.of(after), old, new, first.version, read)


def _untriable(before: JsonObject, after: JsonObject) -> Listed | None:
    """A list that says why no object can be tried, where one of the two CRDs has not the form of one."""
    if is_crd(before) and is_crd(after):
        return None
    return Listed(total=None, problem="the CRD cannot be read as one")


def _once(objects: Iterable[JsonObject]) -> Iterable[JsonObject]:
    return {ObjectRef.of(one).identity: one for one in objects}.values()


def listings_of(old: Crd, new: Crd) -> list[Listing]:
    """The lists to read of a changed CRD, the one in the stored version first."""
    first = objects_of(old)
    if not (old.uses_webhook and new.uses_webhook):
        return [first]
    kept = {one.name for one in old.served_versions} & {one.name for one in new.served_versions}
    return [first, *(replace(first, version=name) for name in sorted(kept - {first.version}))]


def _listed(facts: Facts, listing: Listing) -> Listed:
    """What was read; where the cluster has the CRD and serves no such kind, an empty list says nothing of objects."""
    found = facts.around.lists.get(listing, Listed(total=None, problem="nobody read them"))
    if not found.objects and facts.around.serves(listing.group, listing.version, listing.kind) is False:
        return Listed(total=None, problem=f"the cluster does not serve {listing.kind} as {listing.version} at present")
    return found


def objects_of(crd: Crd, *, metadata_only: bool = False) -> Listing:
    """The list of all objects of a CRD: by the version they are stored in, where that is served."""
    served = [one.name for one in crd.served_versions]
    storage = crd.storage_version
    version = storage.name if storage is not None and storage.is_served else (served[0] if served else "")
    return Listing(crd.group, version, str(crd.names.get("kind") or ""), metadata_only=metadata_only)
