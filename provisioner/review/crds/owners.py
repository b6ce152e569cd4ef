"""Who else lays claim to a CRD: its names (CRD-07), or the whole of it (CRD-09)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provisioner.review.base.facts import ReviewRule, ServedKind, items, mapping, maps
from provisioner.review.crds.writers import owners_of
from provisioner.schema.definition.crd import Crd
from provisioner.schema.verdicts import GONE, D, SchemaVerdict
from provisioner.values import Finding, JsonObject, ObjectRef, Section, Severity

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
    for condition in maps(mapping(crd.get("status")).get("conditions")):
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
    others = sorted(_appliers(old))
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


def _appliers(crd: JsonObject) -> set[str]:
    """Who else owns the spec by server-side apply; those who only update (an injected caBundle) do not fight."""
    metadata = mapping(crd.get("metadata"))
    entries = [one for one in maps(metadata.get("managedFields")) if one.get("operation") == "Apply"]
    owners = owners_of({"metadata": {"managedFields": entries}}, ("spec",))
    return {one for one in owners if not one.startswith(_OURSELVES)}
