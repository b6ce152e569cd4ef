"""Whether the namespace and the kind of an object are there when it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.rbac import BUILT_IN_RESOURCES, plural_of
from provisioner.review.base.facts import ReviewRule, mapping, maps
from provisioner.review.preflight.facts import NAMESPACE, TOO_EARLY, UNKNOWN, PreflightFacts, ResourceWord
from provisioner.unserved import Absence, Lack, absence_of
from provisioner.values import Finding, GroupKind, Manifest, ObjectIdentity, ObjectRef, Section, Severity

_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_NO_NAMESPACE = ReviewRule("PRE-05", Section.PREFLIGHT, Severity.BREAKING)
_NO_KIND = ReviewRule("PRE-07", Section.PREFLIGHT, Severity.BREAKING)
_VARIANTS = {Lack.REMOVED: "PRE-07a", Lack.NOT_IN_RELEASE: "PRE-07b", Lack.OTHER_VERSION: "PRE-07c"}


def of_place(
    facts: PreflightFacts, ref: ObjectRef, seen: Mapping[ObjectIdentity, Manifest], coming: set[ObjectIdentity]
) -> Iterator[Finding]:
    namespace = (NAMESPACE.group, NAMESPACE.kind, "", ref.namespace)
    if not ref.namespace or facts.namespaces is None or ref.namespace in facts.namespaces or namespace in seen:
        return
    where = ("metadata", "namespace")
    if namespace in coming:
        yield TOO_EARLY.finding("before-namespace", ref, where=where)
    else:
        yield _NO_NAMESPACE.finding("not-there", ref, where=where, key=ref.namespace, namespace=ref.namespace)


def of_no_kind(facts: PreflightFacts, ref: ObjectRef) -> Finding:
    if _definition(facts.manifests, ref) is not None:
        return TOO_EARLY.finding("before-definition", ref, where=("kind",))
    if facts.kinds is None:
        return UNKNOWN.finding("kind-unknown", ref, where=("kind",))
    if ref.group in facts.unanswered:
        return UNKNOWN.finding("server-silent", ref, where=("kind",), group=ref.group)
    absence = absence_of(ref.group, ref.version, ref.kind, facts.kinds, release=facts.release)
    found = _NO_KIND.finding(
        str(absence.lack),
        ref,
        where=("kind",),
        key=ref.api_version,
        kind=ref.kind,
        api=ref.api_version,
        removedIn=absence.removed_in or None,
        servedIn=list(absence.served) or None,
        instead=absence.instead or None,
    )
    return replace(found, evidence={**found.evidence, **evidence_of(absence)})


def evidence_of(absence: Absence) -> dict[str, Any]:
    """Why nothing serves a kind, as a finding of PRE-07 has it: with the variant that says what to do about that."""
    told = {"variant": _VARIANTS.get(absence.lack), "removedIn": absence.removed_in, "servedIn": list(absence.served)}
    return {name: value for name, value in told.items() if value}


def kind_of(facts: PreflightFacts, ref: ObjectRef, seen: Mapping[ObjectIdentity, Manifest]) -> ResourceWord | None:
    """What the cluster serves, or an earlier CRD defines; without a cluster what Kubernetes itself has."""
    served = (facts.kinds or {}).get((ref.group, ref.version, ref.kind))
    if served is not None:
        return served
    defined = _definition(seen.values(), ref)
    if defined is not None or facts.kinds is not None:
        return defined
    plural = plural_of(ref.kind)
    return ResourceWord(plural, bool(ref.namespace)) if plural in BUILT_IN_RESOURCES.get(ref.group, ()) else None


def _definition(manifests: Any, ref: ObjectRef) -> ResourceWord | None:
    for manifest in manifests:
        spec = mapping(manifest.body.get("spec"))
        names = mapping(spec.get("names"))
        if manifest.ref.group_kind != _CRD or (spec.get("group"), names.get("kind")) != (ref.group, ref.kind):
            continue
        if any(one.get("name") == ref.version and one.get("served") for one in maps(spec.get("versions"))):
            return ResourceWord(str(names.get("plural")), spec.get("scope") == "Namespaced")
    return None
