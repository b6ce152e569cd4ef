"""Content that touches Pratique itself, or hands out power over it (S22): said first, never approved by a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from provisioner import rbac
from provisioner.api_groups import ADMISSION_GROUP, OWN_GROUP, RBAC_GROUP
from provisioner.rbac import BUILT_IN_RESOURCES, CONTROL_PLANE, OWN_RESOURCES, PARTS_OF_THE_CLUSTER, RbacSubject
from provisioner.review.base.claims import ANY, Claim
from provisioner.review.base.facts import (
    Check,
    Facts,
    Listing,
    Reads,
    ReviewRule,
    StateFacts,
    items,
    mapping,
    what_it_says,
)
from provisioner.review.checks.own.accounts import of_named_accounts, of_strong_accounts
from provisioner.review.checks.own.admission import NAMESPACES, of_admission, wants_namespaces
from provisioner.review.checks.own.others import of_other_ways
from provisioner.review.checks.own.power import of_power
from provisioner.values import (
    Action,
    Finding,
    GroupKind,
    JsonObject,
    ObjectRef,
    Section,
    Severity,
)

_NAME = "pratique"

_OWN_KIND = ReviewRule("OWN-PRATIQUE-01", Section.CONTENT, Severity.CRITICAL)
_OWN_PLACE = ReviewRule("OWN-PRATIQUE-02", Section.CONTENT, Severity.CRITICAL)
_OWN_ACCOUNT = ReviewRule("OWN-PRATIQUE-04", Section.PERMISSIONS, Severity.CRITICAL)

# What Pratique asks the API server: who somebody is, and what they may do. Whoever stands in between answers for it.
_ASKED = frozenset({OWN_GROUP, "authentication.k8s.io", "authorization.k8s.io"})
_ASKED_RESOURCES = frozenset({"*", *OWN_RESOURCES, "tokenreviews", "subjectaccessreviews"})
_BINDINGS = frozenset({GroupKind(RBAC_GROUP, "RoleBinding"), GroupKind(RBAC_GROUP, "ClusterRoleBinding")})
_CONFIG_MAP = GroupKind("", "ConfigMap")
# What leads to the API server and to the names that everything looks up.
_WAYS_TO = frozenset({("default", "kubernetes"), (CONTROL_PLANE, "kube-dns")})
_SERVICES = frozenset({GroupKind("", "Service"), GroupKind("", "Endpoints")})
_SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
_OF_SERVICE = "kubernetes.io/service-name"
_SIGNING = "certificates.k8s.io"
_NEVER_IN_CONTENT = frozenset({"BundleDeploymentRequest", "BundleDeploymentReview"})


def _standing(state: StateFacts) -> Iterator[Finding]:
    yield from of_named_accounts(state)
    yield from of_admission(state)
    for ref, obj in state.named:
        if ref.group_kind in _BINDINGS:
            yield from _of_account(ref, obj, state.around.own_namespace)


def _carried(facts: Facts) -> Iterator[Finding]:
    """What objects of the bundle are by what they say. One that says something else than before is new: who approved
    the one has not approved the other."""
    before = {one.ref.identity: what_it_says(one.body) for one in (facts.previous.manifests if facts.previous else ())}
    for manifest in facts.content.manifests:
        is_new = before.get(manifest.ref.identity) != what_it_says(manifest.body)
        for one in _of_object(manifest.ref, manifest.body, facts.around.own_namespace):
            yield replace(one, is_new=is_new)


def _of_object(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> Iterator[Finding]:
    if ref.group == OWN_GROUP:
        variant = "never-carried" if ref.kind in _NEVER_IN_CONTENT else "carried"
        yield _OWN_KIND.finding(variant, ref, key=what_it_says(obj))
    elif variant := _own_place(ref, obj, own_namespace):
        group = mapping(obj.get("spec")).get("group") if variant == "api-service" else None
        yield _OWN_PLACE.finding(variant, ref, key=what_it_says(obj), group=group or None)
    yield from of_other_ways(ref, obj)


def _own_place(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> str:
    """What an object has to do with Pratique; "" where it has nothing to do with it."""
    spec = mapping(obj.get("spec"))
    if part := part_of_cluster(ref, obj, own_namespace):
        return part
    if ref.namespace == own_namespace:
        return "in-namespace"
    if (
        ref.group_kind == GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
        and spec.get("group") == OWN_GROUP
    ):
        return "definition"
    if ref.group == "apiregistration.k8s.io" and _serves_ours(spec):
        return "api-service"
    if ref.group in {ADMISSION_GROUP, RBAC_GROUP} and (
        ref.name == _NAME or ref.name.startswith((f"{_NAME}-", f"{_NAME}."))
    ):
        return "name"
    if ref.group == ADMISSION_GROUP and _stands_between(ref, obj):
        return "stands-between"
    return ""


def part_of_cluster(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> str:
    """What a bundle changes of the ground that Pratique stands on; "" where nothing."""
    if ref.group_kind == GroupKind("", "Namespace") and ref.name in (own_namespace, CONTROL_PLANE):
        return "own-namespace" if ref.name == own_namespace else "control-plane"
    if ref.group_kind == _CONFIG_MAP and ref.namespace == CONTROL_PLANE and ref.name in PARTS_OF_THE_CLUSTER:
        return "cluster-setting"
    if _leads_to(ref, obj) in _WAYS_TO:
        return "way-to-cluster"
    return ""


def _leads_to(ref: ObjectRef, obj: JsonObject) -> tuple[str, str]:
    """(namespace, name) of the Service that the object is or belongs to; names are "" where it is about none."""
    if ref.group_kind in _SERVICES:
        return ref.namespace, ref.name
    labels = mapping(mapping(obj.get("metadata")).get("labels")) if ref.group_kind == _SLICE else {}
    return ref.namespace, str(labels.get(_OF_SERVICE) or "")


def _serves_ours(spec: Mapping[str, object]) -> bool:
    """Whether it is about our API group, or takes a group of Kubernetes away from the API server."""
    group = str(spec.get("group"))
    return group == OWN_GROUP or (group in BUILT_IN_RESOURCES and bool(spec.get("service")))


def _stands_between(ref: ObjectRef, obj: JsonObject) -> bool:
    """Whether an admission object sees or changes what Pratique asks, or changes who may do what or is certified."""
    groups = _ASKED | {RBAC_GROUP, _SIGNING} if ref.kind.startswith("Mutating") else _ASKED
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
            yield _OWN_ACCOUNT.finding("binds", ref, where=("subjects", index), key=str(subject), account=subject)


def _is_own_account(subject: RbacSubject, own_namespace: str) -> bool:
    if subject.kind == "ServiceAccount":
        return subject.namespace == own_namespace
    if subject.kind == "Group":
        return subject.name == f"system:serviceaccounts:{own_namespace}"
    return subject.name.startswith(f"system:serviceaccount:{own_namespace}:")


def _changes(facts: Facts) -> Iterator[Finding]:
    """What the bundle takes away from Pratique, and the power over it that the bundle hands out."""
    for planned in facts.plan.actions:
        place = facts.around.own_namespace
        is_own = planned.ref.group == OWN_GROUP or bool(_own_place(planned.ref, planned.before or {}, place))
        if planned.action is Action.DELETE and is_own:
            yield _OWN_PLACE.finding("deleted", planned.ref, key="delete")
    yield from _carried(facts)
    yield from of_power(facts)
    yield from of_strong_accounts(facts)


def _lists(facts: Facts) -> tuple[Listing, ...]:
    return (NAMESPACES,) if wants_namespaces(facts.content) else ()


# Whatever an object of Pratique's own API holds is critical.
_CLAIMS = (Claim("OWN-PRATIQUE-01", frozenset({GroupKind(OWN_GROUP, ANY)}), (ANY,)),)

CHECK = Check("own", claims=_CLAIMS, changes=_changes, standing=_standing, lists=_lists, reads=frozenset({Reads.ROLES}))
