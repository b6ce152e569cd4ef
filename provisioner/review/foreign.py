"""What a report may tell of somebody else's objects: who holds them, and how they differ from the bundle (S09).

That such an object exists everybody may know. All else is for people who may get it, and a finding that is made of
several of them for people who may get them all. Of which ones it is made is found out by looking once more, with what
is known of one kind in one namespace alone: rights are given by kind and namespace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from provisioner.errors import AlreadyExists
from provisioner.review import beside
from provisioner.review.base.facts import Facts
from provisioner.review.base.record import plain
from provisioner.review.beside import Key, Look, key_of
from provisioner.values import Action, Finding, JsonObject, ObjectIdentity, ObjectRef, Plan, PlannedAction

# It tells of each of its sources by itself: who may get some of them reads of these.
OWNERS = "OWN-03"
# So many kinds and namespaces are looked at by themselves; beyond that a finding is for who may get every object.
MAX_PLACES = 12
Said = tuple[Key, str, str, str]


def is_private(planned: PlannedAction) -> bool:
    """Whether more is known of someone else's object than that it exists: it may be adopted, and was read or tried."""
    return planned.action is Action.ADOPT and planned.problem_code != AlreadyExists.code


def is_told_apart(planned: PlannedAction) -> bool:
    """Whether a plan holds more of someone else's object than everybody may know, be it in the way or to be adopted."""
    return is_private(planned) or (planned.action is Action.ADOPT and bool(planned.owner))


def without_private(planned: PlannedAction) -> PlannedAction:
    """`planned` as everybody may know it: the same whatever someone else's object holds, and whoever holds it.

    That it is in the way everybody may know, but not what would come of it if it were adopted.
    """
    if not is_told_apart(planned):
        return planned
    bare = PlannedAction(planned.ref, Action.ADOPT, planned.uid, after=planned.after, is_proved=False)
    if is_private(planned):
        return bare
    return replace(bare, problem=planned.problem, problem_code=planned.problem_code)


def without_foreign(facts: Facts, told: Iterable[ObjectIdentity] = ()) -> Facts:
    """`facts` without what objects hold that are not ours, but for those `told`: as if the bundle alone were there."""
    wished = bundle_of(facts)
    kept = frozenset(told)
    foreign = {one.ref.identity for one in facts.plan.actions if is_told_apart(one)} - kept
    actions = tuple(
        replace(without_private(one), after=wished[one.ref.identity].after) if one.ref.identity in foreign else one
        for one in facts.plan.actions
    )
    return with_plan(facts, actions, dict.fromkeys(foreign))


def bundle_of(facts: Facts) -> dict[ObjectIdentity, PlannedAction]:
    return {one.ref.identity: one for one in (facts.bundle.actions if facts.bundle else ())}


def with_plan(facts: Facts, actions: tuple[PlannedAction, ...], live: dict[ObjectIdentity, JsonObject | None]) -> Facts:
    """`facts` with another plan and other `live` objects; one that is None is no role of the cluster either."""
    shown = {identity: live.get(identity, obj) for identity, obj in facts.live.items()}
    gone = {identity for identity, obj in live.items() if obj is None}
    roles = facts.live_rbac
    if roles is not None and gone:
        roles = tuple(one for one in roles if ObjectRef.of(one).identity not in gone)
    return replace(facts, plan=Plan(actions, facts.plan.digest), live=shown, live_rbac=roles)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Of which foreign objects a finding is made, and of what else that somebody has to be able to get."""

    refs: tuple[ObjectRef, ...]
    sources: tuple[ObjectRef, ...] = ()


def told_apart(
    facts: Facts,
    look: Look,
    found: list[Finding],
    *,
    withheld: Callable[[Finding], Finding],
    own: Callable[[Facts, frozenset[ObjectIdentity]], Facts],
) -> list[Finding]:
    """The findings `found`, which objects of others decide, as private ones with the objects that each is made of.

    `withheld` gives one its words as values, and `own` is facts without what the cluster holds of all objects but some.
    """
    if not found:
        return []
    foreign = {one.ref.identity for one in facts.plan.actions if is_told_apart(one)}
    made = []
    for one, origin in zip(found, _origins(facts, look, found, own), strict=True):
        if one.rule == OWNERS:
            made.append(replace(withheld(one), is_private=True))
            continue
        # Of an object of somebody else's if it names one, else of the first that it is made of.
        ref = one.ref if one.ref and one.ref.identity in foreign else origin.refs[0]
        sources = tuple(dict.fromkeys((*origin.sources, *origin.refs, ref)))
        shown = replace(withheld(replace(one, ref=ref)), is_private=True)
        made.append(shown if sources == (ref,) else replace(shown, sources=sources))
    return made


def _origins(
    facts: Facts, look: Look, found: list[Finding], own: Callable[[Facts, frozenset[ObjectIdentity]], Facts]
) -> list[_Origin]:
    places, around = _places(facts), beside.without_all(facts)[1]
    whole = _Origin(_with_values(facts), (*around, *_ours(facts)))
    made: dict[Said, _Origin] = {}
    wanted = {all_said(one) for one in found}
    for refs in places.values() if len(places) <= MAX_PLACES else ():
        shown = frozenset(one.identity for one in refs)
        alone = own(without_foreign(facts, shown), shown)
        for one in wanted & {all_said(it) for it in look(beside.without_all(alone)[0])}:
            made.setdefault(one, _Origin(refs))
        for one in wanted & {all_said(it) for it in look(alone)} if around and wanted - made.keys() else ():
            made.setdefault(one, _Origin(refs, around))
    return [made.get(all_said(one), whole) for one in found]


def all_said(finding: Finding) -> Said:
    """All that a finding says: where it says the same it is made of nothing else."""
    return (key_of(finding), finding.fingerprint, str(plain(finding.evidence)), finding.server_words)


def _with_values(facts: Facts) -> tuple[ObjectRef, ...]:
    """The objects of others that findings may be made of: of a Secret there is never a value."""
    foreign = [one for one in facts.plan.actions if is_told_apart(one)]
    return tuple(one.ref for one in [it for it in foreign if it.before is not None] or foreign)


def _ours(facts: Facts) -> tuple[ObjectRef, ...]:
    return tuple(one.ref for one in facts.plan.actions if one.before is not None and not is_told_apart(one))


def _places(facts: Facts) -> dict[object, tuple[ObjectRef, ...]]:
    """The objects of others of which something is known, by kind and namespace."""
    found: dict[object, list[ObjectRef]] = defaultdict(list)
    for one in facts.plan.actions:
        if is_told_apart(one):
            found[(one.ref.group_kind, one.ref.namespace)].append(one.ref)
    return {place: tuple(refs) for place, refs in found.items()}
