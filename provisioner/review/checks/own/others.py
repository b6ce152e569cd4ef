"""Objects that make somebody else act for the bundle with power of their own: deployers, and who signs certificates."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.rbac import CONTROL_PLANE, IDENTITIES, OTHER_DEPLOYERS, plural_of
from provisioner.review.base.facts import SECRET, ReviewRule, mapping, maps, said, what_it_says
from provisioner.review.checks.own.advice import ADVICE, BRING_THEM
from provisioner.values import Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_DEPLOYS = ReviewRule("OWN-PRATIQUE-07", Section.CONTENT, Severity.CRITICAL)
_CERTIFICATE = ReviewRule("OWN-PRATIQUE-08", Section.PERMISSIONS, Severity.CRITICAL)
_KYVERNO = "kyverno.io"
_KYVERNO_POLICIES = frozenset({"Policy", "ClusterPolicy"})
_CERTIFICATES = "certificates.k8s.io"
_SIGNING = frozenset(
    {GroupKind(_CERTIFICATES, "CertificateSigningRequest"), GroupKind(_CERTIFICATES, "PodCertificateRequest")}
)
_JOINS = "bootstrap.kubernetes.io/token"
_SIGNERS_OF_KUBERNETES = "kubernetes.io/"


def of_other_ways(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    if _is_deployed(ref, obj):
        message = (
            f"{said(ref)} makes the controller of {ref.group} create objects with its own rights: what it creates "
            "is not in this report and is reviewed by nobody here"
        )
        yield _DEPLOYS.at(ref, message, evidence={ADVICE: BRING_THEM}, key=what_it_says(obj))
    signer = str(mapping(obj.get("spec")).get("signerName") or "") if ref.group_kind in _SIGNING else ""
    if signer.startswith(_SIGNERS_OF_KUBERNETES):
        message = (
            f"{said(ref)} asks {signer} for a certificate with which its holder signs in to the cluster. Have the "
            "program sign in with a ServiceAccount"
        )
        yield _CERTIFICATE.at(ref, message, path=("spec", "signerName"), key=what_it_says(obj))
    if words := _gives_identity(ref, obj):
        message = f"{said(ref)} {words}. Have a person approve it who knows whom it is for"
        yield _CERTIFICATE.at(ref, message, key=what_it_says(obj))


def _gives_identity(ref: ObjectRef, obj: JsonObject) -> str:
    if ref.group_kind == SECRET and ref.namespace == CONTROL_PLANE and obj.get("type") == _JOINS:
        return "is a token with which machines sign in to the cluster and become its nodes"
    if any(_is_one_of(ref, one.group, one.resources) for one in IDENTITIES):
        return f"says who somebody is or what they may do, to the server of {ref.group}"
    return ""


def _is_one_of(ref: ObjectRef, group: str, resources: tuple[str, ...]) -> bool:
    """Some resources are named as their kind is."""
    return ref.group == group and bool({plural_of(ref.kind), ref.kind.lower()} & set(resources))


def _is_deployed(ref: ObjectRef, obj: JsonObject) -> bool:
    """Whether a known deployer acts on the object; of Kyverno's policies only those that change or make objects."""
    if not any(_is_one_of(ref, one.group, one.resources) for one in OTHER_DEPLOYERS):
        return False
    rules = maps(mapping(obj.get("spec")).get("rules"))
    is_policy = ref.group == _KYVERNO and ref.kind in _KYVERNO_POLICIES
    return not is_policy or any(one.get("mutate") or one.get("generate") for one in rules)
