"""What counts as power over Pratique, as data: which verbs on which resources, where, and under which names.

A row is a means to get round an approval: to decide, to be somebody who may, to change who may, to forge what decisions
are made of, or to destroy it. The rows follow what the API server asks, constrained impersonation (Kubernetes 1.36,
KEP-5284) included. Rights in a namespace that is not Pratique's count only where they lead to an installer: an
operator may write roles, pods and Secrets in a namespace of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from provisioner.api_groups import ADMISSION_GROUP, OWN_GROUP
from provisioner.rbac.catalogue import (
    ANY_WRITE,
    APPS,
    AUTHENTICATION,
    BATCH,
    CERTIFICATES,
    CORE,
    CSR,
    DEPLOYERS,
    IDENTITIES,
    IMPERSONATE_AS,
    RBAC,
    ROLES,
)

OWN_RESOURCES = (
    "bundledeployments",
    "bundledeploymentrequests",
    "bundledeploymentreviews",
    "catalogs",
    "approvalrules",
    "changewindows",
    "approvalpolicies",
    "externalchecks",
    "findingexceptions",
    "deputies",
)
OWN_SUBRESOURCES = ("status", "finalizers")
READING = frozenset({"get", "list", "watch"})
# Whose accounts run the control plane: who can be one of these can be anybody.
CONTROL_PLANE = "kube-system"


class Means(StrEnum):
    """How Pratique is got round; the order is that in which a sentence names them."""

    EVERYTHING = "everything"
    DECIDE = "decide"
    BE_ANOTHER = "be another"
    CHANGE_RIGHTS = "change rights"
    FORGE = "forge"
    DESTROY = "destroy"


class Reach(StrEnum):
    """At which places a grant of the row counts.

    CLUSTER: for the whole cluster only, what it is about belongs to no namespace. OWN: there, or in a namespace of
    Pratique or of the control plane. ACCOUNTS: there, or where an installer lives, for that account. HOMES: there, or
    in the namespace of an installer. STRONG: there, or in the namespace of an installer that holds such power itself.
    ANYWHERE: in every namespace.
    """

    CLUSTER = "cluster"
    OWN = "own"
    ACCOUNTS = "accounts"
    HOMES = "homes"
    STRONG = "strong"
    ANYWHERE = "anywhere"


class NameLimit(StrEnum):
    """Which names count where a rule is limited to names."""

    ALL = "all"
    OWN = "own"
    NAMESPACE = "namespace"
    API = "api"
    SIGNER = "signer"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Guarded:
    """One row. `what` its holder can do is said in the file of OWN-PRATIQUE-03. A verb that ends with `:` stands for
    all that begin with it."""

    means: Means
    what: str
    verbs: tuple[str, ...]
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    reach: Reach = Reach.CLUSTER
    named: NameLimit = NameLimit.ALL


_WORKLOADS = ("deployments", "daemonsets", "statefulsets", "replicasets")
_JOBS = ("jobs", "cronjobs")
_INTO_PODS = ("pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy")
_CHANGE = ("create", "update", "patch")
_REMOVE = ("delete", "deletecollection")
_ANY_ACCESS = ("get", *ANY_WRITE)
# What is done in one namespace, that of Pratique or of an installer.
IN_NAMESPACE = frozenset(
    {"change-secrets", "change-the-labels", "get-certificates", "get-into-pods", "read-secrets", "run-programs", "stop"}
)
# What another deployer installs is reviewed by nobody here. Our own objects have rows of their own.
OTHER_DEPLOYERS = tuple(one for one in DEPLOYERS if one.group != OWN_GROUP)

GUARDED: tuple[Guarded, ...] = (
    Guarded(Means.BE_ANOTHER, "act-as-others", ("impersonate",), (CORE,), ("users", "groups")),
    Guarded(
        Means.BE_ANOTHER,
        "act-as-others",
        ("impersonate", IMPERSONATE_AS),
        (AUTHENTICATION,),
        ("users", "groups", "uids", "userextras", "nodes"),
    ),
    Guarded(
        Means.BE_ANOTHER,
        "act-as-accounts",
        ("impersonate", IMPERSONATE_AS),
        (CORE, AUTHENTICATION),
        ("serviceaccounts",),
        Reach.ACCOUNTS,
    ),
    Guarded(Means.BE_ANOTHER, "get-tokens", ("create",), (CORE,), ("serviceaccounts/token",), Reach.ACCOUNTS),
    Guarded(Means.BE_ANOTHER, "read-secrets", tuple(sorted(READING)), (CORE,), ("secrets",), Reach.OWN),
    Guarded(
        Means.BE_ANOTHER,
        "run-programs",
        _CHANGE,
        (CORE,),
        ("pods", "podtemplates", "replicationcontrollers"),
        Reach.STRONG,
    ),
    Guarded(Means.BE_ANOTHER, "run-programs", _CHANGE, (CORE,), ("pods/ephemeralcontainers",), Reach.OWN),
    Guarded(Means.BE_ANOTHER, "run-programs", _CHANGE, (APPS,), _WORKLOADS, Reach.STRONG),
    Guarded(Means.BE_ANOTHER, "run-programs", _CHANGE, (APPS,), ("controllerrevisions",), Reach.OWN),
    Guarded(Means.BE_ANOTHER, "run-programs", _CHANGE, (BATCH,), _JOBS, Reach.STRONG),
    Guarded(Means.BE_ANOTHER, "get-into-pods", _ANY_ACCESS, (CORE,), _INTO_PODS, Reach.OWN),
    Guarded(Means.BE_ANOTHER, "run-commands", _ANY_ACCESS, (CORE,), ("nodes/proxy",)),
    Guarded(
        Means.BE_ANOTHER,
        "have-certificates-signed",
        ("approve", "sign"),
        (CERTIFICATES,),
        ("signers",),
        named=NameLimit.SIGNER,
    ),
    # The controller manager approves these by itself, where the one who asks holds this right.
    Guarded(
        Means.BE_ANOTHER,
        "have-certificates-of-nodes",
        ("create",),
        (CERTIFICATES,),
        (f"{CSR}/nodeclient", f"{CSR}/selfnodeclient"),
    ),
    Guarded(
        Means.BE_ANOTHER, "get-certificates", ("create",), (CERTIFICATES,), ("podcertificaterequests",), Reach.STRONG
    ),
    *(
        Guarded(Means.CHANGE_RIGHTS, "change-who-somebody-is", ANY_WRITE, (one.group,), one.resources)
        for one in IDENTITIES
    ),
    *(
        Guarded(Means.BE_ANOTHER, "have-another-deployer", _CHANGE, (one.group,), one.resources, Reach.ANYWHERE)
        for one in OTHER_DEPLOYERS
    ),
    Guarded(
        Means.CHANGE_RIGHTS,
        "change-who-may",
        ANY_WRITE,
        (RBAC,),
        ("clusterroles", "clusterrolebindings"),
        named=NameLimit.OWN,
    ),
    Guarded(
        Means.CHANGE_RIGHTS, "change-who-may", ANY_WRITE, (RBAC,), ("roles", "rolebindings"), Reach.OWN, NameLimit.OWN
    ),
    Guarded(Means.CHANGE_RIGHTS, "give-rights", ("bind",), (RBAC,), ROLES, Reach.HOMES, NameLimit.ROLE),
    Guarded(Means.CHANGE_RIGHTS, "put-rights", ("escalate",), (RBAC,), ROLES, Reach.HOMES),
    Guarded(
        Means.FORGE,
        "alter-objects",
        ANY_WRITE,
        (ADMISSION_GROUP,),
        (
            "mutatingwebhookconfigurations",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ),
    ),
    Guarded(
        Means.FORGE,
        "replace-api",
        ANY_WRITE,
        ("apiextensions.k8s.io",),
        ("customresourcedefinitions", "customresourcedefinitions/status"),
        named=NameLimit.API,
    ),
    Guarded(
        Means.FORGE,
        "replace-api",
        ANY_WRITE,
        ("apiregistration.k8s.io",),
        ("apiservices", "apiservices/status"),
        named=NameLimit.API,
    ),
    Guarded(
        Means.FORGE,
        "change-the-labels",
        ("update", "patch", *_REMOVE),
        (CORE,),
        ("namespaces", "namespaces/finalize"),
        Reach.OWN,
        NameLimit.NAMESPACE,
    ),
    Guarded(Means.FORGE, "change-secrets", ANY_WRITE, (CORE,), ("secrets", "services", "services/status"), Reach.OWN),
    Guarded(
        Means.FORGE,
        "change-secrets",
        ANY_WRITE,
        (CORE,),
        ("configmaps", "serviceaccounts", "persistentvolumeclaims"),
        Reach.OWN,
    ),
    Guarded(Means.FORGE, "change-secrets", ANY_WRITE, (CORE,), ("endpoints", "pods/status"), Reach.OWN),
    Guarded(Means.FORGE, "change-secrets", ANY_WRITE, ("discovery.k8s.io",), ("endpointslices",), Reach.OWN),
    Guarded(
        Means.FORGE, "change-secrets", ANY_WRITE, ("networking.k8s.io",), ("ingresses", "networkpolicies"), Reach.OWN
    ),
    Guarded(
        Means.FORGE,
        "change-secrets",
        ANY_WRITE,
        ("gateway.networking.k8s.io",),
        ("httproutes", "grpcroutes", "tlsroutes", "tcproutes", "referencegrants"),
        Reach.OWN,
    ),
    Guarded(Means.DESTROY, "stop", _REMOVE, (CORE,), ("pods", "replicationcontrollers"), Reach.OWN),
    Guarded(
        Means.DESTROY, "stop", ("update", "patch"), (CORE,), ("pods/resize", "replicationcontrollers/scale"), Reach.OWN
    ),
    Guarded(Means.DESTROY, "stop", ("create",), (CORE,), ("pods/eviction",), Reach.OWN),
    Guarded(Means.DESTROY, "stop", _REMOVE, (APPS,), _WORKLOADS, Reach.OWN),
    Guarded(Means.DESTROY, "stop", _REMOVE, (BATCH,), _JOBS, Reach.OWN),
    Guarded(Means.DESTROY, "stop", ("update", "patch"), (APPS,), tuple(f"{it}/scale" for it in _WORKLOADS), Reach.OWN),
)
STRONG_NAMES = frozenset({"admin", "cluster-admin", "edit"})
