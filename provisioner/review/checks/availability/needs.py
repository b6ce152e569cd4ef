"""What pods need by name, that is neither in the bundle nor in the cluster: they do not start."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from provisioner import rbac
from provisioner.rbac import RbacSubject
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, said
from provisioner.review.rights.rbac_before_after import rbac_before_after_of
from provisioner.review.workloads.mentions import Mention, mentions
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import AccessRequest, Action, Finding, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_MISSING = ReviewRule("SEC-04", Section.AVAILABILITY, Severity.BREAKING)
_MADE_LATER = ReviewRule("SEC-04", Section.AVAILABILITY, Severity.NOTABLE)
_UNKNOWN = ReviewRule("SEC-04", Section.AVAILABILITY, Severity.UNKNOWN)
_NO_PULL_SECRET = ReviewRule("IMG-09", Section.AVAILABILITY, Severity.DANGEROUS)

_IN_EVERY_NAMESPACE = frozenset(
    {
        ("ConfigMap", "kube-root-ca.crt"),
        ("ConfigMap", "openshift-service-ca.crt"),
        ("ServiceAccount", "default"),
    }
)
# Annotations of Services by which a controller of the platform makes a Secret.
_SERVING_CERTIFICATES = (
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
)
# Fields of custom resources that hold the object that is made of them.
_TARGETS = ("target", "destination")
# What runs to an end.
_ENDING = frozenset({"Job", "Pod"})
MAX_MAKERS = 3
_VERBS = {
    "ConfigMap": "reads",
    "PersistentVolumeClaim": "mounts",
    "Secret": "reads",
    "ServiceAccount": "runs as",
}


def _changes(facts: Facts) -> Iterator[Finding]:
    brought = {ref.identity: obj for ref, obj in facts.state().named}
    before = set(_named_before(facts))
    makers = _Makers(facts)
    seen = set()
    for pod in pod_specs(facts.state().objects):
        for one in mentions(pod):
            if (pod.ref, one.ref, one.key) in seen or one.is_optional or not pod.ref.namespace:
                continue
            seen.add((pod.ref, one.ref, one.key))
            if one.ref.identity in brought:
                yield from _of_key(one, brought[one.ref.identity])
            elif (one.ref.kind, one.ref.name) not in _IN_EVERY_NAMESPACE:
                yield from _of_absent(one, facts, before, makers)


def _of_key(one: Mention, brought: JsonObject) -> Iterator[Finding]:
    """A key that an object of the bundle has not."""
    keys = {key for part in ("data", "binaryData", "stringData") for key in mapping(brought.get(part))}
    if one.key and one.key not in keys:
        pod, what = one.pod.ref, said(one.ref)
        message = f"{said(pod)} reads the key {one.key} of {what}, which has no such key: its pods do not start"
        evidence = {"reads": what, "key": one.key}
        yield _MISSING.at(pod, message, path=one.pod.path, evidence=evidence, key=[str(one.ref), one.key])


def _of_absent(one: Mention, facts: Facts, before: set[ObjectIdentity], makers: _Makers) -> Iterator[Finding]:
    """What is not in the bundle: whether the cluster has it, or will have it."""
    exists = facts.around.exists.get(one.ref.identity)
    goes = one.ref.identity in _deleted(facts)
    if exists and not goes:
        return
    result, able = makers.with_result(one.ref), makers.able(one)
    is_known = one.ref.identity in before or facts.previous is None
    if facts.is_offline and not goes and (result or able or is_known):
        return  # nobody can look, and it is as before
    rule, words = _why_absent(facts, exists=exists, goes=goes)
    if result:
        rule, words = _MADE_LATER, f"which {result} shall make: its pods start when that is done"
    elif able:
        rule, words = (
            _MADE_LATER,
            f"{words}{': its pods do not start without it,' if exists is None and not goes else ''} {able}",
        )
    elif one.is_pull_secret and rule is _MISSING:
        rule, words = _NO_PULL_SECRET, f"{words.rpartition(': ')[0]}: private images cannot be pulled"
    pod, what = one.pod.ref, said(one.ref)
    message = f"{said(pod)} {_VERBS[one.ref.kind]} {what}, {words}"
    yield rule.at(pod, message, path=one.pod.path, evidence={"reads": what}, key=[str(one.ref), one.key])


def _why_absent(facts: Facts, *, exists: bool | None, goes: bool) -> tuple[ReviewRule, str]:
    if goes:
        return _MISSING, "which this change deletes: its pods do not start any more"
    if facts.is_offline:
        return _MADE_LATER, "which is not in the bundle: its pods start only if the cluster has it"
    if exists is None:
        return _UNKNOWN, "and whether it exists is not known"
    return _MISSING, "which is neither in the bundle nor in the cluster: its pods do not start"


def _named_before(facts: Facts) -> Iterator[ObjectIdentity]:
    for pod in pod_specs(facts.previous_state().objects):
        yield from (one.ref.identity for one in mentions(pod))


def _deleted(facts: Facts) -> set[ObjectIdentity]:
    return {one.ref.identity for one in facts.plan.actions if one.action is Action.DELETE}


class _Makers:
    """Who of the bundle makes what its pods need, read once for all that is missing."""

    def __init__(self, facts: Facts):
        self._facts = facts

    def with_result(self, wanted: ObjectRef) -> str:
        """The object that names the wanted one as its result, "" where none does."""
        found = (one.ref for one in self._facts.content.manifests if _results_in(one.ref, one.body, wanted))
        return next(map(said, found), "")

    def able(self, need: Mention) -> str:
        """Which pods of the bundle may create what one of them needs: "unless Job shop/certgen makes it", "" for none.

        So init containers, jobs and operators make what pods read: nobody can see by their names what they make. Those
        that run to an end come first, as that is what they are for.
        """
        wanted, own = need.ref, need.pod.ref
        asked = AccessRequest("create", wanted.group, f"{wanted.kind.lower()}s", namespace=wanted.namespace)
        may = [
            account
            for account in self._running
            if rbac.allows_in(rbac.effective_rules(account.identity, self._known), asked)
        ]
        refs = {ref for account in may for ref in self._running[account]}
        ordered = sorted(refs, key=lambda it: (it == own, it.kind not in _ENDING, it))
        makers = ["a container of their own" if ref == own else said(ref) for ref in ordered]
        return f"unless {' or '.join(makers[:MAX_MAKERS])} makes it" if makers else ""

    @cached_property
    def _running(self) -> dict[RbacSubject, list[ObjectRef]]:
        """What runs as which account."""
        found: dict[RbacSubject, list[ObjectRef]] = {}
        for pod in pod_specs(tuple(one.body for one in self._facts.content.manifests)):
            name = pod.body.get("serviceAccountName") or pod.body.get("serviceAccount") or "default"
            place = pod.ref.namespace or self._facts.content.install_namespace
            found.setdefault(RbacSubject("ServiceAccount", str(name), place), []).append(pod.ref)
        return found

    @cached_property
    def _known(self) -> rbac.RbacObjects:
        return rbac_before_after_of(self._facts).after


def _results_in(ref: ObjectRef, body: JsonObject, wanted: ObjectRef) -> bool:
    """Whether an object names the wanted one as its result, as certificates and external secrets do."""
    spec = mapping(body.get("spec"))
    if ref.group_kind.kind == "Service" and not ref.group and ref.namespace == wanted.namespace:
        annotations = mapping(mapping(body.get("metadata")).get("annotations"))
        return wanted.kind == "Secret" and wanted.name in {annotations.get(one) for one in _SERVING_CERTIFICATES}
    if "." not in ref.group or ref.namespace not in {"", wanted.namespace}:
        return False
    results: list[Any] = [spec.get("secretName"), *(mapping(spec.get(key)).get("name") for key in _TARGETS)]
    return wanted.name in results or (ref.name == wanted.name and wanted.kind in ref.kind)


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    brought = {one.ref.identity for one in facts.content.manifests}
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        for one in mentions(pod):
            is_everywhere = (one.ref.kind, one.ref.name) in _IN_EVERY_NAMESPACE
            if one.ref.identity not in brought and pod.ref.namespace and not (one.is_optional or is_everywhere):
                yield one.ref


_CLAIMS = (Claim("IMG-09", PODS, ("{pod}.imagePullSecrets",)),)

CHECK = Check("needs of pods", claims=_CLAIMS, changes=_changes, mentions=_mentions)
