"""Findings about a changed schema said again by what the stored objects showed.

What two schemas prove stays as evidence; the severity becomes that of what was seen. Where not every object could be
seen, or one is refused for a reason that no finding explains, nothing is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from provisioner.review.crds.live_scene import CrdObjects
from provisioner.review.crds.stored import NOT_EVALUATED, Fate, concerns
from provisioner.review.crds.writers import counted, owners_of
from provisioner.sentences import number, some, verb
from provisioner.values import Finding, ObjectRef, Severity

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
        return _said(finding, "schemas", f"only the schemas were compared here: {_why(finding, scene)}", {})
    if finding.rule in _BY_OWNERS:
        return _by_owners(finding, scene)
    if finding.rule in _BY_DEFAULTS:
        return _by_defaults(finding, scene)
    return _by_fates(finding, scene)


def _why(finding: Finding, scene: CrdObjects) -> str:
    if scene.listed.problem:
        return scene.listed.problem
    return f"what a webhook makes of the objects in version {finding.evidence.get('version')} is not known"


def _versions(finding: Finding, scene: CrdObjects) -> list[str] | None:
    """The versions at which the objects were tried that a finding is about; None where they were not."""
    version = str(finding.evidence.get("version") or "")
    if version in scene.by_version or version in scene.untried:
        return None if version in scene.untried else [version]
    return sorted(scene.by_version) or None


def _by_fates(finding: Finding, scene: CrdObjects) -> Finding:
    tried = [fate for version in _versions(finding, scene) or () for fate in scene.by_version[version]]
    hit = [fate for fate in tried if _is_hit(fate, finding)]
    words, shown = _counted(hit, scene)
    if hit:
        if finding.rule in _BY_WRITERS:
            return _by_writers(finding, scene, (words, shown))
        verdicts = {**finding.verdicts, "stored": Severity.BREAKING}
        return _said(_judged(finding, verdicts), "objects", words, shown)
    if not scene.listed.is_whole or any(_is_unexplained(fate) for fate in tried):
        return _said(finding, "schemas", f"none was found, which proves nothing: {scene.quality}", shown)
    verdicts = {**finding.verdicts, "stored": Severity.SAFE}
    if verdicts.get("writers") in {Severity.BREAKING, Severity.UNKNOWN}:
        verdicts["writers"] = Severity.DANGEROUS
    return _said(_judged(finding, verdicts), "objects", words, shown)


def _is_hit(fate: Fate, finding: Finding) -> bool:
    paths = [*fate.pruned, *(error.path for error in fate.errors if NOT_EVALUATED not in error.message)]
    place = () if finding.rule in _ANYWHERE else finding.path
    return any(concerns(place, path) for path in paths)


def _is_unexplained(fate: Fate) -> bool:
    """Whether a rule could not be evaluated over the object, so that no finding can be said to spare it."""
    return fate.is_unknown


def _by_writers(finding: Finding, scene: CrdObjects, seen: tuple[str, dict[str, Any]]) -> Finding:
    """Data is lost by writes through the older version: breaking if somebody does write through it."""
    version = str(finding.evidence.get("to") or finding.evidence.get("version") or "")
    writers = scene.managers.get(version)
    words, shown = seen
    if not writers:
        return _said(finding, "objects", f"{words}; nobody was seen to write as {version}", shown)
    verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
    words = f"{words}; written as {version} by {counted(writers)}"
    return _said(_judged(finding, verdicts), "objects", words, {**shown, "writers": dict(writers)})


def _by_owners(finding: Finding, scene: CrdObjects) -> Finding:
    """What changes for appliers matters where several of them own what lies there."""
    owners = [(ref, owners_of(obj, finding.path)) for obj, ref in _with_refs(scene)]
    shared = [(ref, names) for ref, names in owners if len(names) > 1]
    shown = {"managers": sorted({name for _, names in owners for name in names})}
    if finding.rule == "SCH-38t":
        words = f"{', '.join(shown['managers']) or 'nobody'} wrote this field of existing objects"
        return _said(finding, "objects", words, shown)
    if shared:
        words = (
            f"{len(shared):,} of {number(len(owners), 'object')} {verb(len(shared), 'have')} several owners there: "
            f"{', '.join(sorted(shared[0][1]))}"
        )
        verdicts = {**finding.verdicts, "writers": Severity.BREAKING}
        return _said(_judged(finding, verdicts), "objects", words, {**shown, "objects": _names(shared)})
    return _said(finding, "objects", f"no object has more than one owner there; {scene.quality}", shown)


def _by_defaults(finding: Finding, scene: CrdObjects) -> Finding:
    tried = [fate for version in _versions(finding, scene) or () for fate in scene.by_version[version]]
    hit = [fate for fate in tried if any(concerns(finding.path, path) for path in fate.flipped)]
    if finding.rule == "SCH-33":
        words = f"{number(len(hit), 'object')} {verb(len(hit), 'read')} the new default; {scene.quality}"
        return _said(finding, "objects", words, {"count": len(hit), "objects": _names_of(hit)})
    owned = [(ref, owners_of(obj, finding.path)) for obj, ref in _with_refs(scene)]
    unset = [(ref, names) for ref, names in owned if not names]
    left = (
        f"{number(len(unset), 'object')} {verb(len(unset), 'leave')} it unset" if unset else "no object leaves it unset"
    )
    shown = {"count": len(unset), "objects": _names(unset)}
    return _said(_unbroken(finding, scene), "objects", f"{left}; {scene.quality}", shown)


def _unbroken(finding: Finding, scene: CrdObjects) -> Finding:
    """Of a default that goes, where no object exists that could have read it: those who write may be refused."""
    if not scene.is_empty or finding.severity is not Severity.BREAKING:
        return finding
    return _judged(finding, {**finding.verdicts, "stored": Severity.SAFE, "writers": Severity.DANGEROUS})


def _with_refs(scene: CrdObjects) -> list[tuple[Any, ObjectRef]]:
    return [(obj, ObjectRef.of(obj)) for obj in scene.listed.objects]


def _counted(hit: list[Fate], scene: CrdObjects) -> tuple[str, dict[str, Any]]:
    count = len({fate.ref for fate in hit})
    shown = {"count": count, "checked": len(scene.listed.objects), "total": scene.listed.total}
    if hit:
        names = sorted({fate.ref.place for fate in hit})
        words = f"{number(count, 'stored object')} {verb(count, 'are')} concerned ({some(names)}); {scene.quality}"
        return words, {**shown, "objects": names[:MAX_NAMES]}
    return f"no stored object is concerned; {scene.quality}", shown


def _names_of(found: Iterable[Fate]) -> list[str]:
    return sorted({fate.ref.place for fate in found})[:MAX_NAMES]


def _names(found: Iterable[tuple[ObjectRef, object]]) -> list[str]:
    return sorted({ref.place for ref, _ in found})[:MAX_NAMES]


def _judged(finding: Finding, verdicts: Mapping[str, Severity]) -> Finding:
    asked = [verdicts[question] for question in ("api", "stored", "writers") if question in verdicts]
    severity = min(asked, key=lambda it: it.rank, default=finding.severity)
    return replace(finding, verdicts=dict(verdicts), severity=severity)


def _said(finding: Finding, basis: str, words: str, shown: Mapping[str, Any]) -> Finding:
    """`basis` says on the page which one it is: what the schemas prove, or what the objects showed."""
    evidence = {**finding.evidence, "basis": basis, **({"seen": dict(shown)} if shown else {})}
    return replace(finding, message=f"{finding.message}; {words}", evidence=evidence)
