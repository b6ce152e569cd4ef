"""The facts of a change as readers and checks may know them: without somebody else's objects, what the cluster holds of
ours, changes of Secrets, or objects beside the plan (S09, S38). Pure.

Each check is given what it declares (`Check.reads`) and nothing else of the cluster. So what it finds is made of that
alone, and a look that differs in nothing that it reads finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import AlreadyExists
from provisioner.review.base.facts import SECRET, Facts, Listed, Reads, RolesNotGiven
from provisioner.review.visibility.server_fields import as_wished, is_as_wished, wished_sides
from provisioner.values import Action, ObjectIdentity, ObjectRef, Plan, PlannedAction

_T = TypeVar("_T")

ROLES = tuple(
    ObjectRef(RBAC_GROUP, "v1", kind, "", "") for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
)
# What was not looked at is not counted: "nothing" would be a statement about the cluster.
UNREAD = Listed(total=None, problem="what the stored objects show is only for people who may get them")
# What a plan says of a value of a Secret that stays as it is.
UNCHANGED = "unchanged"
# What of a plan is made of live objects; of a deletion only counts and sizes are told.
_MERGED = frozenset({Action.UPDATE, Action.REPLACE, Action.NONE})
_WRITTEN = frozenset({Action.UPDATE, Action.REPLACE})


def map_bundle(facts: Facts) -> dict[ObjectIdentity, PlannedAction]:
    """The plan as if the cluster held exactly the previous content, by object."""
    return {planned.ref.identity: planned for planned in (facts.bundle.actions if facts.bundle else ())}


def is_private(planned: PlannedAction) -> bool:
    """Whether more is known of someone else's object than that it exists: it may be adopted, and was read or tried."""
    return planned.action is Action.ADOPT and planned.problem_code != AlreadyExists.code


def is_foreign(planned: PlannedAction) -> bool:
    """Whether a plan holds more of someone else's object than everybody may know, be it in the way or to be adopted."""
    return is_private(planned) or (planned.action is Action.ADOPT and bool(planned.owner))


def is_merged(planned: PlannedAction) -> bool:
    """Whether the result is made of an object of ours that is in the cluster."""
    return planned.before is not None and planned.action in _MERGED


def hide_foreign_object(planned: PlannedAction) -> PlannedAction:
    """`planned` as everybody may know it: the same whatever someone else's object holds, and whoever holds it.

    That it is in the way everybody may know, but not what would come of it if it were adopted.
    """
    if not is_foreign(planned):
        return planned
    bare = PlannedAction(planned.ref, Action.ADOPT, planned.uid, after=planned.after, is_proved=False)
    if is_private(planned):
        return bare
    return replace(bare, problem=planned.problem, problem_code=planned.problem_code)


def hide_foreign_objects(facts: Facts, shown: Collection[ObjectIdentity] = ()) -> Facts:
    """`facts` without what objects hold that are not ours, but for those `shown`: as if the bundle alone were there."""
    bundle = map_bundle(facts)
    actions, hidden = [], set()
    for planned in facts.plan.actions:
        identity = planned.ref.identity
        if is_foreign(planned) and identity not in shown:
            hidden.add(identity)
            actions.append(replace(hide_foreign_object(planned), after=bundle[identity].after))
        else:
            actions.append(planned)
    if not hidden:
        return facts
    live = {identity: None if identity in hidden else obj for identity, obj in facts.live.items()}
    roles = facts.live_rbac
    if roles is not None:
        roles = tuple(role for role in roles if ObjectRef.of(role).identity not in hidden)
    return replace(facts, plan=Plan(tuple(actions), facts.plan.digest), live=live, live_rbac=roles)


def hide_live_values(facts: Facts, shown: frozenset[ObjectIdentity] = frozenset()) -> Facts:
    """`facts` as if the cluster held of our objects exactly what was approved before, and nothing else of them, but for
    the objects `shown`."""
    bundle = map_bundle(facts)
    approved = {
        manifest.ref.identity: manifest.body for manifest in (facts.previous.manifests if facts.previous else ())
    }
    actions, live = [], dict(facts.live)
    for planned in facts.plan.actions:
        identity = planned.ref.identity
        actions.append(planned if identity in shown else hide_live_object(planned, bundle.get(identity)))
        if identity not in shown and identity in live and identity in approved and is_merged(planned):
            live[identity] = approved[identity]
    return replace(facts, plan=Plan(tuple(actions), facts.plan.digest), live=live, choices_of=shown)


def hide_live_object(planned: PlannedAction, bundle: PlannedAction | None) -> PlannedAction:
    """`planned` without what only the cluster holds of it; the same object where that is nothing, or was chosen."""
    if not is_merged(planned) or bundle is None or is_as_wished(planned, bundle):
        return planned
    before, after = wished_sides(bundle)
    return replace(planned, before=before, after=after)


def is_changed_secret(planned: PlannedAction) -> bool:
    """Whether the plan writes a Secret of ours, of which only who may get it learns whether anything changes."""
    return planned.action in _WRITTEN and planned.before is not None and planned.ref.group_kind == SECRET


