"""What objects read at run time: configuration and secrets that are missing, immutable, or named like credentials."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.facts import SECRET, Check, Facts, Rule, State, mapping, maps, said
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_NAMED_SO = Rule("SEC-02", Section.CONTENT, Severity.DANGEROUS)
_IMMUTABLE = Rule("SEC-03", Section.OBJECTS, Severity.BREAKING)
_MISSING = Rule("SEC-04", Section.PODS, Severity.BREAKING)
_MADE_LATER = Rule("SEC-04", Section.PODS, Severity.NOTABLE)
_MISSING_UNKNOWN = Rule("SEC-04", Section.PODS, Severity.UNKNOWN)
_NOT_ROLLED = Rule("SEC-05", Section.PODS, Severity.DANGEROUS)
_TOKEN = Rule("SEC-06", Section.CONTENT, Severity.NOTABLE)
_JOINS = Rule("SEC-06", Section.CONTENT, Severity.DANGEROUS)
_NO_PULL_SECRET = Rule("IMG-09", Section.IMAGES, Severity.DANGEROUS)

_CONFIG_MAP = GroupKind("", "ConfigMap")
_KINDS = frozenset({_CONFIG_MAP, SECRET})
_IN_EVERY_NAMESPACE = frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"})
_CREDENTIAL = re.compile(
    r"(^|[_.-])(pass(word|wd|phrase)?|pwd|secret([_-]?key)?|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)$",
    re.IGNORECASE,
)
# Values that name where a credential is, or that there is none, are none themselves.
_HARMLESS = re.compile(
    r"|true|false|none|null|\d{1,4}|/[\w./-]+|\$[({].*|.*\.(pem|crt|key|json|yaml|txt)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A ConfigMap or Secret that a pod reads; `key` is "" where it reads the whole."""

    pod: PodSpec
    ref: ObjectRef
    key: str
    is_optional: bool
    is_pull_secret: bool = False


