"""The operator's file of GitOps controllers (PRATIQUE_GITOPS_FILE): which ServiceAccounts may ask, for what (S34).

A controller writes what others have pushed, and its own rights, often those of cluster-admin, say nothing about them.
So one counts as a known requester only where the operator has listed it for the deployment and for the installer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from approvals.operators_file import FileSection, each_once, yaml_of
from provisioner.errors import BadSource
from provisioner.values import ObjectRef

if TYPE_CHECKING:  # it loads git, OCI and catalogs, and settings load this module
    from approvals.bundle_spec import BundleSpec, SpecSource

ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", re.ASCII)
EVERY = "*"
# What a deployment's sources may name, by the field that lists it.
SOURCES = {"secrets": "Secret", "configMaps": "ConfigMap"}
PREFIX = "system:serviceaccount:"
# How a request says that a listed controller asked.
VIA = "gitops"


class ListedKind(StrEnum):
    """What an entry of the file is about, as it names it."""

    DEPLOYMENTS = "deployments"
    CATALOGS = "catalogs"


@dataclass(frozen=True, slots=True)
class WrittenWish:
    """What the operator's word is about: a BundleDeployment as it was written, or a Catalog, which has no installer.

    `reads` are the Secrets and ConfigMaps that its sources name, as `Secret NAMESPACE/NAME`.
    """

    cluster: str
    name: str
    labels: Mapping[str, str]
    installer: str
    reads: frozenset[str] = frozenset()
    kind: ListedKind = ListedKind.DEPLOYMENTS


def wish_of(cluster: str, name: str, labels: Mapping[str, str], spec: BundleSpec) -> WrittenWish | None:
    """What a BundleDeployment asks for; None where its sources cannot be read."""
    try:
        reads = _ref_names(spec.reads())
    except BadSource:
        return None
    return WrittenWish(cluster, name, labels, "/".join(spec.account), reads)


def catalog_wish_of(cluster: str, name: str, source: SpecSource) -> WrittenWish | None:
    """What a Catalog names; None where its source cannot be read."""
    try:
        reads = _ref_names(source.reads())
    except BadSource:
        return None
    return WrittenWish(cluster, name, {}, "", reads, ListedKind.CATALOGS)


def _ref_names(refs: Iterable[ObjectRef]) -> frozenset[str]:
    return frozenset(f"{ref.kind} {ref.namespace}/{ref.name}" for ref in refs)


@dataclass(frozen=True, slots=True)
class Controller:
    """A ServiceAccount on one cluster, the deployments or the Catalogs that it may write, and what these may name.

    Accounts are NAMESPACE/NAME, `sources` are `Secret NAMESPACE/NAME` or `ConfigMap NAMESPACE/NAME`. Who pushes chooses
    the labels of what is pushed, so `labels` only narrow `names`. They also choose to which host a Secret is sent.
    """

    account: str
    cluster: str
    names: tuple[str, ...]
    labels: Mapping[str, str]
    installers: tuple[str, ...]
    sources: tuple[str, ...] = ()
    kind: ListedKind = ListedKind.DEPLOYMENTS

    def may_ask(self, username: str, wish: WrittenWish) -> bool:
        is_one = self.cluster == wish.cluster and username == PREFIX + self.account.replace("/", ":", 1)
        is_so = self.kind == wish.kind and (self.kind is ListedKind.CATALOGS or wish.installer in self.installers)
        return is_one and is_so and self._selects(wish) and wish.reads <= {*self.sources}

    def _selects(self, wish: WrittenWish) -> bool:
        is_named = EVERY in self.names or wish.name in self.names
        return is_named and all(wish.labels.get(key) == value for key, value in self.labels.items())


@dataclass(frozen=True, slots=True)
class GitopsControllers:
    listed: tuple[Controller, ...] = field(default=())

    def may_ask(self, username: str, wish: WrittenWish) -> bool:
        """Whether the operator vouches for this ServiceAccount as the requester of this."""
        return any(one.may_ask(username, wish) for one in self.listed)


def parse_controllers(path: str) -> GitopsControllers:
    """The controllers of the file at `path`, none of "". Raises ValueError that names the place in the file."""
    return read_controllers(yaml_of(path)) if path else GitopsControllers()


def read_controllers(content: object) -> GitopsControllers:
    top = FileSection("file", content)
    top.allow("controllers")
    return GitopsControllers(tuple(_controller(one) for one in top.items("controllers")))


def _controller(place: FileSection) -> Controller:
    place.allow("account", "cluster", *ListedKind, "installers", *SOURCES)
    account = place.text("account")
    _check_name(f"{place.where}.account", account, "ServiceAccount")
    sources = tuple(one for field, kind in SOURCES.items() for one in _sources(place, field, kind))
    if place.child(ListedKind.CATALOGS):
        return _of_catalogs(place, Controller(account, place.text("cluster"), (), {}, (), sources, ListedKind.CATALOGS))
    chosen = place.needed(ListedKind.DEPLOYMENTS)
    chosen.allow("matchNames", "matchLabels")
    labels, names, installers = _labels(chosen), _names(chosen), place.texts("installers")
    if not installers:
        raise ValueError(f"{place.where}.installers: expected at least one NAMESPACE/NAME")
    each_once(f"{place.where}.installers:", installers)
    for installer in installers:
        _check_name(f"{place.where}.installers", installer, "ServiceAccount")
    return Controller(account, place.text("cluster"), names, labels, installers, sources)


def _of_catalogs(place: FileSection, controller: Controller) -> Controller:
    """Catalogs are selected by their names alone, and nobody installs them."""
    place.allow("account", "cluster", ListedKind.CATALOGS, *SOURCES)
    chosen = place.needed(ListedKind.CATALOGS)
    chosen.allow("matchNames")
    return replace(controller, names=_names(chosen))


def _names(chosen: FileSection) -> tuple[str, ...]:
    names = chosen.texts("matchNames")
    if not names:
        raise ValueError(f"{chosen.where}: expected matchNames; ['*'] selects all of them, also by labels of their own")
    return names


def _sources(place: FileSection, field: str, kind: str) -> Iterator[str]:
    for name in place.texts(field):
        _check_name(f"{place.where}.{field}", name, kind)
        yield f"{kind} {name}"


def _labels(place: FileSection) -> dict[str, str]:
    found = place.child("matchLabels")
    return {str(key): found.text(key) for key in found.mapping()} if found else {}


def _check_name(where: str, text: str, kind: str) -> None:
    if not ACCOUNT.fullmatch(text):
        raise ValueError(f"{where}: {text!r} is not a {kind}: expected NAMESPACE/NAME")
