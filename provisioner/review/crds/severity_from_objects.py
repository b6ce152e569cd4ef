"""Findings about a changed schema said again by what the stored objects showed.

What two schemas prove stays as evidence; the severity becomes that of what was seen. Where not every object could be
seen, or one is refused for a reason that no finding explains, nothing is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner.review.base.messages import with_message
from provisioner.review.crds.live_scene import CrdObjects
from provisioner.review.crds.stored import Fate, concerns
from provisioner.review.crds.writers import owners_of
from provisioner.values import Finding, Note, ObjectRef, Severity

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
    if scene.listed.problem or _versions(finding, scene) is None:
        version = finding.evidence.get("version")
        why = {"problem": scene.listed.problem} if scene.listed.problem else {"version": version}
        return _noted(
            finding, "schemas", [_note("only-schemas" if scene.listed.problem else "unknown-conversion", **why)]
        )
    if finding.rule in _BY_OWNERS:
        return _by_owners(finding, scene)
    if finding.rule in _BY_DEFAULTS:
        return _by_defaults(finding, scene)
    return _by_fates(finding, scene)


def _versions(finding: Finding, scene: CrdObjects) -> list[str] | None:
    """The versions at which the objects were tried that a finding is about; None where they were not."""
    version = str(finding.evidence.get("version") or "")
    if version in scene.by_version or version in scene.untried:
        return None if version in scene.untried else [version]
    return sorted(scene.by_version) or None


def _by_fates(finding: Finding, scene: CrdObjects) -> Finding:
    tried = [fate for version in _versions(finding, scene) or () for fate in scene.by_version[version]]
    hit = [fate for fate in tried if _is_hit(fate, finding)]
    count = len({fate.ref for fate in hit})
    shown: dict[str, Any] = {"count": count, "checked": len(scene.listed.objects), "total": scene.listed.total}
    if hit:
        names = sorted({fate.ref.place for fate in hit})
        notes = [_note("concerned", count=count, names=names), quality(scene)]
        shown["objects"] = names[:MAX_NAMES]
        if finding.rule in _BY_WRITERS:
            return _by_writers(finding, scene, notes, shown)
        return _noted(_judged(finding, {**finding.verdicts, "stored": Severity.BREAKING}), "objects", notes, shown)
    if not scene.listed.is_whole or any(_is_unexplained(fate) for fate in tried):
        return _noted(finding, "schemas", [_note("none-found"), quality(scene)], shown)
    verdicts = {**finding.verdicts, "stored": Severity.SAFE}
    if verdicts.get("writers") in {Severity.BREAKING, Severity.UNKNOWN}:
        verdicts["writers"] = Severity.DANGEROUS
    return _noted(_judged(finding, verdicts), "objects", [_note("none-concerned"), quality(scene)], shown)


def _is_hit(fate: Fate, finding: Finding) -> bool:
    paths = [*fate.pruned, *(error.path for error in fate.refusals)]
    place = () if finding.rule in _ANYWHERE else finding.path
    return any(concerns(place, path) for path in paths)


def _is_unexplained(fate: Fate) -> bool:
    """Whether a rule could not be evaluated over the object, so that no finding can be said to spare it."""
    return fate.is_unknown


def _by_writers(finding: Finding, scene: CrdObjects, notes: list[Note], shown: dict[str, Any]) -> Finding:
    """Data is lost by writes through the older version: breaking if somebody does write through it."""
    version = str(finding.evidence.get("to") or finding.evidence.get("version") or "")
    writers = scene.managers.get(version)
    if not writers:
        return _noted(finding, "objects", [*notes, _note("not-written", version=version)], shown)
    verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
    written = [
        {"name": name, "objects": count} for name, count in sorted(writers.items(), key=lambda it: (-it[1], it[0]))
    ]
    notes = [*notes, _note("written", version=version, writers=written)]
    return _noted(_judged(finding, verdicts), "objects", notes, {**shown, "writers": dict(writers)})


def _by_owners(finding: Finding, scene: CrdObjects) -> Finding:
    """What changes for appliers matters where several of them own what lies there."""
    owners = [(ref, owners_of(obj, finding.path)) for obj, ref in _with_refs(scene)]
    shared = [(ref, names) for ref, names in owners if len(names) > 1]
    shown = {"managers": sorted({name for _, names in owners for name in names})}
    if finding.rule == "SCH-38t":
        return _noted(finding, "objects", [_note("field-written", managers=shown["managers"])], shown)
    if shared:
        note = _note("several-owners", shared=len(shared), total=len(owners), owners=sorted(shared[0][1]))
        verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
        return _noted(_judged(finding, verdicts), "objects", [note], {**shown, "objects": _names(shared)})
    return _noted(finding, "objects", [_note("one-owner"), quality(scene)], shown)


def _by_defaults(finding: Finding, scene: CrdObjects) -> Finding:
    tried = [fate for version in _versions(finding, scene) or () for fate in scene.by_version[version]]
    hit = [fate for fate in tried if any(concerns(finding.path, path) for path in fate.flipped)]
    if finding.rule == "SCH-33":
        names = sorted({fate.ref.place for fate in hit})[:MAX_NAMES]
        notes = [_note("read-default", count=len(hit)), quality(scene)]
        return _noted(finding, "objects", notes, {"count": len(hit), "objects": names})
    owned = [(ref, owners_of(obj, finding.path)) for obj, ref in _with_refs(scene)]
    unset = [(ref, names) for ref, names in owned if not names]
    notes = [_note("unset", count=len(unset)) if unset else _note("never-unset"), quality(scene)]
    shown = {"count": len(unset), "objects": _names(unset)}
    return _noted(_unbroken(finding, scene), "objects", notes, shown)


def _unbroken(finding: Finding, scene: CrdObjects) -> Finding:
    """Of a default that goes, where no object exists that could have read it: those who write may be refused."""
    if not scene.is_empty or finding.severity is not Severity.BREAKING:
        return finding
    return _judged(finding, {**finding.verdicts, "stored": Severity.SAFE, "writers": Severity.DANGEROUS})


def _with_refs(scene: CrdObjects) -> list[tuple[Any, ObjectRef]]:
    return [(obj, ObjectRef.of(obj)) for obj in scene.listed.objects]


def _names(found: Iterable[tuple[ObjectRef, object]]) -> list[str]:
    return sorted({ref.place for ref, _ in found})[:MAX_NAMES]


def _judged(finding: Finding, verdicts: Mapping[str, Severity]) -> Finding:
    asked = [verdicts[question] for question in ("api", "stored", "writers") if question in verdicts]
    severity = min(asked, key=lambda it: it.rank, default=finding.severity)
    return replace(finding, verdicts=dict(verdicts), severity=severity)


def _note(name: str, **params: Any) -> Note:
    return Note(OBJECTS, name, params)


def quality(scene: CrdObjects) -> Note:
    """How good the evidence is; one that says that all was looked at is left out in short."""
    looked_at = scene.looked_at
    return Note(OBJECTS, "checked", looked_at, is_minor=looked_at["quality"] == "whole")


def _noted(finding: Finding, basis: str, notes: Sequence[Note], shown: Mapping[str, Any] | None = None) -> Finding:
    """`basis` says on the page which one it is: what the schemas prove, or what the objects showed."""
    evidence = {**finding.evidence, "basis": basis, **({"seen": dict(shown)} if shown else {})}
    return with_message(replace(finding, evidence=evidence, notes=(*finding.notes, *notes)))
