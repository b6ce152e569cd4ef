"""What objects read at run time: configuration that is immutable, changes, or is named like a credential."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule, StateFacts, mapping, maps, said
from provisioner.review.workloads.mentions import mentions
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_NAMED_SO = ReviewRule("SEC-02", Section.CONTENT, Severity.DANGEROUS)
_IMMUTABLE = ReviewRule("SEC-03", Section.OBJECTS, Severity.BREAKING)
_NOT_ROLLED = ReviewRule("SEC-05", Section.PODS, Severity.DANGEROUS)
_TOKEN = ReviewRule("SEC-06", Section.CONTENT, Severity.NOTABLE)
_JOINS = ReviewRule("SEC-06", Section.CONTENT, Severity.DANGEROUS)

_CONFIG_MAP = GroupKind("", "ConfigMap")
_KINDS = frozenset({_CONFIG_MAP, SECRET})
_CREDENTIAL = re.compile(
    r"(^|[_.-])(pass(word|wd|phrase)?|pwd|secret([_-]?key)?|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)$",
    re.IGNORECASE,
)
# Values that name where a credential is, or that there is none, are none themselves.
_HARMLESS = re.compile(
    r"|true|false|none|null|\d{1,4}|/[\w./-]+|\$[({].*|.*\.(pem|crt|key|json|yaml|txt)", re.IGNORECASE
)


def _standing(state: StateFacts) -> Iterator[Finding]:
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
    yield from _of_stale_pods(facts)


def _of_immutable(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind in _KINDS and planned.action in {Action.UPDATE, Action.REPLACE}:
            before, after = planned.before or {}, planned.after or {}
            parts = ("data", "binaryData", "stringData", "immutable")
            if before.get("immutable") is True and any(before.get(one) != after.get(one) for one in parts):
                message = f"{said(planned.ref)} is immutable and would change: it can only be deleted and created again"
                yield _IMMUTABLE.at(planned.ref, message, path=("immutable",))


def _of_stale_pods(facts: Facts) -> Iterator[Finding]:
    """Configuration that changes while the pods that read it stay: they go on with what they read at their start."""
    written = (one for one in facts.plan.actions if one.ref.group_kind in _KINDS and one.action is Action.UPDATE)
    touched = {one.ref for one in written if one.before is None or one.before != one.after}
    before = {one.ref.identity: one.before for one in facts.plan.actions}
    for pod in pod_specs(facts.state().objects):
        read = sorted({one.ref for one in mentions(pod) if one.ref in touched and one.is_read})
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


_CLAIMS = (Claim("SEC-06", frozenset({SECRET}), ("type",)),)

CHECK = Check("settings", claims=_CLAIMS, changes=_changes, standing=_standing)
