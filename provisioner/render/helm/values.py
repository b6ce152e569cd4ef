"""The values of a chart: what `config` asks for, and the same flat and without credentials, to compare renderings."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from provisioner.errors import BadConfig
from provisioner.masking import HIDDEN, is_credential, masked_as, masked_states
from provisioner.render.helm.chart import PATH
from provisioner.render.helm.dependencies import DEPENDENCY_AUTH
from provisioner.render.helm.lookups import KEY
from provisioner.render.known_keys import check_config_keys
from provisioner.render.limits import YamlMeter
from provisioner.render.yaml import load_documents
from provisioner.values import Tree

# So many are kept; a chart such as kube-prometheus-stack has some 2,500.
MAX_VALUES = 5_000
MAX_VALUE_LENGTH = 200
# Of a list of short words, so that it can be told which came and went.
MAX_LIST_LENGTH, MAX_WORD_LENGTH = 2_000, 32
# Wider than what is hidden in objects: of a value nobody needs more than that it is there.
_WORDS = re.compile(
    r"pass(word|wd|phrase)?|pwd|secret|token|credential|private_?key|api_?key|access_?key", re.IGNORECASE
)
# What only names, mounts, makes, switches or limits a credential.
_ABOUT = re.compile(
    r"(names?|refs?|enabled|create[sd]?|length|annotations|labels|paths?|files?|types?|policy|seconds|days|ttl|jobs?"
    r"|mounts?)$",
    re.IGNORECASE,
)
_KEY_FILE = re.compile(r"\.(key|pem|p12|jks|pfx)$", re.IGNORECASE)
_PEM = b"-----BEGIN "
# A value that a schema refuses, as Helm says it; its end may be cut off.
_REFUSED = re.compile(r"(?P<place>at '(?P<path>/[^']*)': )'(?P<value>(?:[^'\\]|\\.)*)(?:'|\Z)", re.DOTALL)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """As Helm lays values over each other: mapping by mapping, anything else whole."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        is_deep = isinstance(old, Mapping) and isinstance(value, Mapping)
        found[key] = merged(dict(old or {}), value) if is_deep else value
    return found


def without_credentials(words: str) -> str:
    """What Helm says of values that the chart's schema refuses, without those that `flat` hides."""
    return _REFUSED.sub(_hidden_in_words, words)


def _hidden_in_words(found: re.Match[str]) -> str:
    names, value = found["path"].split("/"), found["value"]
    is_hidden = any(map(_names_a_credential, names)) or _masked_value(value, names[-1]) != value
    return f"{found['place']}{HIDDEN}" if is_hidden else found[0]


def flat(values: Mapping[str, Any]) -> dict[str, str]:
    """JSON texts by path, at most MAX_VALUES of MAX_VALUE_LENGTH each; lists are one value. A longer one is cut, and
    says how long it was.

    What a part of its path names, or what is written, like a credential is hidden before anything is cut.
    """
    found: dict[str, str] = {}
    for path, value in _leaves(values, "", is_hidden=False) if values else ():
        if len(found) == MAX_VALUES:
            break
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
        most = (
            MAX_LIST_LENGTH
            if (isinstance(value, list) and all(isinstance(one, str) and len(one) <= MAX_WORD_LENGTH for one in value))
            else MAX_VALUE_LENGTH
        )
        found[path] = text if len(text) <= most else f"{text[:MAX_VALUE_LENGTH]}… ({len(text):,} characters)"
    return found


def set_paths(values: Mapping[str, Any]) -> frozenset[str]:
    """The paths at which `values` set something over others, among the first MAX_VALUES: an empty mapping sets none."""
    return frozenset(path for path, text in flat(values).items() if text != "{}")


def _leaves(value: Any, path: str, *, is_hidden: bool) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        yield path, _hidden(value) if is_hidden else _masked_value(value, path)
        return
    for key in sorted(value, key=str):
        name = str(key)
        step = name.replace(".", "\\.")
        below = f"{path}.{step}" if path else step
        yield from _leaves(value[key], below, is_hidden=is_hidden or _names_a_credential(name))


def _names_a_credential(name: str) -> bool:
    is_named = is_credential(name) or (bool(_WORDS.search(name)) and not _ABOUT.search(name))
    return is_named or bool(_KEY_FILE.search(name))


def _hidden(value: Any) -> Any:
    """Whatever could be a credential; that there is none, or a switch, is told."""
    return value if value is None or isinstance(value, bool) or value in ("", [], {}) else HIDDEN


