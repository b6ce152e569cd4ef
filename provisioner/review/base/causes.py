"""What several rules say of one cause is one finding: the rule that says most leads, `also` names the others.

Only findings that one waiver may cover stand together: nothing that nobody may accept, nothing unknown (decision 0056).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from provisioner.review.base.facts import fingerprint
from provisioner.values import Finding, Severity

SAID_WITH = "said_with"  # in a finding's evidence
_DELETED_CRD = ("CRD-08", "DEL-01")
_EVERYTHING = ("RB-01", "RB-03")
_CLUSTER_ADMIN = "cluster-admin"
_Key = tuple[object, ...]


def said_by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """`findings`, those about one cause as one finding, which stands where the first of them stood.

    What the others say is kept whole in its evidence (`said_with`, by rule), and it has all their sources. It is as
    grave and as new as the gravest and newest of them.
    """
    groups: dict[_Key, list[Finding]] = {}
    for position, one in enumerate(findings):
        groups.setdefault(_cause(one) or (position,), []).append(one)
    return [one for group in groups.values() for one in _together(group)]


def _cause(finding: Finding) -> _Key | None:
    """What findings about one cause have in common, None for one that stands by itself."""
    ref = finding.ref
    if ref is None or finding.severity is Severity.UNKNOWN:
        return None
    if finding.rule in _DELETED_CRD and ref.kind == "CustomResourceDefinition":
        return (_DELETED_CRD, ref.identity)
    is_everything = finding.rule == _EVERYTHING[0] or _is_cluster_admin(finding)
    return (_EVERYTHING, ref.identity, finding.is_new, finding.severity) if is_everything else None


def _is_cluster_admin(finding: Finding) -> bool:
    return finding.rule == _EVERYTHING[1] and f"holds {_CLUSTER_ADMIN} " in finding.message


def _together(group: Sequence[Finding]) -> list[Finding]:
    """One finding where two rules say the same; two of one rule are two causes."""
    by_rule = {one.rule: one for one in group}
    leading = next((one for one in group if one.rule in (_DELETED_CRD[0], _EVERYTHING[0])), None)
    if leading is None or len(group) == 1 or len(by_rule) < len(group):
        return list(group)
    return [_with_others(leading, [one for one in group if one is not leading])]


def _with_others(leading: Finding, others: Sequence[Finding]) -> Finding:
    everything = [leading, *others]
    own = fingerprint(leading.rule, leading.ref, leading.path, sorted(one.fingerprint for one in everything))
    return replace(
        leading,
        severity=min((one.severity for one in everything), key=lambda it: it.rank),
        message=_words(leading, others),
        evidence={**leading.evidence, SAID_WITH: {one.rule: _kept(one) for one in others}},
        is_new=any(one.is_new for one in everything),
        fingerprint=own,
        is_withheld=all(one.is_withheld for one in everything),
        server_words="; ".join(dict.fromkeys(filter(None, (one.server_words for one in everything)))),
        sources=tuple(dict.fromkeys(source for one in everything for source in one.sources)),
        also=tuple(one.rule for one in others),
    )


def _words(leading: Finding, others: Sequence[Finding]) -> str:
    """Of a deleted CRD both rules say the same; what is critical loses none of its words (S24)."""
    if leading.rule == _DELETED_CRD[0]:
        return leading.message
    name, _, _ = leading.message.partition("` ")
    more = (one.message.removeprefix(f"{name}` ") for one in others)
    return "; ".join((leading.message, *more))


def _kept(finding: Finding) -> dict[str, object]:
    return {
        "severity": str(finding.severity),
        "message": finding.message,
        "path": list(finding.path),
        "evidence": finding.evidence,
        "fingerprint": finding.fingerprint,
    }
