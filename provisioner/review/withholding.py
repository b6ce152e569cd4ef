"""Which findings say more than the bundle does: those that live objects decide are told apart from all others (S09).

Everybody who may read a request reads the words of its findings; a live value only people who may get the object. So
the checks look twice: at what will be, as the cluster would store it, and at the same without anything that only live
objects hold. What comes out the same was said of the bundle. What does not keeps its rule and its severity, and its
words become values of the object. About someone else's object even that there is such a finding would tell how it
differs, so that the finding is private. What objects beside the plan decide, such as roles, is told apart in `beside`.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace

from provisioner.errors import AlreadyExists
from provisioner.review import beside
from provisioner.review.base.facts import Facts
from provisioner.review.beside import Key, Look, key_of, words_without_details
from provisioner.values import Action, Finding, JsonObject, ObjectIdentity, ObjectRef, Plan, PlannedAction, Section

# What of a plan is made of live objects; of a deletion only counts and sizes are told.
_MERGED = frozenset({Action.UPDATE, Action.REPLACE, Action.NONE, Action.ADOPT})


def is_private(planned: PlannedAction) -> bool:
    """Whether more is known of someone else's object than that it exists: it may be adopted, and was read or tried."""
    return planned.action is Action.ADOPT and planned.problem_code != AlreadyExists.code


def without_private(planned: PlannedAction) -> PlannedAction:
    """`planned` as everybody may know it: the same whatever someone else's object holds."""
    if not is_private(planned):
        return planned
    return PlannedAction(planned.ref, Action.ADOPT, planned.uid, after=planned.after, is_proved=False)


def looked(facts: Facts, look: Look) -> list[Finding]:
    """What `look` finds, with the words that live objects decide kept apart, and what is private marked."""
    found = look(facts)
    if facts.bundle is None:
        return found
    if not any(is_private(one) for one in facts.plan.actions):
        return _told(facts, look, found)
    public = without_foreign(facts)
    told = look(public)
    known = {key_of(one) for one in told}
    private = [_as_private(one, facts) for one in found if key_of(one) not in known]
    return [*_told(public, look, told), *private]


def _told(facts: Facts, look: Look, found: list[Finding]) -> list[Finding]:
    is_merged = any(_is_merged(one) for one in facts.plan.actions)
    withheld = _withheld(facts, found, look(_without_live(facts))) if is_merged else found
    return beside.told_apart(facts, look, found, withheld)


def without_foreign(facts: Facts) -> Facts:
    """`facts` without what objects hold that are not ours and may be adopted: as if the bundle alone were there."""
    wished = _bundle(facts)
    foreign = {one.ref.identity for one in facts.plan.actions if is_private(one)}
    actions = tuple(
        replace(without_private(one), after=wished[one.ref.identity].after) if one.ref.identity in foreign else one
        for one in facts.plan.actions
    )
    return _with(facts, actions, dict.fromkeys(foreign))


def _without_live(facts: Facts) -> Facts:
    """`facts` as if the cluster held of our objects exactly what was approved before, and nothing else of them."""
    wished = _bundle(facts)
    known = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    actions = tuple(_bare(one, wished.get(one.ref.identity)) for one in facts.plan.actions)
    merged = {one.ref.identity for one in facts.plan.actions if _is_merged(one)} & known.keys()
    return _with(facts, actions, {identity: known[identity] for identity in merged})


def _bundle(facts: Facts) -> dict[ObjectIdentity, PlannedAction]:
    return {one.ref.identity: one for one in (facts.bundle.actions if facts.bundle else ())}


def _with(facts: Facts, actions: tuple[PlannedAction, ...], live: dict[ObjectIdentity, JsonObject | None]) -> Facts:
    shown = {identity: live.get(identity, obj) for identity, obj in facts.live.items()}
    gone = {identity for identity, obj in live.items() if obj is None}
    roles = facts.live_rbac
    if roles is not None and gone:
        roles = tuple(one for one in roles if ObjectRef.of(one).identity not in gone)
    return replace(facts, plan=Plan(actions, facts.plan.digest), live=shown, live_rbac=roles)


def _is_merged(planned: PlannedAction) -> bool:
    return planned.before is not None and planned.action in _MERGED


def _bare(planned: PlannedAction, bundle: PlannedAction | None) -> PlannedAction:
    if not _is_merged(planned) or bundle is None:
        return planned
    before = bundle.before if bundle.before is not None else bundle.after
    return replace(planned, before=before, after=bundle.after)


def _withheld(facts: Facts, found: list[Finding], bare: list[Finding]) -> list[Finding]:
    """`found`, the words of each that `bare` has not kept as values of its object.

    What both have is named by the fingerprint that the bundle alone gives it: the other may be made of live values.
    """
    names: dict[Key, list[str]] = defaultdict(list)
    for one in bare:
        names[key_of(one)].append(one.fingerprint)
    exact = {id(one) for one in found if _taken(names[key_of(one)], one.fingerprint)}
    made = []
    for one in found:
        rest = names[key_of(one)]
        if id(one) in exact:
            made.append(one)
        elif rest:
            made.append(replace(one, fingerprint=rest.pop(0)))
        else:
            made.append(_of_live(one, facts))
    return made


def _taken(names: list[str], name: str) -> bool:
    if name not in names:
        return False
    names.remove(name)
    return True


def _of_live(finding: Finding, facts: Facts) -> Finding:
    """Its fingerprint takes in the uids, which nobody can guess who may not get the objects: values could be."""
    uids = {one.ref.identity: one.uid for one in facts.plan.actions if one.uid}
    salt = uids.get(finding.ref.identity, "") if finding.ref else ""
    named = "\n".join([finding.fingerprint, *([salt] if salt else sorted(uids.values()))])
    return replace(
        finding,
        message=words_without_details(finding),
        server_words="; ".join(filter(None, [finding.message, finding.server_words])),
        is_withheld=True,
        fingerprint=hashlib.sha256(named.encode()).hexdigest(),
    )


def _as_private(finding: Finding, facts: Facts) -> Finding:
    """Of an object of the plan if it names one, else of the first that is someone else's."""
    foreign = [one.ref for one in facts.plan.actions if is_private(one)]
    identities = {one.identity for one in foreign}
    ref = finding.ref if finding.ref and finding.ref.identity in identities else foreign[0]
    made = replace(_of_live(replace(finding, ref=ref), facts), is_private=True)
    is_of_rights = finding.section in (Section.PERMISSIONS, Section.PREFLIGHT)
    return replace(made, sources=(*beside.ROLES, ref)) if is_of_rights and facts.live_rbac else made
