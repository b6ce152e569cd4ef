"""The single steps of admission for whoever calls from another room: each refuses what has not the form of a schema.

Inside this room the same functions run without the look, on schemas that were looked at.
"""

from __future__ import annotations

from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.schema.admission import embedded, pruning
from provisioner.schema.admission import validation as validating
from provisioner.schema.admission.correlation import Correlation
from provisioner.schema.fields import DEEPEST, FieldError, is_too_deep
from provisioner.schema.forms import readable
from provisioner.schema.subschemas import Schema


def prune(schema: Schema, obj: Any) -> tuple[Any, list[str]]:
    """As `pruning.prune`. Raises InvalidManifest, as all here, for what is no schema or an object nested too deep."""
    return pruning.prune(readable(schema), _followed(obj))


def drop_nulls(schema: Schema, obj: Any) -> Any:
    """As `pruning.drop_nulls`."""
    return pruning.drop_nulls(readable(schema), _followed(obj))


def default(schema: Schema, obj: Any) -> Any:
    """As `pruning.default`."""
    return pruning.default(readable(schema), _followed(obj))


def validate(schema: Schema, obj: Any, old: Correlation | None = None) -> list[FieldError]:
    """As `validating.validate`."""
    return validating.validate(readable(schema), _followed(obj), old)


def embedded_errors(schema: Schema, obj: Any) -> list[FieldError]:
    """As `embedded.embedded_errors`."""
    return embedded.embedded_errors(readable(schema), _followed(obj))


def _followed(obj: Any) -> Any:
    if is_too_deep(obj):
        raise InvalidManifest(f"the object: nested deeper than {DEEPEST} levels")
    return obj
