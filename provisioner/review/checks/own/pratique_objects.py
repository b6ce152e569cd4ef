"""Content that touches Pratique itself, or makes somebody else act for the bundle with power of their own (S22): said
first, never approved by a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import ADMISSION_GROUP, OWN_GROUP, RBAC_GROUP
from provisioner.json_values import items, mapping, maps, value_at
from provisioner.rbac import (
    BUILT_IN_RESOURCES,
    CONTROL_PLANE,
    IDENTITIES,
    OTHER_DEPLOYERS,
    OWN_RESOURCES,
    PARTS_OF_THE_CLUSTER,
    plural_of,
)
from provisioner.review.base.claims import ANY, Claim
from provisioner.review.base.facts import SECRET, Check, Facts, FieldPath, Listing, ReviewRule, StateFacts, what_it_says
from provisioner.review.checks.network.webhooks import (
    KINDS,
    NAME_LABEL,
    Body,
    find_namespace_labels,
    find_webhooks,
    has_resource,
    sees_namespace,
    sees_writes,
)
from provisioner.review.checks.own.power import advice_of
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_OWN_KIND = ReviewRule("OWN-PRATIQUE-01", Section.CONTENT, Severity.CRITICAL)
_OWN_PLACE = ReviewRule("OWN-PRATIQUE-02", Section.CONTENT, Severity.CRITICAL)
_OWN_ACCOUNT = ReviewRule("OWN-PRATIQUE-04", Section.PERMISSIONS, Severity.CRITICAL)
_REACHES = ReviewRule("OWN-PRATIQUE-06", Section.WEBHOOKS, Severity.CRITICAL)
_DEPLOYS = ReviewRule("OWN-PRATIQUE-07", Section.CONTENT, Severity.CRITICAL)
_CERTIFICATE = ReviewRule("OWN-PRATIQUE-08", Section.PERMISSIONS, Severity.CRITICAL)

_NAME = "pratique"
# What Pratique asks the API server: who somebody is, and what they may do. Whoever stands in between answers for it.
_ASKED = frozenset({OWN_GROUP, "authentication.k8s.io", "authorization.k8s.io"})
_ASKED_RESOURCES = frozenset({"*", *OWN_RESOURCES, "tokenreviews", "subjectaccessreviews"})
_BINDINGS = frozenset({GroupKind(RBAC_GROUP, "RoleBinding"), GroupKind(RBAC_GROUP, "ClusterRoleBinding")})
_CONFIG_MAP, _NAMESPACE = GroupKind("", "ConfigMap"), GroupKind("", "Namespace")
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
# What leads to the API server and to the names that everything looks up.
_WAYS_TO = frozenset({("default", "kubernetes"), (CONTROL_PLANE, "kube-dns")})
_SERVICES = frozenset({GroupKind("", "Service"), GroupKind("", "Endpoints")})
_SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
_OF_SERVICE = "kubernetes.io/service-name"
_CERTIFICATES = "certificates.k8s.io"
_NEVER_IN_CONTENT = frozenset({"BundleDeploymentRequest", "BundleDeploymentReview"})

_KYVERNO = "kyverno.io"
_KYVERNO_POLICIES = frozenset({"Policy", "ClusterPolicy"})
_SIGNING = frozenset(
    {GroupKind(_CERTIFICATES, "CertificateSigningRequest"), GroupKind(_CERTIFICATES, "PodCertificateRequest")}
)
_JOINS = "bootstrap.kubernetes.io/token"
_SIGNERS_OF_KUBERNETES = "kubernetes.io/"

_POLICY = GroupKind(ADMISSION_GROUP, "MutatingAdmissionPolicy")
NAMESPACES = Listing("", "v1", "Namespace", metadata_only=True)
# Who changes these decides what runs there, with what, and whom it meets. Who only sees Secrets has their values.
_ALTERED: Mapping[str, tuple[str, ...]] = {
    "": (
        "pods",
        "pods/ephemeralcontainers",
        "podtemplates",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "serviceaccounts",
        "persistentvolumeclaims",
        "services",
        "endpoints",
    ),
    "apps": ("deployments", "daemonsets", "statefulsets", "replicasets", "controllerrevisions"),
    "batch": ("jobs", "cronjobs"),
    "discovery.k8s.io": ("endpointslices",),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
}
_TRAFFIC = frozenset({"services", "endpoints", "endpointslices", "ingresses", "networkpolicies"})
_SEEN: Mapping[str, tuple[str, ...]] = {"": ("secrets",)}


def compare_pratique_objects(facts: Facts) -> Iterator[Finding]:
    """Find what the bundle takes away from Pratique, and what objects of the bundle are by what they say.

    One that says something else than before is new: who approved the one has not approved the other.
    """
    place = facts.around.own_namespace
    for planned in facts.plan.actions:
        is_own = planned.ref.group == OWN_GROUP or bool(_find_own_place(planned.ref, planned.before or {}, place))
        if planned.action is Action.DELETE and is_own:
            yield _OWN_PLACE.finding("deleted", planned.ref, key="delete")
    previous = facts.previous.manifests if facts.previous else ()
    before = {manifest.ref.identity: what_it_says(manifest.body) for manifest in previous}
    for manifest in facts.content.manifests:
        is_new = before.get(manifest.ref.identity) != what_it_says(manifest.body)
        for found in _judge_carried(manifest.ref, manifest.body, place):
            yield replace(found, is_new=is_new)


def _judge_carried(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> Iterator[Finding]:
    """Judge one object: what it has to do with Pratique, who acts on it, and whose identity it gives."""
    key, spec = what_it_says(obj), mapping(obj.get("spec"))
    if ref.group == OWN_GROUP:
        yield _OWN_KIND.finding("never-carried" if ref.kind in _NEVER_IN_CONTENT else "carried", ref, key=key)
    elif variant := _find_own_place(ref, obj, own_namespace):
        group = spec.get("group") if variant == "api-service" else None
        yield _OWN_PLACE.finding(variant, ref, key=key, group=group or None)
    if any(_is_one_of(ref, deployer.group, deployer.resources) for deployer in OTHER_DEPLOYERS):
        # Of Kyverno's policies only those that change or make objects.
        is_policy = ref.group == _KYVERNO and ref.kind in _KYVERNO_POLICIES
        if not is_policy or any(rule.get("mutate") or rule.get("generate") for rule in maps(spec.get("rules"))):
            yield _DEPLOYS.finding("deploys", ref, key=key, group=ref.group, advice=advice_of(_DEPLOYS))
    signer = str(spec.get("signerName") or "") if ref.group_kind in _SIGNING else ""
    if signer.startswith(_SIGNERS_OF_KUBERNETES):
        yield _CERTIFICATE.finding("signed", ref, where=("spec", "signerName"), key=key, signer=signer)
    if ref.group_kind == SECRET and ref.namespace == CONTROL_PLANE and obj.get("type") == _JOINS:
        yield _CERTIFICATE.finding("joins", ref, key=key, group=ref.group)
    elif any(_is_one_of(ref, identity.group, identity.resources) for identity in IDENTITIES):
        yield _CERTIFICATE.finding("identity", ref, key=key, group=ref.group)


def _is_one_of(ref: ObjectRef, group: str, resources: tuple[str, ...]) -> bool:
    """Whether the object is one of these resources; some are named as their kind is."""
    return ref.group == group and bool({plural_of(ref.kind), ref.kind.lower()} & set(resources))


def _find_own_place(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> str:
    """Return what an object has to do with Pratique; "" where it has nothing to do with it."""
    group = str(value_at(obj, "spec", "group"))
    if part := find_cluster_place(ref, obj, own_namespace):
        return part
    if ref.namespace == own_namespace:
        return "in-namespace"
    if ref.group_kind == _CRD and group == OWN_GROUP:
        return "definition"
    if ref.group == "apiregistration.k8s.io":
        # It is about our API group, or takes a group of Kubernetes away from the API server.
        is_served = group in BUILT_IN_RESOURCES and bool(value_at(obj, "spec", "service"))
        if group == OWN_GROUP or is_served:
            return "api-service"
    is_named_so = ref.name == _NAME or ref.name.startswith((f"{_NAME}-", f"{_NAME}."))
    if ref.group in {ADMISSION_GROUP, RBAC_GROUP} and is_named_so:
        return "name"
    # An admission object that sees or changes what Pratique asks, or changes who may do what or is certified.
    groups = _ASKED | {RBAC_GROUP, _CERTIFICATES} if ref.kind.startswith("Mutating") else _ASKED
    return "stands-between" if ref.group == ADMISSION_GROUP and _has_rule_about(obj, groups) else ""


def _has_rule_about(value: object, wanted: frozenset[str]) -> bool:
    """Whether a rule in it names one of these groups, or all groups and a resource that is asked."""
    if isinstance(value, list):
        return any(_has_rule_about(entry, wanted) for entry in value)
    if not isinstance(value, dict):
        return False
    groups, resources = items(value.get("apiGroups")), items(value.get("resources"))
    if wanted.intersection(map(str, groups)):
        return True
    if "*" in groups and any(str(resource).partition("/")[0] in _ASKED_RESOURCES for resource in resources):
        return True
    return any(_has_rule_about(entry, wanted) for entry in value.values())


def find_cluster_place(ref: ObjectRef, obj: JsonObject, own_namespace: str) -> str:
    """Return what a bundle changes of the ground that Pratique stands on; "" where nothing."""
    if ref.group_kind == _NAMESPACE and ref.name in (own_namespace, CONTROL_PLANE):
        return "own-namespace" if ref.name == own_namespace else "control-plane"
    if ref.group_kind == _CONFIG_MAP and ref.namespace == CONTROL_PLANE and ref.name in PARTS_OF_THE_CLUSTER:
        return "cluster-setting"
    # The Service that the object is or belongs to.
    labels = mapping(value_at(obj, "metadata", "labels")) if ref.group_kind == _SLICE else {}
    service = ref.name if ref.group_kind in _SERVICES else str(labels.get(_OF_SERVICE) or "")
    return "way-to-cluster" if (ref.namespace, service) in _WAYS_TO else ""


def judge_pratique_objects(state: StateFacts) -> Iterator[Finding]:
    """Find bindings that name an account of ours, by whatever kind of subject, and admission that reaches in."""
    own = state.around.own_namespace
    yield from _judge_admission(state)
    names = {"Group": f"system:serviceaccounts:{own}", "User": f"system:serviceaccount:{own}:"}
    for ref, obj in state.named:
        for index, subject in enumerate(rbac.binding_subjects(obj)) if ref.group_kind in _BINDINGS else ():
            if subject.kind == "ServiceAccount":
                is_own = subject.namespace == own
            elif subject.kind == "Group":
                is_own = subject.name == names["Group"]
            else:
                is_own = subject.name.startswith(names["User"])
            if is_own:
                yield _OWN_ACCOUNT.finding("binds", ref, where=("subjects", index), key=str(subject), account=subject)


@dataclass(frozen=True, slots=True)
class _Admission:
    """One webhook, or a policy without such a name; `limits` holds its rules and its namespaceSelector."""

    ref: ObjectRef
    path: FieldPath
    webhook: str | None
    limits: Body
    rules: list[Body]
    is_mutating: bool


def _judge_admission(state: StateFacts) -> Iterator[Finding]:
    """Find webhooks and policies that change what runs in the namespaces of Pratique and of the control plane, or see
    the Secrets there: whoever runs them runs as them."""
    found = []
    for webhook in find_webhooks(state.objects):
        ref, path, body = webhook.ref, webhook.path, webhook.body
        found.append(_Admission(ref, path, webhook.name, body, webhook.rules(), webhook.is_mutating))
    for ref, obj in state.named:
        if ref.group_kind == _POLICY:
            limits = mapping(value_at(obj, "spec", "matchConstraints"))
            rules = maps(limits.get("resourceRules"))
            found.append(_Admission(ref, ("spec", "matchConstraints"), None, limits, rules, is_mutating=True))
    for admission in found:
        reached = [
            place
            for place in sorted({state.around.own_namespace, CONTROL_PLANE})
            if _lets_in(admission.limits, place, state)
        ]
        resources = _find_reached(admission)
        if reached and resources:
            changes = "leads-elsewhere" if set(resources) <= _TRAFFIC else "runs"
            yield _REACHES.finding(
                changes if admission.is_mutating else "reads-secrets",
                admission.ref,
                where=admission.path,
                key=[*reached, *resources],
                webhook=admission.webhook,
                namespaces=reached,
                resources=resources,
                advice=advice_of(_REACHES),
            )


def _find_reached(admission: _Admission) -> list[str]:
    """Return the resources of the table whose writes it is asked about.

    Conditions and objectSelectors are not counted on.
    """
    table = _ALTERED if admission.is_mutating else _SEEN
    found: set[str] = set()
    for rule in admission.rules:
        if not sees_writes(rule) or str(rule.get("scope") or "*") == "Cluster":
            continue
        groups, wide = set(map(str, items(rule.get("apiGroups")))), set(map(str, items(rule.get("resources"))))
        for group, names in table.items():
            if group in groups or "*" in groups:
                found |= {name for name in names if any(has_resource(resource, name) for resource in wide)}
    return sorted(found)


def _lets_in(limits: Body, place: str, state: StateFacts) -> bool:
    """Whether its namespaceSelector lets in objects of `place`, by the labels that this will have.

    Where a cluster is there and did not say which it has, they are what they could be: only its name is known.
    """
    known = find_namespace_labels(state, place)
    if state.is_offline:
        return sees_namespace(limits, known)
    read = state.around.lists.get(NAMESPACES)
    metadata = (mapping(obj.get("metadata")) for obj in (read.objects if read else ()))
    live = [mapping(found.get("labels")) for found in metadata if found.get("name") == place]
    if live or (read and read.is_whole):
        return sees_namespace(limits, {**(live[0] if live else {}), **known})
    selector = mapping(limits.get("namespaceSelector"))
    exact = {key: value for key, value in mapping(selector.get("matchLabels")).items() if key == NAME_LABEL}
    terms = [term for term in maps(selector.get("matchExpressions")) if term.get("key") == NAME_LABEL]
    by_name: dict[str, Any] = {"namespaceSelector": {"matchLabels": exact, "matchExpressions": terms}}
    return sees_namespace(by_name, {NAME_LABEL: place})


def list_namespaces(facts: Facts) -> tuple[Listing, ...]:
    """List namespaces for their labels, where the bundle has admission that may reach into them."""
    kinds = {manifest.ref.group_kind for manifest in facts.content.manifests}
    return (NAMESPACES,) if kinds & {*KINDS, _POLICY} else ()


# Whatever an object of Pratique's own API holds is critical.
_CLAIMS = (Claim("OWN-PRATIQUE-01", frozenset({GroupKind(OWN_GROUP, ANY)}), (ANY,)),)

CHECK = Check(
    "own", claims=_CLAIMS, changes=compare_pratique_objects, standing=judge_pratique_objects, lists=list_namespaces
)
