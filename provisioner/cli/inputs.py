"""What the command line names, read: the bundle, the files of its options, and stored objects (`--objects`)."""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provisioner import pipeline
from provisioner.cli.arguments import Usage
from provisioner.errors import BundleTooLarge, InvalidManifest, PratiqueError, Unreachable
from provisioner.render import (
    BUILT_IN,
    IsNamespaced,
    Target,
    YamlLimits,
    YamlMeter,
    is_told_of_target,
    keep_engine,
    load_documents,
    looked_up,
    values_object,
    wanted_lookups,
    wanted_values,
)
from provisioner.review.base.facts import Stored
from provisioner.review.crd_diff import kinds_told, objects_of
from provisioner.source import Credentials, EgressPolicy, GitSource, HttpSource, ImageSource, LocalSource, Source
from provisioner.source.image import ref_of
from provisioner.unpack import UnpackLimits, unpack
from provisioner.values import Content, GroupKind

if TYPE_CHECKING:
    from provisioner.cluster.client.api import ClusterClient

_CSV = GroupKind("operators.coreos.com", "ClusterServiceVersion")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_IMAGE = re.compile(r"[a-z0-9][a-z0-9.-]*(?::\d+)?/[a-z0-9._/-]+(?::\w[\w.-]{0,127}|@sha256:[0-9a-f]{64}|)", re.ASCII)
_GIT = re.compile(r"git\+(?P<repository>https?://[^#@]+)@(?P<ref>[^@#]+)(?:#(?P<directory>.*))?")
# What lies in a folder of these formats and in no other.
_MARKS = {
    "Chart.yaml": "helm",
    "metadata/annotations.yaml": "registry-v1",
    "kustomization.yaml": "kustomize",
    "kustomization.yml": "kustomize",
    "Kustomization": "kustomize",
}
_VERSION = re.compile(r"v?\d+(\.\d+)*([.+-].*)?")


class BundleUnreachable(Unreachable):
    """The registry or host of a bundle did not answer; the cluster has nothing to do with that."""


def kind_scopes(cluster: ClusterClient | None) -> IsNamespaced:
    """Which kinds are namespaced: as the cluster says, without one as Kubernetes itself has them."""
    if cluster is None:
        return BUILT_IN.get
    return {GroupKind(resource.group, resource.kind): resource.is_namespaced for resource in cluster.resources()}.get


def read_contents(options: argparse.Namespace, cluster: ClusterClient | None) -> tuple[Content, Content | None]:
    """What the BUNDLE argument and `--old` come to. A chart is told of the cluster, and of `--old` before it.

    Without --format each is read as what it is. With `--old`, an error says which of the two it is about.
    """
    is_namespaced = kind_scopes(cluster)
    # Each file is read once: it may be a pipe.
    options.format_options = _read_config(options.config)
    if not options.old:
        if options.old_config:
            raise Usage("--old-config goes with --old")
        return _read_side(options, cluster, is_namespaced), None
    is_alike = bool(options.format) or _detect_format(options.old) == _detect_format(options.bundle)
    config = options.format_options if is_alike else {}
    if options.old_config:
        config = _read_config(options.old_config)
    before = argparse.Namespace(**{**vars(options), "bundle": options.old, "format_options": config})
    with keep_engine():
        old = _read_side(before, cluster, is_namespaced, side="--old ")
        return _read_side(options, cluster, is_namespaced, side="BUNDLE ", is_upgrade=True), old


