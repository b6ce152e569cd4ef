"""Strategic merge patches as kustomize applies them: built-in kinds by the tables of Kubernetes, all others as merge
patches, in which a list replaces a list.

Items of a list that Kubernetes merges are matched by their keys; those of the patch come first, in its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import MINORS, Schemas, schemas_of
from provisioner.builtin.changes import Path, dotted
from provisioner.builtin.schemas import key_of
from provisioner.errors import BadConfig
from provisioner.render.limits import YamlMeter
from provisioner.values import JsonObject

_DIRECTIVE = "$patch"
# Those that kubectl knows beside it, and kustomize leaves in the object.
_OTHER_DIRECTIVES = ("$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")
_GONE = object()
_Schema = Mapping[str, Any]


def merge_object(body: JsonObject, patch: JsonObject, where: str, meter: YamlMeter) -> JsonObject | None:
    """`body` with `patch` merged in, None where the patch deletes it; what names an object stays as it is.

    Raises BadConfig and BundleTooLarge.
    """
    if directive := next((key for key in _keys(patch) if key.startswith(_OTHER_DIRECTIVES)), None):
        raise BadConfig(f"config.{where}: {directive} is not supported; of directives only {_DIRECTIVE} is")
    schemas = schemas_of(MINORS[-1])
    if schemas is None:
        raise BadConfig(
            f"config.{where}: needs the package kubernetes-validate, which says how Kubernetes merges lists"
        )
    metadata = patch.get("metadata")
    rest = {key: value for key, value in patch.items() if key not in ("apiVersion", "kind", "metadata")}
    if isinstance(metadata, Mapping):
        rest["metadata"] = {key: value for key, value in metadata.items() if key not in ("name", "namespace")}
    schema = schemas.of(str(body.get("apiVersion")), str(body.get("kind"))) or {}
    merged = _Merge(schemas, where, meter).value(body, rest, schema, ())
    return None if merged is _GONE else merged


class _Merge:
    def __init__(self, schemas: Schemas, where: str, meter: YamlMeter):
        self.schemas = schemas
        self.where = where
        self.meter = meter

    def value(self, old: Any, patch: Any, schema: _Schema, path: Path) -> Any:
        """What `old` becomes, `_GONE` where it goes; `old` is None where there is nothing."""
        if patch is None:
            return _GONE
        if old is not None and _form(old) != _form(patch):
            raise self._refuse(path, f"is a {_form(old)} in the object, and a {_form(patch)} in the patch")
        if isinstance(patch, Mapping):
            return self._mapping(old or {}, patch, schema, path)
        if isinstance(patch, list):
            strategy = str(schema.get("x-kubernetes-patch-strategy") or "")
            if "merge" in strategy.split(","):
                return self._list(old or [], patch, schema, path)
            if _DIRECTIVE in _keys(patch):
                raise self._refuse(path, f"is replaced as a whole, so that {_DIRECTIVE} means nothing in it")
        return patch

    def _mapping(self, old: Mapping[str, Any], patch: Mapping[str, Any], schema: _Schema, path: Path) -> Any:
        directive = patch.get(_DIRECTIVE, "merge")
        if directive == "delete":
            return _GONE
        if directive not in ("merge", "replace"):
            raise self._refuse(path, f"has a {_DIRECTIVE} that is not merge, replace or delete")
        _, node = self.schemas.resolved(schema)
        fields, others = node.get("properties") or {}, node.get("additionalProperties")
        merged = {} if directive == "replace" else dict(old)
        for key, inner in patch.items():
            if key == _DIRECTIVE:
                continue
            below = fields.get(key) or (others if isinstance(others, Mapping) else {})
            made = self.value(merged.get(key), inner, below, (*path, key))
            merged.pop(key, None) if made is _GONE else merged.update({key: made})
        return merged

    def _list(self, old: list[Any], patch: list[Any], schema: _Schema, path: Path) -> Any:
        alone = next((item for item in patch if isinstance(item, Mapping) and set(item) == {_DIRECTIVE}), None)
        if alone is not None:
            if alone[_DIRECTIVE] == "delete":
                return _GONE
            patch = [item for item in patch if item is not alone]
            old = [] if alone[_DIRECTIVE] == "replace" else old
        key = schema.get("x-kubernetes-patch-merge-key")
        keys: list[str] = schema.get("x-kubernetes-list-map-keys") or ([key] if key else [])
        if not keys:
            if any(isinstance(item, Mapping | list) for item in (*old, *patch)):
                raise self._refuse(path, "is a list of texts in Kubernetes, and has something else")
            return list(dict.fromkeys((*patch, *old)))
        # Each item of the patch is held against each of the object.
        self.meter.add(f"config.{self.where}", len(patch) * len(old), 0)
        first, rest = [], list(old)
        for place, item in enumerate(patch):
            named = key_of(item, keys)
            if named is None or named[0] is None:
                raise self._refuse((*path, place), f"lacks {keys[0]}, by which items of its list are told apart")
            twin = next((at for at, other in enumerate(rest) if _is_same(named, key_of(other, keys))), None)
            before = None if twin is None else rest.pop(twin)
            made = self.value(before, item, schema.get("items") or {}, (*path, place))
            if made is not _GONE:
                first.append(made)
        return [*first, *rest]

    def _refuse(self, path: Path, words: str) -> BadConfig:
        return BadConfig(f"config.{self.where}: a field {words}", server_words=dotted(path)[:200])


def _is_same(named: tuple[Any, ...], other: tuple[Any, ...] | None) -> bool:
    """Whether two items are one: a second key that one of them does not state fits any."""
    pairs = zip(named, other or (None,) * len(named), strict=True)
    return all(a == b or (place and None in (a, b)) for place, (a, b) in enumerate(pairs))


def _form(value: Any) -> str:
    return "mapping" if isinstance(value, Mapping) else "list" if isinstance(value, list) else "single value"


def _keys(value: Any) -> Iterator[str]:
    """Every key in a JSON value."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)
