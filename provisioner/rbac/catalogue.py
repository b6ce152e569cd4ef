"""The risky permissions, as data: what somebody must hold for each, how bad it is, and what to say about it.

Ids and severities are those of the rule catalogue, section B3. A permission is looked for in the union of all rules
that somebody holds at a place, wildcards included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from provisioner.api_groups import ADMISSION_GROUP, OWN_GROUP, RBAC_GROUP
from provisioner.values import Severity

CRITICAL, HIGH, MEDIUM, LOW = Severity.CRITICAL, Severity.DANGEROUS, Severity.NOTABLE, Severity.SAFE
CORE, RBAC, APPS, BATCH = "", RBAC_GROUP, "apps", "batch"
WRITE = ("create", "update", "patch")
CHANGE = ("update", "patch")
REMOVE = ("delete", "deletecollection")
ANY_WRITE = (*WRITE, *REMOVE)
READ_ALL = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Power:
    """One of `verbs` on one of `resources` (`resource` or `resource/subresource`) of `group`."""

    verbs: tuple[str, ...]
    group: str
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A risk: all of `powers` must be held. `severity` is that for the whole cluster.

    `named` is the severity where only named objects are meant; without it, one step lower; `fatal` are names that weigh
    as much as all of them. `of_named` says the sentence of `{names}`. `is_cluster_only` patterns mean nothing inside a
    namespace; `namespaces` limits the others to certain ones. One that `is_part` of the pattern
    with the same id before it is said only where that one is not held.
    """

    id: str
    severity: Severity
    sentence: str
    powers: tuple[Power, ...]
    named: Severity | None = None
    is_cluster_only: bool = False
    namespaces: tuple[str, ...] = ()
    is_part: bool = False
    of_named: str = ""
    fatal: frozenset[str] = frozenset()

    def sentence_of(self, names: str) -> str:
        """The sentence where only objects of these names are meant."""
        return (self.of_named or f"{self.sentence}, limited to {{names}}").replace("{names}", names)


# Who is any of these is bound by nothing, or can become whoever they want.
MASTERS = frozenset({"system:masters", "system:admin", "kubernetes-admin", "kubeadm:cluster-admins"})
_CLIENT = "kubernetes.io/kube-apiserver-client"
SIGNERS_OF_IDENTITIES = frozenset({"kubernetes.io/*", _CLIENT, f"{_CLIENT}-kubelet", "kubernetes.io/legacy-unknown"})
PARTS_OF_THE_CLUSTER = frozenset(
    {"aws-auth", "coredns", "extension-apiserver-authentication", "kube-proxy", "kubeadm-config", "kubelet-config"}
)
ELECTIONS = frozenset({"cloud-controller-manager", "kube-controller-manager", "kube-scheduler"})


