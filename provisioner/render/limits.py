"""How much a bundle may be: one meter counts over all its files and stops before memory or time are gone."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.errors import BundleTooLarge
from provisioner.values import RepeatedKey


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """Nodes and characters are counted as they are after aliases are expanded, since that is what will be stored.

    A Kubernetes object is at most about 1.5 MB in etcd, and the largest bundles known hold some 100 000 nodes.
    """

    max_file_bytes: int = 32 * 1024 * 1024
    max_documents: int = 20_000
    max_objects: int = 10_000
    max_nodes: int = 2_000_000
    max_characters: int = 128 * 1024 * 1024
    max_depth: int = 100
    max_repeated_keys: int = 100


class YamlMeter:
    """Counts what was read against `limits`. Every method raises BundleTooLarge, naming the limit's setting.

    `repeated` are the keys that were there twice; without `takes_repeated` that is refused, since nobody would be told.
    """

    def __init__(self, limits: YamlLimits, *, takes_repeated: bool = False):
        self.limits = limits
        self.takes_repeated = takes_repeated
        self.repeated: set[RepeatedKey] = set()
        self.documents = 0
        self.nodes = 0
        self.characters = 0

    def file(self, file: str, size: int) -> None:
        if size > self.limits.max_file_bytes:
            raise BundleTooLarge(f"{file}: {size} bytes, at most {self.limits.max_file_bytes} (max_file_bytes)")

    def document(self, file: str) -> None:
        self.documents += 1
        if self.documents > self.limits.max_documents:
            raise BundleTooLarge(f"{file}: more than {self.limits.max_documents} documents (max_documents)")

    def add(self, file: str, nodes: int, characters: int) -> None:
        self.nodes += nodes
        self.characters += characters
        if self.nodes > self.limits.max_nodes:
            raise BundleTooLarge(
                f"{file}: more than {self.limits.max_nodes} values, aliases expanded, in this bundle (max_nodes)"
            )
        if self.characters > self.limits.max_characters:
            raise BundleTooLarge(
                f"{file}: more than {self.limits.max_characters} characters, aliases expanded, in this bundle "
                "(max_characters)"
            )

    def depth(self, file: str, line: int, depth: int) -> None:
        if depth > self.limits.max_depth:
            raise BundleTooLarge(f"{file}:{line}: nested deeper than {self.limits.max_depth} (max_depth)")

    def repeat(self, found: RepeatedKey) -> None:
        self.repeated.add(found)
        if len(self.repeated) > self.limits.max_repeated_keys:
            raise BundleTooLarge(
                f"{found.file}:{found.line}: more than {self.limits.max_repeated_keys} keys of this bundle are there "
                "twice (max_repeated_keys)"
            )

    def objects(self, file: str, count: int) -> None:
        if count > self.limits.max_objects:
            raise BundleTooLarge(f"{file}: more than {self.limits.max_objects} objects in this bundle (max_objects)")
