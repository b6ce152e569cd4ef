"""Fetches what a chart needs and does not bring, in the versions of its lock file, by the rules of sources.

Who wrote the chart chooses the addresses, not who wrote the deployment. So nothing is shown a credential but the host
that it is for (S08), and no address is asked that a source may not have (S18).
"""

from __future__ import annotations

import gzip
import io
import posixpath
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from provisioner.catalogs.file_based import CatalogFile
from provisioner.catalogs.helm_index import MAX_INDEX_BYTES, chart_addresses
from provisioner.errors import BadBundle, BadSource, BundleTooLarge, PratiqueError, SourceUnavailable
from provisioner.masking import masked
from provisioner.render.helm import Dependency, chart_files, chart_folder, check_packed, missing_dependencies
from provisioner.render.helm.chart import CHART
from provisioner.render.helm.dependencies import FILE, REGISTRY
from provisioner.source import EgressPolicy, Fetched, HttpSource, ImageSource, RemoteSource, fetch
from provisioner.source.egress import pinned_url
from provisioner.source.files import tar_of
from provisioner.source.image import ref_of
from provisioner.values import DEPENDENCY, Pin, Tree

# Of all indexes together: a worker reads some 4 MiB of them a second.
MAX_INDEXES_BYTES = MAX_INDEX_BYTES
# Of a source, and the destination of the source that has the chart.
Opening = Callable[[RemoteSource, str], RemoteSource]


