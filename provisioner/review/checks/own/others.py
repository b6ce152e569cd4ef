"""Objects that make somebody else act for the bundle with power of their own: deployers, and who signs certificates."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.rbac import CONTROL_PLANE, IDENTITIES, OTHER_DEPLOYERS, plural_of
from provisioner.review.base.facts import SECRET, ReviewRule, mapping, maps, what_it_says
from provisioner.review.checks.own.advice import advice_of
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
        yield _DEPLOYS.finding("deploys", ref, key=what_it_says(obj), group=ref.group, advice=advice_of(_DEPLOYS))
    signer = str(mapping(obj.get("spec")).get("signerName") or "") if ref.group_kind in _SIGNING else ""
    if signer.startswith(_SIGNERS_OF_KUBERNETES):
        yield _CERTIFICATE.finding("signed", ref, where=("spec", "signerName"), key=what_it_says(obj), signer=signer)
    if variant := _gives_identity(ref, obj):
        yield _CERTIFICATE.finding(variant, ref, key=what_it_says(obj), group=ref.group)


def _gives_identity(ref: ObjectRef, obj: JsonObject) -> str:
    if ref.group_kind == SECRET and ref.namespace == CONTROL_PLANE and obj.get("type") == _JOINS:
        return "joins"
    if any(_is_one_of(ref, one.group, one.resources) for one in IDENTITIES):
        return "identity"
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