def _read_side(
    options: argparse.Namespace,
    cluster: ClusterClient | None,
    is_namespaced: IsNamespaced,
    *,
    side: str = "",
    is_upgrade: bool = False,
) -> Content:
    """What `options.bundle` comes to. A format that nobody named is the one of its files, set in `options`."""
    bundle, is_named = options.bundle, bool(options.format)
    options.format = options.format or _detect_format(bundle)
    target = None
    if is_told_of_target(options.format):
        # What a chart is told of the cluster, read as who the kubeconfig is.
        wanted = wanted_lookups(_format_options(options), options.install_namespace)
        lookups = looked_up(wanted, cluster.get) if cluster is not None and wanted is not None else None
        references = wanted_values(_format_options(options), options.install_namespace)
        values = (
            tuple(values_object(each, cluster.get(each.ref)) for each in references) if cluster is not None else None
        )
        target = pipeline.target_of(cluster, is_upgrade=is_upgrade, lookups=lookups, values_from=values)
    try:
        content = read_content(bundle, options, is_namespaced, target)
        if (
            options.format == "plain"
            and not is_named
            and any(manifest.ref.group_kind == _CSV for manifest in content.manifests)
        ):
            raise Usage(f"{bundle}: it holds a ClusterServiceVersion, as operator bundles do: add --format registry-v1")
    except (PratiqueError, Usage) as exc:
        words = str(exc)
        if isinstance(exc, InvalidManifest) and not is_named:
            words += f". It was read as {options.format}; name another format, such as --format helm for a chart"
        # Of two versions of a bundle, their own words do not tell which.
        exc.args = (f"{side}{bundle}: {words.removeprefix(f'{bundle}: ')}" if side else words,)
        raise
    return content


def _detect_format(bundle: str) -> str:
    """The format of a folder or an archive on this machine, by what lies in it; of what is not read yet, plain.

    A chart lies in the one folder of its archive. What cannot be unpacked, reading it says.
    """
    path = Path(bundle)
    if path.is_dir():
        return next((name for mark, name in _MARKS.items() if (path / mark).is_file()), "plain")
    if not path.is_file() or path.suffix in SUFFIXES:
        return "plain"
    limits = UnpackLimits()
    try:
        fetched = LocalSource(bundle).fetch(egress=EVERYWHERE, credentials=None, max_bytes=limits.max_bytes)
        files = unpack(fetched.archives, limits=limits).files
    except PratiqueError:
        return "plain"
    tops = {file.partition("/")[0] for file in files}
    if tops and all(f"{top}/Chart.yaml" in files for top in tops):
        return "helm"
    return next((name for mark, name in _MARKS.items() if mark in files), "plain")


def read_content(
    bundle: str, options: argparse.Namespace, is_namespaced: IsNamespaced, target: Target | None = None
) -> Content:
    """What a BUNDLE argument comes to, read by the options of `add_bundle_options` and those of the account."""
    prepared = pipeline.PrepareOptions(
        install_namespace=options.install_namespace,
        service_account=options.service_account,  # none where none is named: nothing is known of who applies it
        format=options.format,
        config=_format_options(options),
        target=target,
    )
    try:
        file = options.docker_config
        if options.docker_login:
            file = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
        return pipeline.prepare(
            [source_of(bundle)],
            options=prepared,
            egress=EVERYWHERE,
            credentials=Credentials(docker_config=read_text(file)) if file else None,
            limits=UnpackLimits(),
            is_namespaced=is_namespaced,
        )
    except Unreachable as exc:
        raise BundleUnreachable(str(exc), server_words=exc.server_words) from exc