def _masked_value(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return HIDDEN if _is_coded_key(value) else masked_as(name, value)
    if isinstance(value, list):
        return [_shown_item(one) for one in masked_states(None, value)[1]]
    return value


def _shown_item(value: Any) -> Any:
    """An item of a list, with names and values as variables have them."""
    if isinstance(value, Mapping):
        named = value.get("name")
        is_hidden = isinstance(named, str) and _names_a_credential(named)
        return {
            key: _hidden(one) if _names_a_credential(str(key)) or (is_hidden and key == "value") else _shown_item(one)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_shown_item(one) for one in value]
    return HIDDEN if isinstance(value, str) and _is_coded_key(value) else value


def _is_coded_key(text: str) -> bool:
    """Whether it is the base64 of a PEM, as Secrets hold keys."""
    start = "".join(text[:64].split())
    try:
        return base64.b64decode(start[: len(start) // 4 * 4], validate=True).startswith(_PEM)
    except (binascii.Error, ValueError):
        return False


HELM_VERSION = "helmVersion"
_KEYS = ("values", "valuesFiles", "valuesFrom", "releaseName", HELM_VERSION, KEY, PATH, DEPENDENCY_AUTH, "tests")
HELM_VERSIONS = (3, 4)
DEFAULT_HELM_VERSION = 4
# Helm's rule for the name of a release.
MAX_RELEASE_NAME = 53
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class ChartConfig:
    """`files` are the paths of the tree that values were read from; `release_name` is "" where none was given; `tests`
    are run at the end of each apply.
    """

    values: Mapping[str, Any]
    files: tuple[str, ...]
    release_name: str
    helm_version: int
    tests: bool


def config_of(
    config: Mapping[str, Any], tree: Tree, meter: YamlMeter, given: Mapping[str, Any] = MappingProxyType({})
) -> ChartConfig:
    """Later files are laid over earlier ones, `given` over them, and `values` over all, as with Flux.

    Raises BadConfig.
    """
    check_config(config)
    files: list[str] = config.get("valuesFiles") or []
    values: Mapping[str, Any] = {}
    for path in files:
        if path not in tree.files:
            raise BadConfig(f"config.valuesFiles: no source has the file {path[:200]!r}")
        documents = list(load_documents(tree.files[path], name=path, meter=meter))
        value = documents[0].value if len(documents) == 1 else {} if not documents else None
        if not isinstance(value, Mapping):
            raise BadConfig(f"{path}: expected one mapping of values")
        values = merged(values, value)
    own: Mapping[str, Any] = config.get("values") or {}
    return ChartConfig(
        merged(merged(values, given), dict(own)),
        tuple(files),
        config.get("releaseName") or "",
        helm_version_of(config),
        bool(config.get("tests")),
    )


def check_config(config: Mapping[str, Any]) -> None:
    """Raise BadConfig for what no chart can be given."""
    check_config_keys(config, _KEYS, "a chart")
    files = config.get("valuesFiles") or []
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise BadConfig("config.valuesFiles: expected a list of paths in the sources")
    own, name = config.get("values") or {}, config.get("releaseName") or ""
    if not isinstance(own, Mapping):
        raise BadConfig(f"config.values is {type(own).__name__}; expected a mapping")
    if not isinstance(name, str):
        raise BadConfig(f"config.releaseName is {type(name).__name__}; expected a text")
    if name:
        checked_release_name(name)
    if not isinstance(tests := config.get("tests", False), bool):
        raise BadConfig(f"config.tests is {type(tests).__name__}; expected true or false")
    helm_version_of(config)


def helm_version_of(config: Mapping[str, Any]) -> int:
    """Which Helm renders the chart. Raises BadConfig."""
    version = config.get(HELM_VERSION, DEFAULT_HELM_VERSION)
    if version not in HELM_VERSIONS or type(version) is not int:
        raise BadConfig(f"config.{HELM_VERSION} is {str(version)[:40]!a}; expected the number 3 or 4")
    return version


def checked_release_name(name: str) -> str:
    """Raises BadConfig for what Helm takes for no name of a release."""
    if len(name) > MAX_RELEASE_NAME or not _RELEASE_NAME.fullmatch(name):
        raise BadConfig(
            f"the release name {name[:80]!r}: expected at most {MAX_RELEASE_NAME} lower-case letters, digits, - and .;"
            " set config.releaseName"
        )
    return name
