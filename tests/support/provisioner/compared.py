"""What `compare` says of small changes, for its tests."""

from __future__ import annotations

from typing import Any

from provisioner.schema import compare
from provisioner.values import Finding, Severity
from tests.support.provisioner.shapes import TEXT, JsonDict, crd_of, obj

SAFE, DANGEROUS, BREAKING, UNKNOWN = Severity.SAFE, Severity.DANGEROUS, Severity.BREAKING, Severity.UNKNOWN
KEEP: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}
IDIOM: JsonDict = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
A_OR_B: JsonDict = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}


def changes(old: JsonDict, new: JsonDict) -> list[Finding]:
    """What is found for a field `f` of the spec that changes from one schema to the other."""
    return compare(crd_of(obj(f=old)), crd_of(obj(f=new)))


def rules(findings: list[Finding]) -> list[tuple[str, Severity]]:
    return sorted((it.rule, it.severity) for it in findings)


def ruled(rule: str, **more: Any) -> JsonDict:
    return {**TEXT, "maxLength": 9, "x-kubernetes-validations": [{"rule": rule, **more}]}
