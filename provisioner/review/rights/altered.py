"""Whose rights a change alters: accounts that are told one by one, and everybody with a role, told once for each role.

An account is told by itself where the bundle binds it, makes it, runs its pods as it or is installed by it. Whoever
holds a role that changes by somebody else's binding is mostly one of many, and each of them gets the same: that is said
of the role, unless they are few. What people hold anyway is no part of a change, however many hold it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import (
    CLUSTER,
    BindingKey,
    EffectiveRules,
    Grant,
    RbacObjects,
    RbacSubject,
    RoleKey,
    RoleProblem,
    RoleRule,
)
from provisioner.review.base.facts import Facts, mapping
from provisioner.review.rights.rbac_before_after import RbacBeforeAfter, rbac_before_after_of
from provisioner.values import Identity, JsonObject, ObjectRef

# So many who hold a role that changes are told by name.
FEW = 5
BUILT_IN = {"admin": ("admin", "edit", "view"), "edit": ("edit", "view"), "view": ("view",)}
_AGGREGATE_TO = f"{RBAC_GROUP}/aggregate-to-"
_NOBODY = RbacSubject("", "")
_Roles = set[RoleKey]


@dataclass(frozen=True, slots=True)
class RoleChange:
    """A role that grants something else than before to `holders`, who have it at `scopes` by bindings of others.

    The roles of Kubernetes that collect others (`is_built_in`) are looked at as if somebody had them everywhere.
    """

    ref: ObjectRef
    before: tuple[RoleRule, ...]
    after: tuple[RoleRule, ...]
    scopes: tuple[str, ...]
    holders: tuple[RbacSubject, ...] = ()
    is_built_in: bool = False

    @property
    def home(self) -> str:
        """Where the role can be held at most: "" for the whole cluster."""
        return CLUSTER if self.ref.kind == "ClusterRole" else self.ref.namespace

    def held(self, scope: str) -> tuple[EffectiveRules, EffectiveRules]:
        """What somebody has who holds this role at `scope` and nothing else, before and after."""
        old, new = (self._grants(rules, scope) for rules in (self.before, self.after))
        return old, new

    def _grants(self, rules: Iterable[RoleRule], scope: str) -> EffectiveRules:
        given = (Grant(one.rule, scope, _NOBODY, self.ref, self.ref, one.origin, one.index) for one in rules)
        return EffectiveRules(Identity(""), tuple(given))


@dataclass(frozen=True, slots=True)
class AlteredRights:
    """`accounts` are told one by one, sorted; `roles` tell of all who hold them by bindings of others."""

    accounts: tuple[RbacSubject, ...]
    roles: tuple[RoleChange, ...]


def altered_by(facts: Facts) -> AlteredRights:
    """Whose rights may differ between the two states, and everybody whom the bundle binds."""
    return facts.once("altered", lambda given: _altered(rbac_before_after_of(given)))


def _altered(states: RbacBeforeAfter) -> AlteredRights:
    touched = states.touched_bindings
    bound = {
        subject
        for side in (states.before, states.after)
        for key in touched & side.bindings.keys()
        for subject in rbac.binding_subjects(side.bindings[key])
    }
    candidates = _candidates(states)
    changed = sorted(key for key in candidates if _rules(states.before, key) != _rules(states.after, key))
    others = {key: _others(states.after, key, touched) for key in changed}
    named = {subject for bindings in others.values() for subject in _subjects(states.after, bindings)}
    accounts = bound | (named & states.accounts)
    built_in = list(_built_in(states, candidates, others, accounts))
    known = {rbac.role_key_of(one.ref) for one in built_in}
    rest = {key: bindings for key, bindings in others.items() if key not in known}
    few = (_holders(states.after, bindings, accounts) for bindings in rest.values())
    accounts = accounts.union(*(holders for holders in few if len(holders) <= FEW))
    roles = [*built_in, *_of_others(states, rest, accounts)]
    return AlteredRights(tuple(sorted(accounts, key=_by_name)), tuple(roles))


def is_given_by_bundle(grant: Grant, states: RbacBeforeAfter) -> bool:
    """Whether a binding or a role of the bundle has a part in a grant."""
    return any(one.identity in states.own for one in (grant.binding, grant.role, grant.origin))


def holders_alike(
    states: RbacBeforeAfter, subjects: Iterable[RbacSubject], apart: Collection[str]
) -> list[list[RbacSubject]]:
    """`subjects` in groups that hold the same roles in the same combinations, in whichever namespaces.

    Only namespaces in `apart` are told from others. So of hundreds of teams with one role each, one is looked at.
    """
    found: dict[object, list[RbacSubject]] = {}
    for subject in subjects:
        sides = tuple(_combinations(side, subject, apart) for side in (states.before, states.after))
        # What the account itself is called weighs, too.
        kind = subject.name if subject.kind == "Group" and subject.name.startswith("system:") else subject.kind
        found.setdefault((kind, subject.name == "default", sides), []).append(subject)
    return list(found.values())


def _combinations(known: RbacObjects, subject: RbacSubject, apart: Collection[str]) -> frozenset[object]:
    places: dict[str, set[RoleKey]] = {}
    for place, role in known.roles_held(subject.identity):
        places.setdefault(place, set()).add(role)
    return frozenset((one if one in apart else None, frozenset(roles)) for one, roles in places.items())


def _by_name(subject: RbacSubject) -> tuple[str, str, str]:
    return (subject.kind, subject.namespace, subject.name)


def _candidates(states: RbacBeforeAfter) -> _Roles:
    """The roles that the bundle writes otherwise, and those that collect one of them, through others too."""
    found = {
        key
        for key in states.touched_roles
        if _rights(states.before.roles.get(key)) != _rights(states.after.roles.get(key))
    }
    collecting = {key for side in (states.before, states.after) for key in _aggregated(side)} if found else set()
    while more := {key for key in collecting - found if _is_altered(states, key, found)}:
        found |= more
    return found


def _is_altered(states: RbacBeforeAfter, key: RoleKey, changed: _Roles) -> bool:
    return any(
        rbac.collects(collector, role)
        for collector in _versions(states, [key])
        for role in _versions(states, (one for one in changed if one[0] == CLUSTER))
    )


def _versions(states: RbacBeforeAfter, keys: Iterable[RoleKey]) -> Iterator[JsonObject]:
    found = (side.roles.get(key) for key in keys for side in (states.before, states.after))
    return (role for role in found if role is not None)


def _aggregated(side: RbacObjects) -> Iterator[RoleKey]:
    return (key for key, role in side.roles.items() if role.get("aggregationRule") is not None)


def _rights(role: JsonObject | None) -> tuple[object, ...]:
    """What of a role says who may do what."""
    if role is None:
        return ()
    labels = dict(mapping(mapping(role.get("metadata")).get("labels")))
    return (role.get("rules"), role.get("aggregationRule"), labels)


def _rules(side: RbacObjects, key: RoleKey) -> tuple[frozenset[object], tuple[RoleProblem, ...]]:
    role = side.roles.get(key)
    rules, problems = side.rules_of(role) if role is not None else ([], [])
    return frozenset(one.rule for one in rules), tuple(problems)


def _others(known: RbacObjects, role: RoleKey, touched: Collection[BindingKey]) -> list[BindingKey]:
    return [key for key in known.bindings_to(role) if key not in touched]


def _subjects(known: RbacObjects, bindings: Iterable[BindingKey]) -> Iterator[RbacSubject]:
    for key in bindings:
        yield from rbac.binding_subjects(known.bindings[key])


def _holders(
    known: RbacObjects, bindings: Iterable[BindingKey], told: Collection[RbacSubject]
) -> tuple[RbacSubject, ...]:
    found = {subject for subject in _subjects(known, bindings) if subject not in told}
    return tuple(sorted(found, key=_by_name))


def _built_in(
    states: RbacBeforeAfter,
    candidates: _Roles,
    others: dict[RoleKey, list[BindingKey]],
    told: Collection[RbacSubject],
) -> Iterator[RoleChange]:
    """admin, edit and view, by the labels of what they collect: they are the same everywhere, known or not."""
    labels = (mapping(mapping(role.get("metadata")).get("labels")) for role in _versions(states, candidates))
    if not any(str(label).startswith(_AGGREGATE_TO) for found in labels for label in found):
        return
    for name, targets in BUILT_IN.items():
        old, new = (_collected(side, (CLUSTER, name), targets) for side in (states.before, states.after))
        if {one.rule for one in old} != {one.rule for one in new}:
            ref = ObjectRef(RBAC_GROUP, "v1", "ClusterRole", "", name)
            holders = _holders(states.after, others.get((CLUSTER, name), ()), told)
            yield RoleChange(ref, old, new, (CLUSTER,), holders, is_built_in=True)


def _collected(side: RbacObjects, key: RoleKey, targets: tuple[str, ...]) -> tuple[RoleRule, ...]:
    """What a built-in role grants where it is known, and what ClusterRoles that are labelled for it give to it."""
    found = list(_told(side, key))
    for (namespace, _), role in side.roles.items():
        labels = mapping(mapping(role.get("metadata")).get("labels"))
        if namespace == CLUSTER and any(labels.get(_AGGREGATE_TO + word) == "true" for word in targets):
            rules, problems = side.rules_of(role)
            found += [] if problems else rules  # the server refuses such a role
    return tuple(dict.fromkeys(found))


def _of_others(
    states: RbacBeforeAfter, others: dict[RoleKey, list[BindingKey]], told: Collection[RbacSubject]
) -> Iterator[RoleChange]:
    for key, bindings in others.items():
        holders = _holders(states.after, bindings, told)
        role = states.after.roles.get(key) or states.before.roles.get(key)
        if not holders or role is None:
            continue
        old, new = (_told(side, key) for side in (states.before, states.after))
        yield RoleChange(ObjectRef.of(role), old, new, tuple(sorted({one[1] for one in bindings})), holders)


def _told(side: RbacObjects, key: RoleKey) -> tuple[RoleRule, ...]:
    role = side.roles.get(key)
    return tuple(side.rules_of(role)[0]) if role is not None else ()
