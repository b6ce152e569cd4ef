"""OCI images and artifacts by the oras client, with what it lacks: bounds, digests, egress checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from oras.container import Container

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch
from provisioner.source.client import SourceClient
from provisioner.source.egress import EgressPolicy, Origin, place_of
from provisioner.source.registry import BoundedRegistry, pair_of
from provisioner.source.specs import (
    Credentials,
    Fetched,
    Opened,
    Polled,
    RemoteSource,
    SourceField,
    SourceProtocol,
    needed,
)
from provisioner.values import Archive, JsonObject, Pin

INDEX_TYPES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFEST_TYPES = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
ACCEPTED = ", ".join((*MANIFEST_TYPES, *INDEX_TYPES))
IMAGE_CONFIGS = ("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")
TITLE = "org.opencontainers.image.title"
# Descriptors that stand for no files of the bundle: an artifact's empty one, and a Helm chart's signature.
NO_FILES = frozenset({"application/vnd.oci.empty.v1+json", "application/vnd.cncf.helm.chart.provenance.v1.prov"})
DEFAULT_PLATFORM = "linux/amd64"
MAX_MANIFEST_BYTES = 4 * 1024 * 1024
MAX_LAYERS = 128
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
REFERENCE = re.compile(
    rf"(?:(?P<host>[A-Za-z0-9.-]+(?::\d+)?|\[[0-9a-fA-F:]+\](?::\d+)?)/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
# Where the next page is: a path of the registry itself, never another host.
NEXT_PAGE = re.compile(r'<(/v2/[^>\s]{1,2000})>\s*;\s*rel="?next"?')
TAGS_A_PAGE, MAX_TAG_PAGES = 1000, 100
HUB_NAMES = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
HUB, HUB_TOKENS = "registry-1.docker.io", "auth.docker.io"


@dataclass(frozen=True, slots=True)
class ImageSource(RemoteSource):
    """An OCI image or artifact. `platform` (linux/amd64) chooses from an index."""

    kind = "image"
    label = "OCI image"
    fields = (SourceField("image", "Image", "registry/name:tag or @sha256:…", is_needed=True),)

    ref: str
    insecure_http: bool = False
    platform: str = ""
    destination: str = ""

    @classmethod
    def parse(cls, body: JsonObject, where: str, destination: str) -> ImageSource:
        return cls(needed(body, "ref", where), insecure_http=True, destination=destination)

    @staticmethod
    def to_spec(given: Mapping[str, str]) -> dict[str, Any]:
        return {"ref": given["image"]}

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        return {"image": body.get("ref", "")}

    @staticmethod
    def version_words(body: JsonObject) -> str:
        name, _, digest = str(body.get("ref") or "").partition("@")
        tag = name.rpartition("/")[2].partition(":")[2]
        return tag or (digest[:19] if digest else "latest" if name else "")

    def fetch(self, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
        """The image's layers, each byte checked against its digest; pinned to the digest of the manifest that was
        named.

        Raises BadSource, DigestMismatch, ForbiddenAddress, BundleTooLarge and TryLater.
        """
        with _named_image(self, egress, credentials) as named:
            manifest, pin = _chosen(named)
            return Fetched(pin, tuple(_archives(named, manifest, max_bytes)))

    @contextmanager
    def opened(self, *, egress: EgressPolicy, max_bytes: int) -> Iterator[Opened]:
        """As `fetch`, with its layers one by one as they are asked for, and the labels of the image."""
        with _named_image(self, egress, self.credentials) as named:
            manifest, pin = _chosen(named)
            yield Opened(pin, _archives(named, manifest, max_bytes), _labels(named, manifest))

    def poll(self, *, egress: EgressPolicy, max_bytes: int, known: Polled) -> Polled:
        """The digest of the manifest that the tag names now, by a HEAD; one that is not `known` is read and hashed.

        What a header says would otherwise be believed: a registry could claim another digest at every look.
        """
        with _named_image(self, egress, self.credentials) as named:
            if known.digest and named.told_digest() == known.digest:
                return known
            return Polled(named.manifest(named.reference)[1])

    def tags(self, *, egress: EgressPolicy, most: int) -> list[str]:
        """All tags of the repository by name. Raises as `fetch`, and BundleTooLarge for more than `most`."""
        found: list[str] = []
        with _named_image(self, egress, self.credentials) as named:
            for page in named.tag_pages():
                found += page
                if len(found) > most:
                    raise BundleTooLarge(f"{self.ref}: the repository has more than {most} tags")
        return sorted(set(found))

    def is_floating(self, egress: EgressPolicy) -> bool:
        return not _container(self).digest

    def pinned(self, pin: Pin) -> ImageSource:
        return replace(self, ref=f"{self.ref.partition('@')[0]}@{pin.digest}")

    def place(self) -> Origin:
        """Where the image's registry is. Raises BadSource for what is no reference."""
        prefix = "http" if self.insecure_http else "https"
        return place_of(f"{prefix}://{_container(self).registry}/")

    @property
    def protocol(self) -> SourceProtocol:
        return SourceProtocol.REGISTRY

    @property
    def shown(self) -> str:
        return self.ref

    @property
    def address(self) -> tuple[str, ...]:
        return (self.ref,)


