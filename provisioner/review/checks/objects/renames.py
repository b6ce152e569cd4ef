"""A deletion and a creation that are one rename, said as one, with what the rename loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from provisioner.review.base.facts import SECRET, Check, Facts, mapping
from provisioner.review.base.messages import with_message
from provisioner.review.base.renames import SERVICE, WEBHOOKS, Rename, renames
from provisioner.values import Finding, Note, Severity

# The file with what a rename adds to findings.
RENAMES = "shared/renames"
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
            note = Note(RENAMES, "in-place-of", {"old": coming[ref].old.name})
            yield with_message(replace(finding, notes=(*finding.notes, note)))
        else:
            yield finding


def _of_old(finding: Finding, of: Rename) -> Finding:
    evidence: dict[str, Any] = {**finding.evidence, "oldName": of.old.name, "renamedTo": of.new.name}
    evidence |= {"dnsName": f"{of.old.name}.{of.old.namespace}.svc", "losses": list(_losses(of))}
    evidence["names"] = "still" if of.still else "follow" if of.followed else "nobody"
    evidence |= {"followedBy": list(of.followed)} if of.followed else {}
    evidence |= {"stillNamedBy": list(of.still)} if of.still else {}
    severity = max(_severity(of), finding.severity, key=lambda it: it.rank) if not of.still else finding.severity
    return with_message(replace(finding, variant="renamed", severity=severity, evidence=evidence))


def _of_webhooks(finding: Finding, of: Rename) -> Finding:
    """A configuration that goes, whose webhooks stand in another one from now on, or other ones do."""
    if not of.is_equal:
        note = Note(RENAMES, "other-webhooks", {"new": of.new})
        return with_message(replace(finding, notes=(*finding.notes, note)))
    evidence = {**finding.evidence, "renamedTo": of.new.name}
    return with_message(replace(finding, variant="moved", evidence=evidence, severity=Severity.SAFE))


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
    """What a rename takes away, however well the bundle follows it: names of messages of DEL-01."""
    ref = of.old
    if ref.group_kind == SERVICE:
        yield "service-name"
        if mapping(of.before.get("spec")).get("type") in {"LoadBalancer", "NodePort"}:
            yield "outside-address"
    elif ref.group_kind in WEBHOOKS:
        yield "same-webhooks" if of.is_equal else "other-webhooks"
    elif _is_written_by_programs(of):
        yield "written-by-programs"
    elif not (of.is_hash and of.followed):
        yield "readers"
        if ref.group_kind == SECRET:
            yield "values"


CHECK = Check("renames", settles=_settles)
