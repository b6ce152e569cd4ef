"""Why a cluster serves no such kind in a version: Kubernetes removed it, it is served in another version, or nothing
that is installed defines it. What helps differs: a removed version cannot be installed by anybody. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP

_MINOR = re.compile(r"v?1\.(\d{1,9})(?!\d)")
# Of Kubernetes itself, also where a server serves nothing of them. What else ends with k8s.io comes with CRDs.
KUBERNETES_GROUPS = frozenset(
    {
        "",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
        ADMISSION_GROUP,
        RBAC_GROUP,
    }
)


class Lack(StrEnum):
    """Why a kind is not served in a version."""

    REMOVED = "removed"  # Kubernetes no longer has it
    NOT_IN_RELEASE = "not-in-release"  # Kubernetes' own, of another release or switched off
    OTHER_VERSION = "other-version"  # an extension that is installed serves it in other versions
    UNDEFINED = "undefined"  # nothing that is installed defines it


@dataclass(frozen=True, slots=True)
class Absence:
    """That a cluster does not serve a kind in a version. `served` are the API versions in which it has the kind,
    `removed_in` is the release of Kubernetes that removed it, "" where none did, and `instead` what takes its place
    where the cluster has the kind in no version."""

    lack: Lack
    words: str
    served: tuple[str, ...] = ()
    removed_in: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Removal:
    """The minor version of Kubernetes in which an API is gone, and what takes its place."""

    minor: int
    instead: str

    @property
    def groups(self) -> set[str]:
        """The API group of what takes its place; none where that is no API."""
        group, is_api, _ = self.instead.rpartition("/")
        return {group} if is_api else set()


# By (group, version, kind), "" as kind for every kind of it. From the Deprecated API Migration Guide of Kubernetes
# (kubernetes.io/docs/reference/using-api/deprecation-guide); alpha versions, which it leaves out, by what k8s.io/api
# says of its types: from that release on they are not served, even where their code is still there.
_REMOVALS: dict[tuple[str, str, str], Removal] = {
    ("extensions", "v1beta1", "Ingress"): Removal(22, "networking.k8s.io/v1"),
    ("extensions", "v1beta1", "NetworkPolicy"): Removal(16, "networking.k8s.io/v1"),
    ("extensions", "v1beta1", "PodSecurityPolicy"): Removal(16, "Pod Security Admission"),
    ("extensions", "v1beta1", ""): Removal(16, "apps/v1"),
    ("apps", "v1beta1", ""): Removal(16, "apps/v1"),
    ("apps", "v1beta2", ""): Removal(16, "apps/v1"),
    (ADMISSION_GROUP, "v1beta1", "MutatingWebhookConfiguration"): Removal(22, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1beta1", "ValidatingWebhookConfiguration"): Removal(22, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1alpha1", "ValidatingAdmissionPolicy"): Removal(32, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1alpha1", "ValidatingAdmissionPolicyBinding"): Removal(32, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1beta1", "ValidatingAdmissionPolicy"): Removal(34, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1beta1", "ValidatingAdmissionPolicyBinding"): Removal(34, f"{ADMISSION_GROUP}/v1"),
    ("apiextensions.k8s.io", "v1beta1", ""): Removal(22, "apiextensions.k8s.io/v1"),
    ("apiregistration.k8s.io", "v1beta1", ""): Removal(22, "apiregistration.k8s.io/v1"),
    ("authentication.k8s.io", "v1beta1", "TokenReview"): Removal(22, "authentication.k8s.io/v1"),
    ("authorization.k8s.io", "v1beta1", ""): Removal(22, "authorization.k8s.io/v1"),
    ("autoscaling", "v2beta1", ""): Removal(25, "autoscaling/v2"),
    ("autoscaling", "v2beta2", ""): Removal(26, "autoscaling/v2"),
    ("batch", "v1beta1", ""): Removal(25, "batch/v1"),
    ("certificates.k8s.io", "v1beta1", "CertificateSigningRequest"): Removal(22, "certificates.k8s.io/v1"),
    ("coordination.k8s.io", "v1beta1", "Lease"): Removal(22, "coordination.k8s.io/v1"),
    ("discovery.k8s.io", "v1beta1", ""): Removal(25, "discovery.k8s.io/v1"),
    ("events.k8s.io", "v1beta1", ""): Removal(25, "events.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", ""): Removal(26, "flowcontrol.apiserver.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", ""): Removal(29, "flowcontrol.apiserver.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", ""): Removal(32, "flowcontrol.apiserver.k8s.io/v1"),
    ("networking.k8s.io", "v1beta1", "Ingress"): Removal(22, "networking.k8s.io/v1"),
    ("networking.k8s.io", "v1beta1", "IngressClass"): Removal(22, "networking.k8s.io/v1"),
    ("node.k8s.io", "v1beta1", ""): Removal(25, "node.k8s.io/v1"),
    ("policy", "v1beta1", "PodDisruptionBudget"): Removal(25, "policy/v1"),
    ("policy", "v1beta1", "PodSecurityPolicy"): Removal(25, "Pod Security Admission"),
    (RBAC_GROUP, "v1alpha1", ""): Removal(23, f"{RBAC_GROUP}/v1"),
    (RBAC_GROUP, "v1beta1", ""): Removal(22, f"{RBAC_GROUP}/v1"),
    ("resource.k8s.io", "v1alpha3", "DeviceClass"): Removal(34, "resource.k8s.io/v1"),
    ("resource.k8s.io", "v1alpha3", "ResourceClaim"): Removal(34, "resource.k8s.io/v1"),
    ("resource.k8s.io", "v1alpha3", "ResourceClaimTemplate"): Removal(34, "resource.k8s.io/v1"),
    ("resource.k8s.io", "v1alpha3", "ResourceSlice"): Removal(34, "resource.k8s.io/v1"),
    ("scheduling.k8s.io", "v1alpha1", ""): Removal(23, "scheduling.k8s.io/v1"),
    ("scheduling.k8s.io", "v1beta1", ""): Removal(22, "scheduling.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "CSIStorageCapacity"): Removal(27, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "CSIDriver"): Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "CSINode"): Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "StorageClass"): Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "VolumeAttachment"): Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1alpha1", "CSIStorageCapacity"): Removal(24, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1alpha1", "VolumeAttachment"): Removal(24, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1alpha1", "VolumeAttributesClass"): Removal(35, "storage.k8s.io/v1"),
    ("storagemigration.k8s.io", "v1alpha1", ""): Removal(35, "storagemigration.k8s.io/v1beta1"),
}


def removal_of(group: str, version: str, kind: str) -> Removal | None:
    """When Kubernetes takes an API of its own away, None where that is not known to happen."""
    return _REMOVALS.get((group, version, kind)) or _REMOVALS.get((group, version, ""))


def absence_of(
    group: str, version: str, kind: str, served: Iterable[tuple[str, str, str]], *, release: str = ""
) -> Absence:
    """Why a cluster that serves `served`, (group, version, kind) each, serves no `kind` in this version.

    `release` is the cluster's version of Kubernetes, such as v1.36.3: one before a removal may have the API switched
    off. "" where it is not known.
    """
    removal = removal_of(group, version, kind)
    groups = {group} | (removal.groups if removal else set())
    found = dict.fromkeys(_api(one, other) for one, other, name in served if name == kind and one in groups)
    elsewhere = tuple(one for one in found if one != _api(group, version))
    words = f"the cluster serves no {kind} in {_api(group, version)}"
    instead = f"; it serves this kind in {', '.join(elsewhere)}" if elsewhere else ""
    minor = minor_of(release)
    if removal is not None and (minor is None or minor >= removal.minor):
        gone = f"which Kubernetes no longer serves as of 1.{removal.minor}"
        other = "" if elsewhere else removal.instead
        words = f"{words}, {gone}{instead or f'; {other} takes its place'}"
        return Absence(Lack.REMOVED, words, elsewhere, f"1.{removal.minor}", other)
    if group in KUBERNETES_GROUPS:
        own = "an API of Kubernetes itself that this release does not have, or that is not enabled"
        return Absence(Lack.NOT_IN_RELEASE, f"{words}, {own}{instead}", elsewhere)
    return Absence(Lack.OTHER_VERSION if elsewhere else Lack.UNDEFINED, f"{words}{instead}", elsewhere)


def minor_of(release: str) -> int | None:
    """36 of v1.36.3; None where it is not known."""
    match = _MINOR.match(release)
    return int(match.group(1)) if match else None


def _api(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
