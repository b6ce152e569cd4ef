"""`spec.config` of a chart: its values, written there or in files of other sources, and the name of the release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.errors import BadConfig
from provisioner.render.helm.lookups import KEY
from provisioner.render.helm.values import merged
from provisioner.render.limits import YamlMeter
from provisioner.render.yaml import load_documents
from provisioner.sentences import some
from provisioner.values import Tree

_KEYS = ("values", "valuesFiles", "releaseName", KEY)
# Helm's rule for the name of a release.
MAX_RELEASE_NAME = 53
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class ChartConfig:
    """`files` are the paths of the tree that values were read from; `release_name` is "" where none was given."""

    values: Mapping[str, Any]
    files: tuple[str, ...]
    release_name: str


def config_of(config: Mapping[str, Any], tree: Tree, meter: YamlMeter) -> ChartConfig:
    """Later files are laid over earlier ones, and `values` over all, as `helm install -f` does. Raises BadConfig."""
    unknown = sorted(set(map(str, config)) - set(_KEYS))
    if unknown:
        raise BadConfig(f"config has {some(unknown)}; a chart takes {', '.join(_KEYS)}")
    files = config.get("valuesFiles") or []
    if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
        raise BadConfig("config.valuesFiles: expected a list of paths in the sources")
    values: Mapping[str, Any] = {}
    for path in files:
        if path not in tree.files:
            raise BadConfig(f"config.valuesFiles: no source has the file {path[:200]!r}")
        documents = list(load_documents(tree.files[path], name=path, meter=meter))
        value = documents[0].value if len(documents) == 1 else {} if not documents else None
        if not isinstance(value, Mapping):
            raise BadConfig(f"{path}: expected one mapping of values")
        values = merged(values, value)
    own = config.get("values") or {}
    if not isinstance(own, Mapping):
        raise BadConfig(f"config.values is {type(own).__name__}; expected a mapping")
    name = config.get("releaseName") or ""
    if not isinstance(name, str):
        raise BadConfig(f"config.releaseName is {type(name).__name__}; expected a text")
    return ChartConfig(merged(values, dict(own)), tuple(files), checked_release_name(name) if name else "")


def checked_release_name(name: str) -> str:
    """Raises BadConfig for what Helm takes for no name of a release."""
    if len(name) > MAX_RELEASE_NAME or not _RELEASE_NAME.fullmatch(name):
        raise BadConfig(
            f"the release name {name[:80]!r}: expected at most {MAX_RELEASE_NAME} lower-case letters, digits, - and .;"
            " set config.releaseName"
        )
    return name
