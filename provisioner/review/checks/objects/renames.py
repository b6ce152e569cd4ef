"""A deletion and a creation that are one rename, said as one, with what the rename loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from provisioner.review.base.facts import SECRET, Check, Facts, mapping, said
from provisioner.review.base.renames import SERVICE, WEBHOOKS, Rename, renames
from provisioner.sentences import number, some, verb
from provisioner.values import Finding, Severity

_DATA = ("data", "stringData", "binaryData")


def _settles(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    found = renames(facts)
    going = {one.old: one for one in found}
    coming = {one.new: one for one in found}
    for finding in findings:
        ref = finding.ref
        if finding.rule == "DEL-01" and ref in going:
            yield _of_old(finding, going[ref])
        elif finding.rule == "WH-10" and ref in going:
            yield _of_webhooks(finding, going[ref])
        elif finding.rule == "OBJ-01" and ref in coming and not facts.hides_old_names:
            yield replace(finding, message=f"{finding.message} in place of {coming[ref].old.name}")
        else:
            yield finding


def _of_old(finding: Finding, of: Rename) -> Finding:
    parts = [f"Renames {said(of.old)} to {of.new.name}", *_losses(of), *_references(of)]
    evidence: dict[str, Any] = {**finding.evidence, "renamedTo": of.new.name}
    evidence |= {"followedBy": list(of.followed)} if of.followed else {}
    evidence |= {"stillNamedBy": list(of.still)} if of.still else {}
    severity = max(_severity(of), finding.severity, key=lambda it: it.rank) if not of.still else finding.severity
    return replace(finding, message="; ".join(parts), severity=severity, evidence=evidence)


def _of_webhooks(finding: Finding, of: Rename) -> Finding:
    """A configuration that goes, whose webhooks stand in another one from now on, or other ones do."""
    if not of.is_equal:
        return replace(finding, message=f"{finding.message}; {said(of.new)} comes in its place, with other webhooks")
    message = f"{said(of.old)} goes, and the same webhooks stand in {of.new.name}: they go on as before"
    return replace(finding, message=message, severity=Severity.SAFE)


def _severity(of: Rename) -> Severity:
    """Of a rename that everything in the bundle follows."""
    if of.old.group_kind == SERVICE or _is_written_by_programs(of):
        return Severity.DANGEROUS
    if of.old.group_kind in WEBHOOKS and not of.is_equal and not of.followed:
        return Severity.DANGEROUS
    return Severity.SAFE if of.is_hash and of.followed else Severity.NOTABLE


def _is_written_by_programs(of: Rename) -> bool:
    is_by_hand = of.is_hash or of.old.group_kind in WEBHOOKS
    return not is_by_hand and not any(of.before.get(part) for part in _DATA)


def _losses(of: Rename) -> Iterator[str]:
    """What a rename takes away, however well the bundle follows it."""
    ref = of.old
    if ref.group_kind == SERVICE:
        yield f"the name {ref.name}.{ref.namespace}.svc no longer leads anywhere, and its cluster IP is another one"
        if mapping(of.before.get("spec")).get("type") in {"LoadBalancer", "NodePort"}:
            yield "its address or port outside of the cluster may change"
    elif ref.group_kind in WEBHOOKS:
        same = "its webhooks are the same" if of.is_equal else "its webhooks differ, too"
        yield f"{same}, and both are asked until the old one is deleted"
    elif _is_written_by_programs(of):
        yield "what programs wrote into it stays behind and is deleted"
    elif not (of.is_hash and of.followed):
        values = " Pratique cannot restore its values" if ref.group_kind == SECRET else ""
        yield f"what else reads it by its old name stops working{f';{values}' if values else ''}"


def _references(of: Rename) -> Iterator[str]:
    if of.still:
        yield f"{some(of.still)} still {verb(len(of.still), 'name')} {of.old.name}"
    elif of.followed:
        count = len(of.followed)
        yield f"{number(count, 'object')} of the bundle {verb(count, 'follow')}: {some(of.followed)}"
    else:
        yield "no object of the bundle names it"


CHECK = Check("renames", settles=_settles)
