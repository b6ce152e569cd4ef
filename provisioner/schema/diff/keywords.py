"""Keywords that nothing here compares: those that no API server knows, and those of which it cannot be said."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.schema.diff.lists import LIST_TYPE, MAP_TYPE
from provisioner.schema.diff.rules import DOCS, RULES
from provisioner.schema.fields import is_same
from provisioner.schema.inclusion.facets import SCALAR_KEYWORDS
from provisioner.schema.reading import Schema
from provisioner.schema.verdicts import Path, SchemaChange, harmless, undecided

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
SIZES = frozenset({"minItems", "maxItems", "minProperties", "maxProperties"})
STRUCTURE = frozenset({"properties", "additionalProperties", "items", "required", "default", "nullable", "uniqueItems"})
JUNCTORS = frozenset({"allOf", "anyOf", "oneOf", "not"})
EXTENSIONS = frozenset({PRESERVE, EMBEDDED, LIST_TYPE, MAP_TYPE, "x-kubernetes-list-map-keys", RULES})
COMPARED = SCALAR_KEYWORDS | SIZES | STRUCTURE | JUNCTORS | EXTENSIONS | DOCS
NOT_STRUCTURAL = frozenset({"$ref", "additionalItems", "definitions", "dependencies", "patternProperties"})
KNOWN = COMPARED | NOT_STRUCTURAL


def compare_keywords(old: Schema, new: Schema, path: Path) -> Iterator[SchemaChange]:
    """A change for each keyword of one node that differs and that is compared nowhere else."""
    for name in sorted(old.keys() | new.keys()):
        if name in COMPARED or is_same(old.get(name), new.get(name)):
            continue
        if is_dropped(name):
            yield harmless("SCH-60", "no-keyword", path, keyword=name)
        else:
            yield undecided("SCH-60", "keyword", path, keyword=name)


def is_dropped(keyword: str) -> bool:
    """Whether no API server knows `keyword`: created or applied, strictly or not, 1.36 stores a schema without it.

    What is named x-kubernetes- a newer server may know; the keywords that are not structural an older one used.
    """
    return keyword not in KNOWN and not keyword.startswith("x-kubernetes-")
