"""What objects read at run time: configuration that is immutable, changes, or is named like a credential."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule, StateFacts, mapping, maps
from provisioner.review.workloads.pod_specs import PodSpec, mentions, pod_specs
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
            yield _JOINS.finding("bootstrap", ref, where=("type",))
        elif ref.group_kind == SECRET and obj.get("type") == "kubernetes.io/service-account-token":
            annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
            account = str(annotations.get("kubernetes.io/service-account.name"))
            yield _TOKEN.finding("never-expires", ref, key=account, account=account)
    for pod in pod_specs(state.objects):
        for container in pod.containers():
            literal = {str(one.get("name")): one.get("value") for one in maps(container.body.get("env"))}
            yield from _of_names(pod.ref, literal, (*container.path, "env"))


def _of_names(ref: ObjectRef, values: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Keys that are named like credentials and have a value that could be one. The value is never shown."""
    for name, value in sorted(((str(key), value) for key, value in values.items()), key=itemgetter(0)):
        if isinstance(value, str) and _CREDENTIAL.search(name) and not _HARMLESS.fullmatch(value.strip()):
            yield _NAMED_SO.finding("plain-text", ref, where=(*path, name), key=name, name=name)


def _changes(facts: Facts) -> Iterator[Finding]:
    yield from _of_immutable(facts)
    yield from _of_stale_pods(facts)


def _of_immutable(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind in _KINDS and planned.action in {Action.UPDATE, Action.REPLACE}:
            before, after = planned.before or {}, planned.after or {}
            parts = ("data", "binaryData", "stringData", "immutable")
            if before.get("immutable") is True and any(before.get(one) != after.get(one) for one in parts):
                yield _IMMUTABLE.finding("immutable", planned.ref, where=("immutable",))


def _of_stale_pods(facts: Facts) -> Iterator[Finding]:
    """Configuration that changes while the pods that read it stay: they go on with what they read at their start."""
    written = (one for one in facts.plan.actions if one.ref.group_kind in _KINDS and one.action is Action.UPDATE)
    touched = {one.ref for one in written if one.before is None or one.before != one.after}
    before = {one.ref.identity: one.before for one in facts.plan.actions}
    for pod in pod_specs(facts.state().objects):
        read = sorted({one.ref for one in mentions(pod) if one.ref in touched and one.is_read})
        old = before.get(pod.ref.identity)
        if read and old is not None and _same_template(old, pod):
            yield _NOT_ROLLED.finding("pods-stay", pod.ref, key=str(read), reads=read)


def _same_template(old: JsonObject, pod: PodSpec) -> bool:
    former = next(pod_specs((old,)), None)
    if former is None:
        return False
    states = [[dict(one.body), dict(one.annotations)] for one in (former, pod)]
    first, second = (json.dumps(side, sort_keys=True, default=str) for side in states)
    return first == second


_CLAIMS = (Claim("SEC-06", frozenset({SECRET}), ("type",), is_of_new=True),)

CHECK = Check("settings", claims=_CLAIMS, changes=_changes, standing=_standing)
