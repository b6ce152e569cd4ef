"""Label and field selectors, as a query writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from provisioner.sandbox.status import bad_request
from provisioner.sandbox.types.kinds import SandboxKind

Labels = Mapping[str, str]
_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?)"
_SET = re.compile(rf"(?P<key>{_KEY})\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)")
_PAIR = re.compile(rf"(?P<key>{_KEY})\s*(?P<sign>==|=|!=)\s*(?P<value>[-A-Za-z0-9_.]*)")
_HAS = re.compile(rf"(?P<not>!?)\s*(?P<key>{_KEY})")
_FIELDS = {
    "Pod": {
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    },
    "Event": {
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    },
    "Secret": {"type"},
    "Namespace": {"status.phase", "name"},
    "Node": {"spec.unschedulable"},
    "ReplicaSet": {"status.replicas"},
    "ReplicationController": {"status.replicas"},
    "Job": {"status.successful"},
    "Service": {"spec.clusterIP", "spec.type"},
}  # fmt: skip


def labels(text: str) -> Callable[[Labels], bool]:
    """Whether labels fit a labelSelector; raises Refusal 400."""
    terms = [_label_term(term.strip()) for term in _split(text)]
    return lambda has: all(term(has) for term in terms)


def fields(text: str, kind: SandboxKind, more: set[str]) -> Callable[[dict[str, Any]], bool]:
    """Whether an object fits a fieldSelector; `more` are the paths a CRD makes selectable; raises Refusal 400."""
    known = {"metadata.name", "metadata.namespace", *_FIELDS.get(kind.kind, ()), *more}
    terms = [_field_term(term, known) for term in filter(None, text.split(","))]
    return lambda obj: all((_value(obj, path) == value) == is_same for path, value, is_same in terms)


def _split(text: str) -> list[str]:
    """Terms by commas outside of brackets."""
    terms, depth, current = [], 0, ""
    for one in text:
        depth += (one == "(") - (one == ")")
        if one == "," and depth == 0:
            terms.append(current)
            current = ""
        else:
            current += one
    return [term for term in [*terms, current] if term.strip()]


def _label_term(term: str) -> Callable[[Labels], bool]:
    if found := _SET.fullmatch(term):
        values = {value.strip() for value in found["values"].split(",")}
        return _among(found["key"], values, is_in=found["word"] == "in")
    if found := _PAIR.fullmatch(term):
        return _among(found["key"], {found["value"]}, is_in=found["sign"] != "!=")
    if found := _HAS.fullmatch(term):
        key, is_absent = found["key"], bool(found["not"])
        return lambda has: (key not in has) == is_absent
    words = term.split()
    if len(words) > 1:
        raise bad_request(f"unable to parse requirement: found '{words[1]}', expected: in, notin, =, ==, !=, gt, lt")
    raise bad_request(f"unable to parse requirement: found '{term}', expected: identifier")


def _among(key: str, values: set[str], *, is_in: bool) -> Callable[[Labels], bool]:
    return lambda has: (has.get(key) in values) == is_in


def _field_term(term: str, known: set[str]) -> tuple[str, str, bool]:
    is_same = "!=" not in term
    path, sign, value = term.partition("!=" if not is_same else "=")
    if not sign:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    if path not in known:
        listed = ", ".join(f'"{it}"' for it in sorted(known))
        raise bad_request(f'"{path}" is not a known field selector: only {listed}')
    return path, value.lstrip("="), is_same


def _value(obj: Any, path: str) -> str:
    for part in path.lstrip(".").split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    if isinstance(obj, bool):
        return str(obj).lower()
    return "" if obj is None else str(obj)
