"""What is found in the same words at several places is said once, with their number and all of them.

The same field in several versions of a CRD is one finding, and so is the same difference between several pairs of its
versions; more than MAX_UNFOLDED objects or fields are one, too.
Nothing critical or unknown is ever folded (S24), nothing about Secrets, of which each reader may see other ones, and no
deletion that takes something along: an approval names each of those, with what goes with it.
Only objects of one kind and namespace stand together, so that who may see one may as a rule see all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from provisioner.review.base.facts import SECRET, fingerprint
from provisioner.review.base.messages import FOLDED, said_anywhere, shown_names, with_message
from provisioner.review.base.places import DIFFERING, PLACES, FieldPlace, by_field, listed_places, places_of, version_of
from provisioner.review.base.record import plain
from provisioner.schema.verdicts import shown
from provisioner.values import Finding, Note, Severity, display_name

MAX_UNFOLDED = 10
_DELETIONS = frozenset({"DEL-01", "CRD-08"})
_TAKING_ALONG = frozenset({"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"})
# In the evidence of findings that stand by themselves: what goes with an object is looked at again before it goes, and
# what accounts may do is told account by account.
_APART = frozenset({"counts", "volumes", "subject"})
MAX_TEXTS = 500
MAX_NAMES = 4
_ALWAYS_SAID = frozenset({Severity.CRITICAL, Severity.UNKNOWN})
# What folding itself writes into evidence.
_OWN = frozenset({PLACES, "count", "objects", "version"})
_Key = tuple[object, ...]


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """`findings`, those that differ only in the version of a CRD as one, and more than MAX_UNFOLDED that differ only in
    object, field and version.

    The one has all of them in its evidence (`all_places`, see places_of, each with the evidence that is not that of
    all; `count`, and `objects`), and is another finding as soon as one joins or leaves: what was accepted of some is
    not accepted of more.
    """
    once = _grouped(findings, _of_one_field, most=1, as_one=_in_versions)
    return _grouped(once, _fold_key, most=MAX_UNFOLDED, as_one=_at_places)


def _grouped(
    findings: Iterable[Finding],
    key: Callable[[Finding], _Key | None],
    most: int,
    as_one: Callable[[Sequence[Finding]], Finding],
) -> list[Finding]:
    groups: dict[_Key, list[Finding]] = {}
    for position, one in enumerate(findings):
        groups.setdefault(key(one) or (position,), []).append(one)
    return [one for group in groups.values() for one in (group if len(group) <= most else [as_one(group)])]


def _fold_key(finding: Finding) -> _Key | None:
    """What findings that say the same have in common, None for one that is always said by itself."""
    ref = finding.ref
    if ref is None or finding.severity in _ALWAYS_SAID or ref.group_kind == SECRET:
        return None
    if finding.server_words:  # those of one object are no other's
        return None
    if _APART & finding.evidence.keys() or (finding.rule in _DELETIONS and ref.kind in _TAKING_ALONG):
        return None
    said = said_anywhere(finding)
    if said is None:
        return None
    verdicts = tuple(sorted(finding.verdicts.items()))
    place = (finding.section, finding.severity, finding.is_new, ref.group_kind, ref.namespace)
    # Who may see what one is made of may not see what the other is (S09).
    return (finding.rule, *place, said, verdicts, finding.sources)


def _of_one_field(finding: Finding) -> _Key | None:
    """What findings about one field have in common, whichever version of the CRD they are about."""
    if not finding.path or not version_of(finding):
        return None
    pair = _pair_of(finding)
    apart = ("version", "from", "to") if pair else ("version",)
    rest = {name: value for name, value in finding.evidence.items() if name not in apart}
    same = _fold_key(replace(finding, evidence={**finding.evidence, **dict.fromkeys(apart[1:])}))
    return (*same, finding.ref, finding.path, str(plain(rest))) if same else None


def _pair_of(finding: Finding) -> list[str] | None:
    """The two versions of one CRD that a finding compares."""
    pair = [finding.evidence.get("from"), finding.evidence.get("to")]
    is_pair = finding.rule.startswith("SRV-") and all(isinstance(one, str) for one in pair)
    return list(map(str, pair)) if is_pair else None


def _in_versions(group: Sequence[Finding]) -> Finding:
    """One field of several versions. It stands for the first of them where one version has to be named."""
    first = group[0]
    pairs = [{"from": pair[0], "to": pair[1]} for one in group[1:] if (pair := _pair_of(one))]
    if not pairs:
        return _one_of(group, [], {**first.evidence})
    own = {name: first.evidence[name] for name in ("version", "from", "to")}
    return _one_of(group, [Note(FOLDED, "versions", {"pairs": pairs})], _common(group), **own)


def _at_places(group: Sequence[Finding]) -> Finding:
    ordered = sorted(group, key=lambda one: (one.ref.identity if one.ref else (), tuple(map(str, one.path))))
    first, names = ordered[0], list(dict.fromkeys(display_name(one.ref) for one in ordered if one.ref))
    own = {"count": len(ordered), "objects": names, "version": version_of(first) or None}
    counts = {name: value for name, value in own.items() if value and name not in shown_names(first)}
    return _one_of(ordered, [_elsewhere(ordered, names)], _common(ordered), **counts)


def _elsewhere(group: Sequence[Finding], names: Sequence[str]) -> Note:
    """Where else it holds: in other fields of the object, in fields of others, or of other objects."""
    fields = [path for _, path, _ in by_field(_places(group))]
    if len(fields) == len(names):
        return Note(FOLDED, "objects", {"more": len(names) - 1, "others": names[1 : MAX_NAMES + 1]})
    more = {"more": len(fields) - 1}
    if len(names) == 1:
        return Note(FOLDED, "fields", {**more, "others": [shown(path) for path in fields[1 : MAX_NAMES + 1]]})
    return Note(FOLDED, "fields-of-objects", {**more, "objects": len(names), "others": names[:MAX_NAMES]})


def _one_of(group: Sequence[Finding], notes: Sequence[Note], evidence: dict[str, object], **own: object) -> Finding:
    """The first of a group with the evidence of all, `own` evidence of its own, and its places."""
    first = group[0]
    everywhere = [place for one in group for place in _each(one, evidence)]
    # Of a JSON value: two places that differ in nothing are one.
    places = list({json.dumps(one, sort_keys=True, default=str): one for one in everywhere}.values())
    told = {**evidence, **own, PLACES: places}
    named = fingerprint(first.rule, first.ref, first.path, sorted(one.fingerprint for one in group))
    return with_message(replace(first, evidence=told, fingerprint=named, notes=(*first.notes, *notes)))


def _each(finding: Finding, evidence: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """The places of one finding, with what of its evidence is not in that of all."""
    own = {name: value for name, value in plain(finding.evidence).items() if name not in _OWN}
    differing = {name: value for name, value in own.items() if name not in evidence or plain(evidence[name]) != value}
    for place in listed_places(finding):
        before = place.get(DIFFERING)
        found = {**differing, **(before if isinstance(before, Mapping) else {})}
        yield {**place, **({DIFFERING: found} if found else {})}


def _places(group: Sequence[Finding]) -> list[FieldPlace]:
    return list(dict.fromkeys(place for one in group for place in places_of(one)))


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
