"""What is said of the objects of one changed CRD: LIV-01 to LIV-04, LIV-06 and LIV-07."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from provisioner.review.base.facts import ReviewRule
from provisioner.review.crds.comparison import compare_crds, phrase_of
from provisioner.review.crds.live_scene import CrdObjects
from provisioner.review.crds.stored import Fate, general, masked, shape, value_at
from provisioner.review.crds.writers import most_first
from provisioner.schema.verdicts import (
    BEHAVIOUR,
    DATA_LOST,
    FOR_WRITERS,
    HARMLESS,
    NARROWED,
    WIDENED,
    B,
    D,
    S,
    SchemaVerdict,
    U,
)
from provisioner.values import Finding, JsonObject, ObjectRef, Section, Severity

MAX_EXAMPLES = 20
# Every path of any schema that people write; of objects that are made to be large the others are counted.
MAX_PATHS = 2_000

_REFUSED = ReviewRule("LIV-01", Section.CRDS, B, NARROWED.as_mapping())
_NOT_JUDGED = ReviewRule("LIV-01", Section.CRDS, U, SchemaVerdict(stored=U, writers=U).as_mapping())
_ALL_VALID = ReviewRule("LIV-01", Section.CRDS, S, HARMLESS.as_mapping())
_LOST = ReviewRule("LIV-02", Section.CRDS, B, DATA_LOST.as_mapping())
_FLIPPED = ReviewRule("LIV-03", Section.CRDS, D, BEHAVIOUR.as_mapping())
_WRITERS = ReviewRule("LIV-04", Section.CRDS, D, FOR_WRITERS.as_mapping())
# A report warns of a way back that is closed, though nothing is lost by going forth. One that loses what is written
# into new fields is told: nearly every version of an operator has some.
_NO_WAY_BACK = ReviewRule("LIV-06", Section.CRDS, D, SchemaVerdict(rollback=B).as_mapping())
_LOSSY_WAY_BACK = ReviewRule("LIV-06", Section.CRDS, Severity.NOTABLE, WIDENED.as_mapping())
_WAY_BACK = ReviewRule("LIV-06", Section.CRDS, S, HARMLESS.as_mapping())
_CHECKED = ReviewRule("LIV-07", Section.CRDS, S, HARMLESS.as_mapping())
_SAMPLED = ReviewRule("LIV-07", Section.CRDS, Severity.NOTABLE, SchemaVerdict(stored=U).as_mapping())
_NOT_NEEDED = ReviewRule("LIV-07", Section.CRDS, Severity.NOTABLE, HARMLESS.as_mapping())
_NOT_CHECKED = ReviewRule("LIV-07", Section.CRDS, U, SchemaVerdict(stored=U).as_mapping())


def live_findings(scene: CrdObjects, *, is_needed: bool) -> Iterator[Finding]:
    """Everything that the objects of a changed CRD tell; `is_needed` where its schemas alone leave a question open."""
    yield from object_findings(scene, is_needed=is_needed)
    yield from _of_writers(scene)
    yield from _of_way_back(scene)


def object_findings(scene: CrdObjects, *, is_needed: bool) -> Iterator[Finding]:
    """What becomes of the objects, and how many were asked: LIV-01 to LIV-03 and LIV-07."""
    yield from _of_quality(scene, _NOT_CHECKED if is_needed else _NOT_NEEDED)
    for version, found in scene.by_version.items():
        bodies = {ObjectRef.of(obj): obj for obj in scene.read.get(version, scene.listed).objects}
        yield from _of_refusals(scene, version, found, bodies)
        yield from _of_losses(scene, version, found, bodies)
        yield from _of_defaults(scene, version, found)


def _of_quality(scene: CrdObjects, unchecked: ReviewRule) -> Iterator[Finding]:
    listed = scene.listed
    told: dict[str, Any] = {"resourceVersion": listed.resource_version, "readAs": scene.read_as, **scene.looked_at}
    told["versions"] = sorted(scene.by_version)
    if listed.problem:
        yield unchecked.finding("unread", scene.ref, **told)
        return
    yield (_CHECKED if listed.is_whole else _SAMPLED).finding("checked", scene.ref, **told)
    if scene.untried:
        yield unchecked.finding("untried", scene.ref, key=scene.untried, versions=scene.untried)


def _of_refusals(
    scene: CrdObjects, version: str, found: list[Fate], bodies: dict[ObjectRef, JsonObject]
) -> Iterator[Finding]:
    """The three levels: rejects the next write, rejects when that part is edited, valid.

    Both rejections break: ratcheting puts one off to the next edit, and spares no object.
    """
    unknown = [one for one in found if one.is_unknown]
    refused = [one for one in found if one.refused and not one.is_unknown]
    later = [one for one in found if one.when_edited and not one.refused and not one.is_unknown]
    valid = len(scene.listed.objects) - len(unknown) - len(refused) - len(later)
    counts = {"valid": valid, "rejectsNextWrite": len(refused), "rejectsWhenEdited": len(later)}
    told: dict[str, Any] = {"version": version, **counts}
    groups = (
        (_REFUSED, "refused", refused),
        (_REFUSED, "refused-when-edited", later),
        (_NOT_JUDGED, "not-judged", unknown),
    )
    for rule, variant, fates in groups:
        if fates:
            examples = [_example(fate, bodies) for fate in fates[:MAX_EXAMPLES]]
            concerned = {"examples": examples, **_concerned(fates, scene)}
            yield rule.finding(variant, scene.ref, key=[version, variant], **told, **concerned)
    if scene.listed.objects and valid == len(scene.listed.objects):
        told |= {"kind": scene.kind, **scene.looked_at}
        yield _ALL_VALID.finding("valid", scene.ref, key=[version, "valid"], **told)


def _concerned(fates: Collection[Fate], scene: CrdObjects) -> dict[str, Any]:
    objects = sorted(fate.ref.place for fate in fates)[:MAX_EXAMPLES]
    return {"kind": scene.kind, "count": len(fates), "objects": objects, **scene.looked_at}


def _example(fate: Fate, bodies: dict[ObjectRef, JsonObject]) -> dict[str, Any]:
    errors = (fate.refused or fate.when_edited)[:3]
    return {"object": fate.ref.place, "errors": [masked(one, bodies[fate.ref]) for one in errors]}


def _of_losses(
    scene: CrdObjects, version: str, found: list[Fate], bodies: dict[ObjectRef, JsonObject]
) -> Iterator[Finding]:
    """One finding per version, with each path that would go, how often, and what stands there in one object."""
    paths: dict[str, list[tuple[Fate, str]]] = defaultdict(list)
    for fate in found:
        for path in fate.pruned:
            paths[general(path)].append((fate, path))
    if not paths:
        return
    listed = {}
    for path, places in sorted(paths.items())[:MAX_PATHS]:
        first, place = places[0]
        example = {"object": first.ref.place, "value": shape(value_at(bodies[first.ref], place))}
        listed[path] = {"objects": len({fate.ref for fate, _ in places}), "example": example}
    told = {"version": version, **_concerned([one for one in found if one.pruned], scene)}
    told |= {"paths": listed, "fields": len(paths), "left_out": max(0, len(paths) - MAX_PATHS)}
    yield _LOST.finding("lost", scene.ref, key=[version, sorted(paths)], **told)


def _of_defaults(scene: CrdObjects, version: str, found: list[Fate]) -> Iterator[Finding]:
    readers: dict[str, list[Fate]] = defaultdict(list)
    for fate in found:
        for path in {general(flipped) for flipped in fate.flipped}:
            readers[path].append(fate)
    for path, fates in sorted(readers.items())[:MAX_PATHS]:
        told = {"version": version, "field": path, **_concerned(fates, scene)}
        yield _FLIPPED.finding("new-default", scene.ref, key=[version, path], **told)


def _of_writers(scene: CrdObjects) -> Iterator[Finding]:
    """Who writes by a version that goes: they get 404, and their entries break server-side apply."""
    kept = {one.name for one in scene.new.served_versions}
    for version in sorted(set(scene.managers) & {one.name for one in scene.old.versions} - kept):
        managers = dict(sorted(scene.managers[version].items()))
        told: dict[str, Any] = {"version": version, "managers": managers, "writers": most_first(managers)}
        yield _WRITERS.finding("written", scene.ref, key=[version, list(managers)], kind=scene.kind, **told)


def _of_way_back(scene: CrdObjects) -> Iterator[Finding]:
    """The same comparison the other way round, as the cluster would make it after this change."""
    storage = scene.new.storage_version
    stored = dict.fromkeys([*scene.old.stored_versions, *([storage.name] if storage is not None else [])])
    after = {**scene.new.body, "status": {"storedVersions": list(stored)}}
    back = compare_crds(after, scene.old.body)
    refused = [phrase_of(one) for one in back if one.verdicts.get("api") is Severity.BREAKING]
    losing = sorted({".".join(map(str, one.path)) for one in back if one.rule in {"SCH-01", "SRV-01"}})
    if refused:
        yield _NO_WAY_BACK.finding("refused", scene.ref, key="refused", why=refused[0], refused=refused)
    elif losing:
        told: dict[str, Any] = {"fields": losing[:MAX_PATHS], "count": len(losing)}
        yield _LOSSY_WAY_BACK.finding("lossy", scene.ref, key=losing, **told)
    else:
        yield _WAY_BACK.finding("open", scene.ref, key="open")
