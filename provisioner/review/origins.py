"""Findings made of what few may read: whether a Secret of ours changes, and what an object held under its old name.

Whoever reads the request may learn neither, nor by how many findings there are, how severe, or in which order (S38).
So the report is that of a change in which every Secret that exists is as it was, and in which names alone tell what is
renamed. What the whole change gives beyond that is private: for people who may get the objects that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from provisioner.review.base.facts import SECRET, Facts
from provisioner.review.base.renames import renames
from provisioner.review.beside import Look, key_of
from provisioner.review.foreign import bundle_of
from provisioner.values import Action, Content, Finding, JsonObject, ObjectIdentity, ObjectRef, Plan, PlannedAction

# What a plan says of a value of a Secret that stays as it is.
UNCHANGED = "unchanged"


def is_untold(planned: PlannedAction) -> bool:
    """Whether the plan writes a Secret of ours, of which only who may get it learns whether anything changes."""
    is_written = planned.action in (Action.UPDATE, Action.REPLACE) and planned.before is not None
    return is_written and planned.ref.group_kind == SECRET


def without_origins(facts: Facts) -> Facts:
    """`facts` as everybody may know them: no Secret of ours changes, and only names tell what is renamed."""
    bundle = bundle_of(facts)
    untold = {one.ref.identity: _as_it_was(one, bundle) for one in facts.plan.actions if is_untold(one)}
    plans = [
        replace(plan, actions=tuple(untold.get(one.ref.identity, one) for one in plan.actions))
        for plan in (facts.plan, facts.bundle or Plan((), ""))
    ]
    previous = facts.previous and _with_new_secrets(facts.previous, facts.content)
    return replace(facts, plan=plans[0], bundle=plans[1], previous=previous, hides_old_names=True)


def _as_it_was(planned: PlannedAction, bundle: dict[ObjectIdentity, PlannedAction]) -> PlannedAction:
    wished = bundle.get(planned.ref.identity)
    body = _with_same_values((wished.after if wished else None) or {})
    notes = () if planned.is_proved else planned.notes
    return replace(planned, resource_version="", before=body, after=body, warnings=(), notes=notes)


def _with_same_values(secret: JsonObject) -> JsonObject:
    data = secret.get("data")
    return {**secret, "data": dict.fromkeys(data, UNCHANGED)} if isinstance(data, dict) else secret


def _with_new_secrets(previous: Content, content: Content) -> Content:
    new = {one.ref.identity: one for one in content.manifests if one.ref.group_kind == SECRET}
    return replace(previous, manifests=tuple(new.get(one.ref.identity, one) for one in previous.manifests))


def of_origins(facts: Facts, look: Look, known: list[Finding], withheld: Callable[[Finding], Finding]) -> list[Finding]:
    """What the whole change gives beyond the findings `known`, as private ones, with the objects that each is made of.

    `withheld` gives a finding its words as values.
    """
    keys = {key_of(one) for one in known}
    found: dict[object, Finding] = {}
    for whole, refs in _wholes(facts):
        for one in look(whole):
            if key_of(one) not in keys:
                own = refs.get(one.ref.identity) if one.ref else None
                sources = (own,) if own else tuple(dict.fromkeys(refs.values()))
                found.setdefault(key_of(one), replace(withheld(one), is_private=True, sources=sources))
    return list(found.values())


def _wholes(facts: Facts) -> Iterator[tuple[Facts, dict[ObjectIdentity, ObjectRef]]]:
    """The change with the one of both that is kept from some readers, and by identity the objects that this is."""
    told = without_origins(facts)
    pairs = zip(facts.plan.actions, told.plan.actions, strict=True)
    changing = {one.ref.identity: one.ref for one, shown in pairs if is_untold(one) and _differs(one, shown)}
    if changing:
        yield replace(facts, hides_old_names=True), changing
    with_names = replace(told, hides_old_names=False)
    renamed = [one for one in renames(with_names) if not one.is_plain]
    if renamed:
        yield with_names, {ref.identity: one.old for one in renamed for ref in (one.old, one.new)}


def _differs(planned: PlannedAction, shown: PlannedAction) -> bool:
    said = (planned.warnings, planned.notes, planned.problem) != (shown.warnings, shown.notes, shown.problem)
    return said or planned.before != planned.after