@contextmanager
def _named_image(source: ImageSource, egress: EgressPolicy, credentials: Credentials | None) -> Iterator[_Image]:
    """The image in its registry, which is asked by a client of its own."""
    container = _container(source)
    place = source.place()
    if source.insecure_http and not egress.is_plain_http(place):
        raise BadSource(f"{source.ref}: expected https; PRATIQUE_PLAIN_HTTP_HOSTS can allow http for {place.host}")
    pair = pair_of(credentials, place, container.api_prefix)
    is_hub = container.registry == HUB
    with SourceClient(egress, place, credentials) as client:
        registry = BoundedRegistry(client, place, pair=pair, token_host=HUB_TOKENS if is_hub else "")
        yield _Image(registry, container, source)


def _chosen(named: _Image) -> tuple[dict[str, Any], Pin]:
    """The manifest of the image for the wanted platform, and the pin of what was named."""
    source = named.source
    manifest, digest = named.manifest(named.reference)
    if "manifests" in manifest:
        manifest, _ = named.manifest(_of_platform(manifest["manifests"], source))
    return manifest, Pin(source.kind, source.ref, digest, source.destination)


def _archives(named: _Image, manifest: Mapping[str, Any], max_bytes: int) -> Iterator[Archive]:
    left = max_bytes
    for layer in _layers(manifest, named.source):
        data = named.blob(layer, left)
        left -= len(data)
        yield Archive(_title(layer), data)


def _labels(named: _Image, manifest: Mapping[str, Any]) -> dict[str, str]:
    """What the image says of itself; an artifact says nothing."""
    config = manifest.get("config")
    if not isinstance(config, dict) or config.get("mediaType") not in IMAGE_CONFIGS:
        return {}
    if not DIGEST.fullmatch(str(config.get("digest", ""))):
        raise BadSource(f"{named.source.ref}: its config has no sha256 digest")
    try:
        found = json.loads(named.blob(config, MAX_MANIFEST_BYTES))
        labels = (found.get("config") or {}).get("Labels") or {}
        return {str(name): str(value) for name, value in labels.items()}
    except (ValueError, AttributeError, RecursionError) as exc:
        raise BadSource(f"{named.source.ref}: its config is not that of an image") from exc


class _Image:
    """The manifests and blobs of one repository, checked against their digests."""

    def __init__(self, registry: BoundedRegistry, container: Any, source: ImageSource):
        self._registry = registry
        self._container = container
        self.source = source

    def tag_pages(self) -> Iterator[list[str]]:
        """The tags, a page at a time: a registry says where the next one is, within itself (distribution spec)."""
        url = str(self._container.tags_url(TAGS_A_PAGE))
        for _ in range(MAX_TAG_PAGES):
            reply = self._registry.fetch(url, self._scope, max_bytes=MAX_MANIFEST_BYTES)
            try:
                listed = json.loads(reply.body)["tags"] or []
            except (ValueError, KeyError, TypeError, RecursionError) as exc:
                raise BadSource(f"{self.source.ref}: the registry gives no list of tags") from exc
            if not isinstance(listed, list):
                raise BadSource(f"{self.source.ref}: the registry gives no list of tags")
            yield [tag for tag in listed if isinstance(tag, str) and TAG.fullmatch(tag)]
            following = NEXT_PAGE.search(reply.headers.get("link", ""))
            if not following:
                return
            url = f"{self._container.registry}{following[1]}"
        raise BundleTooLarge(f"{self.source.ref}: the registry gives more than {MAX_TAG_PAGES} pages of tags")

    @property
    def reference(self) -> str:
        """The digest, else the tag, by which the image is named."""
        return str(self._container.digest or self._container.tag)

    def told_digest(self) -> str:
        """The digest that the registry claims for it; "" where it answers no HEAD, or without one."""
        url = self._container.manifest_url(self.reference)
        try:
            headers = self._registry.head(url, self._scope, accept=ACCEPTED)
        except BadSource:
            return ""  # the GET says what is wrong
        return headers.get("docker-content-digest", "")

    def manifest(self, reference: str) -> tuple[dict[str, Any], str]:
        """The manifest or index that a tag or digest names, and its digest."""
        url = self._container.manifest_url(reference)
        reply = self._registry.fetch(url, self._scope, max_bytes=MAX_MANIFEST_BYTES, accept=ACCEPTED)
        told = reply.headers.get("docker-content-digest", "")
        expected = reference if reference.startswith("sha256:") else told
        if expected.startswith("sha256:") and reply.digest != expected:
            raise DigestMismatch(f"{self.source.ref}: its manifest has digest {reply.digest}; expected {expected}")
        return _manifest_of(reply.body, self.source.ref), reply.digest

    def blob(self, layer: Mapping[str, Any], left: int) -> bytes:
        """One layer; at most `left` bytes."""
        digest, size = str(layer["digest"]), layer.get("size")
        if not isinstance(size, int) or size < 0:
            raise BadSource(f"{self.source.ref}: the layer {digest} has no size")
        if size > left:
            raise BundleTooLarge(
                f"{self.source.ref}: the layer {digest} has {size} bytes; {left} are left of the limit max_bytes "
                "(PRATIQUE_MAX_BUNDLE_MIB)"
            )
        reply = self._registry.fetch(self._container.get_blob_url(digest), self._scope, max_bytes=left)
        if reply.digest != digest or len(reply.body) != size:
            raise DigestMismatch(
                f"{self.source.ref}: a layer has digest {reply.digest} and {len(reply.body)} bytes; "
                f"expected {digest} and {size}"
            )
        return reply.body

    @property
    def _scope(self) -> str:
        return f"repository:{self._container.api_prefix}:pull"


