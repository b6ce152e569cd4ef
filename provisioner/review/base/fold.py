"""What is found in the same words of many objects is said once, with their number and the first of them.

Nothing critical or unknown is ever folded (S24), nothing about Secrets, of which each reader may see other ones, and no
deletion that takes something along: an approval names each of those, with what goes with it.
Only objects of one kind and namespace stand together, so that who may see one may as a rule see all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from provisioner.review.base.facts import SECRET, fingerprint, said
from provisioner.review.base.record import plain
from provisioner.sentences import some
from provisioner.values import Finding, Severity

MAX_UNFOLDED = 10
_DELETIONS = frozenset({"DEL-01", "CRD-08"})
_TAKING_ALONG = frozenset({"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"})
MAX_OBJECTS = 200
MAX_TEXTS = 500
MAX_NAMES = 4
_ALWAYS_SAID = frozenset({Severity.CRITICAL, Severity.UNKNOWN})
_Key = tuple[object, ...]


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """`findings`, more than MAX_UNFOLDED that differ in nothing but the name of their object as one.

    The one counts them in its evidence (`count`, and `objects`, at most MAX_OBJECTS of them), and is another finding
    as soon as an object joins or leaves: what was accepted of some is not accepted of more.
    """
    groups: dict[_Key, list[Finding]] = {}
    for position, one in enumerate(findings):
        groups.setdefault(_fold_key(one) or (position,), []).append(one)
    return [one for group in groups.values() for one in (group if len(group) <= MAX_UNFOLDED else [_as_one(group)])]


def _fold_key(finding: Finding) -> _Key | None:
    """What findings that say the same have in common, None for one that is always said by itself."""
    ref = finding.ref
    if ref is None or finding.severity in _ALWAYS_SAID or ref.group_kind == SECRET:
        return None
    if finding.server_words:  # those of one object are no other's
        return None
    if finding.rule in _DELETIONS and ref.kind in _TAKING_ALONG:
        return None
    words = finding.message.replace(said(ref), "\0")
    if "\0" not in words:
        return None
    verdicts = tuple(sorted(finding.verdicts.items()))
    place = (finding.section, finding.severity, finding.is_new, ref.group_kind, ref.namespace)
    return (finding.rule, *place, words, verdicts)


def _as_one(group: Sequence[Finding]) -> Finding:
    ordered = sorted(group, key=lambda one: one.ref.identity if one.ref else ())
    first, names = ordered[0], [said(one.ref) for one in ordered if one.ref]
    rest = some(names[1:], MAX_NAMES)
    evidence = {
        **_common(ordered),
        "count": len(names),
        "objects": names[:MAX_OBJECTS],
        "left_out": max(0, len(names) - MAX_OBJECTS),
    }
    return replace(
        first,
        message=f"{first.message}. The same holds for {len(names) - 1:,} more: {rest}",
        evidence=evidence,
        fingerprint=fingerprint(first.rule, first.ref, first.path, sorted(one.fingerprint for one in ordered)),
    )


def _common(group: Sequence[Finding]) -> dict[str, object]:
    """The evidence that is the same for all; of lists of texts, what any of them has."""
    everybody = [plain(one.evidence) for one in group]
    found: dict[str, object] = {}
    for name, value in everybody[0].items():
        values = [one.get(name) for one in everybody]
        if all(one == value for one in values):
            found[name] = value
        elif all(isinstance(one, list) for one in values):
            texts = [text for one in values for text in one or () if isinstance(text, str)]
            found[name] = list(dict.fromkeys(texts))[:MAX_TEXTS]
    return found
