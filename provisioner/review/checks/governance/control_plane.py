"""Objects that the control plane and all nodes go by, and classes that become the default of the whole cluster.

The objects are a table with the reason for each. A name in it that ends with `*` stands for all that begin so. `why` is
a text in the file of the rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.api_groups import RBAC_GROUP
from provisioner.json_values import mapping, value_at
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, Listing, ReviewRule, what_it_says
from provisioner.review.checks.own.pratique_objects import find_cluster_place
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

CRITICAL, DANGEROUS, NOTABLE = Severity.CRITICAL, Severity.DANGEROUS, Severity.NOTABLE
SYSTEM, PUBLIC, NODES, DEFAULT = "kube-system", "kube-public", "kube-node-lease", "default"
ANYWHERE = "*"
_LEASES = "coordination.k8s.io"
_FAIRNESS = "flowcontrol.apiserver.k8s.io"


@dataclass(frozen=True, slots=True)
class WellKnown:
    """Objects of some names and kinds of one group in one namespace ("" for none), with what they are for."""

    group: str
    kinds: tuple[str, ...]
    namespace: str
    names: tuple[str, ...]
    severity: Severity
    why: str

    def holds(self, ref: ObjectRef) -> bool:
        is_there = self.namespace in (ANYWHERE, ref.namespace) and ref.group == self.group and ref.kind in self.kinds
        starts = tuple(pattern[:-1] for pattern in self.names if pattern.endswith("*"))
        return is_there and (ref.name in self.names or ref.name.startswith(starts))


_ELECTED = ("kube-controller-manager", "kube-scheduler", "cloud-controller-manager")
_ROLES = ("ClusterRole", "ClusterRoleBinding")
_ROLES_OF_KUBERNETES = (
    "system:aggregate-to-*",
    "system:auth-delegator",
    "system:basic-user",
    "system:certificates.k8s.io:*",
    "system:controller:*",
    "system:discovery",
    "system:heapster",
    "system:kube-aggregator",
    "system:kube-controller-manager",
    "system:kube-dns",
    "system:kube-scheduler",
    "system:kubelet-api-admin",
    "system:masters",
    "system:monitoring",
    "system:node",
    "system:node-bootstrapper",
    "system:node-problem-detector",
    "system:node-proxier",
    "system:persistent-volume-provisioner",
    "system:public-info-viewer",
    "system:service-account-issuer-discovery",
    "system:volume-scheduler",
    "kubeadm:*",
)

# The first that holds counts.
WELL_KNOWN: tuple[WellKnown, ...] = (
    WellKnown(
        _LEASES,
        ("Lease", "LeaseCandidate"),
        SYSTEM,
        (*_ELECTED, "apiserver-*", "kube-apiserver-*"),
        CRITICAL,
        "election",
    ),
    WellKnown(_LEASES, ("Lease",), NODES, ("*",), CRITICAL, "heartbeat"),
    WellKnown("", ("ConfigMap", "Endpoints"), SYSTEM, _ELECTED, DANGEROUS, "old-election"),
    WellKnown("", ("ConfigMap",), SYSTEM, ("extension-apiserver-authentication",), CRITICAL, "authentication"),
    WellKnown("", ("ConfigMap",), SYSTEM, ("aws-auth",), CRITICAL, "aws-sign-in"),
    WellKnown("", ("ConfigMap",), PUBLIC, ("cluster-info",), CRITICAL, "joining"),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("kubeadm-config", "kubelet-config", "kubelet-config-*", "kube-proxy"),
        DANGEROUS,
        "node-setup",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("coredns", "coredns-custom", "kube-dns", "node-local-dns"),
        DANGEROUS,
        "dns-settings",
    ),
    WellKnown("", ("ConfigMap",), ANYWHERE, ("kube-root-ca.crt",), DANGEROUS, "root-certificate"),
    WellKnown("", ("Service", "Endpoints"), DEFAULT, ("kubernetes",), CRITICAL, "api-server"),
    WellKnown("discovery.k8s.io", ("EndpointSlice",), DEFAULT, ("kubernetes", "kubernetes-*"), CRITICAL, "api-server"),
    WellKnown("", ("Service", "Endpoints"), SYSTEM, ("kube-dns",), CRITICAL, "dns"),
    WellKnown("networking.k8s.io", ("ServiceCIDR",), "", ("kubernetes",), DANGEROUS, "addresses"),
    WellKnown("", ("Namespace",), "", (SYSTEM,), CRITICAL, "system-namespace"),
    WellKnown("", ("Namespace",), "", ("kube-*", DEFAULT), DANGEROUS, "own-namespace"),
    WellKnown(RBAC_GROUP, _ROLES, "", ("cluster-admin",), CRITICAL, "administrators"),
    WellKnown(RBAC_GROUP, _ROLES, "", _ROLES_OF_KUBERNETES, DANGEROUS, "role-of-kubernetes"),
    WellKnown(RBAC_GROUP, ("ClusterRole",), "", ("admin", "edit", "view"), DANGEROUS, "shared-role"),
    WellKnown(
        RBAC_GROUP,
        ("Role", "RoleBinding"),
        SYSTEM,
        ("extension-apiserver-authentication-reader", "system:*", "kubeadm:*", "kube-proxy"),
        DANGEROUS,
        "role-of-kubernetes",
    ),
    WellKnown(RBAC_GROUP, ("Role", "RoleBinding"), PUBLIC, ("*",), DANGEROUS, "before-sign-in"),
    WellKnown(RBAC_GROUP, _ROLES, "", ("system:*",), NOTABLE, "reserved-name"),
    WellKnown("scheduling.k8s.io", ("PriorityClass",), "", ("system-*",), DANGEROUS, "priority"),
    WellKnown(
        _FAIRNESS,
        ("FlowSchema", "PriorityLevelConfiguration"),
        "",
        (
            "exempt",
            "catch-all",
            "system-*",
            "kube-*",
            "endpoint-controller",
            "global-default",
            "leader-election",
            "node-high",
            "probes",
            "service-accounts",
            "workload-*",
        ),
        DANGEROUS,
        "fairness",
    ),
    WellKnown(
        "",
        ("Pod",),
        SYSTEM,
        ("etcd-*", "kube-apiserver-*", "kube-controller-manager-*", "kube-scheduler-*"),
        DANGEROUS,
        "control-plane-pod",
    ),
    WellKnown(
        "apps",
        ("DaemonSet", "Deployment"),
        SYSTEM,
        ("coredns", "kube-dns", "kube-proxy", "node-local-dns"),
        DANGEROUS,
        "names-and-services",
    ),
)


def find_well_known(ref: ObjectRef) -> WellKnown | None:
    """Return what the table says of an object, None where it is not in it."""
    return next((entry for entry in WELL_KNOWN if entry.holds(ref)), None)


_ACTIONS = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.RERUN, Action.ADOPT, Action.DELETE})
_SLICE = "EndpointSlice"
_OF_SERVICE = "kubernetes.io/service-name"


def compare_well_known(facts: Facts) -> Iterator[Finding]:
    """Find objects that the control plane goes by, which a bundle creates, changes or deletes (SYS-01)."""
    contents = (facts.previous.manifests if facts.previous else ()), facts.content.manifests
    old, new = ({manifest.ref.identity: what_it_says(manifest.body) for manifest in side} for side in contents)
    for planned in facts.plan.actions:
        ref, obj = planned.ref, planned.after or planned.before or {}
        known = find_well_known(ref)
        if known is None and ref.kind == _SLICE:
            # Of a slice with whatever name the Service counts that it belongs to.
            labels = mapping(value_at(obj, "metadata", "labels"))
            service = str(labels.get(_OF_SERVICE) or "")
            known = find_well_known(ObjectRef("", "v1", "Service", ref.namespace, service))
        if known is None or planned.action not in _ACTIONS:
            continue
        # OWN-PRATIQUE-02 says it of what goes, and of what is there for the first time, as it is now.
        is_changed = ref.identity in new and new[ref.identity] != old.get(ref.identity)
        is_said = planned.action is Action.DELETE or is_changed
        if is_said and find_cluster_place(ref, obj, facts.around.own_namespace):
            continue
        rule, action = ReviewRule("SYS-01", Section.OBJECTS, known.severity), str(planned.action)
        yield rule.finding("control-plane", ref, key=action, action=action, why=known.why)


_DEFAULT = ReviewRule("SYS-02", Section.OBJECTS, Severity.DANGEROUS)
_PRIORITY_CLASS = GroupKind("scheduling.k8s.io", "PriorityClass")
_ANNOTATIONS = {
    GroupKind("storage.k8s.io", "StorageClass"): (
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ),
    GroupKind("networking.k8s.io", "IngressClass"): ("ingressclass.kubernetes.io/is-default-class",),
    GroupKind("snapshot.storage.k8s.io", "VolumeSnapshotClass"): (
        "snapshot.storage.kubernetes.io/is-default-class",
        "snapshot.storage.beta.kubernetes.io/is-default-class",
    ),
}
# Only a PriorityClass says it in a field of its own.
_LISTINGS = {
    kind: Listing(kind.group, "v1", kind.kind, metadata_only=kind != _PRIORITY_CLASS)
    for kind in (_PRIORITY_CLASS, *_ANNOTATIONS)
}


def compare_defaults(facts: Facts) -> Iterator[Finding]:
    """Find classes that become the default of the cluster or no longer are: objects without a class get it (SYS-02)."""
    changed = {planned.ref.identity for planned in facts.plan.actions}
    for planned, was, shall in _find_changed_defaults(facts):
        kind = planned.ref.group_kind
        if shall:
            # The defaults of the cluster that this change leaves as they are.
            listed = facts.around.lists.get(_LISTINGS[kind])
            refs = [ObjectRef.of(obj) for obj in (listed.objects if listed else ()) if _find_default_field(kind, obj)]
            instead = sorted(ref for ref in refs if ref.identity not in changed) or None
            params = {"kind": kind.kind, "instead": instead}
            yield _DEFAULT.finding("becomes", planned.ref, where=shall, key=kind.kind, **params)
        else:
            yield _DEFAULT.finding("ends", planned.ref, where=was, key=kind.kind, without=kind.kind)


def _find_changed_defaults(facts: Facts) -> Iterator[tuple[PlannedAction, FieldPath, FieldPath]]:
    """Yield what becomes a default, or is it no longer, with the field that says so before and after."""
    for planned in facts.plan.actions:
        kind, goes = planned.ref.group_kind, planned.action is Action.DELETE
        if planned.action not in _ACTIONS or (planned.after is None and not goes):
            continue
        was, shall = _find_default_field(kind, planned.before), () if goes else _find_default_field(kind, planned.after)
        if bool(was) != bool(shall):
            yield planned, was, shall


def _find_default_field(kind: GroupKind, obj: JsonObject | None) -> FieldPath:
    """Return the field that makes an object the default of its kind; () where none does."""
    obj = obj or {}
    if kind == _PRIORITY_CLASS:
        return ("globalDefault",) if obj.get("globalDefault") is True else ()
    annotations = mapping(value_at(obj, "metadata", "annotations"))
    found = (name for name in _ANNOTATIONS.get(kind, ()) if str(annotations.get(name)) == "true")
    return next((("metadata", "annotations", name) for name in found), ())


def list_defaults(facts: Facts) -> Iterator[Listing]:
    return (_LISTINGS[planned.ref.group_kind] for planned, _, shall in _find_changed_defaults(facts) if shall)


_CLAIMS = (
    *(
        Claim("SYS-02", frozenset({kind}), tuple(f"metadata.annotations.[{name}]" for name in names))
        for kind, names in _ANNOTATIONS.items()
    ),
    Claim("SYS-02", frozenset({_PRIORITY_CLASS}), ("globalDefault",)),
)
DEFAULTS_CHECK = Check("defaults of the cluster", changes=compare_defaults, claims=_CLAIMS, lists=list_defaults)
WELL_KNOWN_CHECK = Check("objects of the control plane", changes=compare_well_known)
