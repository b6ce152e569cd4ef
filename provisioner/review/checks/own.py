"""Content that touches Pratique itself, or hands out the power to (S22): said first, and never approved by a policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner import rbac
from provisioner.errors import InvalidManifest
from provisioner.rbac import PolicyRule
from provisioner.review.facts import Check, Facts, Rule, State, mapping, maps, said
from provisioner.values import (
    AccessRequest,
    Action,
    Finding,
    GroupKind,
    JsonObject,
    ObjectRef,
    PlannedAction,
    Section,
    Severity,
)

GROUP = "core.rukpak.io"
_NAME = "pratique"
_EVERYTHING = "cluster-admin"

_OWN_KIND = Rule("OWN-PRATIQUE-01", Section.CONTENT, Severity.CRITICAL)
_OWN_PLACE = Rule("OWN-PRATIQUE-02", Section.CONTENT, Severity.CRITICAL)
_OWN_RIGHT = Rule("OWN-PRATIQUE-03", Section.PERMISSIONS, Severity.CRITICAL)
_OWN_ACCOUNT = Rule("OWN-PRATIQUE-04", Section.PERMISSIONS, Severity.CRITICAL)

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_ROLES = frozenset({GroupKind(_RBAC, "Role"), GroupKind(_RBAC, "ClusterRole")})
_BINDINGS = frozenset({GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding")})
_NEVER_IN_CONTENT = frozenset({"BundleDeploymentRequest", "BundleDeploymentReview"})
_DECISIONS = (
    AccessRequest("approve", GROUP, "bundledeployments"),
    AccessRequest("override", GROUP, "bundledeployments"),
    AccessRequest("break-glass", GROUP, "bundledeployments"),
    AccessRequest("decide", GROUP, "bundledeploymentrequests"),
    AccessRequest("submit-review-for", GROUP, "bundledeploymentrequests"),
    AccessRequest("create", GROUP, "bundledeploymentreviews"),
    AccessRequest("impersonate", "", "users"),
    AccessRequest("impersonate", "", "groups"),
    AccessRequest("impersonate", "", "serviceaccounts"),
    AccessRequest("escalate", _RBAC, "clusterroles"),
    AccessRequest("escalate", _RBAC, "roles"),
    AccessRequest("bind", _RBAC, "clusterroles"),
    AccessRequest("bind", _RBAC, "roles"),
)


def _standing(state: State) -> Iterator[Finding]:
    for ref, obj in state.named:
        if ref.group == GROUP:
            yield _of_own_kind(ref)
        elif _is_own_place(ref, obj, state.around.own_namespace):
            yield _OWN_PLACE.at(ref, f"{said(ref)} is or concerns a part of Pratique itself, which guards this cluster")
        if ref.group_kind in _ROLES:
            yield from _of_role(ref, obj)
        if ref.group_kind in _BINDINGS:
            yield from _of_binding(ref, obj, state.around.own_namespace)


def _of_own_kind(ref: ObjectRef) -> Finding:
    if ref.kind in _NEVER_IN_CONTENT:
        return _OWN_KIND.at(ref, f"The bundle carries {said(ref)}: requests and reviews are never part of a bundle")
    return _OWN_KIND.at(
        ref, f"The bundle carries {said(ref)}, so approving it decides what else may enter this cluster"
    )


def _is_own_place(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> bool:
    """Whether an object lies in our namespace, or governs our objects."""
    if ref.namespace == own_namespace or (ref.group_kind == GroupKind("", "Namespace") and ref.name == own_namespace):
        return True
    if ref.group_kind == GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"):
        return mapping(obj.get("spec")).get("group") == GROUP
    if ref.group == "apiregistration.k8s.io":
        return mapping(obj.get("spec")).get("group") == GROUP
    is_named_so = ref.name == _NAME or ref.name.startswith((f"{_NAME}-", f"{_NAME}."))
    return (is_named_so and ref.group in {_ADMISSION, _RBAC}) or (ref.group == _ADMISSION and _names_our_group(obj))


def _names_our_group(value: object) -> bool:
    """Whether an admission object names our group, or all groups, in its rules."""
    if isinstance(value, list):
        return any(_names_our_group(one) for one in value)
    if not isinstance(value, dict):
        return False
    groups = value.get("apiGroups")
    if isinstance(groups, list) and GROUP in groups:
        return True
    return any(_names_our_group(one) for one in value.values())


def _of_role(ref: ObjectRef, role: JsonObject) -> Iterator[Finding]:
    """A role that holds, by name or by `*`, a right by which requests are decided."""
    if rbac.is_aggregated(role):
        yield from _of_aggregation(ref, role)
        return
    try:
        rules = rbac.written_rules(role)
    except InvalidManifest:
        return  # what cannot be read is said by the check of permissions
    granted = [one for one in _DECISIONS if _grants(rules, one)]
    if granted:
        verbs = sorted({one.verb for one in granted})
        message = f"{said(ref)} grants {', '.join(verbs)}: whoever is bound to it can get round approvals"
        evidence = {"grants": [str(one) for one in granted]}
        yield _OWN_RIGHT.at(ref, message, path=("rules",), evidence=evidence, key=evidence)


def _grants(rules: list[PolicyRule], request: AccessRequest) -> bool:
    """Whether it is granted; of our own kinds a grant for one name is enough."""
    if rbac.allows(rules, request) or request.group != GROUP:
        return rbac.allows(rules, request)
    unnamed = [PolicyRule(one.verbs, one.api_groups, one.resources) for one in rules if one.resource_names]
    return rbac.allows(unnamed, request)


def _of_aggregation(ref: ObjectRef, role: JsonObject) -> Iterator[Finding]:
    selectors = maps(mapping(role.get("aggregationRule")).get("clusterRoleSelectors"))
    is_open = any(not mapping(one.get("matchLabels")) and not maps(one.get("matchExpressions")) for one in selectors)
    if is_open:
        message = f"{said(ref)} collects the rights of every ClusterRole, those over Pratique included"
        yield _OWN_RIGHT.at(ref, message, path=("aggregationRule",), key="every ClusterRole")


def _of_binding(ref: ObjectRef, binding: JsonObject, own_namespace: str) -> Iterator[Finding]:
    role = mapping(binding.get("roleRef"))
    name = str(role.get("name") or "")
    if role.get("kind") == "ClusterRole" and (name == _EVERYTHING or name.startswith(_NAME)):
        message = f"{said(ref)} binds the ClusterRole {name}: whoever it names can get round approvals"
        yield _OWN_RIGHT.at(ref, message, path=("roleRef",), evidence={"role": name}, key=name)
    for index, subject in enumerate(rbac.binding_subjects(binding)):
        if subject.kind == "ServiceAccount" and subject.namespace == own_namespace:
            message = f"{said(ref)} gives rights to {subject}, an account of Pratique"
            yield _OWN_ACCOUNT.at(ref, message, path=("subjects", index), key=str(subject))


def _changes(facts: Facts) -> Iterator[Finding]:
    """What the bundle takes away from Pratique, and the roles of others that it hands out."""
    for planned in facts.plan.actions:
        place = facts.around.own_namespace
        is_own = planned.ref.group == GROUP or _is_own_place(planned.ref, planned.before or {}, place)
        if planned.action is Action.DELETE and is_own:
            yield _OWN_PLACE.at(planned.ref, f"Deletes {said(planned.ref)}, a part of Pratique itself", key="delete")
    known = rbac.RbacObjects.of([*(facts.live_rbac or ()), *facts.state().objects])
    before = set(_handed_out(facts.previous_state(), known))
    for binding, role, right in _handed_out(facts.state(), known):
        message = f"{said(binding)} binds {role}, which grants {right}: whoever it names can get round approvals"
        found = _OWN_RIGHT.at(binding, message, path=("roleRef",), evidence={"role": str(role)}, key=str(role))
        yield replace(found, is_new=(binding, role, right) not in before)


def _handed_out(state: State, known: rbac.RbacObjects) -> Iterator[tuple[ObjectRef, ObjectRef, str]]:
    """(binding, role, right) of bindings whose role is not the bundle's own and holds a right over decisions."""
    own = {ref.identity for ref, _ in state.named}
    for ref, obj in state.named:
        role = known.role_of(obj) if ref.group_kind in _BINDINGS else None
        if role is None or ObjectRef.of(role).identity in own or ObjectRef.of(role).name == _EVERYTHING:
            continue
        try:
            rules = rbac.role_rules(known, role)
        except InvalidManifest:
            continue
        granted = [one for one in _DECISIONS if one.resource != "serviceaccounts" and _grants(rules, one)]
        if granted:
            yield ref, ObjectRef.of(role), str(granted[0])


def _claims(planned: PlannedAction) -> bool:
    return planned.ref.group == GROUP


CHECK = Check("own", changes=_changes, standing=_standing, claims=_claims)
