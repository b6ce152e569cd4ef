"""What is said of the objects of one changed CRD: LIV-01 to LIV-04, LIV-06 and LIV-07."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from provisioner.review.base.facts import ReviewRule, said
from provisioner.review.crds.comparison import compare_crds
from provisioner.review.crds.live_scene import CrdObjects
from provisioner.review.crds.stored import Fate, general, masked, shape, value_at
from provisioner.review.crds.writers import counted
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
from provisioner.sentences import number, some, verb
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
    evidence: dict[str, Any] = {
        "checked": len(scene.listed.objects),
        "total": scene.listed.total,
        "resourceVersion": scene.listed.resource_version,
        "readAs": scene.read_as,
        "versions": sorted(scene.by_version),
    }
    message = f"{said(scene.ref)}: {scene.quality}"
    if scene.listed.problem:
        words = f"{message}. Only the schemas were compared"
        yield unchecked.at(scene.ref, words, evidence=evidence)
    else:
        rule = _CHECKED if scene.listed.is_whole else _SAMPLED
        yield rule.at(scene.ref, message, evidence=evidence)
    if scene.untried and not scene.listed.problem:
        names = ", ".join(scene.untried)
        words = f"{said(scene.ref)}: a webhook converts, and what it makes of the objects as {names} is not known"
        yield unchecked.at(scene.ref, words, evidence={"versions": scene.untried}, key=scene.untried)


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
    groups = (
        (_REFUSED, refused, "refused with any next write"),
        (_REFUSED, later, "refused once the part concerned is edited"),
        (_NOT_JUDGED, unknown, "under a rule that only the server can evaluate"),
    )
    for rule, concerned, words in groups:
        if concerned:
            message = (
                f"{_objects(concerned, scene)} {verb(len(concerned), 'are')} {words}, as {version}: "
                f"{_named(concerned)}; {scene.quality}"
            )
            examples = [_example(one, bodies) for one in concerned[:MAX_EXAMPLES]]
            evidence = {"version": version, **counts, "examples": examples}
            yield rule.at(scene.ref, message, evidence=evidence, key=[version, words])
    if scene.listed.objects and valid == len(scene.listed.objects):
        message = f"Every {scene.kind} object that was checked stays valid as {version}; {scene.quality}"
        yield _ALL_VALID.at(scene.ref, message, evidence={"version": version, **counts}, key=[version, "valid"])


def _named(fates: list[Fate]) -> str:
    return some(sorted(one.ref.place for one in fates))


def _objects(fates: list[Fate], scene: CrdObjects) -> str:
    return number(len(fates), f"{scene.kind} object")


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
    count = len([one for one in found if one.pruned])
    listed = {}
    for path, places in sorted(paths.items())[:MAX_PATHS]:
        first, place = places[0]
        example = {"object": first.ref.place, "value": shape(value_at(bodies[first.ref], place))}
        listed[path] = {"objects": len({fate.ref for fate, _ in places}), "example": example}
    names = some(list(listed), total=len(paths), noun="fields")
    message = (
        f"{number(count, f'{scene.kind} object')} {verb(count, 'lose')} {names} when read or written as {version}: "
        f"{_named([one for one in found if one.pruned])}; {scene.quality}"
    )
    evidence = {"version": version, "count": count, "paths": listed, "left_out": max(0, len(paths) - MAX_PATHS)}
    yield _LOST.at(scene.ref, message, evidence=evidence, key=[version, sorted(paths)])


def _of_defaults(scene: CrdObjects, version: str, found: list[Fate]) -> Iterator[Finding]:
    counts: Counter[str] = Counter()
    for fate in found:
        counts.update({general(path) for path in fate.flipped})
    for path, count in sorted(counts.items())[:MAX_PATHS]:
        names = sorted(one.ref.place for one in found if path in {general(it) for it in one.flipped})
        message = (
            f"{number(count, f'{scene.kind} object')} {verb(count, 'read')} a new default for {path} as {version}: "
            f"{some(names)}; {scene.quality}"
        )
        evidence = {"version": version, "field": path, "count": count, "objects": names[:MAX_EXAMPLES]}
        yield _FLIPPED.at(scene.ref, message, evidence=evidence, key=[version, path])


def _of_writers(scene: CrdObjects) -> Iterator[Finding]:
    """Who writes by a version that goes: they get 404, and their entries break server-side apply."""
    kept = {one.name for one in scene.new.served_versions}
    for version in sorted(set(scene.managers) & {one.name for one in scene.old.versions} - kept):
        managers = scene.managers[version]
        message = f"{scene.kind} objects were written as {version}, which is removed, by {counted(managers)}"
        evidence = {"version": version, "managers": dict(sorted(managers.items()))}
        yield _WRITERS.at(scene.ref, message, evidence=evidence, key=[version, sorted(managers)])


def _of_way_back(scene: CrdObjects) -> Iterator[Finding]:
    """The same comparison the other way round, as the cluster would make it after this change."""
    stored = list(dict.fromkeys([*scene.old.stored_versions, *_storage(scene)]))
    after = {**scene.new.body, "status": {"storedVersions": stored}}
    back = compare_crds(after, scene.old.body)
    refused = [one for one in back if one.verdicts.get("api") is Severity.BREAKING]
    losing = sorted({".".join(map(str, one.path)) for one in back if one.rule in {"SCH-01", "SRV-01"}})
    if refused:
        message = (
            f"{said(scene.ref)}: this cannot be undone, because the API server would refuse the old definition: "
            f"{refused[0].message}"
        )
        evidence: dict[str, Any] = {"refused": [one.message for one in refused]}
        yield _NO_WAY_BACK.at(scene.ref, message, evidence=evidence, key="refused")
    elif losing:
        message = f"{said(scene.ref)}: undoing this loses what is written until then into {some(losing)}"
        yield _LOSSY_WAY_BACK.at(scene.ref, message, evidence={"fields": losing[:MAX_PATHS]}, key=losing)
    else:
        yield _WAY_BACK.at(scene.ref, f"{said(scene.ref)}: this can be undone without losing a field", key="open")


def _storage(scene: CrdObjects) -> list[str]:
    version = scene.new.storage_version
    return [version.name] if version is not None else []
