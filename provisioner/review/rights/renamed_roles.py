"""Roles and bindings that go under one name and come under another: OLM puts the version of an operator into theirs.

Who held their rights holds them afterwards, so that their deletion takes nothing away. Pure.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest, TooManyRights
from provisioner.json_values import mapping, maps
from provisioner.rbac import BindingKey, RbacObjects, RbacSubject, RoleKey
from provisioner.review.base.facts import Facts, StateFacts
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import Action, GroupKind, JsonObject, ObjectIdentity, ObjectRef

_Bound = dict[ObjectRef, tuple[ObjectRef, str]]
_AGGREGATED = "aggregate-to-"  # in labels by which a ClusterRole's rules become those of another
_ROLES, _BINDINGS = ("ClusterRole", "Role"), ("ClusterRoleBinding", "RoleBinding")


def with_renamed_roles(facts: Facts) -> Facts:
    """`facts` whose plan says of each of these deletions as what it returns."""
    renamed = _renamed_roles(facts)
    if not renamed:
        return facts
    actions = tuple(
        replace(planned, returns_as=renamed[planned.ref].name) if planned.ref in renamed else planned
        for planned in facts.plan.actions
    )
    return replace(facts, plan=replace(facts.plan, actions=actions))


def with_new_names(facts: Facts, objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Objects that were before, roles and bindings under the names by which they return: what is found of these is as
    before."""
    names = {planned.ref.identity: planned.returns_as for planned in facts.plan.actions if planned.returns_as}
    found = list(objects)
    for position, obj in enumerate(found if names else ()):
        ref, changed = ObjectRef.of(obj), dict(obj)
        if ref.identity in names:
            changed["metadata"] = {**mapping(obj.get("metadata")), "name": names[ref.identity]}
        if ref.group == RBAC_GROUP and ref.kind in _BINDINGS:
            changed["roleRef"] = _role_under(names, ref, obj)
        found[position] = changed
    return found


def under_new_names(facts: Facts, former: StateFacts | None) -> StateFacts | None:
    """The state before with `with_new_names`; `former` is what other renames made of it, None where there is none."""
    if not any(planned.returns_as for planned in facts.plan.actions):
        return former
    state = former or facts.previous_state()
    return replace(state, objects=tuple(with_new_names(facts, state.objects)))


def _role_under(names: Mapping[ObjectIdentity, str], ref: ObjectRef, binding: JsonObject) -> JsonObject:
    """The role that a binding names, by its new name."""
    role = mapping(binding.get("roleRef"))
    kind, name = str(role.get("kind")), str(role.get("name"))
    place = ref.namespace if kind == "Role" else ""
    return {**role, "name": names.get((RBAC_GROUP, kind, place, name), name)}


def _renamed_roles(facts: Facts) -> dict[ObjectRef, ObjectRef]:
    """Pairs of equal rules and labels, and then of equal subjects and an equal role; and `_moved` ones.

    In no pair are a role that bindings beside the bundle name, as these lose it; a role whose new name some binding
    names already, as that one gains it; and what is not in the cluster as the bundle has it, as somebody loses what was
    added there. Nor is any where nobody could read the bindings of the cluster.
    """
    before = {manifest.ref.identity: manifest.body for manifest in (facts.previous.manifests if facts.previous else ())}
    after = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    leaving = [ref for ref in _planned(facts, Action.DELETE, before) if _is_as_brought(facts, ref, before)]
    known = _known_rbac(facts, before) if leaving else None
    if known is None:
        return {}
    going = {rbac.binding_key_of(ref) for ref in leaving if ref.kind in _BINDINGS}
    pairs: dict[ObjectRef, ObjectRef] = {}
    for kinds in (_ROLES, _BINDINGS):
        names = {one.identity: other.name for one, other in pairs.items()}
        coming: dict[str, list[ObjectRef]] = defaultdict(list)
        for ref in _planned(facts, Action.CREATE, after):
            if ref.kind not in _ROLES or not known.bindings_to(rbac.role_key_of(ref)):
                coming[_what_it_gives(ref, after[ref.identity], {})].append(ref)
        for ref in leaving:
            is_named = ref.kind in _ROLES and not going.issuperset(known.bindings_to(rbac.role_key_of(ref)))
            alike = coming[_what_it_gives(ref, before[ref.identity], names)]
            if ref.kind in kinds and alike and not is_named:
                pairs[ref] = alike.pop(0)
    left = {ref.identity: ref for ref in leaving if ref not in pairs}
    coming_now = {ref.identity: ref for ref in _planned(facts, Action.CREATE, after) if ref not in pairs.values()}
    if not left or not coming_now:
        return pairs
    gone = {ref.identity for ref in _planned(facts, Action.DELETE, before)}
    result = known.changed(gone=gone, others=rbac.RbacObjects.of(after.values()))
    return pairs | _moved(_bound(left, before), _bound(coming_now, after), known, result)


