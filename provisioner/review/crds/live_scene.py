"""One changed CRD with what is known of its objects, who writes and owns them, and who else lays claim to the CRD."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.facts import Facts, Listed, Listing, ReviewRule, ServedKind, Stored, said
from provisioner.review.base.messages import with_message
from provisioner.review.crds.object_fates import ITEMS, VALUES, Fate, fates, triable_versions
from provisioner.schema.definition.crd import Crd
from provisioner.schema.fields import copied, same_json
from provisioner.schema.forms import is_crd
from provisioner.schema.verdicts import GONE, GONE_UNUSED, HARMLESS, D, SchemaVerdict
from provisioner.selectors import selects
from provisioner.values import Action, Finding, GroupKind, JsonObject, Note, ObjectRef, PlannedAction, Section, Severity

# The file with what goes along with an object that is deleted.
GOING = "shared/going"
# The severities of the schemas stand, as without objects.
_NOTHING_SAID = ReviewRule("LIV-07", Section.CRDS, Severity.NOTABLE, HARMLESS.as_mapping())


def kind_of(crd: JsonObject) -> GroupKind:
    """The kind that a CRD defines."""
    described = Crd(crd)
    return GroupKind(described.group, str(described.names.get("kind") or ""))


def unused(finding: Finding) -> Finding:
    """A finding about a CRD that goes, where no object of it exists: no data goes along."""
    return replace(finding, severity=GONE_UNUSED.severity, verdicts=GONE_UNUSED.as_mapping())


def counted(finding: Finding, kind: GroupKind, stored: Stored) -> Finding:
    """A finding about a CRD that goes, with how many objects of its `kind` go with it."""
    count = len({ref.identity for ref in map(ObjectRef.of, stored.objects) if ref.group_kind == kind})
    note = Note(GOING, "stored", {"count": count, "kind": kind.kind}) if count else Note(GOING, "none-stored")
    evidence = {**finding.evidence, "counts": {kind.kind: count}, "basis": "objects"}
    told = with_message(replace(finding, notes=(*finding.notes, note), evidence=evidence))
    return told if count else unused(told)


def nothing_said(old: JsonObject, new: JsonObject) -> Finding:
    """That the objects which were given say nothing of a CRD: none is of its kind, and no empty list is."""
    return _NOTHING_SAID.finding("not-given", ObjectRef.of(new), kind=str(kind_of(old)), checked=0)


BUDGETS = Listing("policy", "", "PodDisruptionBudget")
PODS = Listing("", "", "Pod", metadata_only=True)
# What operators make. ConfigMaps and Secrets are left out: few accounts may list all of them, and they run nothing.
OWNED = (
    PODS,
    *(Listing("", "", kind, metadata_only=True) for kind in ("PersistentVolumeClaim", "Service", "ServiceAccount")),
    *(Listing("apps", "", kind, metadata_only=True) for kind in ("DaemonSet", "Deployment", "StatefulSet")),
    Listing("batch", "", "Job", metadata_only=True),
)


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """A kind as owner references name it; with `version` "" in whichever version."""

    group: str
    kind: str
    version: str = ""

    def owns(self, obj: JsonObject, *, as_controller: bool = False) -> bool:
        references = maps(value_at(obj, "metadata", "ownerReferences"))
        return any(
            self.is_named(reference) and (reference.get("controller") is True or not as_controller)
            for reference in references
        )

    def is_named(self, reference: Mapping[str, Any]) -> bool:
        """Whether a reference with apiVersion and kind is to an object of this kind."""
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        is_kind = (group, reference.get("kind")) == (self.group, self.kind)
        return is_kind and self.version in {"", version}


def owned(facts: Facts, owner: OwnerKind) -> list[ObjectRef]:
    """What of the kinds OWNED names the owner, as far as those lists were read."""
    return sorted(ObjectRef.of(obj) for obj in list_objects(facts, *OWNED) if owner.owns(obj))


def budgets(facts: Facts, owner: OwnerKind) -> list[str]:
    """Budgets that are counted by the scale of the owner: they select a pod that one of its objects controls."""
    found = set()
    pods = [pod for pod in list_objects(facts, PODS) if owner.owns(pod, as_controller=True)]
    for budget in list_objects(facts, BUDGETS):
        ref, selector = ObjectRef.of(budget), value_at(budget, "spec", "selector")
        near = [pod for pod in pods if ObjectRef.of(pod).namespace == ref.namespace]
        if selector is not None and needs_scale(budget):
            labels = (mapping(value_at(pod, "metadata", "labels")) for pod in near)
            found |= {said(ref)} if any(selects(selector, own) for own in labels) else set()
    return sorted(found)


def needs_scale(budget: JsonObject) -> bool:
    """Whether a budget asks how many pods there should be: for a share of them, or for how many may be missing."""
    spec = mapping(budget.get("spec"))
    return "maxUnavailable" in spec or isinstance(spec.get("minAvailable"), str)


def list_objects(facts: Facts, *listings: Listing) -> Iterator[JsonObject]:
    """Yield the objects of these lists, as far as they were read."""
    for listing in listings:
        listed = facts.around.lists.get(listing)
        yield from listed.objects if listed is not None else ()


def managers_by_version(objects: Iterable[JsonObject]) -> dict[str, Counter[str]]:
    """How many objects each manager last wrote by each version (without its group)."""
    found: dict[str, Counter[str]] = {}
    for obj in objects:
        pairs = {
            (str(entry.get("apiVersion") or "").rpartition("/")[2], str(entry.get("manager") or "?"))
            for entry in _managed_fields(obj)
        }
        for version, manager in pairs:
            found.setdefault(version, Counter())[manager] += 1
    return found


def owners_of(obj: JsonObject, place: tuple[str | int, ...]) -> set[str]:
    """The managers who own a field of `obj` at or below `place` of its schema."""
    wanted = [str(part) for part in place]
    return {
        str(entry.get("manager") or "?")
        for entry in _managed_fields(obj)
        if _owns(mapping(entry.get("fieldsV1")), wanted)
    }


def most_first(managers: Mapping[str, int]) -> list[str]:
    """The names of managers, those of most objects first."""
    return sorted(managers, key=lambda name: (-managers[name], name))


def _managed_fields(obj: JsonObject) -> list[Mapping[str, Any]]:
    return maps(value_at(obj, "metadata", "managedFields"))


def _owns(fields: Mapping[str, Any], wanted: list[str]) -> bool:
    """`f:name` is a field, `k:{...}`, `v:...` and `i:0` are items of lists."""
    if not wanted:
        return bool(fields)
    first, rest = wanted[0], wanted[1:]
    if first == ITEMS:
        inner = [one for key, one in fields.items() if not key.startswith("f:") and key != "."]
    elif first == VALUES:
        inner = [one for key, one in fields.items() if key.startswith("f:")]
    else:
        inner = [fields[f"f:{first}"]] if f"f:{first}" in fields else []
    return any(not rest or _owns(mapping(one), rest) for one in inner)


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
        tried = {version.name for version in triable_versions(self.old, self.new, self._usable)}
        return [version.name for version in self.new.served_versions if version.name not in tried]

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
    wished = {
        manifest.ref.identity: manifest.body for manifest in facts.content.manifests if manifest.ref.group_kind == CRD
    }
    known = facts.live
    if facts.is_offline:
        known = {
            manifest.ref.identity: manifest.body for manifest in (facts.previous.manifests if facts.previous else ())
        }
    for planned in facts.plan.actions:
        old, new = known.get(planned.ref.identity), wished.get(planned.ref.identity)
        if planned.ref.group_kind != CRD or planned.action not in _CHANGING or old is None or new is None:
            continue
        if not same_json(_met_by_objects(Crd(old)), _met_by_objects(Crd(new))):
            yield planned, old, new


def _met_by_objects(crd: Crd) -> dict[str, Any]:
    versions = {
        version.name: [
            version.is_served,
            version.is_storage,
            copied(version.schema),
            version.has_status,
            copied(version.scale),
        ]
        for version in crd.versions
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
    own = [obj for obj in objects if ObjectRef.of(obj).group_kind == GroupKind(old.group, first.kind)]
    total = len({ObjectRef.of(one).identity for one in own})
    if old.uses_webhook or new.uses_webhook:
        written = {first.version, *(ObjectRef.of(one).version for one in own)}
        held = {name: [one for one in own if ObjectRef.of(one).version == name] for name in sorted(written)}
    else:
        held = {first.version: own}
    unread = _untriable(before, after)
    read = {
        name: unread or Listed(tuple({ObjectRef.of(obj).identity: obj for obj in several}.values()), total)
        for name, several in held.items()
    }
    return CrdObjects(ObjectRef.of(after), old, new, first.version, read)


def _untriable(before: JsonObject, after: JsonObject) -> Listed | None:
    """A list that says why no object can be tried, where one of the two CRDs has not the form of one."""
    if is_crd(before) and is_crd(after):
        return None
    return Listed(total=None, problem="the CRD cannot be read as one")


def listings_of(old: Crd, new: Crd) -> list[Listing]:
    """The lists to read of a changed CRD, the one in the stored version first."""
    first = objects_of(old)
    if not (old.uses_webhook and new.uses_webhook):
        return [first]
    kept = {version.name for version in old.served_versions} & {version.name for version in new.served_versions}
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


_TAKEN = ReviewRule("CRD-07", Section.CRDS, Severity.BREAKING, GONE.as_mapping())
# Each owner's apply is refused where the other holds a field, or taken back afterwards.
_OWNED = ReviewRule("CRD-09", Section.CRDS, Severity.DANGEROUS, SchemaVerdict(api=D, rollback=D).as_mapping())
# Labels and annotations by which tools say whose an object is.
_MARKS = (
    "app.kubernetes.io/managed-by",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
    "kapp.k14s.io/app",
    "argocd.argoproj.io/tracking-id",
    "kustomize.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/name",
    "olm.operatorframework.io/owner-name",
)
_OURSELVES = "pratique"
_RESOURCES, _KINDS = "resource", "kind"
_NAMES = ("spec", "names")


def twice_taken(crds: Iterable[JsonObject]) -> Iterator[Finding]:
    """Names that two of `crds`, all of them in one cluster, want: only the first to come is served under them."""
    wanted: dict[tuple[str, str, str], list[Crd]] = defaultdict(list)
    for crd in map(Crd, crds):
        for space, name in sorted(_names_of(crd)):
            wanted[crd.group, space, name].append(crd)
    for (group, space, name), several in sorted(wanted.items(), key=lambda it: it[0]):
        others = {one.name: one for one in several}
        for crd in others.values() if len(others) > 1 else ():
            rivals = sorted(set(others) - {crd.name})
            yield _taken(ObjectRef.of(crd.body), space, name, group, rivals)


def taken_in_cluster(crd: JsonObject, kinds: Iterable[ServedKind]) -> Iterator[Finding]:
    """Names that a kind of the cluster, one of another CRD or of the API server itself, has already."""
    new = Crd(crd)
    plural, wanted = str(new.names.get("plural") or ""), _names_of(new)
    rivals = {
        (space, name, f"{one.plural}.{one.group}")
        for one in kinds
        if one.group == new.group and one.plural != plural
        for space, name in ((_KINDS, one.kind), *((_RESOURCES, it) for it in (one.plural, *one.other_names)))
    }
    for space, name, other in sorted(rivals):
        if (space, name) in wanted:
            yield _taken(ObjectRef.of(crd), space, name, new.group, [other])


def refused_names(crd: JsonObject) -> Iterator[Finding]:
    """What the API server itself says of the names of a CRD that it holds."""
    for condition in maps(value_at(crd, "status", "conditions")):
        if condition.get("type") == "NamesAccepted" and condition.get("status") == "False":
            told: dict[str, Any] = {"reason": condition.get("message") or None, "basis": "objects"}
            yield _TAKEN.finding("not-accepted", ObjectRef.of(crd), where=_NAMES, key="NamesAccepted", **told)


def owned_by_others(old: JsonObject, new: JsonObject) -> Iterator[Finding]:
    """Another tool's marks on the CRD as it is, which the new one does not carry, or another applier of its spec."""
    ref = ObjectRef.of(new)
    before, after = _marks(old), _marks(new)
    differing = {mark: it for mark, it in before.items() if it != after.get(mark) and (mark in after or not after)}
    if differing:
        differing = dict(sorted(differing.items()))
        yield _OWNED.finding("marked", ref, where=("metadata",), key=differing, old=differing, new=after)
    # Those who only update (an injected caBundle) do not fight for it.
    entries = [entry for entry in _managed_fields(old) if entry.get("operation") == "Apply"]
    appliers = owners_of({"metadata": {"managedFields": entries}}, ("spec",))
    others = sorted(name for name in appliers if not name.startswith(_OURSELVES))
    if others:
        yield _OWNED.finding("applied", ref, where=("spec",), key=others, managers=others, basis="objects")


def _taken(ref: ObjectRef, space: str, name: str, group: str, by: list[str]) -> Finding:
    key = [f"{space} {name} of {group}", " and ".join(by)]
    return _TAKEN.finding("taken", ref, where=_NAMES, key=key, space=space, name=name, group=group, by=by)


def _names_of(crd: Crd) -> set[tuple[str, str]]:
    """All names in the two spaces in which the API server wants each once per group."""
    names = crd.names
    resources = [names.get("plural"), names.get("singular"), *items(names.get("shortNames"))]
    found = {(_RESOURCES, str(name)) for name in resources if name}
    return found | {(_KINDS, str(names[name])) for name in ("kind", "listKind") if names.get(name)}


def _marks(crd: JsonObject) -> dict[str, Any]:
    metadata = mapping(crd.get("metadata"))
    known: Mapping[str, Any] = {**mapping(metadata.get("labels")), **mapping(metadata.get("annotations"))}
    return {mark: known[mark] for mark in _MARKS if known.get(mark)}