ROLES = ("roles", "clusterroles")
BINDINGS = ("rolebindings", "clusterrolebindings")
WORKLOADS = (
    Power(("create",), CORE, ("pods",)),
    Power(WRITE, CORE, ("replicationcontrollers",)),
    Power(WRITE, APPS, ("deployments", "daemonsets", "statefulsets", "replicasets")),
    Power(WRITE, BATCH, ("jobs", "cronjobs")),
)
# Legacy impersonation asks about users, groups and accounts in the core group; constrained impersonation (the verbs
# `impersonate:<mode>`, Kubernetes 1.36) asks about identities in authentication.k8s.io, and about the request itself
# by `impersonate-on:<mode>:<verb>`. A pattern of the verb `impersonate` takes in every verb that begins so.
IMPERSONATE_AS, IMPERSONATE_ON = "impersonate:", "impersonate-on:"
AUTHENTICATION = "authentication.k8s.io"
IMPERSONATED = (
    Power(("impersonate",), CORE, ("users", "groups", "serviceaccounts")),
    Power(("impersonate",), AUTHENTICATION, ("users", "groups", "serviceaccounts", "nodes", "uids", "userextras")),
)
DEPLOYERS = (
    Power(
        WRITE,
        "olm.operatorframework.io",
        ("clusterextensions", "clusterobjectsets", "clusterextensionrevisions", "clustercatalogs"),
    ),
    Power(WRITE, "operators.coreos.com", ("subscriptions", "installplans", "clusterserviceversions", "catalogsources")),
    Power(
        WRITE,
        "argoproj.io",
        ("applications", "applicationsets", "appprojects", "workflows", "cronworkflows", "sensors"),
    ),
    Power(WRITE, "helm.toolkit.fluxcd.io", ("helmreleases",)),
    Power(WRITE, "kustomize.toolkit.fluxcd.io", ("kustomizations",)),
    # Where what is installed already comes from is as good as what is installed.
    Power(
        WRITE,
        "source.toolkit.fluxcd.io",
        ("gitrepositories", "ocirepositories", "helmrepositories", "helmcharts", "buckets", "externalartifacts"),
    ),
    Power(WRITE, "fluxcd.controlplane.io", ("fluxinstances", "resourcesets", "resourcesetinputproviders")),
    Power(WRITE, "helm.cattle.io", ("helmcharts", "helmchartconfigs")),
    Power(WRITE, "k3s.cattle.io", ("addons",)),
    Power(WRITE, "fleet.cattle.io", ("gitrepos", "bundles", "bundledeployments", "helmops")),
    Power(WRITE, "kappctrl.k14s.io", ("apps",)),
    Power(WRITE, "packaging.carvel.dev", ("packageinstalls", "packagerepositories")),
    Power(WRITE, "data.packaging.carvel.dev", ("packages",)),
    Power(WRITE, "work.open-cluster-management.io", ("manifestworks", "manifestworkreplicasets")),
    Power(WRITE, "policy.open-cluster-management.io", ("policies", "configurationpolicies", "operatorpolicies")),
    Power(WRITE, "addons.cluster.x-k8s.io", ("clusterresourcesets", "helmchartproxies", "helmreleaseproxies")),
    Power(WRITE, "kro.run", ("resourcegraphdefinitions",)),
    Power(WRITE, "metacontroller.k8s.io", ("compositecontrollers", "decoratorcontrollers")),
    Power(WRITE, "apiextensions.crossplane.io", ("compositions", "compositeresourcedefinitions")),
    Power(WRITE, "pkg.crossplane.io", ("providers", "functions", "configurations")),
    Power(WRITE, "kubernetes.crossplane.io", ("objects",)),
    Power(WRITE, "kubernetes.m.crossplane.io", ("objects",)),
    Power(WRITE, "helm.crossplane.io", ("releases",)),
    Power(WRITE, "helm.m.crossplane.io", ("releases",)),
    Power(WRITE, "kyverno.io", ("policies", "clusterpolicies", "updaterequests")),
    Power(
        WRITE,
        "policies.kyverno.io",
        ("mutatingpolicies", "generatingpolicies", "namespacedmutatingpolicies", "namespacedgeneratingpolicies"),
    ),
    Power(WRITE, "mutations.gatekeeper.sh", ("assign", "assignimage", "assignmetadata", "modifyset")),
    Power(WRITE, OWN_GROUP, ("bundledeployments",)),
)
# Who somebody is and what they may do, in the APIs of distributions: their servers write or stand for roles.
IDENTITIES = (
    Power(ANY_WRITE, "user.openshift.io", ("users", "groups", "identities", "useridentitymappings")),
    Power(ANY_WRITE, "oauth.openshift.io", ("oauthaccesstokens", "oauthauthorizetokens", "oauthclients")),
    Power(ANY_WRITE, "authorization.openshift.io", ("roles", "rolebindings", "clusterroles", "clusterrolebindings")),
    Power(
        ANY_WRITE,
        "management.cattle.io",
        ("users", "tokens", "globalroles", "globalrolebindings", "clusterroletemplatebindings", "roletemplates"),
    ),
)
REDIRECTS = (
    Power(WRITE, CORE, ("endpoints", "services")),
    Power(WRITE, "discovery.k8s.io", ("endpointslices",)),
    Power(WRITE, "networking.k8s.io", ("ingresses",)),
    Power(WRITE, "gateway.networking.k8s.io", ("gateways", "httproutes", "grpcroutes", "tlsroutes")),
)
LIMITS = (
    Power(ANY_WRITE, "scheduling.k8s.io", ("priorityclasses",)),
    Power(ANY_WRITE, CORE, ("resourcequotas", "limitranges")),
    Power(ANY_WRITE, "node.k8s.io", ("runtimeclasses",)),
)
STORAGE = (
    Power(ANY_WRITE, "storage.k8s.io", ("storageclasses", "csidrivers", "volumeattachments")),
    Power(ANY_WRITE, "snapshot.storage.k8s.io", ("volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses")),
)
CERTIFICATES = "certificates.k8s.io"
CSR = "certificatesigningrequests"


