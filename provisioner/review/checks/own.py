"""Content that touches Pratique itself, or hands out power over it (S22): said first, never approved by a policy."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner import rbac
from provisioner.rbac import CONTROL_PLANE, OWN_RESOURCES, Subject
from provisioner.review.facts import SECRET, Check, Facts, Rule, State, items, mapping, said
from provisioner.review.pods_of import pod_specs
from provisioner.review.power import of_power
from provisioner.values import (
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

_OWN_KIND = Rule("OWN-PRATIQUE-01", Section.CONTENT, Severity.CRITICAL)
_OWN_PLACE = Rule("OWN-PRATIQUE-02", Section.CONTENT, Severity.CRITICAL)
_OWN_ACCOUNT = Rule("OWN-PRATIQUE-04", Section.PERMISSIONS, Severity.CRITICAL)
_AS_INSTALLER = Rule("OWN-PRATIQUE-05", Section.PERMISSIONS, Severity.CRITICAL)
_TOKEN_SECRET, _TOKEN_OF = "kubernetes.io/service-account-token", "kubernetes.io/service-account.name"

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
# What Pratique asks the API server: who somebody is, and what they may do. Whoever stands in between answers for it.
_ASKED = frozenset({GROUP, "authentication.k8s.io", "authorization.k8s.io"})
_ASKED_RESOURCES = frozenset({"*", *OWN_RESOURCES, "tokenreviews", "subjectaccessreviews"})
_ACCOUNT = GroupKind("", "ServiceAccount")
_BINDINGS = frozenset({GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding")})
_NEVER_IN_CONTENT = frozenset({"BundleDeploymentRequest", "BundleDeploymentReview"})


def _standing(state: State) -> Iterator[Finding]:
    yield from _of_installers(state)
    for ref, obj in state.named:
        if ref.group == GROUP:
            yield _of_own_kind(ref)
        elif _is_own_place(ref, obj, state.around.own_namespace):
            yield _OWN_PLACE.at(ref, f"{said(ref)} is or concerns a part of Pratique itself, which guards this cluster")
        if ref.group_kind in _BINDINGS:
            yield from _of_account(ref, obj, state.around.own_namespace)


def _of_installers(state: State) -> Iterator[Finding]:
    """Pods that run as an account that can get round approvals, and Secrets that are filled with its token."""
    for pod in pod_specs(state.objects):
        name = str(pod.body.get("serviceAccountName") or pod.body.get("serviceAccount") or "default")
        namespace = pod.ref.namespace or state.install_namespace
        if words := _why_strong(state, namespace, name):
            message = f"{said(pod.ref)} runs as {namespace}/{name}, {words}"
            yield _AS_INSTALLER.at(pod.ref, message, path=pod.path, key=[namespace, name])
    for ref, obj in state.named:
        name = str(mapping(mapping(obj.get("metadata")).get("annotations")).get(_TOKEN_OF) or "")
        is_token = ref.group_kind == SECRET and obj.get("type") == _TOKEN_SECRET
        if is_token and (words := _why_strong(state, ref.namespace, name)):
            message = f"{said(ref)} holds a token of {ref.namespace}/{name}, {words}"
            yield _AS_INSTALLER.at(ref, message, path=("type",), key=[ref.namespace, name])


def _why_strong(state: State, namespace: str, name: str) -> str:
    """Why an account can get round approvals, in words; "" where nothing says that it can."""
    installers = state.around.installers | {(state.install_namespace, state.service_account)}
    if (namespace, name) in installers:
        return "an account that Pratique applies bundles with"
    own = {(ref.namespace, ref.name) for ref, _ in state.named if ref.group_kind == _ACCOUNT}
    if namespace == CONTROL_PLANE and name != "default" and (namespace, name) not in own:
        return "an account of the control plane that is not the bundle's own"
    return ""


def _of_own_kind(ref: ObjectRef) -> Finding:
    if ref.kind in _NEVER_IN_CONTENT:
        return _OWN_KIND.at(ref, f"The bundle carries {said(ref)}: requests and reviews are never part of a bundle")
    return _OWN_KIND.at(
        ref, f"The bundle carries {said(ref)}, so approving it decides what else may enter this cluster"
    )


def _is_own_place(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> bool:
    """Whether an object lies in our namespace, or governs our objects."""
    if ref.group_kind == GroupKind("", "Namespace"):
        return ref.name in (own_namespace, CONTROL_PLANE)
    if ref.namespace == own_namespace:
        return True
    if ref.group_kind == GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"):
        return mapping(obj.get("spec")).get("group") == GROUP
    if ref.group == "apiregistration.k8s.io":
        return mapping(obj.get("spec")).get("group") in _ASKED | {_RBAC, _ADMISSION}
    is_named_so = ref.name == _NAME or ref.name.startswith((f"{_NAME}-", f"{_NAME}."))
    return (is_named_so and ref.group in {_ADMISSION, _RBAC}) or (ref.group == _ADMISSION and _stands_between(ref, obj))


def _stands_between(ref: ObjectRef, obj: JsonObject) -> bool:
    """Whether an admission object sees or changes what Pratique asks, or changes who may do what."""
    groups = _ASKED | {_RBAC} if ref.kind.startswith("Mutating") else _ASKED
    return _matches(obj, groups)


def _matches(value: object, wanted: frozenset[str]) -> bool:
    """Whether a rule in it names one of these groups, or all groups and a resource that is asked."""
    if isinstance(value, list):
        return any(_matches(one, wanted) for one in value)
    if not isinstance(value, dict):
        return False
    groups = items(value.get("apiGroups"))
    if wanted.intersection(map(str, groups)):
        return True
    if "*" in groups and any(_is_asked(one) for one in items(value.get("resources"))):
        return True
    return any(_matches(one, wanted) for one in value.values())


def _is_asked(resource: object) -> bool:
    return str(resource).partition("/")[0] in _ASKED_RESOURCES


def _of_account(ref: ObjectRef, binding: JsonObject, own_namespace: str) -> Iterator[Finding]:
    """Bindings that name an account of ours, by whatever kind of subject."""
    for index, subject in enumerate(rbac.binding_subjects(binding)):
        if _is_own_account(subject, own_namespace):
            message = f"{said(ref)} gives rights to {subject}, an account of Pratique"
            yield _OWN_ACCOUNT.at(ref, message, path=("subjects", index), key=str(subject))


def _is_own_account(subject: Subject, own_namespace: str) -> bool:
    if subject.kind == "ServiceAccount":
        return subject.namespace == own_namespace
    if subject.kind == "Group":
        return subject.name == f"system:serviceaccounts:{own_namespace}"
    return subject.name.startswith(f"system:serviceaccount:{own_namespace}:")


def _changes(facts: Facts) -> Iterator[Finding]:
    """What the bundle takes away from Pratique, and the power over it that the bundle hands out."""
    for planned in facts.plan.actions:
        place = facts.around.own_namespace
        is_own = planned.ref.group == GROUP or _is_own_place(planned.ref, planned.before or {}, place)
        if planned.action is Action.DELETE and is_own:
            yield _OWN_PLACE.at(planned.ref, f"Deletes {said(planned.ref)}, a part of Pratique itself", key="delete")
    yield from of_power(facts)


def _claims(planned: PlannedAction) -> bool:
    return planned.ref.group == GROUP


CHECK = Check("own", changes=_changes, standing=_standing, claims=_claims)