# Whoever runs the command line asks for what they type, from where they sit: no service is led astray by it.
EVERYWHERE = EgressPolicy(
    allowed_networks=(ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")),
    plain_http_hosts=("*",),
    allow_mutable=True,
)


def _format_options(options: argparse.Namespace) -> dict[str, object]:
    if options.recursive and options.format != "plain":
        raise Usage(f"--recursive is for the format plain, not for {options.format}")
    return {**options.format_options, **({"recursive": True} if options.recursive else {})}


def _read_config(file: Path | None) -> dict[str, object]:
    if file is None:
        return {}
    with file.open("rb") as opened:
        text = opened.read(MAX_CONFIG_BYTES + 1)
    if len(text) > MAX_CONFIG_BYTES:
        raise Usage(
            f"{file}: more than {MAX_CONFIG_BYTES // 1024**2} MiB; format options are a part of a BundleDeployment"
        )
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise Usage(f"{file}: expected JSON ({exc}); `yq -o json` makes it from YAML") from exc
    if not isinstance(found, dict):
        raise Usage(f"{file}: expected one JSON object")
    return found


def read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise Usage(f"{file}: not UTF-8 text") from exc


def source_of(bundle: str) -> Source:
    """The source that a BUNDLE argument means. Raises Usage, saying what was understood, for what means none."""
    if bundle.startswith("oci://"):
        return ImageSource(ref_of(bundle))
    if bundle.startswith("git+"):
        match = _GIT.fullmatch(bundle)
        if match is None:
            raise Usage(f"{bundle}: expected git+https://HOST/PATH@REF#FOLDER, REF a branch, a version tag or a commit")
        repository, ref, directory = match["repository"], match["ref"], match["directory"] or ""
        if _COMMIT.fullmatch(ref):
            return GitSource(repository, commit=ref, directory=directory)
        if ref.startswith("refs/tags/") or _VERSION.fullmatch(ref):
            return GitSource(repository, tag=ref.removeprefix("refs/tags/"), directory=directory)
        return GitSource(repository, branch=ref.removeprefix("refs/heads/"), directory=directory)
    if bundle.startswith(("http://", "https://")):
        url, _, checksum = bundle.partition("#")
        return HttpSource(url, checksum=checksum)
    if bundle and Path(bundle).exists():
        return LocalSource(bundle)
    if _IMAGE.fullmatch(bundle) and not bundle.startswith((".", "/")):
        return ImageSource(bundle)
    raise Usage(f"{bundle}: no such file or folder, and no reference; see `pratique review --help`")


MAX_CONFIG_BYTES = 2 * 1024 * 1024  # more than the API server stores of one object
SUFFIXES = (".yaml", ".yml", ".json")
# What people save of a large cluster: several times what a bundle may hold.
MAX_BYTES = 256 * 1024 * 1024
MAX_FILES = 10_000
LIMITS = YamlLimits(max_file_bytes=MAX_BYTES, max_documents=200_000, max_nodes=8_000_000, max_characters=MAX_BYTES)
_HOW = "expected what `kubectl get KIND -A -o yaml` prints"


def read_stored_objects(place: Path) -> Stored:
    """All objects of a file, or of the files of a folder and of those in it, and the kinds of which they tell.

    Raises Usage for a place that holds no file to read, InvalidManifest for what is no object, with its file, and
    BundleTooLarge past MAX_FILES files or MAX_BYTES bytes in all.
    """
    documents: list[Any] = []
    meter, left = YamlMeter(LIMITS), MAX_BYTES
    for file in _find_files(place):
        try:
            with file.open("rb") as opened:
                text = opened.read(left + 1)
        except OSError as exc:
            raise Usage(f"{file}: cannot be read ({exc.strerror})") from exc
        if len(text) > left:
            raise BundleTooLarge(f"{file}: more than {MAX_BYTES // 1024**2} MiB of objects in all")
        left -= len(text)
        found = [document.value for document in load_documents(text, name=str(file), meter=meter)]
        for one in found:
            _check_objects(one, str(file))
        documents += found
    return Stored(tuple(objects_of(documents)), kinds_told(documents))


def _find_files(place: Path) -> list[Path]:
    if not place.exists():
        raise Usage(f"{place}: no such file or folder")
    if not place.is_dir():
        return [place]
    found: list[Path] = []
    for path in place.rglob("*"):
        if path.suffix in SUFFIXES and path.is_file():
            found.append(path)
        if len(found) > MAX_FILES:
            raise BundleTooLarge(f"{place}: more than {MAX_FILES:,} files")
    if not found:
        raise Usage(f"{place}: no file in this folder ends with {', '.join(SUFFIXES)}")
    return sorted(found)


def _check_objects(document: object, file: str) -> None:
    """Whatever is passed over would count as not stored, which makes a report say less."""
    for member in _list_members(document):
        meta = member.get("metadata") if isinstance(member, Mapping) else None
        is_named = isinstance(meta, Mapping) and isinstance(meta.get("name"), str) and bool(meta["name"])
        if not isinstance(member, Mapping) or not all(
            isinstance(member.get(key), str) for key in ("apiVersion", "kind")
        ):
            raise InvalidManifest(f"{file}: holds something without apiVersion and kind; {_HOW}")
        if not is_named:
            raise InvalidManifest(f"{file}: a {member['kind']} has no metadata.name; {_HOW}")


def _list_members(document: object) -> Iterator[object]:
    if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List") and "items" in document:
        held = document["items"]
        if not isinstance(held, list):
            yield document["items"]
            return
        for member in held:
            yield from _list_members(member)
    else:
        yield document
