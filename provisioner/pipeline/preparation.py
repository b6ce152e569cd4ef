"""From sources to content: fetched, unpacked, joined into one tree and rendered once; and what a chart is told."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, PratiqueError
from provisioner.masking import masked
from provisioner.pipeline.chart_dependencies import FetchedDependencies, fetch_dependencies, naming
from provisioner.render import (
    HELM_VERSION,
    IsNamespaced,
    LookedUp,
    Rendering,
    Target,
    ValuesObject,
    is_told_of_target,
    keep_engine,
    render_content,
)
from provisioner.source import (
    Credentials,
    EgressPolicy,
    GitSource,
    RemoteSource,
    Source,
    course,
    fetch,
    with_secret_for,
)
from provisioner.source.image import names_host
from provisioner.unpack import UnpackLimits, unpack
from provisioner.values import DEPENDENCY, Content, Course, EarlierCommit, JsonObject, KeptValues, Pin, SourceMove, Tree

if TYPE_CHECKING:
    from provisioner.cluster.client.api import ClusterClient


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """How to render: `config` are the format's own options, `install_namespace` the default namespace, `target` what a
    chart is told of the cluster, `kept_values` what its deployment kept of what it made up, None without one."""

    install_namespace: str
    service_account: str = ""
    format: str = "plain"
    config: Mapping[str, Any] = field(default_factory=dict)
    target: Target | None = None
    kept_values: KeptValues | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class FetchedSources:
    """Sources as they came, unpacked, in their order, each with what it was resolved to, and what a chart needs that
    none of them has."""

    trees: tuple[tuple[Pin, Tree], ...]
    dependencies: FetchedDependencies = field(default_factory=FetchedDependencies)

    @property
    def pins(self) -> tuple[Pin, ...]:
        """Those of the sources."""
        return tuple(pin for pin, _ in self.trees)

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(pin.digest for pin in self.pins)


def prepare(
    sources: Sequence[Source],
    *,
    options: PrepareOptions,
    egress: EgressPolicy,
    credentials: Credentials | None,
    limits: UnpackLimits,
    is_namespaced: IsNamespaced,
    pins: Sequence[Pin] = (),
) -> Content:
    """Fetch, unpack and render `sources`, once, into the content that is reviewed and applied.

    With `pins` (one per source, in their order, then those of the dependencies of a chart) exactly those digests and
    commits are fetched, whatever the references point to now. Raises BadSource (also where two sources put files into
    the same place), BadBundle and TryLater.
    """
    with ready_to_render(options):
        found = fetch_sources(
            sources, options=options, egress=egress, credentials=credentials, limits=limits, pins=pins
        )
        return render_sources(found, options=options, limits=limits, is_namespaced=is_namespaced)


def ready_to_render(options: PrepareOptions) -> AbstractContextManager[None]:
    """Have what renders a chart start beside the fetching, since that takes longer than to render it, and be kept."""
    looks_up = options.target is not None and options.target.lookups is not None
    is_helm_4 = options.config.get(HELM_VERSION) != 3  # Helm 3 starts in no time
    return keep_engine(starts=is_told_of_target(options.format) and is_helm_4 and not looks_up)


def fetch_sources(
    sources: Sequence[Source],
    *,
    options: PrepareOptions,
    egress: EgressPolicy,
    credentials: Credentials | None,
    limits: UnpackLimits,
    pins: Sequence[Pin] = (),
    secrets: Sequence[tuple[str, JsonObject]] = (),
) -> FetchedSources:
    """The first half of `prepare`; raises as that does. `secrets` open dependencies of a chart, each at its host."""
    if not sources:
        raise BadSource("a bundle needs at least one source")
    known = [pin for pin in pins if pin.kind == DEPENDENCY]
    pins = [pin for pin in pins if pin.kind != DEPENDENCY]
    if pins and len(pins) != len(sources):
        raise BadSource(f"{len(pins)} pins for {len(sources)} sources; expected one for each")
    exact = [source.pinned(pin) for source, pin in zip(sources, pins, strict=True)] if pins else list(sources)
    resolved: list[str] = []
    with resolving(resolved):
        trees: list[tuple[Pin, Tree]] = []
        for number, source in enumerate(exact):
            with naming(f"sources[{number}]" if len(exact) > 1 else ""):
                one = fetch(source, egress=egress, credentials=credentials, max_bytes=limits.max_bytes)
                pin, expected = one.pin, pins[number].digest if pins else one.pin.digest
                resolved.append(pin.digest)
                if pin.digest != expected:
                    raise DigestMismatch(f"{masked(pin.reference)}: fetched {pin.digest}; pinned was {expected}")
                trees.append((pin, unpack(one.archives, limits=limits)))
            _check_together((tree for _, tree in trees), limits)
        if not is_told_of_target(options.format):
            return FetchedSources(tuple(trees))
        folders = {_folder(pin.destination): source for (pin, _), source in zip(trees, sources, strict=True)}
        dependencies = fetch_dependencies(
            join([(pin.destination, tree) for pin, tree in trees], limits),
            folders,
            options.config,
            opening=lambda found, destination: _open(found, folders[destination], credentials, secrets),
            egress=egress,
            max_bytes=limits.max_bytes,
            pins=known,
        )
    return FetchedSources(tuple(trees), dependencies)


def _open(
    found: RemoteSource, chart: Source, credentials: Credentials | None, secrets: Iterable[tuple[str, JsonObject]]
) -> RemoteSource:
    """A dependency with the Secret for its host, else with the credentials of the chart's own source where they are for
    its host, too."""
    for host, secret in secrets:
        made = with_secret_for(found, secret, host=host)
        if made.credentials is not None:
            return made
    own = (chart.credentials if isinstance(chart, RemoteSource) else None) or credentials
    if own is None:
        return found
    place = found.place()
    is_for_it = own.are_for(place) or bool(own.docker_config and names_host(own, place))
    return replace(found, credentials=own) if is_for_it else found


def render_sources(
    found: FetchedSources, *, options: PrepareOptions, limits: UnpackLimits, is_namespaced: IsNamespaced
) -> Content:
    """The other half of `prepare`, as often as wanted of what was fetched once; raises as that does."""
    with resolving(found.digests):
        tree = join([(pin.destination, each) for pin, each in found.trees], limits)
        tree = Tree({**tree.files, **found.dependencies.files})
        rendering = Rendering(
            options.format,
            options.install_namespace,
            options.service_account,
            is_namespaced,
            options.config,
            tuple(_folder(pin.destination) for pin in found.pins),
            target=options.target,
            kept_values=options.kept_values,
            used=found.dependencies.used,
        )
        return render_content(tree, rendering, pins=(*found.pins, *found.dependencies.pins))


def moves(
    sources: Sequence[Source],
    pins: Sequence[Pin],
    earlier: Mapping[str, Sequence[EarlierCommit]],
    *,
    egress: EgressPolicy,
) -> tuple[SourceMove, ...]:
    """How git sources moved to where their `pins` are, by the history of each repository.

    `earlier` has the commits of before by destination. Never raises for what a server does: where a branch or tag moved
    and nobody could find out how, that is a move of unknown course. Of a commit that somebody chose instead it is told
    only that it is an older one, where the repository proves that.
    """
    found = []
    for source, pin in zip(sources, pins, strict=True):
        if isinstance(source, GitSource):
            ways = (_move(source, pin, before, egress) for before in earlier.get(pin.destination, ()))
            found += [way for way in ways if way is not None]
    return tuple(found)


def _move(source: GitSource, pin: Pin, before: EarlierCommit, egress: EgressPolicy) -> SourceMove | None:
    kind, named = ("branch", source.branch) if source.branch else ("tag", source.tag)
    name = f"{kind} {named} of {masked(pin.reference)}" if named else masked(pin.reference)
    if before.is_followed:
        way, why = course(source, before=before.commit, after=pin.digest, egress=egress)
        return SourceMove(name, before.commit, pin.digest, before.since, way, why)
    # The way there from the chosen one is proved by hashes, and the server gives what it still points to.
    back, _ = course(source, before=pin.digest, after=before.commit, egress=egress)
    if back is not Course.FORWARD or before.commit == pin.digest:
        return None
    return SourceMove(name, before.commit, pin.digest, before.since, Course.BACKWARD)


def target_of(
    cluster: ClusterClient | None,
    *,
    is_upgrade: bool,
    lookups: tuple[LookedUp, ...] | None = None,
    values_from: tuple[ValuesObject, ...] | None = None,
    is_takeover: bool = False,
) -> Target:
    """What a chart is told: the cluster's version, all that it serves, what it may look up, and what it gets values of.
    Without a cluster Helm's own defaults count.

    Raises TryLater where the API server does not answer.
    """
    if cluster is None:
        return Target("", (), is_upgrade)
    served = {
        (f"{resource.group}/{resource.version}" if resource.group else resource.version, resource.kind)
        for resource in cluster.resources()
    }
    versions = {version for version, _ in served} | {f"{version}/{kind}" for version, kind in served}
    return Target(cluster.version(), tuple(sorted(versions)), is_upgrade, lookups, values_from, is_takeover)


@contextmanager
def resolving(digests: Sequence[str]) -> Iterator[None]:
    """Say with an error what the sources had been resolved to by then."""
    try:
        yield
    except PratiqueError as exc:
        exc.resolved = exc.resolved or tuple(digests)
        raise


def join(trees: Iterable[tuple[str, Tree]], limits: UnpackLimits) -> Tree:
    """One tree of several, each under its destination; "" is the root.

    Raises BadSource where two sources put something into the same place: nobody could say which one counts. Raises
    BundleTooLarge.
    """
    placed: list[tuple[str, Tree]] = []
    for destination, tree in trees:
        folder = _folder(destination)
        if folder in {known for known, _ in placed}:
            raise BadSource(f"two sources have the destination {folder or '/'}; expected one for each")
        placed.append((folder, tree))
    _check_together((tree for _, tree in placed), limits)
    files: dict[str, bytes] = {}
    for folder, tree in placed:
        inner = [other for other, _ in placed if other != folder and other.startswith(f"{folder}/" if folder else "")]
        for path, data in tree.files.items():
            whole = f"{folder}/{path}" if folder else path
            taken = next((other for other in inner if whole == other or whole.startswith(f"{other}/")), None)
            if taken is not None:
                raise BadSource(f"{whole} lies in {taken}, the destination of another source")
            files[whole] = data
    return Tree(files)


def _check_together(trees: Iterable[Tree], limits: UnpackLimits) -> None:
    """Raise BundleTooLarge where what has come so far is more than one bundle may be."""
    count = total = 0
    for tree in trees:
        count += len(tree.files)
        total += sum(map(len, tree.files.values()))
    if count > limits.max_entries:
        raise BundleTooLarge(f"all sources together have more than {limits.max_entries} files (the limit max_entries)")
    if total > limits.max_bytes:
        most = f"the limit max_bytes (PRATIQUE_MAX_BUNDLE_MIB) is {limits.max_bytes}"
        raise BundleTooLarge(f"all sources together are {total} bytes; {most}")


def _folder(destination: str) -> str:
    folder = destination.strip("/")
    if folder and (posixpath.normpath(folder) != folder or folder.split("/")[0] == ".." or "\\" in folder):
        raise BadSource(f"destination {destination!r}: expected a plain folder such as extra/more")
    return folder