def _moved(
    left: _Bound, coming: _Bound, known: rbac.RbacObjects, result: rbac.RbacObjects
) -> dict[ObjectRef, ObjectRef]:
    """Roles that return with other rules, with the binding of each: where everybody who is bound may do the same by all
    roles together, rights have only moved between these."""
    pairs: dict[ObjectRef, ObjectRef] = {}
    for ref, (role, given) in left.items():
        is_shared = known.bindings_to(rbac.role_key_of(role)) != (rbac.binding_key_of(ref),)
        alike = (one for one, (_, other) in coming.items() if given == other and one not in pairs.values())
        new = next(alike, None)
        if new is None or is_shared or known.bindings_to(rbac.role_key_of(coming[new][0])):
            continue
        bound = rbac.binding_subjects(known.bindings[rbac.binding_key_of(ref)])
        if all(_may_the_same(subject, known, result) for subject in bound):
            pairs |= {ref: new, role: coming[new][0]}
    return pairs


def _bound(refs: Mapping[ObjectIdentity, ObjectRef], bodies: Mapping[ObjectIdentity, JsonObject]) -> _Bound:
    """Of each binding to a role that goes or comes with it: this role, and all that both say but names and rules."""
    found: _Bound = {}
    for ref in refs.values():
        wanted = mapping(bodies[ref.identity].get("roleRef"))
        kind, name = str(wanted.get("kind")), str(wanted.get("name"))
        role = refs.get((RBAC_GROUP, kind, ref.namespace if kind == "Role" else "", name))
        if ref.kind in _BINDINGS and role is not None:
            bare = {**bodies[ref.identity], "roleRef": {}}
            body = bodies[role.identity]
            labels = mapping(mapping(body.get("metadata")).get("labels"))
            if body.get("aggregationRule") or any(_AGGREGATED in str(label) for label in labels):
                continue  # others hold its rules, or it holds those of others
            found[ref] = (role, json.dumps([_what_it_gives(ref, bare, {}), kind, labels], sort_keys=True))
    return found


def _may_the_same(subject: rbac.RbacSubject, before: rbac.RbacObjects, after: rbac.RbacObjects) -> bool:
    try:
        old, new = (rbac.effective_rules(subject.identity, side) for side in (before, after))
        return not old.problems and not new.problems and rbac.diff(old, new).is_empty
    except TooManyRights:
        return False


def _is_as_brought(facts: Facts, ref: ObjectRef, before: Mapping[ObjectIdentity, JsonObject]) -> bool:
    """Whether the object in the cluster gives what the bundle that runs says of it, where it was read."""
    planned = (planned.before for planned in facts.plan.actions if planned.ref == ref and planned.before)
    read = (live for live in facts.live_rbac or () if ObjectRef.of(live).identity == ref.identity)
    wished = _rights_of(before[ref.identity])
    return all(_rights_of(live) == wished for live in (*planned, *read))


def _rights_of(obj: JsonObject) -> tuple[object, ...]:
    """The rules of a role, or the role and the subjects of a binding, without what the API server fills in."""
    role = mapping(obj.get("roleRef"))
    subjects = {
        tuple(str(mapping(subject).get(key) or "") for key in ("kind", "namespace", "name"))
        for subject in maps(obj.get("subjects"))
    }
    return (obj.get("rules") or [], obj.get("aggregationRule"), role.get("kind"), role.get("name"), subjects)


def _planned(facts: Facts, action: Action, bodies: Mapping[ObjectIdentity, JsonObject]) -> list[ObjectRef]:
    planned = (planned for planned in facts.plan.actions if planned.action is action and not planned.problem)
    return [one.ref for one in planned if one.ref.group == RBAC_GROUP and one.ref.identity in bodies]


def _known_rbac(facts: Facts, before: Mapping[ObjectIdentity, JsonObject]) -> rbac.RbacObjects | None:
    """The roles and bindings that are there; None where nobody knows."""
    if facts.is_offline:
        return rbac.RbacObjects.of(before.values())
    try:
        return facts.known_rbac
    except InvalidManifest:
        return None


