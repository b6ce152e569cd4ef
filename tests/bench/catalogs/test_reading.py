"""A catalog of 5,000 bundles and 300 MB: how long it takes to read and store, in how much memory, and its pages.

Run by `make bench`. It is as large as the largest public one: bundles carry their manifests along, packages their icons.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from approvals.catalogs.editions import find_catalog, find_package, find_presentation, list_packages, store_edition
from provisioner.catalogs.file_based import CatalogFile
from tests.support.memory import resident_bytes
from tests.support.pictures import png
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, with_words

PACKAGES, VERSIONS = 100, 50
WEIGHT_BYTES = 60_000
MIB = 1024 * 1024
# Goals: whole reading with storing, memory beside what the process had, and the slowest of 20 pages.
MOST_SECONDS, MOST_GROWTH, MOST_P95_SECONDS = 60.0, 100 * MIB, 0.1
ICON_POINTS = 70
NOISE = b"".join(b"\0" + random.Random(row).randbytes(4 * ICON_POINTS) for row in range(ICON_POINTS))
PNG = base64.b64encode(png(ICON_POINTS, ICON_POINTS, points=NOISE)).decode()


class Made(io.RawIOBase):
    """Documents that are made while they are read; `size` is how many bytes they had."""

    def __init__(self) -> None:
        self._documents, self._rest = documents(), b""
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any, /) -> int:
        self._rest = self._rest or next(self._documents, b"")
        part, self._rest = self._rest[: len(room)], self._rest[len(room) :]
        room[: len(part)] = part
        self.size += len(part)
        return len(part)


def documents() -> Iterator[bytes]:
    weight = {"type": "olm.bundle.object", "value": {"data": "x" * WEIGHT_BYTES}}
    for number in range(PACKAGES):
        name = f"package-{number:03}"
        yield line(package(name, defaultChannel="stable", icon={"mediatype": "image/png", "base64data": PNG}))
        versions = [f"1.{minor}.0" for minor in range(VERSIONS)]
        for version in versions:
            one = bundle(version, name, properties=(weight,))
            yield line(with_words(one, displayName=name.title(), description="Keeps ships. " * 300))
        entries: list[dict[str, Any]] = [{"name": f"{name}.v{versions[0]}"}]
        for before, here in itertools.pairwise(versions):
            entry = {"name": f"{name}.v{here}", "replaces": f"{name}.v{before}", "skipRange": f">=1.0.0 <{here}"}
            entries.append(entry)
        yield line(channel("stable", *entries, of=name))
        yield line(channel("fast", *entries, of=name))


def line(document: object) -> bytes:
    return json.dumps(document).encode() + b"\n"


def p95(look: Callable[[int], object]) -> float:
    found = []
    for number in range(20):
        began = time.perf_counter()
        assert look(number)
        found.append(time.perf_counter() - began)
    return statistics.quantiles(found, n=20)[-1]


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_catalog_of_5000_bundles(capsys: pytest.CaptureFixture[str]) -> None:
    row, stream = catalog(), Made()
    before, began = resident_bytes(), time.perf_counter()
    edition = store_edition(row, "sha256:one", [CatalogFile("catalog.json", lambda: io.BufferedReader(stream))])
    seconds = time.perf_counter() - began
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert (edition.package_count, edition.bundle_count) == (PACKAGES, PACKAGES * VERSIONS)
    row = find_catalog(row.cluster, row.name) or row
    pages = {
        "catalog": p95(lambda _: find_catalog(row.cluster, row.name)),
        "packages": p95(lambda number: list_packages(row, after=f"package-{number:03}").packages),
        "search": p95(lambda number: list_packages(row, search=f"{number:02}").packages),
        "package": p95(lambda number: find_package(row, f"package-{number:03}")),
        "presentation": p95(lambda number: find_presentation(row, f"package-{number:03}")),
    }
    with capsys.disabled():
        print(f"\n{stream.size / MIB:.0f} MiB, {PACKAGES * VERSIONS} bundles: {seconds:.1f} s, +{growth / MIB:.0f} MiB")
        print(", ".join(f"{name} p95 {1000 * found:.1f} ms" for name, found in pages.items()))
    assert seconds < MOST_SECONDS
    assert growth < MOST_GROWTH
    assert max(pages.values()) < MOST_P95_SECONDS