def _container(source: ImageSource) -> Any:
    if not REFERENCE.fullmatch(source.ref):
        raise BadSource(
            f"{source.ref[:200]!r} is no image reference; expected host/repository:tag or "
            "host/repository@sha256:<64 hex digits>"
        )
    container = Container(source.ref)
    if container.registry in HUB_NAMES:
        container.registry = HUB
        container.namespace = container.namespace or "library"
    return container


def _manifest_of(body: bytes, ref: str) -> dict[str, Any]:
    try:
        manifest = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise BadSource(f"{ref}: its manifest is not JSON") from exc
    if not isinstance(manifest, dict) or manifest.get("schemaVersion") != 2:
        raise BadSource(f"{ref}: expected a manifest of OCI or of Docker's schema 2")
    if "manifests" in manifest and ("layers" in manifest or "config" in manifest):
        raise BadSource(f"{ref}: its manifest is an index and an image at once")
    return manifest


def _of_platform(manifests: Any, source: ImageSource) -> str:
    """The digest of the image for the wanted platform; the only one where nothing was said and there is one."""
    found: dict[str, str] = {}
    for entry in manifests if isinstance(manifests, list) else []:
        platform = entry.get("platform") if isinstance(entry, dict) else None
        platform = platform if isinstance(platform, dict) else {}
        words = [str(platform.get(key) or "") for key in ("os", "architecture", "variant")]
        name = "/".join(word for word in words if word)
        if not name.startswith("unknown"):  # attestations, which are no images
            found.setdefault(name, str(entry.get("digest", "")) if isinstance(entry, dict) else "")
    wanted = source.platform or DEFAULT_PLATFORM
    chosen = found.get(wanted) or _variant(found, wanted)
    if not chosen and len(found) == 1 and not source.platform:
        chosen = next(iter(found.values()))
    if not DIGEST.fullmatch(chosen):
        names = ", ".join(sorted(name or "one without a platform" for name in found)) or "none"
        raise BadSource(f"{source.ref}: has no image for {wanted}; it has {names}")
    return chosen


def _variant(found: Mapping[str, str], wanted: str) -> str:
    """linux/arm64 means linux/arm64/v8, if there is only one such."""
    variants = [digest for name, digest in found.items() if name.startswith(f"{wanted}/")]
    return variants[0] if len(variants) == 1 else ""


def _layers(manifest: Mapping[str, Any], source: ImageSource) -> Iterator[Mapping[str, Any]]:
    if "manifests" in manifest:
        raise BadSource(f"{source.ref}: its index holds another index; expected an image")
    layers = manifest.get("layers")
    if not isinstance(layers, list) or not layers:
        raise BadSource(f"{source.ref}: its manifest has no layers")
    if len(layers) > MAX_LAYERS:
        raise BundleTooLarge(f"{source.ref}: has {len(layers)} layers; the limit is {MAX_LAYERS}")
    for layer in layers:
        if not isinstance(layer, dict) or not DIGEST.fullmatch(str(layer.get("digest", ""))):
            raise BadSource(f"{source.ref}: a layer has no sha256 digest")
        kind = str(layer.get("mediaType", ""))
        if "nondistributable" in kind or "foreign" in kind or kind.endswith("+encrypted"):
            raise BadSource(f"{source.ref}: has a layer of type {kind}, which is not in the registry for everybody")
        if kind not in NO_FILES:
            yield layer


def _title(layer: Mapping[str, Any]) -> str:
    annotations = layer.get("annotations")
    return str(annotations.get(TITLE, "")) if isinstance(annotations, dict) else ""
