"""Which findings say more than the bundle does: those that objects of the cluster decide are marked (S09, S38).

Everybody who may read a request reads the words of its findings; a live value only people who may get the object. So
the checks look again, at the facts without anything that only some objects hold. What comes out the same was said of
the rest. What does not keeps its rule and its severity, and its words become values of the objects that decide it.

- *Objects of ours.* What they hold beside the bundle is withheld. Of an object that nobody else wrote to, defaults are
  no live values.
- *Somebody else's objects.* Even that there is such a finding would tell how they differ: it is private. Of which ones
  it is made is found out by what is known of one kind in one namespace alone: rights are given by kind and namespace.
- *Objects beside the plan*, such as roles, webhooks and lists. A finding that they decide is shown in full to people
  who may get them all; others get what can be said without them.
- *Secrets of ours, and old names.* Whether a Secret changes, and what an object held under its old name, nobody may
  learn by the number, severity or order of findings. So the report is that of a change in which no Secret changes and
  names alone tell what is renamed; what the whole change gives beyond that is private.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from provisioner.review.base.facts import SECRET, STATED, Facts
from provisioner.review.base.messages import said
from provisioner.review.base.record import plain
from provisioner.review.base.renames import renames
from provisioner.review.rules import rule_text
from provisioner.review.visibility.fact_views import (
    ROLES,
    hide_foreign_objects,
    hide_live_object,
    hide_live_values,
    hide_other_objects,
    hide_secrets_and_names,
    hide_surroundings,
    is_changed_secret,
    is_foreign,
    is_merged,
    map_bundle,
)
from provisioner.review.visibility.server_fields import holds_choices
from provisioner.values import Finding, ObjectIdentity, ObjectRef, Severity, display_name

# It tells of each of its sources by itself: who may get some of them reads of these.
OWNERS = "OWN-03"
# How many objects go with a deletion, or were looked at, is what people decide by, and no value of any of them.
_COUNTING = frozenset({"DEL-01", "CRD-08", "IMM-01", "LIV-07"})
# What an account lacks the API server says when asked; beyond the questions that are asked, roles say the same.
_LACKING = "PRE-01"
# So often the checks look to find out which of several objects of ours decide a finding; of more objects it is all.
MAX_LOOKS = 8
# So many kinds and namespaces are looked at by themselves; beyond that a finding is for who may get every object.
MAX_PLACES = 12
_Key = tuple[object, ...]
Look = Callable[[Facts], list[Finding]]


def mark_findings(facts: Facts, look: Look) -> list[Finding]:
    """What `look` finds, with the words that live objects decide kept apart, and what is private marked."""
    if facts.bundle is None:
        return look(facts)
    known = hide_secrets_and_names(facts)
    public_facts = hide_foreign_objects(known)
    public = look(public_facts)
    private: list[Finding] = []
    if public_facts is not known:
        keys = {_make_key(finding) for finding in public}
        private = [finding for finding in look(known) if _make_key(finding) not in keys]
    return [
        *_mark_public(public_facts, look, public),
        *_mark_foreign(known, look, private),
        *_find_hidden_changes(hide_foreign_objects(facts), public_facts, look, public),
    ]


def describe_without_values(finding: Finding) -> str:
    """What may be said of a finding where its own words are values: where it was found, and what its rule means.

    The object comes first, since a headline cuts what is long.
    """
    which = f"{display_name(finding.ref)} as it is" if finding.ref else "Objects as they are"
    rule = rule_text(finding.rule)
    means = rule.means.rstrip(".") if rule else finding.rule
    return f"{which} in the cluster: {means}"


def _make_key(finding: Finding) -> _Key:
    """What makes two findings of two looks the same."""
    ref = finding.ref.identity if finding.ref else None
    return (finding.rule, finding.severity, ref, finding.path, said(finding))


def _make_full_key(finding: Finding) -> _Key:
    """All that a finding says: where it says the same it is made of nothing else."""
    return (_make_key(finding), finding.fingerprint, str(plain(finding.evidence)), finding.server_words)


def _withhold(finding: Finding, facts: Facts) -> Finding:
    """Make its words values. Its fingerprint takes in the uids, which nobody can guess who may not get the objects:
    values could be."""
    uids = {planned.ref.identity: planned.uid for planned in facts.plan.actions if planned.uid}
    own_uid = uids.get(finding.ref.identity, "") if finding.ref else ""
    named = "\n".join([finding.fingerprint, *([own_uid] if own_uid else sorted(uids.values()))])
    return replace(
        finding,
        message=describe_without_values(finding),
        server_words="; ".join(filter(None, [finding.message, finding.server_words])),
        is_withheld=True,
        fingerprint=hashlib.sha256(named.encode()).hexdigest(),
    )


def _mark_public(facts: Facts, look: Look, found: list[Finding]) -> list[Finding]:
    bundle = map_bundle(facts)
    shown = found
    if any(
        is_merged(planned) or holds_choices(planned, bundle.get(planned.ref.identity)) for planned in facts.plan.actions
    ):
        shown = _name_makers(facts, look, found, _withhold_live(facts, found, look(hide_live_values(facts))))
    return _mark_surroundings(facts, look, found, shown)


def _withhold_live(facts: Facts, found: list[Finding], bare: list[Finding]) -> list[Finding]:
    """`found`, the words of each that `bare` has not kept as values of its object.

    What both have is named by the fingerprint that the bundle alone gives it: the other may be made of live values.
    """
    names: dict[_Key, list[str]] = defaultdict(list)
    for finding in bare:
        names[_make_key(finding)].append(finding.fingerprint)
    # Equal fingerprints are paired before any finding takes the name of another.
    exact = set()
    for place, finding in enumerate(found):
        left = names[_make_key(finding)]
        if finding.fingerprint in left:
            left.remove(finding.fingerprint)
            exact.add(place)
    shown = []
    for place, finding in enumerate(found):
        left = names[_make_key(finding)]
        if place in exact:
            shown.append(finding)
        elif left:
            shown.append(replace(finding, fingerprint=left.pop(0)))
        else:
            shown.append(_withhold(finding, facts))
    return shown


def _name_makers(facts: Facts, look: Look, found: list[Finding], withheld: list[Finding]) -> list[Finding]:
    """`withheld`, with the objects of ours whose live values decide each, where that is not its own object alone.

    They are numbered, and for each digit of the binary numbers the checks look at those that have it and at those that
    have it not. What is said at each look that shows an object, is made of no other.
    """
    pairs = list(zip(found, withheld, strict=True))
    if not any(shown.is_withheld and not finding.is_withheld for finding, shown in pairs):
        return withheld
    bundle = map_bundle(facts)
    refs = []
    for planned in facts.plan.actions:
        wished = bundle.get(planned.ref.identity)
        is_read = is_merged(planned) and planned.ref.identity in facts.live
        # Of a Secret there is never a value.
        if planned.ref.group_kind != SECRET and (
            is_read or hide_live_object(planned, wished) is not planned or holds_choices(planned, wished)
        ):
            refs.append(planned.ref)
    groups = [
        frozenset(ref.identity for number, ref in enumerate(refs) if number >> digit & 1 == bit)
        for digit in range((len(refs) - 1).bit_length() if refs else 0)
        for bit in (0, 1)
    ]
    is_tried = len(groups) <= MAX_LOOKS
    looks = [
        (group, {_make_full_key(finding) for finding in look(hide_live_values(facts, group))})
        for group in (groups if is_tried else ())
    ]
    named = []
    for finding, shown in pairs:
        sources = []
        if shown.is_withheld and not finding.is_withheld:
            own, key = finding.ref and finding.ref.identity, _make_full_key(finding)
            sources = refs
            for ref in sorted(refs, key=lambda ref: ref.identity != own) if is_tried else ():
                if all(key in keys for group, keys in looks if ref.identity in group):
                    sources = [] if ref.identity == own else [ref]
                    break
        named.append(replace(shown, sources=(*shown.sources, *sources)))
    return named


@dataclass(frozen=True, slots=True)
class _Part:
    """What a finding is made of beside the plan, and the finding that says it without that, if any does."""

    sources: tuple[ObjectRef, ...]
    bare: Finding | None


def _mark_surroundings(facts: Facts, look: Look, found: list[Finding], withheld: list[Finding]) -> list[Finding]:
    """`withheld`, which are `found` in the same order, with the objects beside the plan that each is made of."""
    # What a check says on purpose for those alone who may get its sources stands in other words for everybody.
    parts = [
        [_Part(finding.sources, None)] if finding.sources and finding.evidence.get(STATED) else [] for finding in found
    ]
    without_roles = replace(facts, live_rbac=None), ROLES if facts.live_rbac else ()
    for bare, sources in (without_roles, hide_other_objects(facts)):
        if sources:
            for place, part in enumerate(_compare_looks(found, look(bare), sources)):
                parts[place] += [part] if part else []
    everything = zip(found, withheld, parts, strict=True)
    return [
        _add_sources(facts, finding, shown, made_of) if made_of else shown for finding, shown, made_of in everything
    ]


def _compare_looks(found: list[Finding], bare: list[Finding], sources: tuple[ObjectRef, ...]) -> list[_Part | None]:
    """For each finding None where it says the same without these objects."""
    same: dict[_Key, list[Finding]] = defaultdict(list)
    near: dict[_Key, list[Finding]] = defaultdict(list)
    for finding in bare:
        same[_make_key(finding)].append(finding)
        if finding.severity is not Severity.UNKNOWN:
            near[_find_place(finding)].append(finding)
    counts: dict[_Key, int] = defaultdict(int)
    for finding in found:
        counts[_find_place(finding)] += 1
    parts: list[_Part | None] = []
    for finding in found:
        equal, others = same[_make_key(finding)], near[_find_place(finding)]
        if finding.rule == _LACKING or any(
            other.fingerprint == finding.fingerprint and plain(other.evidence) == plain(finding.evidence)
            for other in equal
        ):
            parts.append(None)
        elif equal or finding.rule in _COUNTING:
            parts.append(_Part(sources, finding))
        else:
            is_only = len(others) == 1 and counts[_find_place(finding)] == 1
            parts.append(_Part(sources, others[0] if is_only else None))
    return parts


def _find_place(finding: Finding) -> _Key:
    return (finding.rule, finding.ref.identity if finding.ref else None, finding.path)


def _add_sources(facts: Facts, found: Finding, shown: Finding, parts: list[_Part]) -> Finding:
    """`shown` with its sources, and in words that can be told without them; its name can then not be guessed either."""
    sources = [*shown.sources, *(source for part in parts for source in part.sources)]
    is_live = shown.is_withheld and not found.is_withheld
    if is_live or shown.server_words:
        sources += [found.ref] if found.ref else [planned.ref for planned in facts.plan.actions if planned.uid]
    others = {part.bare and said(part.bare): part.bare for part in parts}
    others.pop(said(found), None)
    if not is_live and others:
        bare = next(iter(others.values())) if len(others) == 1 else None
        words = bare.message if bare else found.evidence.get(STATED) or describe_without_values(found)
        kept = "; ".join(filter(None, [found.message, shown.server_words]))
        shown = replace(shown, message=words, server_words=kept, is_withheld=True)
    salted = hashlib.sha256(f"{shown.fingerprint}\n{facts.salt}".encode()).hexdigest()
    return replace(shown, sources=tuple(dict.fromkeys(sources)), fingerprint=salted)


def _mark_foreign(facts: Facts, look: Look, found: list[Finding]) -> list[Finding]:
    """The findings `found`, which objects of others decide, as private ones with the objects that each is made of."""
    if not found:
        return []
    foreign = [planned for planned in facts.plan.actions if is_foreign(planned)]
    ours = [planned.ref for planned in facts.plan.actions if planned.before is not None and not is_foreign(planned)]
    around = hide_surroundings(facts)[1]
    places: dict[object, list[ObjectRef]] = defaultdict(list)
    for planned in foreign:
        places[planned.ref.group_kind, planned.ref.namespace].append(planned.ref)
    # By what a finding says the objects of others that it is made of, and what else somebody has to be able to get.
    made: dict[_Key, tuple[list[ObjectRef], tuple[ObjectRef, ...]]] = {}
    wanted = {_make_full_key(finding) for finding in found}
    for refs in places.values() if len(places) <= MAX_PLACES else ():
        shown = frozenset(ref.identity for ref in refs)
        alone = hide_live_values(hide_foreign_objects(facts, shown), shown)
        for key in wanted & set(map(_make_full_key, look(hide_surroundings(alone)[0]))):
            made.setdefault(key, (refs, ()))
        if around and wanted - made.keys():
            for key in wanted & set(map(_make_full_key, look(alone))):
                made.setdefault(key, (refs, around))
    # Of a Secret there is never a value: it was not read.
    read = [planned.ref for planned in foreign if planned.before is not None]
    everything = read or [planned.ref for planned in foreign], (*around, *ours)
    identities = {planned.ref.identity for planned in foreign}
    marked = []
    for finding in found:
        if finding.rule == OWNERS:
            marked.append(replace(_withhold(finding, facts), is_private=True))
            continue
        refs, others = made.get(_make_full_key(finding), everything)
        # Of an object of somebody else's if it names one, else of the first that it is made of.
        ref = finding.ref if finding.ref and finding.ref.identity in identities else refs[0]
        shown_finding = replace(_withhold(replace(finding, ref=ref), facts), is_private=True)
        sources = tuple(dict.fromkeys((*others, *refs, ref)))
        marked.append(shown_finding if sources == (ref,) else replace(shown_finding, sources=sources))
    return marked


def _find_hidden_changes(facts: Facts, public: Facts, look: Look, known: list[Finding]) -> list[Finding]:
    """What the whole change `facts` gives beyond the findings `known` of its `public` view, as private findings with
    the objects that each is made of."""
    wholes: list[tuple[Facts, dict[ObjectIdentity, ObjectRef]]] = []
    changed = {
        planned.ref.identity: planned.ref
        for planned, shown in zip(facts.plan.actions, public.plan.actions, strict=True)
        if is_changed_secret(planned)
        and (
            planned.before != planned.after
            or (planned.warnings, planned.notes, planned.problem) != (shown.warnings, shown.notes, shown.problem)
        )
    }
    if changed:
        wholes.append((replace(facts, hides_old_names=True), changed))
    with_names = replace(public, hides_old_names=False)
    renamed = [rename for rename in renames(with_names) if not rename.is_plain]
    if renamed:
        wholes.append(
            (with_names, {ref.identity: rename.old for rename in renamed for ref in (rename.old, rename.new)})
        )
    keys = {_make_key(finding) for finding in known}
    found: dict[_Key, Finding] = {}
    for whole, refs in wholes:
        for finding in look(whole):
            key = _make_key(finding)
            if key not in keys:
                own = refs.get(finding.ref.identity) if finding.ref else None
                sources = (own,) if own else tuple(dict.fromkeys(refs.values()))
                found.setdefault(key, replace(_withhold(finding, facts), is_private=True, sources=sources))
    return list(found.values())
