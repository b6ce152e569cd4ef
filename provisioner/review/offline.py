"""Custom resources held against the schema that comes in the same bundle, where no server can be asked yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.facts import Facts, mapping, maps
from provisioner.schema import admit
from provisioner.values import GroupKind, ObjectRef

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class Answer:
    """`is_tried` where a schema was found; `why` says what else stood in the way."""

    is_tried: bool
    errors: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    why: str = ""


def try_offline(facts: Facts, ref: ObjectRef) -> Answer:
    """What the schema of the bundle's own CRD says of the object `ref` of the content."""
    definition = _definition(facts, ref)
    if definition is None:
        return Answer(False)
    version = next((one for one in maps(definition.get("versions")) if one.get("name") == ref.version), None)
    if version is None or not version.get("served"):
        return Answer(True, errors=(f"its kind is not served in version {ref.version}",))
    schema = mapping(version.get("schema")).get("openAPIV3Schema")
    if not isinstance(schema, Mapping):
        return Answer(False, why=f"version {ref.version} of its kind has no schema")
    body = next(one.body for one in facts.content.manifests if one.ref == ref)
    admission = admit(schema, body)
    errors = tuple(f"{one.path}: {one.message}" for one in admission.refusals)
    return Answer(True, errors, tuple(admission.pruned))


def _definition(facts: Facts, ref: ObjectRef) -> Mapping[str, Any] | None:
    for manifest in facts.content.manifests:
        if manifest.ref.group_kind != CRD:
            continue
        spec = mapping(manifest.body.get("spec"))
        if spec.get("group") == ref.group and mapping(spec.get("names")).get("kind") == ref.kind:
            return spec
    return None
