"""Stored objects tried against a new CRD: what was a guess about all objects becomes a fact about these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from provisioner.schema.admitting import RULES_SKIPPED, admit
from provisioner.schema.crd import Crd, CrdVersion
from provisioner.schema.fields import NO_PATH
from provisioner.schema.pruning import NO_SCHEMA
from provisioner.schema.verdicts import ITEMS, VALUES, Change, D, Path, S, Verdict, shown
from provisioner.values import Finding, JsonObject, ObjectRef, Severity, worst_first

MAX_NAMED = 20
DEFAULTS = frozenset({"SCH-06", "SCH-33", "SCH-34", "SCH-35"})
NEXT_WRITE, WHEN_EDITED, LOSES = "rejects next write", "rejects when that part is edited", "loses data"
STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
SECRETIVE = re.compile(r"pass|secret|token|credential|private|key", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Affected:
    """One object that a version of the new CRD refuses or empties at `path`; `message` repeats no stored value."""

    name: str
    version: str
    path: tuple[str, ...]
    effect: str
    message: str


def settle(old_crd: JsonObject, new_crd: JsonObject, found: Iterable[Finding], objects: Any) -> list[Finding]:
    """`found`, the findings of `compare`, with what `objects` prove in the place of what could only be feared.

    `objects` are taken for all that is stored of this CRD; others are passed over. A breaking or undecided change that
    none of them minds is dangerous only, for those who write new ones. Nothing given is changed.
    """
    old, new = Crd(old_crd), Crd(new_crd)
    kept = [obj for obj in objects if is_of(old, obj)]
    affected = [it for obj in kept for it in _tried(old, new, obj)]
    settled = [_settled(finding, affected, len(kept), new) for finding in found]
    settled += [_summary(new_crd, change, len(kept)) for change in _changes(affected)]
    settled = [_with_defaulted(finding, kept) for finding in settled]
    return list(worst_first(settled))


def is_of(crd: Crd, obj: JsonObject) -> bool:
    """Whether `obj` is an object of `crd`, in whatever version."""
    ref = ObjectRef.of(obj)
    return ref.group_kind.group == crd.group and ref.group_kind.kind == crd.names.get("kind")


def _tried(old: Crd, new: Crd, obj: JsonObject) -> Iterator[Affected]:
    written = str(obj.get("apiVersion", "")).rpartition("/")[2]
    before = old.version(written) or old.storage_version
    was = None if old.preserves_unknown else before
    stored = admit(was.schema or NO_SCHEMA, obj) if was is not None else None
    known = {(it.path, it.message) for it in stored.errors} if stored else set()
    name = shown(tuple(filter(None, (ObjectRef.of(obj).namespace, ObjectRef.of(obj).name)))).replace(".", "/", 1)
    for version in new.versions:
        if new.uses_webhook and version.name != written:
            continue
        for path, effect, message in _effects(version, stored.after if stored else obj, new.preserves_unknown):
            if (path, message) not in known:
                yield Affected(name, version.name, steps(path), effect, _discreet(path, message))


def _effects(version: CrdVersion, obj: JsonObject, keeps_unknown: bool) -> Iterator[tuple[str, str, str]]:
    schema = version.schema or NO_SCHEMA
    first = admit(schema, obj)
    spared = set(first.errors) - set(admit(schema, first.after, old=first.after).errors)
    for error in first.errors:
        if RULES_SKIPPED not in error.message:
            yield error.path, WHEN_EDITED if error in spared else NEXT_WRITE, error.message
    for path in () if keeps_unknown else first.pruned:
        yield path, LOSES, "the value is dropped"


def steps(path: str) -> tuple[str, ...]:
    """A path as the API server writes it, as a tuple; positions and map keys stand for themselves."""
    if path == NO_PATH:
        return ()
    return tuple(name or inner for name, inner in STEP.findall(path))


def covers(pattern: Path, path: tuple[str, ...]) -> bool:
    """Whether `path` lies at or below the place that `pattern`, a finding's path, speaks of."""
    if len(pattern) > len(path):
        return False
    return all(part in (ITEMS, VALUES) or str(part) == step for part, step in zip(pattern, path, strict=False))


