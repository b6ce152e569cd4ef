"""Objects that the control plane and all nodes go by, as data with the reason for each.

A name that ends with `*` stands for all that begin so. `why` is a text in the file of the rule.
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
        "election",
    ),
    WellKnown(
        _LEASES,
        ("Lease",),
        NODES,
        ("*",),
        CRITICAL,
        "heartbeat",
    ),
    WellKnown(
        "",
        ("ConfigMap", "Endpoints"),
        SYSTEM,
        _ELECTED,
        DANGEROUS,
        "old-election",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("extension-apiserver-authentication",),
        CRITICAL,
        "authentication",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        SYSTEM,
        ("aws-auth",),
        CRITICAL,
        "aws-sign-in",
    ),
    WellKnown(
        "",
        ("ConfigMap",),
        PUBLIC,
        ("cluster-info",),
        CRITICAL,
        "joining",
    ),
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
    WellKnown(
        "",
        ("ConfigMap",),
        ANYWHERE,
        ("kube-root-ca.crt",),
        DANGEROUS,
        "root-certificate",
    ),
    WellKnown("", ("Service", "Endpoints"), DEFAULT, ("kubernetes",), CRITICAL, "api-server"),
    WellKnown(
        "discovery.k8s.io",
        ("EndpointSlice",),
        DEFAULT,
        ("kubernetes", "kubernetes-*"),
        CRITICAL,
        "api-server",
    ),
    WellKnown(
        "",
        ("Service", "Endpoints"),
        SYSTEM,
        ("kube-dns",),
        CRITICAL,
        "dns",
    ),
    WellKnown(
        "networking.k8s.io",
        ("ServiceCIDR",),
        "",
        ("kubernetes",),
        DANGEROUS,
        "addresses",
    ),
    WellKnown(
        "",
        ("Namespace",),
        "",
        (SYSTEM,),
        CRITICAL,
        "system-namespace",
    ),
    WellKnown(
        "",
        ("Namespace",),
        "",
        ("kube-*", DEFAULT),
        DANGEROUS,
        "own-namespace",
    ),
    WellKnown(RBAC_GROUP, _ROLES, "", ("cluster-admin",), CRITICAL, "administrators"),
    WellKnown(RBAC_GROUP, _ROLES, "", _ROLES_OF_KUBERNETES, DANGEROUS, "role-of-kubernetes"),
    WellKnown(
        RBAC_GROUP,
        ("ClusterRole",),
        "",
        ("admin", "edit", "view"),
        DANGEROUS,
        "shared-role",
    ),
    WellKnown(
        RBAC_GROUP,
        ("Role", "RoleBinding"),
        SYSTEM,
        ("extension-apiserver-authentication-reader", "system:*", "kubeadm:*", "kube-proxy"),
        DANGEROUS,
        "role-of-kubernetes",
    ),
    WellKnown(
        RBAC_GROUP,
        ("Role", "RoleBinding"),
        PUBLIC,
        ("*",),
        DANGEROUS,
        "before-sign-in",
    ),
    WellKnown(RBAC_GROUP, _ROLES, "", ("system:*",), NOTABLE, "reserved-name"),
    WellKnown(
        "scheduling.k8s.io",
        ("PriorityClass",),
        "",
        ("system-*",),
        DANGEROUS,
        "priority",
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


def well_known(ref: ObjectRef) -> WellKnown | None:
    """What the table says of an object, None where it is not in it."""
    return next((one for one in WELL_KNOWN if one.holds(ref)), None)