def hide_secrets_and_names(facts: Facts) -> Facts:
    """`facts` as everybody may know them: no Secret of ours changes, and only names tell what is renamed."""
    bundle = map_bundle(facts)
    hidden = {}
    for planned in filter(is_changed_secret, facts.plan.actions):
        wished = bundle.get(planned.ref.identity)
        body = (wished.after if wished else None) or {}
        if isinstance(data := body.get("data"), dict):
            body = {**body, "data": dict.fromkeys(data, UNCHANGED)}
        notes = () if planned.is_proved else planned.notes
        hidden[planned.ref.identity] = replace(
            planned, resource_version="", before=body, after=body, warnings=(), notes=notes
        )
    plan, wished_plan = (
        replace(plan, actions=tuple(hidden.get(planned.ref.identity, planned) for planned in plan.actions))
        for plan in (facts.plan, facts.bundle or Plan((), ""))
    )
    previous = facts.previous
    if previous is not None:
        new = facts.content.manifests
        secrets = {manifest.ref.identity: manifest for manifest in new if manifest.ref.group_kind == SECRET}
        manifests = (secrets.get(manifest.ref.identity, manifest) for manifest in previous.manifests)
        previous = replace(previous, manifests=tuple(manifests))
    return replace(facts, plan=plan, bundle=wished_plan, previous=previous, hides_old_names=True)


def hide_other_objects(facts: Facts) -> tuple[Facts, tuple[ObjectRef, ...]]:
    """`facts` without objects and lists beside the plan, and what these are; that an object exists stays."""
    planned = {action.ref.identity for action in facts.plan.actions}
    live, hidden = dict(facts.live), set()
    for identity, obj in facts.live.items():
        if obj is not None and identity not in planned:
            ref = ObjectRef.of(obj)
            meta = {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
            live[identity] = {"apiVersion": obj.get("apiVersion"), "kind": ref.kind, "metadata": meta}
            hidden.add(ref)
    lists = dict(facts.around.lists)
    for listing, listed in facts.around.lists.items():
        if listed.objects:
            lists[listing] = UNREAD
            hidden.add(ObjectRef(listing.group, listing.version, listing.kind, listing.namespace, ""))
    if not hidden:
        return facts, ()
    return replace(facts, live=live, around=replace(facts.around, lists=lists)), tuple(sorted(hidden))


def hide_surroundings(facts: Facts) -> tuple[Facts, tuple[ObjectRef, ...]]:
    """`facts` without any object beside the plan that was read, roles included, and what these are."""
    bare, others = hide_other_objects(replace(facts, live_rbac=None))
    return bare, (*(ROLES if facts.live_rbac else ()), *others)


@dataclass(eq=False)
class Looks:
    """The checks over one change, however often it is looked at: one runs again only where what it reads differs.

    It keeps what checks found, by what they were given: objects are told apart by identity, and kept.
    """

    found: dict[Any, Any] = field(default_factory=dict)
    facts: dict[Any, Facts] = field(default_factory=dict)
    no_roles: RolesNotGiven | None = None
    plain: dict[int, tuple[PlannedAction, PlannedAction]] = field(default_factory=dict)

    def once(self, what: object, given: Facts, work: Callable[[Facts], _T]) -> _T:
        """What `work`, which is named `what`, makes of what it is `given`."""
        key = (what, id(given))
        if key not in self.found:
            self.found[key] = work(given)
        found: _T = self.found[key]
        return found

    def given(self, facts: Facts, reads: frozenset[Reads]) -> Facts:
        """`facts` with that of the cluster which is read; the same object where nothing of it differs."""
        if facts.bundle is None:
            return self.facts.setdefault(id(facts), facts)
        plan = facts.plan
        shown = facts.choices_of if Reads.CHOICES in reads else frozenset()
        if shown is not None:
            bundle = map_bundle(facts)
            actions = []
            for planned in plan.actions:
                if id(planned) not in self.plain:
                    self.plain[id(planned)] = planned, as_wished(planned, bundle.get(planned.ref.identity))
                actions.append(planned if planned.ref.identity in shown else self.plain[id(planned)][1])
            plan = replace(plan, actions=tuple(actions))
        live = facts.live if Reads.LIVE in reads else {}
        lists = facts.around.lists if Reads.LIVE in reads else {}
        if self.no_roles is None and facts.live_rbac is not None:
            self.no_roles = RolesNotGiven(facts.salt)
        roles = facts.live_rbac if Reads.ROLES in reads else self.no_roles
        ids: Sequence[object] = (
            *map(id, plan.actions),
            *((key, id(obj)) for key, obj in live.items()),
            *((key, id(listed)) for key, listed in lists.items()),
        )
        key = (facts.hides_old_names, id(facts.previous), id(roles), *ids)
        if key not in self.facts:
            around = replace(facts.around, lists=lists)
            self.facts[key] = replace(facts, plan=plan, live=live, live_rbac=roles, around=around)
        return self.facts[key]