@dataclass(frozen=True, slots=True)
class FetchedDependencies:
    """What was fetched, by its path in the tree that all sources are joined to; the pins of what came from outside of
    the sources, in the order of the paths; and the files of the tree that the rest was made from."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    pins: tuple[Pin, ...] = ()
    used: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Allowance:
    """What all dependencies together may still take: bytes, bytes of indexes, and the time until `ends_at`."""

    egress: EgressPolicy
    bytes_left: int
    index_bytes_left: int = MAX_INDEXES_BYTES
    ends_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.ends_at = time.monotonic() + self.egress.timeout_seconds

    def rules(self) -> EgressPolicy:
        """Those of sources, for the time that is left; a checksum is not asked for, as pins have the digest.

        Where every host may be asked without TLS, that is for what somebody named, and not for what a chart names: the
        metadata of clouds are there.
        """
        hosts = tuple(host for host in self.egress.plain_http_hosts if host != "*")
        left = max(0.1, self.ends_at - time.monotonic())
        return replace(self.egress, plain_http_hosts=hosts, allow_mutable=True, timeout_seconds=left)


def fetch_dependencies(
    tree: Tree,
    destinations: Iterable[str],
    config: Mapping[str, Any],
    *,
    opening: Opening,
    egress: EgressPolicy,
    max_bytes: int,
    pins: Sequence[Pin] = (),
) -> FetchedDependencies:
    """What the one chart of the tree needs and lacks; with `pins` exactly those digests.

    `opening` gives a source the credentials that are for its host. Raises BadBundle for a chart that does not say
    exactly what it needs, and as `fetch` does, naming the dependency.
    """
    folder, destination = chart_folder(tree, destinations, config)
    wanted = missing_dependencies(chart_files(tree, folder))
    pinned = {(pin.destination, pin.reference): pin for pin in pins}
    allowance = _Allowance(egress, max_bytes - sum(map(len, tree.files.values())))
    files: dict[str, bytes] = {}
    made: list[Pin] = []
    used: set[str] = set()
    sources: dict[Dependency, RemoteSource] = {}
    for dependency in sorted(wanted, key=lambda each: each.repository):
        repository, path = dependency.repository, posixpath.join(folder, dependency.path)
        with naming(f"the chart's dependency {dependency}"):
            if repository.startswith(FILE):
                data, inside = _packed_folder(tree, folder, destination, dependency)
                used |= inside
            else:
                if dependency not in sources:
                    together = [each for each in wanted if each.repository == repository]
                    found = _find_sources(repository, together, allowance, lambda each: opening(each, destination))
                    sources |= found
                reference = f"{pinned_url(repository)}/{dependency.name}:{dependency.version}"
                data, digest = _fetched_archive(sources[dependency], pinned.get((path, reference)), allowance)
                made.append(Pin(DEPENDENCY, reference, digest, path))
            allowance.bytes_left -= len(data)
            if allowance.bytes_left < 0:
                most = f"{max_bytes} bytes (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)"
                raise BundleTooLarge(f"with it, the sources and dependencies have more than {most}")
            check_packed(dependency, data)
            files[path] = data
    return FetchedDependencies(files, tuple(sorted(made, key=lambda pin: pin.destination)), frozenset(used))


def _find_sources(
    repository: str,
    needed: Collection[Dependency],
    allowance: _Allowance,
    opening: Callable[[RemoteSource], RemoteSource],
) -> dict[Dependency, RemoteSource]:
    """Where each of the dependencies of one repository is, by its index where it is no registry."""
    if repository.startswith(REGISTRY):
        urls = {each: f"{repository}/{each.name}:{each.version.replace('+', '_')}" for each in needed}
        return {each: opening(_image(url, allowance.rules())) for each, url in urls.items()}
    source = HttpSource(f"{repository}/index.yaml")
    most = min(allowance.bytes_left, allowance.index_bytes_left)
    text = fetch(opening(source), egress=allowance.rules(), max_bytes=most).archives[0].data
    allowance.index_bytes_left -= len(text)
    index = CatalogFile(source.shown, partial(io.BytesIO, text))
    found = chart_addresses(index, address=source.url, wanted={(each.name, each.version) for each in needed})
    if lacking := next((each for each in needed if (each.name, each.version) not in found), None):
        raise SourceUnavailable(f"{source.shown} has no {lacking}, or no address to fetch it from")
    made: dict[Dependency, RemoteSource] = {}
    for each in needed:
        url, checksum = found[each.name, each.version]
        is_image = url.startswith(REGISTRY)
        image = _image(url, allowance.rules()) if is_image else None
        made[each] = opening(image or HttpSource(url, checksum=checksum))
    return made


def _image(url: str, egress: EgressPolicy) -> ImageSource:
    """An image, asked for without TLS where its host is listed."""
    made = ImageSource(ref_of(url))
    return replace(made, insecure_http=egress.is_plain_http(made.place()))


def _fetched_archive(source: RemoteSource, known: Pin | None, allowance: _Allowance) -> tuple[bytes, str]:
    """The one archive of a chart and its digest, which is that of the pin where it is `known`."""
    found: Fetched = fetch(source, egress=allowance.rules(), max_bytes=allowance.bytes_left, pin=known)
    if len(found.archives) != 1:
        raise BadSource(f"{masked(found.pin.reference)}: has {len(found.archives)} layers; expected a chart, with one")
    return found.archives[0].data, found.pin.digest


def _packed_folder(tree: Tree, folder: str, destination: str, dependency: Dependency) -> tuple[bytes, frozenset[str]]:
    """The chart in another folder of the same source, packed as `helm dependency build` does, and its files there."""
    shown, path = f"{dependency.repository[:200]!a}", dependency.repository.removeprefix(FILE)
    place = posixpath.normpath(posixpath.join(folder, path))
    is_inside = place.split("/")[0] != ".." and (not destination or f"{place}/".startswith(f"{destination}/"))
    if place == "." or f"{folder}/".startswith(f"{place}/"):
        raise BadBundle(f"{shown} is, or holds, the chart that needs it; expected another folder")
    if path.startswith("/") or not is_inside or f"{place}/{CHART}" not in tree.files:
        raise BadBundle(
            f"{shown} is no folder with a {CHART} in what was fetched of the chart's source: name a folder in "
            "spec.sources that holds both charts, and that of the chart in config.path"
        )
    files = chart_files(tree, place)
    packed = tar_of((f"{dependency.name}/{name}", files[name]) for name in sorted(files))
    return gzip.compress(packed, mtime=0), frozenset(f"{place}/{name}" for name in files)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Say of which of several an error is."""
    try:
        yield
    except PratiqueError as exc:
        if what:
            exc.args = (f"{what}: {exc}",)
        raise
