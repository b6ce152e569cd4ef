"""OCI images and artifacts: oras reads their names, and our own client fetches, within bounds and checked.

There are no retries, no cookies, and no password for another place than the registry's own or one that the operator
allows (S08).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from oras.container import Container

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, SourceUnavailable
from provisioner.source.egress import EgressPolicy, Origin, check_place, place_of, shown
from provisioner.source.source_type import (
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

if TYPE_CHECKING:
    from provisioner.source.client import SourceClient, SourceReply

MAX_TOKEN_BYTES = 64 * 1024
TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
BEARER = re.compile(r"(?:^|[\s,])bearer\s+(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
BASIC = re.compile(r"(?:^|[\s,])basic(?:\s|$)", re.IGNORECASE)
WORD = re.compile(r'(\w+)="([^"]*)"')
HUB_KEY = "index.docker.io"
OCI = "oci://"
CLEAR_HOST = re.compile(r"[^@]+[.:]")


class BoundedRegistry:
    """One registry. `pair` is user:password in base64 for it, "" for none.

    `token_host` may give tokens for it beside the registry itself and the hosts that the operator listed.
    """

    def __init__(self, client: SourceClient, place: Origin, *, pair: str, token_host: str = ""):
        self._client = client
        self._place = place
        self._pair = pair
        self._token_host = token_host
        self._authorization = ""

    def fetch(self, url: str, scope: str, *, max_bytes: int, accept: str = "*/*") -> SourceReply:
        """GET `url` (without its scheme), answering one challenge; BadSource for what is not there or not ours."""
        return self._checked(
            f"{self._place.scheme}://{url}", scope, partial(self._client.get, max_bytes=max_bytes), accept
        )

    def head(self, url: str, scope: str, *, accept: str) -> Mapping[str, str]:
        """The headers of the answer to a HEAD of `url`, names in lower case; raises as `fetch`."""
        return self._checked(f"{self._place.scheme}://{url}", scope, self._client.head, accept).headers

    def _checked(self, address: str, scope: str, ask: Callable[..., SourceReply], accept: str) -> SourceReply:
        reply = ask(address, headers=self._headers(accept))
        if reply.status == 401:
            self._authorization = self._answer(reply.headers.get("www-authenticate", ""), scope, address)
            reply = ask(address, headers=self._headers(accept))
        if reply.status in (401, 403):
            raise SourceUnavailable(
                f"{shown(address)}: the registry answered {reply.status}: {self._known_as} may not read it"
            )
        if reply.status != 200:
            error = SourceUnavailable if reply.status == 404 else BadSource
            raise error(f"{shown(address)}: the registry answered {reply.status}; expected 200")
        return reply

    def _headers(self, accept: str) -> dict[str, str]:
        return {"Accept": accept} | ({"Authorization": self._authorization} if self._authorization else {})

    @property
    def _known_as(self) -> str:
        if self._pair:
            return "the user of the given credentials"
        if self._client.has_client_certificate:
            return "the owner of the client certificate"
        return f"nobody, as no credentials for {self._place} were given,"

    def _answer(self, challenge: str, scope: str, address: str) -> str:
        """The Authorization that a challenge asks for."""
        bearer = BEARER.search(challenge)
        words = dict(WORD.findall(bearer["rest"])) if bearer else {}
        if "realm" in words:
            return f"Bearer {self._token(words, scope)}"
        if BASIC.search(challenge) and self._pair:
            return f"Basic {self._pair}"
        raise SourceUnavailable(f"{shown(address)}: the registry wants credentials; {self._known_as} may not read it")

    def _token(self, words: Mapping[str, str], scope: str) -> str:
        """A token for reading this repository. The password goes to the registry's own place or an allowed one only."""
        realm = place_of(words["realm"])
        if not (realm.scheme == "https" and realm.host == self._token_host):
            check_place(words["realm"], self._place, self._client.policy)
        asked = {"scope": scope} | ({"service": words["service"]} if "service" in words else {})
        joint = "&" if "?" in words["realm"] else "?"
        headers = {"Authorization": f"Basic {self._pair}"} if self._pair else {}
        url = f"{words['realm']}{joint}{urlencode(asked)}"
        reply = self._client.get(url, max_bytes=MAX_TOKEN_BYTES, headers=headers)
        if reply.status in (400, 401, 403):
            raise SourceUnavailable(
                f"{shown(url)}: gives no token (status {reply.status}): {self._known_as} may not read it"
            )
        try:
            body = json.loads(reply.body)
            token = str(body.get("token") or body["access_token"])
        except (ValueError, KeyError, AttributeError, TypeError) as exc:
            raise BadSource(f"{shown(url)}: gave no token (status {reply.status})") from exc
        if not TOKEN.fullmatch(token):
            raise BadSource(f"{shown(url)}: gave a token that no header can hold")
        return token


