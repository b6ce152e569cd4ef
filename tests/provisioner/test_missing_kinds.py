"""Why a cluster serves no such kind in a version, and that nothing is said to be gone that Kubernetes has."""

from __future__ import annotations

import pytest

from provisioner.missing_kinds import KUBERNETES_GROUPS, Lack, absence_of, minor_of, removal_of
from provisioner.rbac import BUILT_IN_RESOURCES

CRD = "CustomResourceDefinition"
SERVED = (
    ("", "v1", "Event"),
    ("apiextensions.k8s.io", "v1", CRD),
    ("batch", "v1", "CronJob"),
    ("cert-manager.io", "v1", "Certificate"),
    ("cert-manager.io", "v1alpha3", "Certificate"),
    ("events.k8s.io", "v1", "Event"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("resource.k8s.io", "v1", "ResourceClaim"),
)
NOT_HERE = ", an API of Kubernetes itself that this release does not have, or that is not enabled"


@pytest.mark.parametrize(
    ("api", "lack", "words"),
    [
        pytest.param(
            ("apiextensions.k8s.io", "v1beta1", CRD),
            Lack.REMOVED,
            f"the cluster serves no {CRD} in apiextensions.k8s.io/v1beta1, which Kubernetes no longer serves as of 1.22; "
            "it serves this kind in apiextensions.k8s.io/v1",
            id="a removed version",
        ),
        pytest.param(
            ("extensions", "v1beta1", "Ingress"),
            Lack.REMOVED,
            "the cluster serves no Ingress in extensions/v1beta1, which Kubernetes no longer serves as of 1.22; it serves "
            "this kind in networking.k8s.io/v1",
            id="a kind that has another group now",
        ),
        pytest.param(
            ("policy", "v1beta1", "PodSecurityPolicy"),
            Lack.REMOVED,
            "the cluster serves no PodSecurityPolicy in policy/v1beta1, which Kubernetes no longer serves as of 1.25; Pod "
            "Security Admission takes its place",
            id="a kind that is gone altogether",
        ),
        pytest.param(
            ("events.k8s.io", "v1beta1", "Event"),
            Lack.REMOVED,
            "the cluster serves no Event in events.k8s.io/v1beta1, which Kubernetes no longer serves as of 1.25; it serves "
            "this kind in events.k8s.io/v1",
            id="not the kind of that name in a group that took nothing's place",
        ),
        pytest.param(
            ("resource.k8s.io", "v1alpha9", "ResourceClaim"),
            Lack.NOT_IN_RELEASE,
            f"the cluster serves no ResourceClaim in resource.k8s.io/v1alpha9{NOT_HERE}; it serves this kind in "
            "resource.k8s.io/v1",
            id="Kubernetes' own of another release",
        ),
        pytest.param(
            ("apps", "v1", "Fleet"), Lack.NOT_IN_RELEASE, f"the cluster serves no Fleet in apps/v1{NOT_HERE}", id="new"
        ),
        pytest.param(
            ("cert-manager.io", "v1alpha2", "Certificate"),
            Lack.OTHER_VERSION,
            "the cluster serves no Certificate in cert-manager.io/v1alpha2; it serves this kind in cert-manager.io/v1, "
            "cert-manager.io/v1alpha3",
            id="an extension's kind in other versions",
        ),
        pytest.param(
            ("cert-manager.io", "v1", "Issuer"),
            Lack.UNDEFINED,
            "the cluster serves no Issuer in cert-manager.io/v1",
            id="a kind that nothing defines",
        ),
        pytest.param(
            ("gateway.networking.k8s.io", "v1", "Gateway"),
            Lack.UNDEFINED,
            "the cluster serves no Gateway in gateway.networking.k8s.io/v1",
            id="a group of k8s.io that comes with CRDs",
        ),
    ],
)
def test_why_a_kind_is_not_served(api: tuple[str, str, str], lack: Lack, words: str) -> None:
    found = absence_of(*api, SERVED, release="v1.36.3")
    assert (found.lack, found.words) == (lack, words)
    assert absence_of(*api, SERVED) == found, "without the release, Kubernetes' removals are believed"


def test_the_release_and_the_versions_are_told_as_facts_too() -> None:
    found = absence_of("batch", "v1beta1", "CronJob", SERVED)
    assert (found.removed_in, found.served) == ("1.25", ("batch/v1",))


def test_a_release_before_the_removal_has_the_version_switched_off() -> None:
    assert absence_of("batch", "v1beta1", "CronJob", SERVED, release="v1.24.17").lack is Lack.NOT_IN_RELEASE
    assert absence_of("batch", "v1beta1", "CronJob", SERVED, release="v1.25.0").lack is Lack.REMOVED


@pytest.mark.parametrize(("release", "minor"), [("v1.36.3", 36), ("1.22+", 22), ("v1.30.4-gke.1", 30), ("", None)])
def test_the_minor_of_a_release(release: str, minor: int | None) -> None:
    assert minor_of(release) == minor


def test_kubernetes_own_groups_are_those_that_rights_know_and_those_that_may_be_switched_off() -> None:
    off = {"internal.apiserver.k8s.io", "resource.k8s.io", "storagemigration.k8s.io"}
    assert {group for group in BUILT_IN_RESOURCES if "." not in group or "k8s.io" in group} | off == KUBERNETES_GROUPS


@pytest.mark.parametrize(
    ("api", "minor"),
    [
        (("apps", "v1beta2", "Deployment"), 16),
        (("rbac.authorization.k8s.io", "v1beta1", "RoleBinding"), 22),
        (("rbac.authorization.k8s.io", "v1alpha1", "Role"), 23),
        (("policy", "v1beta1", "PodDisruptionBudget"), 25),
        (("autoscaling", "v2beta2", "HorizontalPodAutoscaler"), 26),
        (("storage.k8s.io", "v1beta1", "CSIStorageCapacity"), 27),
        (("flowcontrol.apiserver.k8s.io", "v1beta2", "FlowSchema"), 29),
        (("flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema"), 32),
        (("admissionregistration.k8s.io", "v1alpha1", "ValidatingAdmissionPolicy"), 32),
        (("admissionregistration.k8s.io", "v1alpha1", "ValidatingAdmissionPolicyBinding"), 32),
        (("admissionregistration.k8s.io", "v1beta1", "ValidatingAdmissionPolicy"), 34),
        (("storage.k8s.io", "v1alpha1", "CSIStorageCapacity"), 24),
        (("storage.k8s.io", "v1alpha1", "VolumeAttachment"), 24),
        (("storage.k8s.io", "v1alpha1", "VolumeAttributesClass"), 35),
    ],
)
def test_removals_are_those_of_the_migration_guide(api: tuple[str, str, str], minor: int) -> None:
    found = removal_of(*api)
    assert found is not None
    assert found.minor == minor


def test_what_kubernetes_keeps_is_not_removed() -> None:
    assert removal_of("apps", "v1", "Deployment") is None
