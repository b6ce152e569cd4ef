"""`deploymentConfig` by its schema: each part is a field of a pod or container, and has the schema that Kubernetes has
for it, as in OLM v1 (`registryv1bundleconfig.json`). A field that there is not is refused, which OLM leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from provisioner.builtin import MINORS, Schemas, schemas_of
from provisioner.sentences import some

# Where Kubernetes has each of them; `annotations` and `nodeSelector` are texts by name.
_OF_CONTAINER = ("env", "envFrom", "resources", "volumeMounts")
_OF_POD = ("affinity", "tolerations", "volumes")
_POD, _CONTAINER = "io.k8s.api.core.v1.PodSpec", "io.k8s.api.core.v1.Container"
_NAMES = {bool: "boolean", str: "string", int: "integer", float: "number", dict: "object", list: "array"}
# So many fields below each other are listed.
MAX_DEPTH = 2
_EMPTY: dict[str, Any] = {"object": {}, "array": [], "integer": 0, "number": 0, "boolean": False}
_SHOWN = {"object": "a mapping", "array": "a list", "string": "a text", "integer": "an integer", "number": "a number"}


def find_misfits(deployment: Mapping[str, Any], where: str) -> Iterator[str]:
    """What does not fit the schema, each with its path below `where` and no value; nothing where nobody knows it."""
    schemas = schemas_of(MINORS[-1])
    for definition, names in ((_CONTAINER, _OF_CONTAINER), (_POD, _OF_POD)) if schemas else ():
        fields = schemas.definitions[definition]["properties"] if schemas else {}
        for name in names:
            if schemas and name in deployment:
                yield from _misfits(schemas, fields[name], deployment[name], f"{where}.{name}")


def list_deployment_fields() -> dict[str, Any]:
    """The fields that `deploymentConfig` can have, by their path, each with an empty value; {} where nobody knows."""
    schemas, found = schemas_of(MINORS[-1]), dict[str, Any]({"annotations": {}, "nodeSelector": {}})
    for definition, names in ((_CONTAINER, _OF_CONTAINER), (_POD, _OF_POD)) if schemas else ():
        fields = schemas.definitions[definition]["properties"] if schemas else {}
        for name in names:
            if schemas:
                found |= _list_fields(schemas, fields[name], name, depth=MAX_DEPTH)
    return found


def _list_fields(schemas: Schemas, schema: Mapping[str, Any], path: str, *, depth: int) -> dict[str, Any]:
    _, node = schemas.resolved(schema)
    found: dict[str, Any] = {path: _EMPTY.get(str(node.get("type")), "")}
    for name, inner in (node.get("properties") or {}).items() if depth else ():
        found |= _list_fields(schemas, inner, f"{path}.{name}", depth=depth - 1)
    return found


def _misfits(schemas: Schemas, schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    _, node = schemas.resolved(schema)
    types = [one["type"] for one in node.get("oneOf") or [node] if "type" in one]
    kind = _NAMES.get(type(value), "")
    is_fit = kind in types or (kind == "integer" and "number" in types)
    if value is None or not types:
        return
    if not is_fit:
        yield f"{path}: expected {' or '.join(_SHOWN.get(one, f'a {one}') for one in types)}"
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from _misfits(schemas, node.get("items") or {}, one, f"{path}[{place}]")
    elif isinstance(value, dict):
        fields, others = node.get("properties") or {}, node.get("additionalProperties")
        for name in node.get("required") or ():
            if value.get(name) is None:
                yield f"{path} has no {name}"
        for name, one in value.items():
            if name in fields:
                yield from _misfits(schemas, fields[name], one, f"{path}.{name}")
            elif isinstance(others, Mapping):
                yield from _misfits(schemas, others, one, f"{path}.{name}")
            elif others is False:
                meant = get_close_matches(name, fields, 1)
                instead = f"did you mean {meant[0]}?" if meant else f"it takes {some(sorted(fields), 10)}"
                yield f"{path} has {name[:80]!a}, which is no field there; {instead}"