def _settled(finding: Finding, affected: Sequence[Affected], count: int, new: Crd) -> Finding:
    is_open = finding.severity in (Severity.BREAKING, Severity.UNKNOWN)
    if not is_open or not finding.evidence.get("live") or not _is_about_data(finding, new):
        return finding
    path = () if finding.rule == "CRD-27" else finding.path
    hit = [it for it in affected if finding.evidence.get("version") in ("", it.version) and covers(path, it.path)]
    evidence = {**finding.evidence, "objects": count, "affected": len({it.name for it in hit})}
    if hit:
        verdicts = {**finding.verdicts, "stored": Severity.BREAKING}
        evidence = {**evidence, "examples": _named(hit)}
        return replace(finding, severity=Severity.BREAKING, evidence=evidence, verdicts=verdicts)
    return replace(finding, severity=D, evidence=evidence, verdicts={**finding.verdicts, "stored": S, "writers": D})


def _with_defaulted(finding: Finding, objects: Sequence[JsonObject]) -> Finding:
    """How many objects leave the field out whose default changed: LIV-03."""
    if finding.rule not in DEFAULTS or any(part in (ITEMS, VALUES) for part in finding.path):
        return finding
    names = sorted(ObjectRef.of(obj).name for obj in objects if _leaves_out(obj, finding.path))
    facts = {"objects": len(objects), "affected": len(names), "examples": names[:MAX_NAMED]}
    return replace(finding, evidence={**finding.evidence, **facts})


def _leaves_out(obj: Any, path: Path) -> bool:
    """Whether all of the path is there but its end."""
    for part in path[:-1]:
        obj = obj.get(part) if isinstance(obj, Mapping) else None
    return isinstance(obj, Mapping) and bool(path) and path[-1] not in obj


def _is_about_data(finding: Finding, new: Crd) -> bool:
    """Whether objects can answer: not where the server refuses the CRD, nor what a webhook will make of them."""
    if finding.verdicts.get("api") is not S or (new.uses_webhook and finding.rule.startswith("SRV")):
        return False
    return finding.rule.startswith(("SCH", "SRV")) or finding.rule == "CRD-27"


def _changes(affected: Sequence[Affected]) -> Iterator[Change]:
    """One finding for what is refused, one for what is lost."""
    refused = [it for it in affected if it.effect != LOSES]
    lost = [it for it in affected if it.effect == LOSES]
    breaking = Verdict(stored=Severity.BREAKING, writers=D)
    if refused:
        count = len({it.name for it in refused})
        words = f"{count} stored objects are refused by the new schema"
        by_effect = {
            effect: len({it.name for it in refused if it.effect == effect}) for effect in (NEXT_WRITE, WHEN_EDITED)
        }
        yield Change("LIV-01", (), words, breaking, facts={"effects": by_effect, "examples": _named(refused)})
    if lost:
        paths: dict[str, set[str]] = {}
        for it in lost:
            paths.setdefault(shown(it.path), set()).add(it.name)
        words = f"{len({it.name for it in lost})} stored objects lose what stands at {len(paths)} paths"
        counts = {path: len(names) for path, names in sorted(paths.items())[:MAX_NAMED]}
        yield Change("LIV-02", (), words, breaking, facts={"paths": counts, "examples": _named(lost)})


def _summary(new_crd: JsonObject, change: Change, count: int) -> Finding:
    found = change.finding(ObjectRef.of(new_crd), "")
    return replace(found, evidence={**found.evidence, "objects": count})


def _named(affected: Iterable[Affected]) -> list[Mapping[str, str]]:
    told = sorted({(it.name, it.version, shown(it.path), it.effect, it.message) for it in affected})
    names = ("object", "version", "path", "effect", "message")
    return [dict(zip(names, one, strict=True)) for one in told[:MAX_NAMED]]


def _discreet(path: str, message: str) -> str:
    """The message without the value, where the field's name says that it may be a secret."""
    if not SECRETIVE.search(path):
        return message
    kind, _, rest = message.partition(": ")
    return f"{kind}: (hidden): {rest.rpartition(': ')[2]}"
