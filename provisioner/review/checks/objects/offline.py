"""Objects held against schemas where no server can be asked yet: the bundle's own, or those that the cluster publishes.

A schema knows fields and types. What the server decides in code it does not know: quotas, other admission, and what
must not change or must agree between fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.review.base.facts import SECRET, Facts, mapping, maps
from provisioner.schema import admit
from provisioner.sentences import unescaped
from provisioner.values import Action, GroupKind, ObjectRef, PlannedAction

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class OfflineResult:
    """`is_tried` where a schema was found, `is_own_kind` where it comes with the bundle; `why` says what else stood in
    the way."""

    is_tried: bool
    errors: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    why: str = ""
    is_own_kind: bool = False


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
        return OfflineResult(True, errors=(f"its kind is not served in version {ref.version}",))
    schema = mapping(version.get("schema")).get("openAPIV3Schema")
    if not isinstance(schema, Mapping):
        return OfflineResult(False, why=f"version {ref.version} of its kind has no schema")
    return replace(_answer(facts, ref, schema), is_own_kind=True)


def _answer(facts: Facts, ref: ObjectRef, schema: Mapping[str, Any]) -> OfflineResult:
    body = next(one.body for one in facts.content.manifests if one.ref == ref)
    try:
        admission = admit(schema, body)
    except InvalidManifest as exc:
        return OfflineResult(False, why=f"the schema of its kind cannot be read: {exc}")
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
