"""What pods need by name, that is neither in the bundle nor in the cluster: they do not start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, Reads, ReviewRule, mapping, maps
from provisioner.review.rights.accounts import Makers
from provisioner.review.workloads.pod_specs import Mention, PodSpec, mentions, pod_specs
from provisioner.values import Action, Finding, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

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


def _changes(facts: Facts) -> Iterator[Finding]:
    brought = {ref.identity: obj for ref, obj in facts.state().named}
    earlier = {ref.identity: obj for ref, obj in facts.previous_state().named}
    before = set(_named_before(facts))
    makers = Makers(facts)
    seen = set()
    for pod in pod_specs(facts.state().objects):
        for one in mentions(pod):
            if (pod.ref, one.ref, one.key) in seen or one.is_optional or not pod.ref.namespace:
                continue
            seen.add((pod.ref, one.ref, one.key))
            if one.ref.identity in brought:
                yield from _of_key(one, brought[one.ref.identity], had=earlier.get(one.ref.identity))
            elif (one.ref.kind, one.ref.name) not in _IN_EVERY_NAMESPACE:
                yield from _of_absent(one, facts, before, makers)
        yield from _of_files(pod, brought)


def _of_key(one: Mention, brought: JsonObject, had: JsonObject | None) -> Iterator[Finding]:
    """A key that an object of the bundle has not. One that comes without any is there to be filled by somebody."""
    if one.key and one.key not in (keys := _keys(brought)):
        rule, variant = (_MISSING, "no-key") if keys or one.key in _keys(had) else (_MADE_LATER, "empty")
        key = [str(one.ref), one.key]
        yield rule.finding(variant, one.pod.ref, where=one.pod.path, key=key, reads=one.ref, name=one.key)


def _keys(obj: JsonObject | None) -> set[str]:
    return {key for part in ("data", "binaryData", "stringData") for key in mapping((obj or {}).get(part))}


def _of_files(pod: PodSpec, brought: Mapping[ObjectIdentity, JsonObject]) -> Iterator[Finding]:
    """Single files that containers mount of an object of the bundle which has no such key, or gives it another name."""
    volumes = {str(one.get("name")): one for one in maps(pod.body.get("volumes"))}
    for container in pod.containers():
        for mount in maps(container.body.get("volumeMounts")):
            file, volume = str(mount.get("subPath") or ""), volumes.get(str(mount.get("name")), {})
            source = mapping(volume.get("configMap") or volume.get("secret"))
            named = str(source.get("name") or source.get("secretName") or "")
            ref = ObjectRef("", "v1", "ConfigMap" if "configMap" in volume else "Secret", pod.ref.namespace, named)
            keys = _keys(brought.get(ref.identity))
            files = {str(one.get("path")) for one in maps(source.get("items"))} or keys
            if file and keys and not any(one == file or one.startswith(f"{file}/") for one in files):
                told = {"container": container.name, "reads": ref, "file": file, "path": mount.get("mountPath")}
                key = [container.name, str(ref), file]
                yield _MISSING.finding("no-file", pod.ref, where=container.path, key=key, **told)


def _of_absent(one: Mention, facts: Facts, before: set[ObjectIdentity], makers: Makers) -> Iterator[Finding]:
    """What is not in the bundle: whether the cluster has it, or will have it."""
    exists = facts.around.exists.get(one.ref.identity)
    goes = one.ref.identity in _deleted(facts)
    if exists and not goes:
        return
    maker, able = makers.with_result(one.ref), makers.able(one)
    is_known = one.ref.identity in before or facts.previous is None
    if facts.is_offline and not goes and (maker or able or is_known):
        return  # nobody can look, and it is as before
    if goes:
        rule, variant = _MISSING, "deleted"
    elif facts.is_offline:
        rule, variant = _MADE_LATER, "not-in-bundle"
    else:
        rule, variant = (_UNKNOWN, "unknown") if exists is None else (_MISSING, "absent")
    if maker or able:
        rule, variant = _MADE_LATER, "made-later" if maker else variant
    elif one.is_pull_secret and rule is _MISSING:
        rule = _NO_PULL_SECRET
    params = {"reads": one.ref, "kind": one.ref.kind, "maker": maker, **able}
    yield rule.finding(variant, one.pod.ref, where=one.pod.path, key=[str(one.ref), one.key], **params)


def _named_before(facts: Facts) -> Iterator[ObjectIdentity]:
    for pod in pod_specs(facts.previous_state().objects):
        yield from (one.ref.identity for one in mentions(pod))


def _deleted(facts: Facts) -> set[ObjectIdentity]:
    return {one.ref.identity for one in facts.plan.actions if one.action is Action.DELETE}


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    brought = {one.ref.identity for one in facts.content.manifests}
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        for one in mentions(pod):
            is_everywhere = (one.ref.kind, one.ref.name) in _IN_EVERY_NAMESPACE
            if one.ref.identity not in brought and pod.ref.namespace and not (one.is_optional or is_everywhere):
                yield one.ref


_CLAIMS = (Claim("IMG-09", PODS, ("{pod}.imagePullSecrets",), is_of_new=True),)

CHECK = Check("needs of pods", claims=_CLAIMS, changes=_changes, mentions=_mentions, reads=frozenset({Reads.ROLES}))
