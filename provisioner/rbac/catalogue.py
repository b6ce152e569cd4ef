"""The risky permissions, as data: what somebody must hold for each, and how bad it is.

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
class RulePower:
    """One of `verbs` on one of `resources` (`resource` or `resource/subresource`) of `group`."""

    verbs: tuple[str, ...]
    group: str
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RiskPattern:
    """A risk: all of `powers` must be held. `severity` is that for the whole cluster.

    `named` is the severity where only named objects are meant; without it, one step lower; `fatal` are names that weigh
    as much as all of them. What somebody can do is `what`, where only named objects are meant `of_named` if that is
    another text; the file of the rule says both. `is_cluster_only` patterns mean nothing inside a
    namespace; `namespaces` limits the others to certain ones. One that `is_part` of the pattern
    with the same id before it is said only where that one is not held.
    """

    id: str
    severity: Severity
    what: str
    powers: tuple[RulePower, ...]
    named: Severity | None = None
    is_cluster_only: bool = False
    namespaces: tuple[str, ...] = ()
    is_part: bool = False
    of_named: str = ""
    fatal: frozenset[str] = frozenset()


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
    RulePower(("create",), CORE, ("pods",)),
    RulePower(WRITE, CORE, ("replicationcontrollers",)),
    RulePower(WRITE, APPS, ("deployments", "daemonsets", "statefulsets", "replicasets")),
    RulePower(WRITE, BATCH, ("jobs", "cronjobs")),
)
# Legacy impersonation asks about users, groups and accounts in the core group; constrained impersonation (the verbs
# `impersonate:<mode>`, Kubernetes 1.36) asks about identities in authentication.k8s.io, and about the request itself
# by `impersonate-on:<mode>:<verb>`. A pattern of the verb `impersonate` takes in every verb that begins so.
IMPERSONATE_AS, IMPERSONATE_ON = "impersonate:", "impersonate-on:"
AUTHENTICATION = "authentication.k8s.io"
IMPERSONATED = (
    RulePower(("impersonate",), CORE, ("users", "groups", "serviceaccounts")),
    RulePower(("impersonate",), AUTHENTICATION, ("users", "groups", "serviceaccounts", "nodes", "uids", "userextras")),
)
DEPLOYERS = (
    RulePower(
        WRITE,
        "olm.operatorframework.io",
        ("clusterextensions", "clusterobjectsets", "clusterextensionrevisions", "clustercatalogs"),
    ),
    RulePower(
        WRITE, "operators.coreos.com", ("subscriptions", "installplans", "clusterserviceversions", "catalogsources")
    ),
    RulePower(
        WRITE,
        "argoproj.io",
        ("applications", "applicationsets", "appprojects", "workflows", "cronworkflows", "sensors"),
    ),
    RulePower(WRITE, "helm.toolkit.fluxcd.io", ("helmreleases",)),
    RulePower(WRITE, "kustomize.toolkit.fluxcd.io", ("kustomizations",)),
    # Where what is installed already comes from is as good as what is installed.
    RulePower(
        WRITE,
        "source.toolkit.fluxcd.io",
        ("gitrepositories", "ocirepositories", "helmrepositories", "helmcharts", "buckets", "externalartifacts"),
    ),
    RulePower(WRITE, "fluxcd.controlplane.io", ("fluxinstances", "resourcesets", "resourcesetinputproviders")),
    RulePower(WRITE, "helm.cattle.io", ("helmcharts", "helmchartconfigs")),
    RulePower(WRITE, "k3s.cattle.io", ("addons",)),
    RulePower(WRITE, "fleet.cattle.io", ("gitrepos", "bundles", "bundledeployments", "helmops")),
    RulePower(WRITE, "kappctrl.k14s.io", ("apps",)),
    RulePower(WRITE, "packaging.carvel.dev", ("packageinstalls", "packagerepositories")),
    RulePower(WRITE, "data.packaging.carvel.dev", ("packages",)),
    RulePower(WRITE, "work.open-cluster-management.io", ("manifestworks", "manifestworkreplicasets")),
    RulePower(WRITE, "policy.open-cluster-management.io", ("policies", "configurationpolicies", "operatorpolicies")),
    RulePower(WRITE, "addons.cluster.x-k8s.io", ("clusterresourcesets", "helmchartproxies", "helmreleaseproxies")),
    RulePower(WRITE, "kro.run", ("resourcegraphdefinitions",)),
    RulePower(WRITE, "metacontroller.k8s.io", ("compositecontrollers", "decoratorcontrollers")),
    RulePower(WRITE, "apiextensions.crossplane.io", ("compositions", "compositeresourcedefinitions")),
    RulePower(WRITE, "pkg.crossplane.io", ("providers", "functions", "configurations")),
    RulePower(WRITE, "kubernetes.crossplane.io", ("objects",)),
    RulePower(WRITE, "kubernetes.m.crossplane.io", ("objects",)),
    RulePower(WRITE, "helm.crossplane.io", ("releases",)),
    RulePower(WRITE, "helm.m.crossplane.io", ("releases",)),
    RulePower(WRITE, "kyverno.io", ("policies", "clusterpolicies", "updaterequests")),
    RulePower(
        WRITE,
        "policies.kyverno.io",
        ("mutatingpolicies", "generatingpolicies", "namespacedmutatingpolicies", "namespacedgeneratingpolicies"),
    ),
    RulePower(WRITE, "mutations.gatekeeper.sh", ("assign", "assignimage", "assignmetadata", "modifyset")),
    # A backup is put back by the rights of the program, whatever was put into it.
    RulePower(WRITE, "velero.io", ("restores",)),
    RulePower(WRITE, OWN_GROUP, ("bundledeployments",)),
)
# Kinds of operators that make pods, which run as the account that the object names.
WORKLOADS_BY_OPERATORS = (
    RulePower(WRITE, "tekton.dev", ("tasks", "taskruns", "pipelines", "pipelineruns", "customruns")),
    RulePower(WRITE, "argoproj.io", ("rollouts",)),
    RulePower(WRITE, "keda.sh", ("scaledjobs",)),
    RulePower(WRITE, "serving.knative.dev", ("services", "configurations")),
    RulePower(WRITE, "jobset.x-k8s.io", ("jobsets",)),
    RulePower(WRITE, "batch.volcano.sh", ("jobs",)),
    RulePower(WRITE, "sparkoperator.k8s.io", ("sparkapplications", "scheduledsparkapplications")),
    RulePower(WRITE, "apps.kruise.io", ("clonesets", "daemonsets", "statefulsets", "broadcastjobs")),
    RulePower(WRITE, "monitoring.coreos.com", ("prometheuses", "prometheusagents", "alertmanagers", "thanosrulers")),
)
# Who somebody is and what they may do, in the APIs of distributions: their servers write or stand for roles.
IDENTITIES = (
    RulePower(ANY_WRITE, "user.openshift.io", ("users", "groups", "identities", "useridentitymappings")),
    RulePower(ANY_WRITE, "oauth.openshift.io", ("oauthaccesstokens", "oauthauthorizetokens", "oauthclients")),
    RulePower(
        ANY_WRITE, "authorization.openshift.io", ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    ),
    RulePower(
        ANY_WRITE,
        "management.cattle.io",
        ("users", "tokens", "globalroles", "globalrolebindings", "clusterroletemplatebindings", "roletemplates"),
    ),
)
REDIRECTS = (
    RulePower(WRITE, CORE, ("endpoints", "services")),
    RulePower(WRITE, "discovery.k8s.io", ("endpointslices",)),
    RulePower(WRITE, "networking.k8s.io", ("ingresses",)),
    RulePower(WRITE, "gateway.networking.k8s.io", ("gateways", "httproutes", "grpcroutes", "tlsroutes")),
)
LIMITS = (
    RulePower(ANY_WRITE, "scheduling.k8s.io", ("priorityclasses",)),
    RulePower(ANY_WRITE, CORE, ("resourcequotas", "limitranges")),
    RulePower(ANY_WRITE, "node.k8s.io", ("runtimeclasses",)),
)
STORAGE = (
    RulePower(ANY_WRITE, "storage.k8s.io", ("storageclasses", "csidrivers", "volumeattachments")),
    RulePower(
        ANY_WRITE, "snapshot.storage.k8s.io", ("volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses")
    ),
)
CERTIFICATES = "certificates.k8s.io"
CSR = "certificatesigningrequests"


def _each(template: RiskPattern, powers: tuple[RulePower, ...]) -> tuple[RiskPattern, ...]:
    """The same risk once for each of several powers, any of which is enough."""
    return tuple(replace(template, powers=(power,)) for power in powers)


PATTERNS: tuple[RiskPattern, ...] = (
    RiskPattern("RB-01", CRITICAL, "everything", (RulePower(("*",), "*", ("*",)),), is_cluster_only=True),
    RiskPattern(
        "RB-01", CRITICAL, "everything-in-core", (RulePower(("*",), CORE, ("*",)),), is_cluster_only=True, is_part=True
    ),
    RiskPattern("RB-05", CRITICAL, "grant", (RulePower(("escalate",), RBAC, ROLES),), of_named="grant-in-named"),
    RiskPattern(
        "RB-06",
        CRITICAL,
        "bind",
        (RulePower(("bind",), RBAC, ROLES), RulePower(WRITE, RBAC, BINDINGS)),
        of_named="bind-named",
        fatal=frozenset({"cluster-admin"}),
    ),
    RiskPattern("RB-07", MEDIUM, "hand-on", (RulePower(WRITE, RBAC, BINDINGS),)),
    RiskPattern("RB-08", MEDIUM, "change-roles", (RulePower(WRITE, RBAC, ROLES),)),
    *_each(RiskPattern("RB-10", CRITICAL, "act-as-others", (), of_named="act-as-named", fatal=MASTERS), IMPERSONATED),
    RiskPattern(
        "RB-11",
        CRITICAL,
        "read-every",
        (RulePower(("get", *READ_ALL), CORE, ("secrets",)),),
        named=LOW,
        of_named="read-named",
    ),
    RiskPattern(
        "RB-12",
        CRITICAL,
        "make-token",
        (RulePower(("create",), CORE, ("secrets",)), RulePower(("get", *READ_ALL), CORE, ("secrets",))),
        of_named="make-named-token",
    ),
    RiskPattern("RB-12", CRITICAL, "overwrite", (RulePower(CHANGE, CORE, ("secrets",)),), of_named="overwrite-named"),
    RiskPattern(
        "RB-13",
        CRITICAL,
        "any-token",
        (RulePower(("create",), CORE, ("serviceaccounts/token",)),),
        of_named="named-tokens",
    ),
    *_each(RiskPattern("RB-14", CRITICAL, "run-pods", ()), WORKLOADS),
    *_each(RiskPattern("RB-14", HIGH, "make-operator-run-pods", (), named=HIGH), WORKLOADS_BY_OPERATORS),
    RiskPattern(
        "RB-15",
        HIGH,
        "commands",
        (RulePower(("create", "get"), CORE, ("pods/exec", "pods/attach")),),
        named=HIGH,
        of_named="commands-in-named",
    ),
    RiskPattern("RB-16", MEDIUM, "reach", (RulePower(("create", "get"), CORE, ("pods/portforward",)),)),
    RiskPattern("RB-17", HIGH, "start-code", (RulePower(CHANGE, CORE, ("pods/ephemeralcontainers", "pods")),)),
    RiskPattern(
        "RB-18",
        CRITICAL,
        "commands",
        (RulePower(("get", "create", *CHANGE, "delete"), CORE, ("nodes/proxy",)),),
        is_cluster_only=True,
    ),
    RiskPattern(
        "RB-18b",
        LOW,
        "read",
        (
            RulePower(
                ("get",),
                CORE,
                ("nodes/metrics", "nodes/stats", "nodes/log", "nodes/pods", "nodes/configz", "nodes/healthz"),
            ),
        ),
        is_cluster_only=True,
    ),
    RiskPattern("RB-19", MEDIUM, "reach", (RulePower(("get", *WRITE), CORE, ("services/proxy", "pods/proxy")),)),
    RiskPattern(
        "RB-20",
        HIGH,
        "steer",
        (
            RulePower(CHANGE, CORE, ("nodes", "nodes/status")),
            RulePower(("create", *REMOVE), CORE, ("pods", "pods/eviction")),
        ),
        is_cluster_only=True,
    ),
    RiskPattern(
        "RB-20",
        MEDIUM,
        "change",
        (RulePower(ANY_WRITE, CORE, ("nodes", "nodes/status")),),
        is_cluster_only=True,
        is_part=True,
    ),
    RiskPattern("RB-21", MEDIUM, "draw", (RulePower(CHANGE, CORE, ("services/status", "pods/status")),)),
    RiskPattern("RB-22", HIGH, "mount", (RulePower(WRITE, CORE, ("persistentvolumes",)),), is_cluster_only=True),
    RiskPattern(
        "RB-23",
        CRITICAL,
        "make",
        (
            RulePower(("create",), CERTIFICATES, (CSR,)),
            RulePower(CHANGE, CERTIFICATES, (f"{CSR}/approval",)),
            RulePower(("approve", "sign"), CERTIFICATES, ("signers",)),
        ),
        named=MEDIUM,
        is_cluster_only=True,
        of_named="make-named",
        fatal=SIGNERS_OF_IDENTITIES,
    ),
    RiskPattern(
        "RB-23",
        HIGH,
        "approve",
        (
            RulePower(CHANGE, CERTIFICATES, (f"{CSR}/approval",)),
            RulePower(("approve", "sign"), CERTIFICATES, ("signers",)),
        ),
        named=MEDIUM,
        is_cluster_only=True,
        is_part=True,
        of_named="approve-named",
        fatal=SIGNERS_OF_IDENTITIES,
    ),
    RiskPattern(
        "RB-24",
        CRITICAL,
        "alter",
        (
            RulePower(
                ANY_WRITE,
                ADMISSION_GROUP,
                ("mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
            ),
        ),
        is_cluster_only=True,
    ),
    RiskPattern(
        "RB-24",
        HIGH,
        "read-or-refuse",
        (
            RulePower(
                ANY_WRITE,
                ADMISSION_GROUP,
                ("validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
            ),
        ),
        is_cluster_only=True,
    ),
    RiskPattern(
        "RB-25",
        HIGH,
        "change",
        (RulePower(ANY_WRITE, "apiextensions.k8s.io", ("customresourcedefinitions",)),),
        is_cluster_only=True,
    ),
    RiskPattern(
        "RB-26",
        CRITICAL,
        "take-over",
        (RulePower(WRITE, "apiregistration.k8s.io", ("apiservices",)),),
        is_cluster_only=True,
    ),
    RiskPattern("RB-27", HIGH, "change", (RulePower(ANY_WRITE, CORE, ("namespaces",)),), of_named="change-named"),
    RiskPattern(
        "RB-28",
        HIGH,
        "change-configuration",
        (RulePower(ANY_WRITE, CORE, ("configmaps",)),),
        named=LOW,
        namespaces=("kube-system",),
        of_named="change-named",
        fatal=PARTS_OF_THE_CLUSTER,
    ),
    RiskPattern("RB-29", MEDIUM, "open", (RulePower(ANY_WRITE, "networking.k8s.io", ("networkpolicies",)),)),
    *_each(RiskPattern("RB-30", MEDIUM, "redirect", ()), REDIRECTS),
    RiskPattern("RB-31", LOW, "delete", (RulePower(REMOVE, CORE, ("events", "pods/log")),)),
    RiskPattern("RB-31", LOW, "delete", (RulePower(REMOVE, "events.k8s.io", ("events",)),)),
    RiskPattern("RB-32", HIGH, "delete", (RulePower(REMOVE, "*", ("*",)),)),
    RiskPattern("RB-32", HIGH, "delete-in-core", (RulePower(REMOVE, CORE, ("*",)),), is_part=True),
    *_each(RiskPattern("RB-33", MEDIUM, "change", ()), LIMITS),
    *_each(RiskPattern("RB-34", MEDIUM, "reach", ()), STORAGE),
    RiskPattern(
        "RB-35",
        MEDIUM,
        "disturb",
        (RulePower(ANY_WRITE, "coordination.k8s.io", ("leases",)),),
        named=LOW,
        namespaces=("kube-system", "kube-node-lease"),
        of_named="change-named",
        fatal=ELECTIONS,
    ),
    RiskPattern(
        "RB-36", CRITICAL, "run", (RulePower(("use",), "security.openshift.io", ("securitycontextconstraints",)),)
    ),
    RiskPattern("RB-36", CRITICAL, "run", (RulePower(("use",), "policy", ("podsecuritypolicies",)),)),
    *_each(RiskPattern("RB-37", CRITICAL, "install", ()), DEPLOYERS),
    RiskPattern(
        "RB-38",
        LOW,
        "ask",
        (
            RulePower(("create",), "authentication.k8s.io", ("tokenreviews",)),
            RulePower(("create",), "authorization.k8s.io", ("subjectaccessreviews",)),
        ),
        is_cluster_only=True,
    ),
    RiskPattern("RB-49", CRITICAL, "read", (RulePower(("get", *READ_ALL), "*", ("*",)),)),
    RiskPattern("RB-49", CRITICAL, "read-in-core", (RulePower(("get", *READ_ALL), CORE, ("*",)),), is_part=True),
)

# Whose rights a grant to these groups and users really is: (id, severity where it writes or reads Secrets, else, who)
WIDE_SUBJECTS: dict[tuple[str, str], tuple[str, Severity, Severity, str]] = {
    ("User", "system:anonymous"): ("RB-40", CRITICAL, CRITICAL, "anybody"),
    ("Group", "system:unauthenticated"): ("RB-40", CRITICAL, CRITICAL, "anybody"),
    ("Group", "system:authenticated"): ("RB-41", CRITICAL, HIGH, "accounts"),
    ("Group", "system:serviceaccounts"): ("RB-41", CRITICAL, HIGH, "workloads"),
    ("Group", "system:masters"): ("RB-42", CRITICAL, CRITICAL, "administrators"),
}
# What every account of a new cluster holds, by the groups that it is in.
PUBLIC_ROLES_OF_KUBERNETES = frozenset(
    {"system:public-info-viewer", "system:discovery", "system:basic-user", "system:service-account-issuer-discovery"}
)
PUBLIC_ROLES = PUBLIC_ROLES_OF_KUBERNETES | {"cluster-info"}
# What these roles hold in every cluster. Whoever can write one of them may put more into it.
PUBLIC_REVIEWS = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
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