def _each(template: Pattern, powers: tuple[Power, ...]) -> tuple[Pattern, ...]:
    """The same risk once for each of several powers, any of which is enough."""
    return tuple(replace(template, powers=(power,)) for power in powers)


PATTERNS: tuple[Pattern, ...] = (
    Pattern("RB-01", CRITICAL, "do everything", (Power(("*",), "*", ("*",)),), is_cluster_only=True),
    Pattern(
        "RB-01",
        CRITICAL,
        "do everything in the core group",
        (Power(("*",), CORE, ("*",)),),
        is_cluster_only=True,
        is_part=True,
    ),
    Pattern(
        "RB-05",
        CRITICAL,
        "grant itself any right (escalate)",
        (Power(("escalate",), RBAC, ROLES),),
        of_named="put any right into the roles named {names} (escalate)",
    ),
    Pattern(
        "RB-06",
        CRITICAL,
        "bind any role to itself",
        (Power(("bind",), RBAC, ROLES), Power(WRITE, RBAC, BINDINGS)),
        of_named="bind the roles named {names} to itself and others",
        fatal=frozenset({"cluster-admin"}),
    ),
    Pattern("RB-07", MEDIUM, "hand its own rights to others", (Power(WRITE, RBAC, BINDINGS),)),
    Pattern("RB-08", MEDIUM, "change roles that others hold", (Power(WRITE, RBAC, ROLES),)),
    *_each(
        Pattern(
            "RB-10",
            CRITICAL,
            "act as somebody else (impersonate)",
            (),
            of_named="act as {names} (impersonate)",
            fatal=MASTERS,
        ),
        IMPERSONATED,
    ),
    Pattern(
        "RB-11",
        CRITICAL,
        "read every Secret",
        (Power(("get", *READ_ALL), CORE, ("secrets",)),),
        named=LOW,
        of_named="read the Secrets named {names}",
    ),
    Pattern(
        "RB-12",
        CRITICAL,
        "make a Secret with an account's token and read it",
        (Power(("create",), CORE, ("secrets",)), Power(("get", *READ_ALL), CORE, ("secrets",))),
        of_named="make a Secret with an account's token, and read it under the name {names}",
    ),
    Pattern(
        "RB-12",
        CRITICAL,
        "overwrite Secrets",
        (Power(CHANGE, CORE, ("secrets",)),),
        of_named="overwrite the Secrets named {names}",
    ),
    Pattern(
        "RB-13",
        CRITICAL,
        "get a token of any ServiceAccount",
        (Power(("create",), CORE, ("serviceaccounts/token",)),),
        of_named="get tokens of the ServiceAccounts named {names}",
    ),
    *_each(Pattern("RB-14", CRITICAL, "run pods as any ServiceAccount, with any Secret mounted", ()), WORKLOADS),
    Pattern(
        "RB-15",
        HIGH,
        "run commands in others' pods",
        (Power(("create", "get"), CORE, ("pods/exec", "pods/attach")),),
        named=HIGH,
        of_named="run commands in the pods named {names}",
    ),
    Pattern(
        "RB-16",
        MEDIUM,
        "reach into pods past network policies",
        (Power(("create", "get"), CORE, ("pods/portforward",)),),
    ),
    Pattern("RB-17", HIGH, "start code in others' pods", (Power(CHANGE, CORE, ("pods/ephemeralcontainers", "pods")),)),
    Pattern(
        "RB-18",
        CRITICAL,
        "run commands in any pod through its node, unseen by audit,",
        (Power(("get", "create", *CHANGE, "delete"), CORE, ("nodes/proxy",)),),
        is_cluster_only=True,
    ),
    Pattern(
        "RB-18b",
        LOW,
        "read a node's own state",
        (
            Power(
                ("get",),
                CORE,
                ("nodes/metrics", "nodes/stats", "nodes/log", "nodes/pods", "nodes/configz", "nodes/healthz"),
            ),
        ),
        is_cluster_only=True,
    ),
    Pattern(
        "RB-19", MEDIUM, "reach internal services", (Power(("get", *WRITE), CORE, ("services/proxy", "pods/proxy")),)
    ),
    Pattern(
        "RB-20",
        HIGH,
        "steer pods to a node of its choice",
        (Power(CHANGE, CORE, ("nodes", "nodes/status")), Power(("create", *REMOVE), CORE, ("pods", "pods/eviction"))),
        is_cluster_only=True,
    ),
    Pattern(
        "RB-20",
        MEDIUM,
        "change nodes",
        (Power(ANY_WRITE, CORE, ("nodes", "nodes/status")),),
        is_cluster_only=True,
        is_part=True,
    ),
    Pattern(
        "RB-21", MEDIUM, "draw traffic to itself by status", (Power(CHANGE, CORE, ("services/status", "pods/status")),)
    ),
    Pattern(
        "RB-22", HIGH, "mount any folder of a node", (Power(WRITE, CORE, ("persistentvolumes",)),), is_cluster_only=True
    ),
    Pattern(
        "RB-23",
        CRITICAL,
        "make itself certificates of the cluster",
        (
            Power(("create",), CERTIFICATES, (CSR,)),
            Power(CHANGE, CERTIFICATES, (f"{CSR}/approval",)),
            Power(("approve", "sign"), CERTIFICATES, ("signers",)),
        ),
        named=MEDIUM,
        is_cluster_only=True,
        of_named="make itself certificates of the signers named {names}",
        fatal=SIGNERS_OF_IDENTITIES,
    ),
    Pattern(
        "RB-23",
        HIGH,
        "approve certificates of the cluster",
        (Power(CHANGE, CERTIFICATES, (f"{CSR}/approval",)), Power(("approve", "sign"), CERTIFICATES, ("signers",))),
        named=MEDIUM,
        is_cluster_only=True,
        is_part=True,
        of_named="approve certificates of the signers named {names}",
        fatal=SIGNERS_OF_IDENTITIES,
    ),
    Pattern(
        "RB-24",
        CRITICAL,
        "alter every object on its way into the cluster",
        (
            Power(
                ANY_WRITE,
                ADMISSION_GROUP,
                ("mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
            ),
        ),
        is_cluster_only=True,
    ),
    Pattern(
        "RB-24",
        HIGH,
        "read or refuse every object on its way into the cluster",
        (
            Power(
                ANY_WRITE,
                ADMISSION_GROUP,
                ("validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
            ),
        ),
        is_cluster_only=True,
    ),
    Pattern(
        "RB-25",
        HIGH,
        "change or delete custom resource definitions, and all their objects with them",
        (Power(ANY_WRITE, "apiextensions.k8s.io", ("customresourcedefinitions",)),),
        is_cluster_only=True,
    ),
    Pattern(
        "RB-26",
        CRITICAL,
        "take over API groups",
        (Power(WRITE, "apiregistration.k8s.io", ("apiservices",)),),
        is_cluster_only=True,
    ),
    Pattern(
        "RB-27",
        HIGH,
        "change the labels that protect namespaces, or delete namespaces",
        (Power(ANY_WRITE, CORE, ("namespaces",)),),
        of_named="change the labels that protect the namespaces named {names}, or delete them",
    ),
    Pattern(
        "RB-28",
        HIGH,
        "change the configuration of DNS, kube-proxy and other parts of the cluster",
        (Power(ANY_WRITE, CORE, ("configmaps",)),),
        named=LOW,
        namespaces=("kube-system",),
        of_named="change the ConfigMaps named {names}",
        fatal=PARTS_OF_THE_CLUSTER,
    ),
    Pattern("RB-29", MEDIUM, "open the network", (Power(ANY_WRITE, "networking.k8s.io", ("networkpolicies",)),)),
    *_each(Pattern("RB-30", MEDIUM, "redirect traffic", ()), REDIRECTS),
    Pattern("RB-31", LOW, "delete the events and logs of what it did", (Power(REMOVE, CORE, ("events", "pods/log")),)),
    Pattern("RB-31", LOW, "delete the events and logs of what it did", (Power(REMOVE, "events.k8s.io", ("events",)),)),
    Pattern("RB-32", HIGH, "delete everything", (Power(REMOVE, "*", ("*",)),)),
    Pattern("RB-32", HIGH, "delete everything in the core group", (Power(REMOVE, CORE, ("*",)),), is_part=True),
    *_each(Pattern("RB-33", MEDIUM, "change limits, priorities and sandboxes of others", ()), LIMITS),
    *_each(Pattern("RB-34", MEDIUM, "reach others' data by storage", ()), STORAGE),
    Pattern(
        "RB-35",
        MEDIUM,
        "disturb leader election and nodes",
        (Power(ANY_WRITE, "coordination.k8s.io", ("leases",)),),
        named=LOW,
        namespaces=("kube-system", "kube-node-lease"),
        of_named="change the Leases named {names}",
        fatal=ELECTIONS,
    ),
    Pattern(
        "RB-36",
        CRITICAL,
        "run privileged pods",
        (Power(("use",), "security.openshift.io", ("securitycontextconstraints",)),),
    ),
    Pattern("RB-36", CRITICAL, "run privileged pods", (Power(("use",), "policy", ("podsecuritypolicies",)),)),
    *_each(Pattern("RB-37", CRITICAL, "make a deployer install things with the deployer's rights", ()), DEPLOYERS),
    Pattern(
        "RB-38",
        LOW,
        "ask who somebody is and what they may do",
        (
            Power(("create",), "authentication.k8s.io", ("tokenreviews",)),
            Power(("create",), "authorization.k8s.io", ("subjectaccessreviews",)),
        ),
        is_cluster_only=True,
    ),
    Pattern("RB-49", CRITICAL, "read everything, Secrets too", (Power(("get", *READ_ALL), "*", ("*",)),)),
    Pattern(
        "RB-49",
        CRITICAL,
        "read everything in the core group, Secrets too",
        (Power(("get", *READ_ALL), CORE, ("*",)),),
        is_part=True,
    ),
)

# Whose rights a grant to these groups and users really is: (id, severity where it writes or reads Secrets, else, words)
WIDE_SUBJECTS: dict[tuple[str, str], tuple[str, Severity, Severity, str]] = {
    ("User", "system:anonymous"): ("RB-40", CRITICAL, CRITICAL, "everybody who can reach the API server"),
    ("Group", "system:unauthenticated"): ("RB-40", CRITICAL, CRITICAL, "everybody who can reach the API server"),
    ("Group", "system:authenticated"): ("RB-41", CRITICAL, HIGH, "everybody with an account, every workload too"),
    ("Group", "system:serviceaccounts"): ("RB-41", CRITICAL, HIGH, "every workload of the cluster"),
    ("Group", "system:masters"): ("RB-42", CRITICAL, CRITICAL, "administrators whose rights no binding can take away"),
}
PUBLIC_ROLES = frozenset({"system:public-info-viewer", "system:discovery", "system:basic-user", "cluster-info"})
STRONG_ROLES = {"cluster-admin": CRITICAL, "admin": HIGH, "edit": HIGH}
KNOWN_VERBS = frozenset(
    {
        "get",
        "list",
        "watch",
        *WRITE,
        *REMOVE,
        "*",
        "escalate",
        "bind",
        "use",
        "approve",
        "sign",
        "attest",
        "impersonate",
    }
)
UNNAMED_VERBS = frozenset({"create", "deletecollection"})
