"""One changed CRD and its objects: what is said of those that exist (LIV-01 to LIV-07), and of schemas without any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner.json_values import items, mapping
from provisioner.review.base.facts import ReviewRule, fingerprint, said
from provisioner.review.base.messages import COUNTED, DIFFERING, PLACES, version_of, with_message
from provisioner.review.base.record import plain
from provisioner.review.crds.live_scene import CrdObjects, most_first, owners_of
from provisioner.review.crds.object_fates import Fate, concerns, general, masked, shape, value_at_path
from provisioner.review.rules import Phrase, messages_of
from provisioner.review.rules.messages import LEAF, PLACE, SUBJECT, VARIANT, WHERE
from provisioner.schema import compare
from provisioner.schema.fields import shown_json
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
    shown,
)
from provisioner.values import Certainty, Finding, JsonObject, Note, ObjectRef, Section, Severity

# The file with what was seen of the stored objects.
OBJECTS = "shared/objects"
MAX_NAMES = 20
_BY_OWNERS = frozenset({"SCH-48", "SCH-49", "SCH-50", "SCH-38t"})
_BY_DEFAULTS = frozenset({"SCH-33", "SCH-34", "SCH-35", "SCH-36", "SRV-04"})
_BY_WRITERS = frozenset({"SRV-02"})
_ELSEWHERE = frozenset({"CRD-31"})
# Their path is one of the CRD, and what they do happens anywhere in an object.
_ANYWHERE = frozenset({"CRD-27"})


def settled(finding: Finding, scene: CrdObjects) -> Finding:
    """`finding`, about the CRD of `scene`, with the basis of its severity and, where objects settle it, theirs."""
    if not finding.evidence.get("live") or finding.rule in _ELSEWHERE:
        return finding
    if scene.listed.problem or _find_tried_versions(finding, scene) is None:
        version = finding.evidence.get("version")
        why = {"problem": scene.listed.problem} if scene.listed.problem else {"version": version}
        return _add_notes(
            finding, "schemas", [_note("only-schemas" if scene.listed.problem else "unknown-conversion", **why)]
        )
    if finding.rule in _BY_OWNERS:
        return _settle_by_owners(finding, scene)
    if finding.rule in _BY_DEFAULTS:
        return _settle_by_defaults(finding, scene)
    return _settle_by_fates(finding, scene)


def _find_tried_versions(finding: Finding, scene: CrdObjects) -> list[str] | None:
    """The versions at which the objects were tried that a finding is about; None where they were not."""
    version = str(finding.evidence.get("version") or "")
    if version in scene.by_version or version in scene.untried:
        return None if version in scene.untried else [version]
    return sorted(scene.by_version) or None


def _settle_by_fates(finding: Finding, scene: CrdObjects) -> Finding:
    tried = [fate for version in _find_tried_versions(finding, scene) or () for fate in scene.by_version[version]]
    place = () if finding.rule in _ANYWHERE else finding.path
    hit = [
        fate
        for fate in tried
        if any(concerns(place, path) for path in (*fate.pruned, *(error.path for error in fate.refusals)))
    ]
    count = len({fate.ref for fate in hit})
    shown: dict[str, Any] = {"count": count, "checked": len(scene.listed.objects), "total": scene.listed.total}
    if hit:
        names = sorted({fate.ref.place for fate in hit})
        notes = [_note("concerned", count=count, names=names), quality(scene)]
        shown["objects"] = names[:MAX_NAMES]
        if finding.rule in _BY_WRITERS:
            return _settle_by_writers(finding, scene, notes, shown)
        return _add_notes(
            _judge_anew(finding, {**finding.verdicts, "stored": Severity.BREAKING}), "objects", notes, shown
        )
    # A rule that could not be evaluated over an object may concern it: no finding can be said to spare that.
    if not scene.listed.is_whole or any(fate.is_unknown for fate in tried):
        return _add_notes(finding, "schemas", [_note("none-found"), quality(scene)], shown)
    verdicts = {**finding.verdicts, "stored": Severity.SAFE}
    if verdicts.get("writers") in {Severity.BREAKING, Severity.UNKNOWN}:
        verdicts["writers"] = Severity.DANGEROUS
    return _add_notes(_judge_anew(finding, verdicts), "objects", [_note("none-concerned"), quality(scene)], shown)


def _settle_by_writers(finding: Finding, scene: CrdObjects, notes: list[Note], shown: dict[str, Any]) -> Finding:
    """Data is lost by writes through the older version: breaking if somebody does write through it."""
    version = str(finding.evidence.get("to") or finding.evidence.get("version") or "")
    writers = scene.managers.get(version)
    if not writers:
        return _add_notes(finding, "objects", [*notes, _note("not-written", version=version)], shown)
    verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
    written = [{"name": name, "objects": writers[name]} for name in most_first(writers)]
    notes = [*notes, _note("written", version=version, writers=written)]
    return _add_notes(_judge_anew(finding, verdicts), "objects", notes, {**shown, "writers": dict(writers)})


def _settle_by_owners(finding: Finding, scene: CrdObjects) -> Finding:
    """What changes for appliers matters where several of them own what lies there."""
    owners = [(ref, owners_of(obj, finding.path)) for obj, ref in _list_with_refs(scene)]
    shared = [(ref, names) for ref, names in owners if len(names) > 1]
    shown = {"managers": sorted({name for _, names in owners for name in names})}
    if finding.rule == "SCH-38t":
        return _add_notes(finding, "objects", [_note("field-written", managers=shown["managers"])], shown)
    if shared:
        note = _note("several-owners", shared=len(shared), total=len(owners), owners=sorted(shared[0][1]))
        verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
        return _add_notes(_judge_anew(finding, verdicts), "objects", [note], {**shown, "objects": _list_names(shared)})
    return _add_notes(finding, "objects", [_note("one-owner"), quality(scene)], shown)


def _settle_by_defaults(finding: Finding, scene: CrdObjects) -> Finding:
    tried = [fate for version in _find_tried_versions(finding, scene) or () for fate in scene.by_version[version]]
    hit = [fate for fate in tried if any(concerns(finding.path, path) for path in fate.flipped)]
    if finding.rule == "SCH-33":
        names = sorted({fate.ref.place for fate in hit})[:MAX_NAMES]
        notes = [_note("read-default", count=len(hit)), quality(scene)]
        return _add_notes(finding, "objects", notes, {"count": len(hit), "objects": names})
    owned = [(ref, owners_of(obj, finding.path)) for obj, ref in _list_with_refs(scene)]
    unset = [(ref, names) for ref, names in owned if not names]
    notes = [_note("unset", count=len(unset)) if unset else _note("never-unset"), quality(scene)]
    shown = {"count": len(unset), "objects": _list_names(unset)}
    if scene.is_empty and finding.severity is Severity.BREAKING:
        # No object exists that could have read a default that goes: those who write may be refused.
        verdicts = {**finding.verdicts, "stored": Severity.SAFE, "writers": Severity.DANGEROUS}
        finding = _judge_anew(finding, verdicts)
    return _add_notes(finding, "objects", notes, shown)


def _list_with_refs(scene: CrdObjects) -> list[tuple[Any, ObjectRef]]:
    return [(obj, ObjectRef.of(obj)) for obj in scene.listed.objects]


def _list_names(found: Iterable[tuple[ObjectRef, object]]) -> list[str]:
    return sorted({ref.place for ref, _ in found})[:MAX_NAMES]


def _judge_anew(finding: Finding, verdicts: Mapping[str, Severity]) -> Finding:
    asked = [verdicts[question] for question in ("api", "stored", "writers") if question in verdicts]
    severity = min(asked, key=lambda it: it.rank, default=finding.severity)
    return replace(finding, verdicts=dict(verdicts), severity=severity)


def _note(name: str, **params: Any) -> Note:
    return Note(OBJECTS, name, params)


def quality(scene: CrdObjects) -> Note:
    """How good the evidence is; one that says that all was looked at is left out in short."""
    looked_at = scene.looked_at
    return Note(OBJECTS, "checked", looked_at, is_minor=looked_at["quality"] == "whole")


def _add_notes(finding: Finding, basis: str, notes: Sequence[Note], shown: Mapping[str, Any] | None = None) -> Finding:
    """`basis` says on the page which one it is: what the schemas prove, or what the objects showed."""
    evidence = {**finding.evidence, "basis": basis, **({"seen": dict(shown)} if shown else {})}
    return with_message(replace(finding, evidence=evidence, notes=(*finding.notes, *notes)))


# The file with the words of all conditions.
CONDITIONS = "shared/conditions"
_NOUNS = {"Length": "characters", "Items": "items", "Properties": "keys"}
_BREAKING = frozenset({Severity.BREAKING, Severity.UNKNOWN, Severity.DANGEROUS})


def with_condition(finding: Finding) -> Finding:
    """`finding` with a note on what an object has to be like, where that decides and is not known."""
    if finding.certainty is not Certainty.DEPENDS_ON_OBJECTS or finding.severity not in _BREAKING:
        return finding
    condition, values = condition_of(finding)
    note = Note(CONDITIONS, "only-if", {"verb": str(finding.severity), "condition": condition, **values})
    return with_message(replace(finding, notes=(*finding.notes, note)))


def condition_of(finding: Finding) -> tuple[str, dict[str, Any]]:
    """Of which objects a finding is true: the name of the condition in its file, and the values that it shows."""
    rule, evidence = str(finding.evidence.get("because") or finding.rule), finding.evidence
    new = evidence.get("new")
    if limit := str(evidence.get("limit") or ""):
        noun = next((noun for name, noun in _NOUNS.items() if limit.endswith(name)), "values")
        return ("fewer" if limit.startswith("min") else "more"), {"noun": noun, "new": int(new or 0)}
    if rule in {"SCH-25", "SCH-26"} and mapping(new):
        # The limits of the numbers that are outside of the bounds.
        bounds = mapping(new)
        below = {"variant": "at-most" if bounds.get("exclusiveMinimum") else "below", "limit": bounds.get("minimum")}
        above = {"variant": "at-least" if bounds.get("exclusiveMaximum") else "above", "limit": bounds.get("maximum")}
        sides = [side for side in (below, above) if side["limit"] is not None]
        return ("outside", {"sides": sides}) if sides else ("outside-bounds", {})
    if rule == "SCH-21":
        return rule, {"removed": [shown_json(value) for value in items(evidence.get("removed"))]}
    if rule in {"SCH-08", "SCH-11"} and finding.path:
        return rule, {LEAF: finding.path[-1]}
    if rule in {"SCH-13", "SCH-17"} and new:
        return "another-type", {"types": str(new).split(" or "), "required": items(evidence.get("required"))}
    if rule == "SCH-38t" and finding.variant == "changes":
        return "changed", {}
    return (rule if f"condition.{rule}" in messages_of(CONDITIONS).templates else "else"), {}


def compare_crds(old: JsonObject, new: JsonObject, *, is_accepted: bool = False) -> list[Finding]:
    """Every change from `old` to `new`, worst first (`schema.compare`)."""
    return [with_message(found) for found in compare(old, new, is_accepted=is_accepted)]


def phrase_of(change: Finding) -> Phrase:
    """The sentence of one change, as a value for the sentence of another finding."""
    leaf = change.path[-1] if change.path else ""
    params = {SUBJECT: change.ref, WHERE: shown(change.path), LEAF: leaf, PLACE: None, **change.evidence}
    return Phrase.of(change.rule, change.variant, **params)


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
    # Who writes by a version that goes: they get 404, and their entries break server-side apply.
    kept = {version.name for version in scene.new.served_versions}
    for version in sorted(set(scene.managers) & {version.name for version in scene.old.versions} - kept):
        managers = dict(sorted(scene.managers[version].items()))
        told: dict[str, Any] = {"version": version, "managers": managers, "writers": most_first(managers)}
        yield _WRITERS.finding("written", scene.ref, key=[version, list(managers)], kind=scene.kind, **told)
    yield from _judge_way_back(scene)


def object_findings(scene: CrdObjects, *, is_needed: bool) -> Iterator[Finding]:
    """What becomes of the objects, and how many were asked: LIV-01 to LIV-03 and LIV-07."""
    listed, unchecked = scene.listed, _NOT_CHECKED if is_needed else _NOT_NEEDED
    told: dict[str, Any] = {"resourceVersion": listed.resource_version, "readAs": scene.read_as, **scene.looked_at}
    told["versions"] = sorted(scene.by_version)
    if listed.problem:
        yield unchecked.finding("unread", scene.ref, **told)
    else:
        yield (_CHECKED if listed.is_whole else _SAMPLED).finding("checked", scene.ref, **told)
        if scene.untried:
            yield unchecked.finding("untried", scene.ref, key=scene.untried, versions=scene.untried)
    for version, found in scene.by_version.items():
        bodies = {ObjectRef.of(obj): obj for obj in scene.read.get(version, scene.listed).objects}
        # The three levels: rejects the next write, rejects when that part is edited, valid. Both rejections
        # break: ratcheting puts one off to the next edit, and spares no object.
        unknown = [fate for fate in found if fate.is_unknown]
        refused = [fate for fate in found if fate.refused and not fate.is_unknown]
        later = [fate for fate in found if fate.when_edited and not fate.refused and not fate.is_unknown]
        valid = len(scene.listed.objects) - len(unknown) - len(refused) - len(later)
        counts = {"valid": valid, "rejectsNextWrite": len(refused), "rejectsWhenEdited": len(later)}
        told = {"version": version, **counts}
        groups = (
            (_REFUSED, "refused", refused),
            (_REFUSED, "refused-when-edited", later),
            (_NOT_JUDGED, "not-judged", unknown),
        )
        for rule, variant, fates in groups:
            if fates:
                examples = []
                for fate in fates[:MAX_EXAMPLES]:
                    errors = [masked(error, bodies[fate.ref]) for error in (fate.refused or fate.when_edited)[:3]]
                    examples.append({"object": fate.ref.place, "errors": errors})
                concerned = {"examples": examples, **_count_concerned(fates, scene)}
                yield rule.finding(variant, scene.ref, key=[version, variant], **told, **concerned)
        if scene.listed.objects and valid == len(scene.listed.objects):
            told |= {"kind": scene.kind, **scene.looked_at}
            yield _ALL_VALID.finding("valid", scene.ref, key=[version, "valid"], **told)
        yield from _find_losses(scene, version, found, bodies)
        yield from _find_new_defaults(scene, version, found)


def _count_concerned(fates: Collection[Fate], scene: CrdObjects) -> dict[str, Any]:
    objects = sorted(fate.ref.place for fate in fates)[:MAX_EXAMPLES]
    return {"kind": scene.kind, "count": len(fates), "objects": objects, **scene.looked_at}


def _find_losses(
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
        example = {"object": first.ref.place, "value": shape(value_at_path(bodies[first.ref], place))}
        listed[path] = {"objects": len({fate.ref for fate, _ in places}), "example": example}
    told = {"version": version, **_count_concerned([fate for fate in found if fate.pruned], scene)}
    told |= {"paths": listed, "fields": len(paths), "left_out": max(0, len(paths) - MAX_PATHS)}
    yield _LOST.finding("lost", scene.ref, key=[version, sorted(paths)], **told)


def _find_new_defaults(scene: CrdObjects, version: str, found: list[Fate]) -> Iterator[Finding]:
    readers: dict[str, list[Fate]] = defaultdict(list)
    for fate in found:
        for path in {general(flipped) for flipped in fate.flipped}:
            readers[path].append(fate)
    for path, fates in sorted(readers.items())[:MAX_PATHS]:
        told = {"version": version, "field": path, **_count_concerned(fates, scene)}
        yield _FLIPPED.finding("new-default", scene.ref, key=[version, path], **told)


def _judge_way_back(scene: CrdObjects) -> Iterator[Finding]:
    """The same comparison the other way round, as the cluster would make it after this change."""
    storage = scene.new.storage_version
    stored = dict.fromkeys([*scene.old.stored_versions, *([storage.name] if storage is not None else [])])
    after = {**scene.new.body, "status": {"storedVersions": list(stored)}}
    back = compare_crds(after, scene.old.body)
    refused = [phrase_of(change) for change in back if change.verdicts.get("api") is Severity.BREAKING]
    losing = sorted({".".join(map(str, change.path)) for change in back if change.rule in {"SCH-01", "SRV-01"}})
    if refused:
        yield _NO_WAY_BACK.finding("refused", scene.ref, key="refused", why=refused[0], refused=refused)
    elif losing:
        told: dict[str, Any] = {"fields": losing[:MAX_PATHS], "count": len(losing)}
        yield _LOSSY_WAY_BACK.finding("lossy", scene.ref, key=losing, **told)
    else:
        yield _WAY_BACK.finding("open", scene.ref, key="open")


UNSTORED = "unstored"  # in the evidence of a finding that is told with the others of its CRD: the kind of the objects
_TOLD = ReviewRule("LIV-08", Section.CRDS, Severity.NOTABLE, SchemaVerdict(writers=Severity.NOTABLE).as_mapping())
# What these say of a field; all other rules make it stricter.
_PART_OF_RULE = {
    **dict.fromkeys(("SCH-01", "SCH-02", "SCH-03"), "removed"),
    **dict.fromkeys(("SCH-06", "SCH-33", "SCH-34", "SCH-35"), "defaults"),
    **dict.fromkeys(("SCH-48", "SCH-49", "SCH-50"), "merging"),
}
# Objects do not settle these where there are some: each has a value there, or reads it.
_OF_ALL_OBJECTS = frozenset({"SCH-02", "SCH-03", "SCH-06", "SCH-19"})
_STRICTER = "stricter"
# What may become of a field, in the order in which the message says it.
_PARTS = (_STRICTER, "removed", "defaults", "merging")
_BAD = frozenset({Severity.BREAKING, Severity.DANGEROUS})


def is_unstored(finding: Finding, scene: CrdObjects) -> bool:
    """Whether a finding says only what would become of objects, and the CRD of `scene` certainly has none."""
    is_of_schema = finding.rule.startswith("SCH-") or finding.rule == "CRD-27"
    is_of_objects = bool(finding.evidence.get("live")) or finding.rule in _OF_ALL_OBJECTS
    is_taken = finding.verdicts.get("api") is Severity.SAFE
    return scene.is_empty and is_of_schema and is_of_objects and is_taken and finding.severity in _BAD


def marked(finding: Finding, scene: CrdObjects) -> Finding:
    """`finding` as one that `told_by_crd` tells with the others of its CRD."""
    return replace(finding, evidence={**finding.evidence, "basis": "objects", UNSTORED: scene.kind})


def told_by_crd(findings: Iterable[Finding]) -> list[Finding]:
    """`findings`, those that were marked as one for each CRD, where the first of them stood.

    It has every field in its evidence (`all_places`), each with its rule, its words and what the schemas prove. It is
    another finding as soon as one joins or leaves.
    """
    groups: dict[object, list[Finding]] = {}
    for position, finding in enumerate(findings):
        key = finding.ref.identity if finding.ref and UNSTORED in finding.evidence else position
        groups.setdefault(key, []).append(finding)
    return [
        _merge_findings(group, group[0].ref) if group[0].ref and UNSTORED in group[0].evidence else group[0]
        for group in groups.values()
    ]


def _merge_findings(group: Sequence[Finding], ref: ObjectRef) -> Finding:
    paths: dict[str, set[tuple[str | int, ...]]] = {}
    for finding in group:
        paths.setdefault(_PART_OF_RULE.get(finding.rule, _STRICTER), set()).add(finding.path)
    counts = {part: len(paths[part]) for part in _PARTS if part in paths}
    parts: list[dict[str, Any]] = [{VARIANT: part, "count": count} for part, count in counts.items()]
    parts[0]["fields"] = parts[0]["count"]  # the noun, once
    clients = "refused" if _STRICTER in counts else "dropped" if "removed" in counts else None
    told: dict[str, Any] = {"kind": group[0].evidence[UNSTORED], "parts": parts, "clients": clients, COUNTED: counts}
    told[PLACES] = [_describe_place(finding) for finding in group]
    made = _TOLD.finding("unstored", ref, basis="objects", **told)
    return replace(made, fingerprint=fingerprint(made.rule, ref, (), sorted(finding.fingerprint for finding in group)))


def _describe_place(finding: Finding) -> dict[str, object]:
    """Return the field of a finding, with everything that was found of it."""
    kept = {name: value for name, value in plain(finding.evidence).items() if name not in (UNSTORED, "version")}
    found = {"rule": finding.rule, "message": finding.message, **kept, "fingerprint": finding.fingerprint}
    ref = said(finding.ref) if finding.ref else ""
    return {"object": ref, "path": list(finding.path), "version": version_of(finding), DIFFERING: found}
