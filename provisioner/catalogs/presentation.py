"""How a package presents itself: its words and icon, as its publisher wrote them, none of it safe to show as it is.

They are large beside what choosing a version needs, so they wait in a file until the catalog is read to its end: only
then is it known which bundle speaks for the package.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from provisioner.catalogs.edges import head_of
from provisioner.catalogs.facts import BundleFacts, facts_of_chart, facts_of_operator, packed_facts, unpacked_facts
from provisioner.catalogs.icons import PackageIcon, kept_icon, told_icon
from provisioner.catalogs.texts import cut, line_of
from provisioner.catalogs.values import Package

MAX_SUMMARY = 1_000
MAX_DESCRIPTION = 64 * 1024


@dataclass(frozen=True, slots=True)
class PackagePresentation:
    """What a package says of itself. `no_icon`: why the icon that it brings is not kept, "" where it brings none."""

    display_name: str = ""
    summary: str = ""
    description: str = ""
    provider: str = ""
    icon: PackageIcon | None = None
    no_icon: str = ""
    facts: BundleFacts = field(default_factory=BundleFacts)


class PresentationShelf:
    """Keeps what packages and bundles say of themselves in a file of its own while a catalog is read."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._places: dict[tuple[str, str], tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _exc: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._file.close()

    def put_package(self, name: str, document: Mapping[str, Any]) -> None:
        """Keep the icon of an `olm.package`."""
        icon = document.get("icon")
        if isinstance(icon, dict):
            self._put((name, ""), {"icon": told_icon(icon)})

    def put_bundle(self, package: str, name: str, told: Mapping[str, Any]) -> None:
        """Keep the words of an `olm.bundle`, as `operator_of` has them."""
        if told:
            self._put((package, name), _words(told, facts_of_operator(told)))

    def put_chart(self, package: str, name: str, entry: Mapping[str, Any]) -> None:
        """Keep the words of a version of a chart."""
        maintainers = entry.get("maintainers")
        first = maintainers[0] if isinstance(maintainers, list) and maintainers else {}
        words = {"provider": first, "annotations": {"description": entry.get("description")}}
        self._put((package, name), _words(words, facts_of_chart(entry)))

    def of(self, package: Package) -> PackagePresentation:
        """As the head of the package's default channel has it; what that does not say, the package says."""
        head = head_of(package)
        words = self._get((package.name, head.name)) if head else {}
        told = self._get((package.name, "")).get("icon")
        icon, no_icon = kept_icon(told) if told and told["data"] else (None, "")
        return PackagePresentation(
            display_name=words.get("name") or "",
            summary=words.get("summary") or _first_line(package.description),
            description=words.get("description") or package.description.replace("\0", "\ufffd"),
            provider=words.get("provider") or "",
            icon=icon,
            no_icon=no_icon,
            facts=unpacked_facts(words.get("facts") or {}),
        )

    def _put(self, key: tuple[str, str], record: Mapping[str, Any]) -> None:
        data = json.dumps(record).encode()
        self._places[key] = (self._file.seek(0, 2), len(data))
        self._file.write(data)

    def _get(self, key: tuple[str, str]) -> dict[str, Any]:
        if key not in self._places:
            return {}
        offset, size = self._places[key]
        self._file.seek(offset)
        found: dict[str, Any] = json.loads(self._file.read(size))
        return found


def _words(value: Mapping[str, Any], facts: BundleFacts) -> dict[str, Any]:
    annotations, provider = value.get("annotations"), value.get("provider")
    return {
        "name": line_of(value.get("displayName")),
        "summary": line_of(annotations.get("description") if isinstance(annotations, dict) else "", MAX_SUMMARY),
        "description": cut(value.get("description"), MAX_DESCRIPTION),
        "provider": line_of(provider.get("name") if isinstance(provider, dict) else ""),
        "facts": packed_facts(facts),
    }


def _first_line(text: str) -> str:
    return line_of(next((one.strip("# ") for one in text.splitlines() if one.strip("# ")), ""), MAX_SUMMARY)
