"""What a format is told of the cluster, and which kinds live in a namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from provisioner.values import GroupKind, JsonObject, ObjectRef


@dataclass(frozen=True, slots=True)
class LookedUp:
    """An object that a chart may look up, as it is told of it; None where it does not exist.

    Of a Secret the answer has marks; `marks` has the values by their marks.
    """

    ref: ObjectRef
    answer: JsonObject | None
    marks: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ValuesObject:
    """What the key of a Secret or ConfigMap holds that a chart gets values of; None where it is not there.

    `version` is another one where the value is another one, and tells nothing of it; "" where nobody compares it. So is
    `seed`, of which marks are made: everybody knows the version, and nobody may know a mark.
    """

    ref: ObjectRef
    key: str
    value: bytes | None = field(repr=False)
    version: str = ""
    seed: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """`kube_version` is such as v1.36.3; `api_versions` are such as `v1`, `apps/v1` and `apps/v1/Deployment`.

    `is_upgrade` says that the deployment runs already; `lookups` are what a chart may look up, None where nobody was
    asked for any. `values_from` are the objects that its values are of, in their order, None where nobody was asked.
    `is_takeover` says that it runs as a release of Helm, which the deployment takes over.
    """

    kube_version: str
    api_versions: tuple[str, ...]
    is_upgrade: bool = False
    lookups: tuple[LookedUp, ...] | None = None
    values_from: tuple[ValuesObject, ...] | None = None
    is_takeover: bool = False


_NAMESPACED = {
    "": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController "
    "ResourceQuota Secret Service ServiceAccount",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    "storage.k8s.io": "CSIStorageCapacity",
}
_CLUSTER = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
    "ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "core.rukpak.io": "BundleDeployment BundleDeploymentRequest BundleDeploymentReview",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IPAddress IngressClass ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
BUILT_IN: dict[GroupKind, bool] = {
    GroupKind(group, kind): is_namespaced
    for is_namespaced, table in ((True, _NAMESPACED), (False, _CLUSTER))
    for group, kinds in table.items()
    for kind in kinds.split()
}
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


def defined_scopes(objects: Iterable[tuple[GroupKind, JsonObject]]) -> dict[GroupKind, bool]:
    """The scopes of the kinds that CustomResourceDefinitions among `objects` define; unreadable ones say nothing."""
    scopes = {}
    for group_kind, body in objects:
        spec = body.get("spec") if group_kind == _CRD else None
        names = spec.get("names") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(names, dict):
            continue
        scope = str(spec.get("scope"))
        if scope in {"Namespaced", "Cluster"}:
            scopes[GroupKind(str(spec.get("group")), str(names.get("kind")))] = scope == "Namespaced"
    return scopes
