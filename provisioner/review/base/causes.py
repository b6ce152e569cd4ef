"""What several rules say of one cause is one finding: the rule that says most leads, `also` names the others.

Only findings that one waiver may cover stand together: nothing that nobody may accept, nothing unknown (decision 0057).
Nor what is withheld where its values decide: that it stands under another finding would tell them (S09).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from provisioner.review.base.facts import fingerprint
from provisioner.review.base.messages import UNJUDGED, with_message
from provisioner.review.base.record import plain
from provisioner.review.rules import Phrase
from provisioner.values import Finding, Note, Severity

SAID_WITH = "said_with"  # in a finding's evidence
_DELETED_CRD = ("CRD-08", "DEL-01")
_EVERYTHING = ("RB-01", "RB-03")
_CLUSTER_ADMIN = "cluster-admin"
# Rules that say what a field is now and what that does, of which nobody has to hear again that no rule judges it.
_TELLING = frozenset(
    {"AS-02", "AVL-01", "AVL-02", "OBJ-07", "OBJ-10", "POD-27", "POD-33", "POD-35", "POD-38", "RB-51", "SEC-06"}
)
# Rules that name fields which may not change, and not what they change to; the field where their evidence names none.
_IMMUTABLE = "IMM-01"
_NAMING = {_IMMUTABLE: (), "SEC-03": ("immutable",)}
# What the first of two rules finds of an object implies what the second one finds there, as far as `_is_implied` says.
_DELETED, _NOT_CHECKED = "DEL-01", "WH-10"
_NO_VERSION, _NOT_SERVED = "CRD-14", "CRD-12"
_NO_TLS, _HOST = "ING-04", "SV-02"
_OF_NODE, _OTHER_MOUNTS = "POD-05", "POD-28"
_ONE_NODE, _ROLLOUT, _TOGETHER = "AVL-07", "AVL-05", "together"
_IMPLIES = {
    _DELETED: _NOT_CHECKED,
    _NO_VERSION: _NOT_SERVED,
    _NO_TLS: _HOST,
    _OF_NODE: _OTHER_MOUNTS,
    _ONE_NODE: _ROLLOUT,
}
_POLICY, _ITS_PODS, OTHER_PODS = "NP-02", "NP-05", "other-pods"
_Key = tuple[object, ...]
_Path = tuple[str | int, ...]


def said_by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """`findings`, those about one cause as one finding, which stands where the first of them stood.

    What the others say is kept whole in its evidence (`said_with`, by rule), and it has all their sources. It is as
    grave and as new as the gravest and newest of them.
    """
    groups: dict[_Key, list[Finding]] = {}
    for position, one in enumerate(_told_elsewhere(list(findings))):
        groups.setdefault(_cause(one) or (position,), []).append(one)
    told = []
    for group in groups.values():
        leading = next((finding for finding in group if finding.rule in (_DELETED_CRD[0], _EVERYTHING[0])), None)
        # Where two rules say the same it is one finding; two of one rule are two causes.
        if leading is None or len(group) == 1 or len({finding.rule for finding in group}) < len(group):
            told += group
        else:
            told.append(_with_others(leading, [finding for finding in group if finding is not leading]))
    return told


def _told_elsewhere(findings: Sequence[Finding]) -> list[Finding]:
    """Each finding with what adds nothing to it: what it implies, that no rule judges a field of which it tells, and
    that a policy is about other pods where it names them."""
    by_object: dict[object, list[int]] = {}
    for position, one in enumerate(findings):
        if one.ref is not None and (one.rule in (*_TELLING, *_NAMING, *_IMPLIES, _ITS_PODS)) and one.is_new:
            by_object.setdefault(one.ref.identity, []).append(position)
    told: dict[int, list[Finding]] = {}
    for finding in findings:
        leading = by_object.get(finding.ref.identity, []) if finding.ref is not None and finding.is_new else []
        at = next((place for place in leading if _adds_nothing(finding, findings[place])), None)
        if at is not None:
            told.setdefault(at, []).append(finding)
    gone = {id(finding) for several in told.values() for finding in several}
    return [
        _with_others(one, told[position]) if position in told else one
        for position, one in enumerate(findings)
        if id(one) not in gone
    ]


def _adds_nothing(finding: Finding, leading: Finding) -> bool:
    if finding.server_words or leading.server_words or finding.sources != leading.sources:
        return False
    if leading.rule in _IMPLIES:
        return finding.rule == _IMPLIES[leading.rule] and _is_implied(finding, leading)
    if finding.rule == _POLICY:
        return leading.rule == _ITS_PODS and finding.evidence.get("changes") == [OTHER_PODS]
    if finding.rule != UNJUDGED or finding.evidence.get("left_out") or leading.rule == _ITS_PODS:
        return False
    fields = _changed_paths(finding)
    if leading.rule in _NAMING:
        told = leading.evidence.get("fields") or _NAMING[leading.rule]
        changed = [leading.path, *_changed_paths(leading)]
        named = [one for one in changed if one and ".".join(map(str, one)) in told]
        return bool(fields) and all(any(field[: len(it)] == it for it in named) for field in fields)
    return fields == [leading.path]


def _is_implied(finding: Finding, leading: Finding) -> bool:
    if Severity.UNKNOWN in (finding.severity, leading.severity) or finding.ref is None:
        return False
    if leading.rule == _NO_TLS:
        host, hosts = finding.evidence.get("host"), leading.evidence.get("hosts")
        return finding.evidence.get("lacks") == "tls" and isinstance(hosts, list) and host in hosts
    if leading.rule == _ONE_NODE:
        return finding.variant == _TOGETHER
    # Nothing differs but mounts of folders of the node, each of which `leading` names.
    folders, named = finding.evidence.get("folders"), leading.evidence.get("items")
    are_named = bool(folders) and isinstance(folders, list) and isinstance(named, list) and set(folders) <= set(named)
    return leading.rule != _OF_NODE or are_named


def _changed_paths(finding: Finding) -> list[_Path]:
    changes = finding.evidence.get("changes")
    return (
        [tuple(change["path"]) for change in changes if isinstance(change, dict)] if isinstance(changes, list) else []
    )


def _cause(finding: Finding) -> _Key | None:
    """What findings about one cause have in common, None for one that stands by itself."""
    ref = finding.ref
    if ref is None or finding.severity is Severity.UNKNOWN:
        return None
    if finding.rule in _DELETED_CRD and ref.kind == "CustomResourceDefinition":
        return (_DELETED_CRD, ref.identity)
    held = finding.evidence.get("held")
    is_admin = isinstance(held, Phrase) and held.params.get("role") == _CLUSTER_ADMIN
    is_everything = finding.rule == _EVERYTHING[0] or (finding.rule == _EVERYTHING[1] and is_admin)
    is_own = is_everything and not finding.server_words
    return (_EVERYTHING, ref.identity, finding.is_new, finding.severity) if is_own else None


def _with_others(leading: Finding, others: Sequence[Finding]) -> Finding:
    everything = [leading, *others]
    own = fingerprint(leading.rule, leading.ref, leading.path, sorted(finding.fingerprint for finding in everything))
    # The values of the one field that IMM-01 names, which its sentence shows beside the field.
    values: dict[str, object] = {}
    one, fields = others[0].evidence, leading.evidence.get("fields")
    if leading.rule == _IMMUTABLE and len(others) == 1 and others[0].variant == "changed":
        values = {"values": one["values"]} if fields == [one.get("field")] and "more" not in one else {}
    notes = () if values else _added(leading, others)
    # What each rule says; a list where one says several things.
    said_with: dict[str, object] = {}
    for rule in dict.fromkeys(finding.rule for finding in others):
        several = [
            {
                "severity": str(finding.severity),
                "message": finding.message,
                "path": list(finding.path),
                "evidence": finding.evidence,
                "fingerprint": finding.fingerprint,
            }
            for finding in others
            if finding.rule == rule
        ]
        said_with[rule] = several[0] if len(several) == 1 else several
    told = replace(
        leading,
        severity=min((one.severity for one in everything), key=lambda severity: severity.rank),
        notes=(*leading.notes, *notes),
        evidence={**leading.evidence, **values, SAID_WITH: said_with},
        is_new=any(finding.is_new for finding in everything),
        fingerprint=own,
        is_withheld=all(finding.is_withheld for finding in everything),
        server_words="; ".join(dict.fromkeys(filter(None, (finding.server_words for finding in everything)))),
        sources=tuple(dict.fromkeys(source for finding in everything for source in finding.sources)),
        also=tuple(dict.fromkeys(other.rule for other in others)),
    )
    return told if leading.is_withheld else with_message(told)


def _added(leading: Finding, others: Sequence[Finding]) -> tuple[Note, ...]:
    """What the others add to the sentence: of a deleted CRD both rules say the same, and what is implied is no news;
    what is critical loses none of its words (S24)."""
    if leading.rule == _DELETED:
        consequence = "further-consequence" if leading.notes or leading.variant == "renamed" else "consequence"
        gone = [other for other in others if other.variant == "deleted"]
        return tuple(
            note for finding in gone for note in (Note(finding.rule, consequence, finding.evidence), *finding.notes)
        )
    if leading.rule in _NAMING:
        return tuple(Note(other.rule, "values", other.evidence) for other in others if other.variant == "changed")
    if leading.rule == _EVERYTHING[0]:
        return tuple(Note(finding.rule, f"and-{finding.variant}", finding.evidence) for finding in others)
    return ()


# Power over Pratique is compared with what people approved, never with what a policy did (S22).
OWN = "OWN-PRATIQUE"


def known_by(findings: Iterable[Finding], before: Iterable[Finding]) -> tuple[Finding, ...]:
    """`findings`, those that `before` has as well as known.

    Public findings are compared with public ones only, so that nobody learns from this what is private (S38).
    """
    known = {finding.fingerprint: finding for finding in before}
    told = []
    for finding in findings:
        other = known.get(finding.fingerprint)
        is_known = other is not None and not finding.rule.startswith(OWN)
        # What became worse is new, and of what is worse than notable everything that is said has to be the same.
        if other is None or not is_known or not other.severity.is_at_least(finding.severity):
            told.append(finding)
        elif Severity.NOTABLE.is_at_least(finding.severity) or _facts(finding) == _facts(other):
            told.append(replace(finding, is_new=False))
        else:
            told.append(finding)
    return tuple(told)


def _facts(finding: Finding) -> tuple[object, ...]:
    """What of it every reader of the request knows: the evidence of other findings holds what few may read."""
    is_for_few = finding.is_withheld or bool(finding.sources or finding.server_words)
    return finding.message, None if is_for_few else plain(finding.evidence)