def mentions(pod: PodSpec) -> Iterator[Mention]:
    """Every ConfigMap and Secret that a pod template names."""
    for container in pod.containers():
        for entry in maps(container.body.get("envFrom")):
            yield from _of(pod, entry, {"configMapRef": "ConfigMap", "secretRef": "Secret"})
        for entry in maps(container.body.get("env")):
            source = mapping(entry.get("valueFrom"))
            yield from _of(pod, source, {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"})
    for volume in maps(pod.body.get("volumes")):
        for part in (volume, *maps(mapping(volume.get("projected")).get("sources"))):
            yield from _of(pod, part, {"configMap": "ConfigMap", "secret": "Secret"})
    for one in maps(pod.body.get("imagePullSecrets")):
        if one.get("name"):
            yield Mention(pod, _ref(pod, "Secret", str(one["name"])), "", True, is_pull_secret=True)


def _of(pod: PodSpec, holder: Mapping[str, Any], kinds: Mapping[str, str]) -> Iterator[Mention]:
    for key, kind in kinds.items():
        named = mapping(holder.get(key))
        name = str(named.get("name") or named.get("secretName") or "")
        if name:
            yield Mention(pod, _ref(pod, kind, name), str(named.get("key") or ""), named.get("optional") is True)


def _ref(pod: PodSpec, kind: str, name: str) -> ObjectRef:
    return ObjectRef("", "v1", kind, pod.ref.namespace, name)


def _standing(state: State) -> Iterator[Finding]:
    for ref, obj in state.named:
        if ref.group_kind == _CONFIG_MAP:
            yield from _of_names(ref, mapping(obj.get("data")), ("data",))
        elif ref.group_kind == SECRET and obj.get("type") == "bootstrap.kubernetes.io/token":
            message = f"{said(ref)} is a bootstrap token: whoever knows it can register a node and act as it"
            yield _JOINS.at(ref, message, path=("type",))
        elif ref.group_kind == SECRET and obj.get("type") == "kubernetes.io/service-account-token":
            account = mapping(mapping(obj.get("metadata")).get("annotations")).get("kubernetes.io/service-account.name")
            message = f"{said(ref)} makes a token of the ServiceAccount {account} that never expires"
            yield _TOKEN.at(ref, message, evidence={"account": str(account)}, key=str(account))
    for pod in pod_specs(state.objects):
        for container in pod.containers():
            literal = {str(one.get("name")): one.get("value") for one in maps(container.body.get("env"))}
            yield from _of_names(pod.ref, literal, (*container.path, "env"))


def _of_names(ref: ObjectRef, values: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Keys that are named like credentials and have a value that could be one. The value is never shown."""
    for key, value in sorted(values.items(), key=lambda it: str(it[0])):
        if isinstance(value, str) and _CREDENTIAL.search(str(key)) and not _HARMLESS.fullmatch(value.strip()):
            message = f"{said(ref)} holds {key} as plain text: whoever may read the object can read it"
            yield _NAMED_SO.at(ref, message, path=(*path, str(key)), evidence={"key": str(key)}, key=str(key))


def _changes(facts: Facts) -> Iterator[Finding]:
    yield from _of_immutable(facts)
    yield from _of_missing(facts)
    yield from _of_stale_pods(facts)


def _of_immutable(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind in _KINDS and planned.action in {Action.UPDATE, Action.REPLACE}:
            before, after = planned.before or {}, planned.after or {}
            parts = ("data", "binaryData", "stringData", "immutable")
            if before.get("immutable") is True and any(before.get(one) != after.get(one) for one in parts):
                message = f"{said(planned.ref)} is immutable and would change: it can only be deleted and created again"
                yield _IMMUTABLE.at(planned.ref, message, path=("immutable",))


def _of_missing(facts: Facts) -> Iterator[Finding]:
    brought = {ref.identity: obj for ref, obj in facts.state().named}
    seen = set()
    for pod in pod_specs(facts.state().objects):
        for one in mentions(pod):
            if (pod.ref, one.ref, one.key) in seen or (one.is_optional and not one.is_pull_secret):
                continue
            seen.add((pod.ref, one.ref, one.key))
            found = _missing(one, brought.get(one.ref.identity), facts)
            if found is not None:
                yield found


def _missing(one: Mention, brought: JsonObject | None, facts: Facts) -> Finding | None:
    """What is wrong with a mention, None where nothing is, or nothing that offline could be known."""
    pod, what = one.pod.ref, said(one.ref)
    key = [str(one.ref), one.key]
    if brought is not None:
        keys = {key for part in ("data", "binaryData", "stringData") for key in mapping(brought.get(part))}
        if not one.key or one.key in keys:
            return None
        message = f"{said(pod)} reads the key {one.key} of {what}, which has no such key: its pods do not start"
        return _MISSING.at(pod, message, path=one.pod.path, evidence={"reads": what, "key": one.key}, key=key)
    exists = facts.around.exists.get(one.ref.identity)
    if exists or facts.is_offline or one.ref.name in _IN_EVERY_NAMESPACE:
        return None
    rule, words = _MISSING, "which is neither in the bundle nor in the cluster: its pods do not start"
    if (maker := _maker(one.ref, facts)) is not None:
        rule, words = _MADE_LATER, f"which {said(maker)} shall make: its pods start when that is done"
    elif exists is None:
        rule, words = _MISSING_UNKNOWN, "and whether it exists is not known"
    elif one.is_pull_secret:
        rule, words = (
            _NO_PULL_SECRET,
            "which is neither in the bundle nor in the cluster: private images cannot be pulled",
        )
    message = f"{said(pod)} reads {what}, {words}"
    return rule.at(pod, message, path=one.pod.path, evidence={"reads": what}, key=key)


def _maker(wanted: ObjectRef, facts: Facts) -> ObjectRef | None:
    """An object of the bundle that names the wanted one as its result, as certificates and external secrets do."""
    for manifest in facts.content.manifests:
        ref, spec = manifest.ref, mapping(manifest.body.get("spec"))
        if "." in ref.group and ref.namespace == wanted.namespace:
            results = {spec.get("secretName"), mapping(spec.get("target")).get("name")}
            if wanted.name in results or (ref.name == wanted.name and wanted.kind in ref.kind):
                return ref
    return None


def _of_stale_pods(facts: Facts) -> Iterator[Finding]:
    """Configuration that changes while the pods that read it stay: they go on with what they read at their start."""
    touched = {one.ref for one in facts.plan.actions if one.ref.group_kind in _KINDS and one.action is Action.UPDATE}
    before = {one.ref.identity: one.before for one in facts.plan.actions}
    for pod in pod_specs(facts.state().objects):
        read = sorted({one.ref for one in mentions(pod) if one.ref in touched and not one.is_pull_secret})
        old = before.get(pod.ref.identity)
        if read and old is not None and _same_template(old, pod):
            names = ", ".join(said(ref) for ref in read)
            message = f"{names} changes, but {said(pod.ref)} does not: its pods may go on with the old values"
            yield _NOT_ROLLED.at(pod.ref, message, evidence={"reads": [str(ref) for ref in read]}, key=str(read))


def _same_template(old: JsonObject, pod: PodSpec) -> bool:
    former = next(pod_specs((old,)), None)
    if former is None:
        return False
    states = [[dict(one.body), dict(one.annotations)] for one in (former, pod)]
    first, second = (json.dumps(side, sort_keys=True, default=str) for side in states)
    return first == second


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    brought = {one.ref.identity for one in facts.content.manifests}
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        yield from (one.ref for one in mentions(pod) if one.ref.identity not in brought and pod.ref.namespace)


CHECK = Check("settings", changes=_changes, standing=_standing, mentions=_mentions)
