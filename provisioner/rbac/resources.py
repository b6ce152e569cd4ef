"""The resources of Kubernetes 1.36 itself, as RBAC rules name them: what a rule can mean where no cluster is asked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from provisioner.errors import InvalidManifest
from provisioner.rbac.policy import ANY, PolicyRule

# Read from the discovery of a 1.36.3 API server. Beside what is served: what only authorizers know (users, signers and
# the like), and what is off by default.
_RESOURCES = {
    "": "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims "
    "persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services "
    "users groups",
    "admissionregistration.k8s.io": "mutatingadmissionpolicies mutatingadmissionpolicybindings "
    "mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings "
    "validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "apiregistration.k8s.io": "apiservices",
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "authentication.k8s.io": "groups nodes selfsubjectreviews serviceaccounts tokenreviews uids userextras users",
    "authorization.k8s.io": "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews "
    "subjectaccessreviews",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "certificates.k8s.io": "certificatesigningrequests clustertrustbundles podcertificaterequests signers",
    "coordination.k8s.io": "leasecandidates leases",
    "discovery.k8s.io": "endpointslices",
    "events.k8s.io": "events",
    "extensions": "",
    "flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
    "networking.k8s.io": "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
    "node.k8s.io": "runtimeclasses",
    "policy": "poddisruptionbudgets podsecuritypolicies",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
    "scheduling.k8s.io": "priorityclasses",
    "storage.k8s.io": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments "
    "volumeattributesclasses",
}
BUILT_IN_RESOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {group: tuple(names.split()) for group, names in _RESOURCES.items()}
)

# Without namespaces: a request for one of those counts as made in it.
_CLUSTER_SCOPED = (
    "apiservices certificatesigningrequests clusterrolebindings clusterroles clustertrustbundles componentstatuses "
    "csidrivers csinodes customresourcedefinitions flowschemas ingressclasses ipaddresses mutatingadmissionpolicies "
    "mutatingadmissionpolicybindings mutatingwebhookconfigurations nodes persistentvolumes priorityclasses "
    "prioritylevelconfigurations runtimeclasses servicecidrs signers storageclasses validatingadmissionpolicies "
    "validatingadmissionpolicybindings validatingwebhookconfigurations volumeattachments "
    "volumeattributesclasses"
)
CLUSTER_SCOPED = frozenset(_CLUSTER_SCOPED.split())


def plural_of(kind: str) -> str:
    """The resource of a built-in kind; for other kinds a guess, as Kubernetes' own tools make it.

    Raises InvalidManifest for a kind that is no text.
    """
    if not isinstance(kind, str):
        raise InvalidManifest(f"a kind: expected a text, found {kind!r}")
    word = kind.lower()
    if word.endswith("endpoints"):
        return word
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def nowhere(rule: PolicyRule) -> list[str]:
    """The resources of `rule` that none of its API groups has; of groups that are not Kubernetes' own nobody knows."""
    if any(group not in BUILT_IN_RESOURCES for group in rule.api_groups):
        return []
    known = {name for group in rule.api_groups for name in BUILT_IN_RESOURCES[group]}
    return [name for name in rule.resources if ANY not in name and name.partition("/")[0] not in known]