def pair_of(credentials: Credentials | None, place: Origin, repository: str) -> str:
    """user:password in base64 for exactly this place, the longest path of a dockerconfigjson first; "" if none."""
    if credentials is None:
        return ""
    basic = credentials.basic_for(place).get("Authorization", "").removeprefix("Basic ")
    if basic or not credentials.docker_config:
        return basic
    fitting = {
        path: entry
        for (host, path), entry in _auth_entries(credentials.docker_config)
        if host in _names_of(place) and (not path or f"{repository}/".startswith(f"{path}/"))
    }
    return _pair(fitting[max(fitting, key=len)], place) if fitting else ""


def ref_of(url: str) -> str:
    """The reference of the image that `url`, `oci://HOST/REPOSITORY`, is about.

    Raises BadSource for a host without a dot and a port: a reference takes it for a folder of Docker Hub, where anybody
    may have one of that name.
    """
    ref = url.removeprefix(OCI)
    host = ref.partition("/")[0]
    if not CLEAR_HOST.match(host):
        raise BadSource(
            f"{shown(url)}: the host {host[:80]!a} has neither a dot nor a port, so that it could be a folder of "
            f"Docker Hub; expected its port, too, such as {OCI}{host[:80] or 'HOST'}:443/…"
        )
    return ref


def names_host(credentials: Credentials, place: Origin) -> bool:
    """Whether an entry of the dockerconfigjson is for exactly this host and port."""
    return any(host in _names_of(place) for (host, _), _ in _auth_entries(credentials.docker_config))


def is_named(name: str, place: Origin) -> bool:
    """Whether `name` (`host` or `host:port`) is exactly this place; without a port it is that of its scheme."""
    return name.lower() in _names_of(place)


def _auth_entries(docker_config: str) -> list[tuple[tuple[str, str], Any]]:
    """((host, path of repositories), entry) of a dockerconfigjson."""
    try:
        auths = json.loads(docker_config)["auths"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadSource("the credentials are no dockerconfigjson: expected an object with auths") from None
    found = []
    for name, entry in auths:
        host, _, path = re.sub(r"^https?://", "", name.strip()).partition("/")
        # Docker writes the address of its first API after the host; that is no repository.
        found.append(((host.lower(), re.sub(r"^v[12]/?$", "", path.strip("/"))), entry))
    return found


def _names_of(place: Origin) -> tuple[str, ...]:
    names = (str(place), f"{place.host}:{place.port}")
    return (*names, HUB_KEY, "docker.io") if place.host == "registry-1.docker.io" else names


def _pair(entry: Any, place: Origin) -> str:
    if not isinstance(entry, dict):
        raise BadSource(f"the dockerconfigjson's entry for {place} is no object")
    if entry.get("auth"):
        try:
            base64.b64decode(str(entry["auth"]), validate=True)
        except (binascii.Error, ValueError):
            raise BadSource(f"the dockerconfigjson's auth for {place} is no base64") from None
        return str(entry["auth"])
    if not entry.get("username"):
        raise BadSource(f"the dockerconfigjson's entry for {place} has neither auth nor username and password")
    return base64.b64encode(f"{entry['username']}:{entry.get('password', '')}".encode()).decode()


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
    from provisioner.source.client import SourceClient  # noqa: PLC0415 - urllib3 takes long: with the first fetch

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
        annotations = layer.get("annotations")
        yield Archive(str(annotations.get(TITLE, "")) if isinstance(annotations, dict) else "", data)


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
        try:
            manifest = json.loads(reply.body)
        except (ValueError, RecursionError) as exc:
            raise BadSource(f"{self.source.ref}: its manifest is not JSON") from exc
        if not isinstance(manifest, dict) or manifest.get("schemaVersion") != 2:
            raise BadSource(f"{self.source.ref}: expected a manifest of OCI or of Docker's schema 2")
        if "manifests" in manifest and ("layers" in manifest or "config" in manifest):
            raise BadSource(f"{self.source.ref}: its manifest is an index and an image at once")
        return manifest, reply.digest

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
    # linux/arm64 means linux/arm64/v8, if there is only one such.
    variants = [digest for name, digest in found.items() if name.startswith(f"{wanted}/")]
    chosen = found.get(wanted) or (variants[0] if len(variants) == 1 else "")
    if not chosen and len(found) == 1 and not source.platform:
        chosen = next(iter(found.values()))
    if not DIGEST.fullmatch(chosen):
        names = ", ".join(sorted(name or "one without a platform" for name in found)) or "none"
        raise BadSource(f"{source.ref}: has no image for {wanted}; it has {names}")
    return chosen


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
