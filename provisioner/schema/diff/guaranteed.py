"""What the API server guarantees of every object, whatever a schema says: asking for that too breaks none. Pure.

A resource has apiVersion, kind and metadata. The CRD gives the values of the first two, and the name is a DNS
subdomain. A resource inside a resource (x-kubernetes-embedded-resource) has an apiVersion and a kind, neither empty.
"""

from __future__ import annotations

from collections.abc import Mapping

from provisioner.schema.admission.pruning import TYPE_META
from provisioner.schema.diff.keywords import EMBEDDED
from provisioner.schema.reading import Schema, properties_of
from provisioner.schema.verdicts import Path

NAME: Schema = {
    "minLength": 1,
    "maxLength": 253,
    "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
}
FILLED: Schema = {"minLength": 1}
OF_EMBEDDED = frozenset({"apiVersion", "kind"})
DESCRIBED: Mapping[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


def always_there(old: Schema, new: Schema, path: Path) -> frozenset[str]:
    """The fields of a node that every object has, by what both schemas say of it."""
    if not path:
        return TYPE_META
    return OF_EMBEDDED if old.get(EMBEDDED) is True and new.get(EMBEDDED) is True else frozenset()


def with_guaranteed(schema: Schema, names: frozenset[str]) -> Schema:
    """The node, asking for what is there anyway."""
    if not names:
        return schema
    described = {name: it for name, it in DESCRIBED.items() if name in names}
    needed = sorted({*(schema.get("required") or ()), *names})
    return {**schema, "required": needed, "properties": {**described, **properties_of(schema)}}


def held_to(old: Schema, new: Schema, known: Schema) -> Schema:
    """`old` with what is `known` of every value, where only the new schema says something of that."""
    return {**old, **{key: it for key, it in known.items() if new.get(key) is not None and not old.get(key)}}
