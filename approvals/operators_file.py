"""A YAML file of the operator's, read so that each error names its place in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from provisioner.errors import PratiqueError
from provisioner.render import load_all

MAX_FILE_BYTES = 1_000_000
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# Who names people on which cluster, and what stands before names of users and of groups (None: it names no groups).
NamePrefixes = tuple[str, str, str, str | None]
KINDS = {dict: "a mapping", list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}


def yaml_of(path: str) -> object:
    """What the file at `path` holds. Raises ValueError, also for what can be read in two ways, such as a key twice."""
    try:
        text = Path(path).read_bytes()
    except OSError as exc:
        raise ValueError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    if len(text) > MAX_FILE_BYTES:
        raise ValueError(f"{path} has {len(text)} bytes; expected at most {MAX_FILE_BYTES}")
    try:
        # kubectl's rules first: they are bounded, and know of keys that are there twice.
        as_kubectl, as_python = load_all(text, name=path), [*yaml.safe_load_all(text)]
    except PratiqueError as exc:
        raise ValueError(str(exc)) from exc
    except (yaml.YAMLError, ValueError) as exc:
        raise ValueError(f"{path} is not YAML: {exc}") from exc
    if len(as_python) > 1:
        raise ValueError(f"{path} holds {len(as_python)} documents; expected one")
    if as_kubectl != [one for one in as_python if one is not None]:
        raise ValueError(f"{path} is ambiguous YAML: quote values that look like numbers, dates, yes or no")
    return as_kubectl[0] if as_kubectl else None


@dataclass(frozen=True, slots=True)
class FileSection:
    """A mapping of the file, with its place for errors."""

    where: str
    content: object

    def mapping(self) -> Mapping[str, Any]:
        if not isinstance(self.content, dict):
            raise ValueError(f"{self.where}: expected a mapping, found {kind_of(self.content)}")
        return self.content

    def allow(self, *keys: str) -> None:
        unknown = sorted(str(key) for key in self.mapping() if key not in keys)
        if unknown:
            raise ValueError(f"{self.where}: unknown field {unknown[0]}; expected {', '.join(keys)}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.mapping().get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            raise ValueError(f"{self.where}.{key}: expected a string, found {kind_of(value)}")
        return value

    def texts(self, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        value = self.mapping().get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise ValueError(f"{self.where}.{key}: expected a list of strings, found {kind_of(value)}")
        return tuple(value)

    def name(self) -> str:
        """What the entry is called."""
        name = self.text("name")
        if not NAME.fullmatch(name):
            raise ValueError(f"{self.where}.name: {name!r}; expected a-z, 0-9 and - (it is part of URLs)")
        return name

    def prefix(self) -> str:
        """What is put before names on a cluster. Nothing is assumed where it is missing."""
        if "prefix" not in self.mapping():
            raise ValueError(f'{self.where}.prefix is missing: give the API server\'s, or "" where it has none')
        return self.text("prefix", "")

    def flag(self, key: str) -> bool:
        """False where nothing is said."""
        value = self.mapping().get(key, False)
        if not isinstance(value, bool):
            raise ValueError(f"{self.where}.{key}: expected true or false, found {kind_of(value)}")
        return value

    def child(self, key: str) -> FileSection | None:
        value = self.mapping().get(key)
        return None if value is None else FileSection(f"{self.where}.{key}", value)

    def needed(self, key: str) -> FileSection:
        found = self.child(key)
        if found is None:
            raise ValueError(f"{self.where}.{key} is missing")
        return found

    def items(self, key: str) -> list[FileSection]:
        value = self.mapping().get(key, [])
        if not isinstance(value, list):
            raise ValueError(f"{self.where}.{key}: expected a list, found {kind_of(value)}")
        return [FileSection(f"{self.where}.{key}[{number}]", one) for number, one in enumerate(value)]


def each_once(what: str, values: Sequence[str]) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"{what} {twice[0]!r} is listed twice")


def check_prefixes_apart(named: Iterable[NamePrefixes]) -> None:
    """Raises ValueError where one could name another's people or groups on a cluster."""
    for (who, cluster, *mine), (other, there, *theirs) in combinations(named, 2):
        known = [(one, two) for one, two in zip(mine, theirs, strict=True) if one is not None and two is not None]
        if cluster == there and any(one.startswith(two) or two.startswith(one) for one, two in known):
            raise ValueError(
                f"{who} and {other} are both used on cluster {cluster}, and the prefix of one starts with the prefix "
                "of the other, so either could name people of the other. Use prefixes of which none starts with "
                "another, such as a: and b:"
            )


def kind_of(value: object) -> str:
    if value is None or value == "":
        return "nothing" if value is None else "an empty string"
    return KINDS.get(type(value), "something else")
