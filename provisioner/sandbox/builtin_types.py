"""Which fields built-in kinds declare, taken at run time from the model classes of the installed Kubernetes client.

The one place beside cluster/api.py that imports `kubernetes`: for its tables of fields, not to speak to anything.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from kubernetes.client import models

from provisioner.sandbox.kinds import Kind

_WRAPPED = re.compile(r"^(?:list|List)\[(?P<item>.+)\]$|^(?:dict|Dict)\(?\[?str, ?(?P<value>.+?)\]?\)?$")
# Their values are free-form, or typed otherwise than the classes say.
_FREE = {"V1FieldsV1", "V1JSONSchemaProps", "object"}


def undeclared(kind: Kind, obj: dict[str, Any]) -> str:
    """The first field that the kind does not declare, as `.spec.wrong`; "" where all are declared."""
    model = _model(f"{kind.version.capitalize()}{kind.kind}") or _model(f"Core{kind.version.capitalize()}{kind.kind}")
    return _undeclared(model, obj, "") if model else ""


def _undeclared(model: Any, value: Any, at: str) -> str:
    if not isinstance(value, dict):
        return ""
    names = {alias: model.openapi_types[name] for name, alias in model.attribute_map.items()}
    for key, inner in value.items():
        if key not in names:
            return f"{at}.{key}"
        found = _inside(names[key], inner, f"{at}.{key}")
        if found:
            return found
    return ""


def _inside(type_name: str, value: Any, at: str) -> str:
    wrapped = _WRAPPED.match(type_name)
    if wrapped and wrapped["item"] and isinstance(value, list):
        return next((found for item in value if (found := _inside(wrapped["item"], item, at))), "")
    if wrapped and wrapped["value"] and isinstance(value, dict):
        return next(
            (found for key, item in value.items() if (found := _inside(wrapped["value"], item, f"{at}.{key}"))), ""
        )
    model = _model(type_name)
    return _undeclared(model, value, at) if model and not wrapped else ""


@functools.cache
def _model(name: str) -> Any:
    if name in _FREE:
        return None
    found = getattr(models, name, None)
    return found if hasattr(found, "openapi_types") else None
