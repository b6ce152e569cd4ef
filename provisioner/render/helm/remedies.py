"""Which values to set so that a chart makes nothing up, told from what its templates read beside what they make up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provisioner.json_values import mapping

# Short enough that no text without an end is read again and again.
_ACTION = re.compile(r"\{\{[^{}]{1,500}\}\}")
_MAKES = re.compile(
    r"\b(?:rand(?:Alpha|AlphaNum|Numeric|Ascii|Bytes|Int)|gen(?:CA|CAWithKey|SelfSignedCert\w*|SignedCert\w*|PrivateKey)"
    r"|uuidv4|now|htpasswd|bcrypt|shuffle)\b"
)
_READS = re.compile(r"\.Values((?:\.\w{1,100}){1,20})")
_DEFINES = re.compile(r'\{\{-?\s{0,20}define\s{1,20}"([^"]{1,200})"')
_INCLUDES = re.compile(r'\b(?:include|template)\s{1,20}"([^"]{1,200})"')
_SUBCHART = re.compile(r"charts/([^/]{1,250})/")
# Actions before what is made up: `if` it is given, take it, `else` make it up.
_BEFORE = 4
MAX_VALUES = 5


def values_to_set(files: Mapping[str, bytes], templates: Iterable[str], values: Mapping[str, Any]) -> str:
    """Values for `spec.config` that are empty and stand beside what these templates make up, as YAML; "" of none.

    Templates are looked through, and what they include.
    """
    texts = {path: data.decode(errors="replace") for path, data in files.items() if path.endswith((".yaml", ".tpl"))}
    defined: dict[str, tuple[str, str]] = {}
    for path, text in texts.items():
        # A helper reaches to the next one.
        pieces = _DEFINES.split(text)
        defined |= {name: (path, piece) for name, piece in zip(pieces[1::2], pieces[2::2], strict=True)}
    looked_at = [(path, texts[path]) for path in templates if path in texts]
    names = dict.fromkeys(name for _, text in looked_at for name in _INCLUDES.findall(text))
    looked_at += [defined[name] for name in names if name in defined]
    read = (path for file, text in looked_at for path in _read_beside(file, text))
    found = dict.fromkeys(path for path in read if _is_empty(values, path))
    chosen: dict[str, Any] = {}
    for *above, last in list(found)[:MAX_VALUES]:
        inner: Any = chosen
        for step in above:
            inner = inner.setdefault(step, {}) if isinstance(inner, dict) else inner
        if isinstance(inner, dict):
            inner.setdefault(last, "…")
    return _as_flow({"values": chosen}) if chosen else ""


def _read_beside(file: str, text: str) -> Iterator[tuple[str, ...]]:
    """The paths of values that a text reads where it makes something up, as the whole chart has them."""
    above = tuple(_SUBCHART.findall(file))
    actions = _ACTION.findall(text)
    for at, action in enumerate(actions):
        if not _MAKES.search(action):
            continue
        for read in _READS.findall(" ".join(actions[max(at - _BEFORE, 0) : at + 1])):
            steps = tuple(read.strip(".").split("."))
            yield steps if steps[0] == "global" else (*above, *steps)


def _is_empty(values: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether the chart has nothing there; the defaults of its subcharts are not known here."""
    for step in path[:-1]:
        if step not in values:
            return path[0] != "global" and step == path[0]
        values = mapping(values[step])
    return values.get(path[-1], 0) in ("", None)


def _as_flow(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return "{" + ", ".join(f"{key}: {_as_flow(member)}" for key, member in value.items()) + "}"