def _what_it_gives(ref: ObjectRef, obj: JsonObject, names: Mapping[ObjectIdentity, str]) -> str:
    """All that an object says but its name and annotations, by the new names of roles; labels are what others collect
    roles by."""
    labels = mapping(obj.get("metadata")).get("labels") or {}
    told: dict[str, Any] = {key: value for key, value in obj.items() if key not in ("apiVersion", "metadata")}
    if ref.kind in _BINDINGS:
        told["roleRef"] = _role_under(names, ref, obj)
    return json.dumps([ref.kind, ref.namespace, labels, told], sort_keys=True, default=str)


_AUTHORIZATION = "authorization.k8s.io"
_ACCOUNT = GroupKind("", "ServiceAccount")

# Offline nobody tells what the cluster's own roles grant; these three are the same everywhere.
EVERYWHERE: tuple[JsonObject, ...] = (
    {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "cluster-admin"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}],
    },
    {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:auth-delegator"},
        "rules": [
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": [_AUTHORIZATION], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        ],
    },
    {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": "extension-apiserver-authentication-reader", "namespace": "kube-system"},
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": ["extension-apiserver-authentication"],
                "verbs": ["get", "list", "watch"],
            }
        ],
    },
)


@dataclass(frozen=True, slots=True)
class RbacBeforeAfter:
    """`own` names the objects of the bundle, by identity. `touched_roles` and `touched_bindings` are these and the ones
    that it deletes: all others are the same on both sides. Without a cluster only the bundles are known. `accounts` are
    the ServiceAccounts that the bundle makes or runs its pods as, and the one that installs it."""

    before: RbacObjects
    after: RbacObjects
    own: frozenset[ObjectIdentity]
    touched_roles: frozenset[RoleKey]
    touched_bindings: frozenset[BindingKey]
    accounts: frozenset[RbacSubject]
    is_whole: bool


def rbac_before_after_of(facts: Facts) -> RbacBeforeAfter:
    """Before: the cluster as it is, offline the previous bundle. After: the same with the bundle's changes made."""
    return facts.once("rbac before and after", _made)


def _made(facts: Facts) -> RbacBeforeAfter:
    results = [obj for ref, obj in facts.state().named if ref.group == RBAC_GROUP]
    before = facts.known_rbac
    if before is None:
        previous = (obj for ref, obj in facts.previous_state().named if ref.group == RBAC_GROUP)
        before = RbacObjects.of([*EVERYWHERE, *previous])
    if renamed := [planned.ref for planned in facts.plan.actions if planned.returns_as]:
        held = [before.roles[key] for ref in renamed if (key := rbac.role_key_of(ref)) in before.roles]
        for ref in renamed:
            # The binding that it is, or those that name the role that it is.
            bindings = [rbac.binding_key_of(ref)]
            bindings = list(before.bindings_to(rbac.role_key_of(ref))) if ref.kind in _ROLES else bindings
            held += [before.bindings[binding] for binding in bindings if binding in before.bindings]
        others = RbacObjects.of(with_new_names(facts, held))
        before = before.changed(gone={ref.identity for ref in renamed}, others=others)
    gone = [
        planned.ref
        for planned in facts.plan.actions
        if planned.action is Action.DELETE and planned.ref.group == RBAC_GROUP
    ]
    own = [ObjectRef.of(obj) for obj in results]
    after = before.changed(gone={ref.identity for ref in gone}, others=RbacObjects.of(results))
    accounts = {facts.installer.account} if facts.installer is not None else set()
    for state in (facts.previous_state(), facts.state()):
        place = state.install_namespace
        refs = (ref for ref, _ in state.named if ref.group_kind == _ACCOUNT)
        accounts |= {RbacSubject("ServiceAccount", ref.name, ref.namespace or place) for ref in refs}
        pods = pod_specs(state.objects)
        accounts |= {RbacSubject("ServiceAccount", pod.account, pod.ref.namespace or place) for pod in pods}
    return RbacBeforeAfter(
        before,
        after,
        frozenset(ref.identity for ref in own),
        frozenset(rbac.role_key_of(ref) for ref in (*own, *gone) if ref.kind in _ROLES),
        frozenset(rbac.binding_key_of(ref) for ref in (*own, *gone) if ref.kind in _BINDINGS),
        frozenset(accounts),
        facts.live_rbac is not None,
    )
