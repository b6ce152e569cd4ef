"""Objects that the control plane and all nodes go by, as data with the reason for each.

A name that ends with `*` stands for all that begin so. `why` follows the name of the object in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.api_groups import RBAC_GROUP
from provisioner.values import ObjectRef, Severity

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
        return is_there and any(_fits(one, ref.name) for one in self.names)


def _fits(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


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
        "by which the parts of the control plane agree which of them works: who holds it stops the others",
    ),
    WellKnown(
        _LEASES,
        ("Lease",),
        NODES,
        ("*",),
        CRITICAL,
        "by which a node says that it is alive: without it its pods are moved, and with it a dead node keeps them",
    ),
    WellKnown(
        "",
        ("ConfigMap", "Endpoints"),
        SYSTEM,
        _ELECTED,
        DANGEROUS,
        "by which the parts of an older control plane agree which of them works",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("extension-apiserver-authentication",),
        CRITICAL,
        "which says whose word on who somebody is all extension API servers believe",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("aws-auth",),
        CRITICAL,
        "which says who of AWS may sign in to the cluster, as administrator too",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        PUBLIC,
        ("cluster-info",),
        CRITICAL,
        "by which machines that join find the API server and the certificate that they believe",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("kubeadm-config", "kubelet-config", "kubelet-config-*", "kube-proxy"),
        DANGEROUS,
        "by which nodes are set up when they join or are upgraded",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("coredns", "coredns-custom", "kube-dns", "node-local-dns"),
        DANGEROUS,
        "which decides where the names of the cluster lead for everybody",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        ANYWHERE,
        ("kube-root-ca.crt",),
        DANGEROUS,
        "which says by which certificate the pods of the namespace know the API server",
    ),
    WellKnown(
        "", ("Service", "Endpoints"), DEFAULT, ("kubernetes",), CRITICAL, "by which every pod finds the API server"
    ),
    WellKnown(
        "discovery.k8s.io",
        ("EndpointSlice",),
        DEFAULT,
        ("kubernetes", "kubernetes-*"),
        CRITICAL,
        "by which every pod finds the API server",
    ),
    WellKnown(
        "",
        ("Service", "Endpoints"),
        SYSTEM,
        ("kube-dns",),
        CRITICAL,
        "by which every pod finds the names of the cluster",
    ),
    WellKnown(
        "networking.k8s.io",
        ("ServiceCIDR",),
        "",
        ("kubernetes",),
        DANGEROUS,
        "from which the addresses of all Services are taken",
    ),
    WellKnown(
        "",
        ("Namespace",),
        "",
        (SYSTEM,),
        CRITICAL,
        "in which the control plane keeps its objects: its labels decide what may run there",
    ),
    WellKnown(
        "",
        ("Namespace",),
        "",
        ("kube-*", DEFAULT),
        DANGEROUS,
        "which Kubernetes makes for itself: its labels decide what may run there and which policies apply",
    ),
    WellKnown(RBAC_GROUP, _ROLES, "", ("cluster-admin",), CRITICAL, "which makes people administrators of the cluster"),
    WellKnown(
        RBAC_GROUP, _ROLES, "", _ROLES_OF_KUBERNETES, DANGEROUS, "which says what a part of Kubernetes itself may do"
    ),
    WellKnown(
        RBAC_GROUP,
        ("ClusterRole",),
        "",
        ("admin", "edit", "view"),
        DANGEROUS,
        "which everybody holds who was given it, in whatever namespace",
    ),
    WellKnown(
        RBAC_GROUP,
        ("Role", "RoleBinding"),
        SYSTEM,
        ("extension-apiserver-authentication-reader", "system:*", "kubeadm:*", "kube-proxy"),
        DANGEROUS,
        "which says what a part of Kubernetes itself may do",
    ),
    WellKnown(
        RBAC_GROUP,
        ("Role", "RoleBinding"),
        PUBLIC,
        ("*",),
        DANGEROUS,
        "which says what everybody may read before they sign in",
    ),
    WellKnown(
        RBAC_GROUP, _ROLES, "", ("system:*",), NOTABLE, "whose name is one that Kubernetes reserves for its own parts"
    ),
    WellKnown(
        "scheduling.k8s.io",
        ("PriorityClass",),
        "",
        ("system-*",),
        DANGEROUS,
        "by which the pods of the control plane go before all others",
    ),
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
        "by which the API server shares its time out, and answers the control plane while it is busy",
    ),
    WellKnown(
        "",
        ("Pod",),
        SYSTEM,
        ("etcd-*", "kube-apiserver-*", "kube-controller-manager-*", "kube-scheduler-*"),
        DANGEROUS,
        "which has the name of a pod of the control plane",
    ),
    WellKnown(
        "apps",
        ("DaemonSet", "Deployment"),
        SYSTEM,
        ("coredns", "kube-dns", "kube-proxy", "node-local-dns"),
        DANGEROUS,
        "through which every pod finds names and Services",
    ),
)


def well_known(ref: ObjectRef) -> WellKnown | None:
    """What the table says of an object, None where it is not in it."""
    return next((one for one in WELL_KNOWN if one.holds(ref)), None)
