"""Objects that make somebody else act for the bundle with power of their own: deployers, and who signs certificates."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.rbac import OTHER_DEPLOYERS, plural_of
from provisioner.review.facts import Rule, State, mapping, maps, said
from provisioner.values import Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_DEPLOYS = Rule("OWN-PRATIQUE-07", Section.CONTENT, Severity.CRITICAL)
_CERTIFICATE = Rule("OWN-PRATIQUE-08", Section.PERMISSIONS, Severity.CRITICAL)
_KYVERNO = "kyverno.io"
_SIGNING = GroupKind("certificates.k8s.io", "CertificateSigningRequest")
_SIGNERS_OF_KUBERNETES = "kubernetes.io/"


def of_other_ways(state: State) -> Iterator[Finding]:
    for ref, obj in state.named:
        if _is_deployed(ref, obj):
            message = (
                f"{said(ref)} makes the controller of {ref.group} create objects with its own rights: what it creates "
                "is not in this report and is reviewed by nobody here. Put those objects into the bundle itself, or "
                "approve it as a person who knows what it names"
            )
            yield _DEPLOYS.at(ref, message)
        signer = str(mapping(obj.get("spec")).get("signerName") or "") if ref.group_kind == _SIGNING else ""
        if signer.startswith(_SIGNERS_OF_KUBERNETES):
            message = (
                f"{said(ref)} asks {signer} for a certificate with which its holder signs in to the cluster. Have the "
                "program sign in with a ServiceAccount"
            )
            yield _CERTIFICATE.at(ref, message, path=("spec", "signerName"), key=signer)


def _is_deployed(ref: ObjectRef, obj: JsonObject) -> bool:
    """Whether a known deployer acts on the object; of Kyverno only what changes or makes objects."""
    if not any(ref.group == one.group and plural_of(ref.kind) in one.resources for one in OTHER_DEPLOYERS):
        return False
    rules = maps(mapping(obj.get("spec")).get("rules"))
    return ref.group != _KYVERNO or any(one.get("mutate") or one.get("generate") for one in rules)
