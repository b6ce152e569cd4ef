"""Whether one branch takes all that another takes, by reading: where every part of it is at least as wide.

What the table of combinations cannot tell (a bound on a field inside a branch) is often plain to see so. A no says
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from provisioner.schema.fields import is_same
from provisioner.schema.inclusion.facets import SCALAR_KEYWORDS
from provisioner.schema.inclusion.scalars import scalar_inclusion
from provisioner.schema.reading import NO_SCHEMA, Schema, properties_of, schema_of

LEAST, MOST = ("minItems", "minProperties"), ("maxItems", "maxProperties")
READ = SCALAR_KEYWORDS | frozenset((*LEAST, *MOST, "required", "properties"))


def takes_all(narrow: Schema, wide: Schema, base: Schema) -> bool:
    """Whether `wide` takes every value that `narrow` takes; both are branches without words of a node `base`."""
    differing = {name for name in narrow.keys() | wide.keys() if not is_same(narrow.get(name), wide.get(name))}
    if not differing <= READ:
        return False
    is_wider = set(wide.get("required") or ()) <= set(narrow.get("required") or ())
    is_wider = is_wider and all(_least(wide, name) <= _least(narrow, name) for name in LEAST)
    is_wider = is_wider and all(_most(wide, name) >= _most(narrow, name) for name in MOST)
    if not is_wider or not _is_wider_scalar(narrow, wide, base, differing & SCALAR_KEYWORDS):
        return False
    known, described = properties_of(narrow), properties_of(base)
    return all(
        takes_all(schema_of(known.get(name)) or NO_SCHEMA, schema_of(it) or NO_SCHEMA, _described(described, name))
        for name, it in properties_of(wide).items()
    )


def _least(schema: Schema, name: str) -> float:
    return float(schema.get(name) or 0)


def _most(schema: Schema, name: str) -> float:
    return float("inf") if schema.get(name) is None else float(schema[name])


def _is_wider_scalar(narrow: Schema, wide: Schema, base: Schema, differing: frozenset[str] | set[str]) -> bool:
    if not differing:
        return True
    sides = [
        {"type": base.get("type"), **{name: it for name, it in side.items() if name in SCALAR_KEYWORDS}}
        for side in (narrow, wide)
    ]
    return scalar_inclusion(*sides).holds is True


def _described(fields: Mapping[str, Schema], name: str) -> Schema:
    return schema_of(fields.get(name)) or NO_SCHEMA
