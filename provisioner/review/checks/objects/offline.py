"""Objects held against schemas where no server can be asked yet: the bundle's own, or those that the cluster publishes.

A schema knows fields and types. What the server decides in code it does not know: quotas, other admission, and what
must not change or must agree between fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from provisioner.errors import InvalidManifest
from provisioner.review.base.facts import SECRET, Facts, ReviewRule, mapping, maps
from provisioner.schema import admit
from provisioner.sentences import unescaped
from provisioner.values import Action, Finding, GroupKind, ObjectRef, PlannedAction

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


class Untried(NamedTuple):
    """Why an object could not be tried: the message of OBJ-04, and the values that this shows."""

    variant: str
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OfflineResult:
    """`is_tried` where a schema was found, `is_own_kind` where it comes with the bundle, `is_served` in this version;
    `why` is what else stood in the way."""

    is_tried: bool
    errors: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    why: Untried | None = None
    is_own_kind: bool = False
    is_served: bool = True


def untried_kinds(facts: Facts) -> set[tuple[str, str, str]]:
    """The kinds, by (group, version, kind), of the objects that the cluster could not try and the bundle does not
    define."""
    untried = (one.ref for one in facts.plan.actions if is_untried(one))
    return {(ref.group, ref.version, ref.kind) for ref in untried if _definition(facts, ref) is None}


def is_untried(planned: PlannedAction) -> bool:
    """Whether a planned write is not proved, and nothing that stands in its way says why."""
    return not planned.is_proved and not planned.problem and planned.action in {Action.CREATE, Action.UPDATE}


def try_offline(facts: Facts, ref: ObjectRef) -> OfflineResult:
    """What the schema of its kind, the bundle's own or the cluster's, says of the object `ref` of the content."""
    definition = _definition(facts, ref)
    if definition is None:
        published = facts.around.schemas.get((ref.group, ref.version, ref.kind))
        return _answer(facts, ref, published) if published is not None else OfflineResult(False)
    version = next((one for one in maps(definition.get("versions")) if one.get("name") == ref.version), None)
    if version is None or not version.get("served"):
        return OfflineResult(True, is_served=False)
    schema = mapping(version.get("schema")).get("openAPIV3Schema")
    if not isinstance(schema, Mapping):
        return OfflineResult(False, why=Untried("no-schema", (("version", ref.version),)))
    return replace(_answer(facts, ref, schema), is_own_kind=True)


def of_several(rule: ReviewRule, variant: str, refs: list[ObjectRef], key: object, **params: Any) -> Finding:
    """One finding for all objects of which the same holds, which it names where it is one."""
    which, ref = ("one", refs[0]) if len(refs) == 1 else ("several", None)
    return rule.finding(variant, ref, key=key, objects=sorted(map(str, refs)), which=which, **params)


def _answer(facts: Facts, ref: ObjectRef, schema: Mapping[str, Any]) -> OfflineResult:
    body = next(one.body for one in facts.content.manifests if one.ref == ref)
    try:
        admission = admit(schema, body)
    except InvalidManifest as exc:
        return OfflineResult(False, why=Untried("schema-unreadable", (("problem", str(exc)),)))
    is_secret = ref.group_kind == SECRET
    errors = tuple(f"{one.path}: {'…' if is_secret else unescaped(one.message)}" for one in admission.refusals)
    return OfflineResult(True, errors, tuple(admission.pruned))


def _definition(facts: Facts, ref: ObjectRef) -> Mapping[str, Any] | None:
    return facts.once("definitions", _definitions).get((ref.group, ref.kind))


def _definitions(facts: Facts) -> dict[tuple[str, str], Mapping[str, Any]]:
    """What the bundle's CRDs say of kinds, by group and kind; of two for one kind the first."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for manifest in facts.content.manifests:
        if manifest.ref.group_kind == CRD:
            spec = mapping(manifest.body.get("spec"))
            found.setdefault((str(spec.get("group")), str(mapping(spec.get("names")).get("kind"))), spec)
    return found
