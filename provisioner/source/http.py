"""Archives and YAML files by URL: https, and a checksum unless the operator allows mutable ones."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from provisioner.errors import BadSource, DigestMismatch, SourceUnavailable
from provisioner.source.egress import EgressPolicy, Origin, pinned_url, place_of, shown
from provisioner.source.source_type import Credentials, Fetched, Polled, RemoteSource, SourceField, needed
from provisioner.values import Archive, JsonObject, Pin

if TYPE_CHECKING:
    from provisioner.source.client import SourceClient, SourceReply

CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}")
STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]{1,500}"')
ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
TEXT_SUFFIXES = (".yaml", ".yml", ".json")
# What a server calls a single file whose URL does not say it; archives are recognised by their bytes.
SUFFIX_OF_TYPE = {
    "application/yaml": ".yaml",
    "application/x-yaml": ".yaml",
    "text/yaml": ".yaml",
    "text/x-yaml": ".yaml",
    "application/json": ".json",
}


@dataclass(frozen=True, slots=True)
class HttpSource(RemoteSource):
    """An archive or a YAML file at a URL."""

    kind = "http"
    label = "Archive over HTTP"
    fields = (
        SourceField("url", "Archive URL", "URL of a .tar.gz, .zip or YAML file", is_needed=True),
        SourceField(
            "checksum", "Checksum", "sha256: followed by the output of sha256sum", is_needed=True, is_checksum=True
        ),
    )

    url: str
    checksum: str = ""
    destination: str = ""

    @classmethod
    def parse(cls, body: JsonObject, where: str, destination: str) -> HttpSource:
        return cls(needed(body, "url", where), checksum=str(body.get("checksum") or ""), destination=destination)

    @staticmethod
    def to_spec(given: Mapping[str, str]) -> dict[str, Any]:
        return {name: given[name] for name in ("url", "checksum")}

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        return {name: body.get(name, "") for name in ("url", "checksum")}

    @staticmethod
    def asked_words(body: JsonObject) -> list[tuple[str, str]]:
        return [("checksum", str(body["checksum"]))] if body.get("checksum") else []

    @staticmethod
    def version_words(body: JsonObject) -> str:
        name = str(body.get("url", "")).partition("?")[0].rstrip("/").rpartition("/")[2]
        return next((name.removesuffix(ending) for ending in ARCHIVE_SUFFIXES if name.endswith(ending)), name)

    def fetch(self, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
        """The file at the URL, once, pinned to the SHA-256 of what came. Raises DigestMismatch and BadSource."""
        place = self.place()
        if not self.checksum and not egress.allow_mutable:
            words = "expected a checksum: add sha256:<digest of the file> to the source"
            raise BadSource(f"{self.shown}: {words}. PRATIQUE_MUTABLE_HTTP=true allows sources without one")
        if self.checksum and not CHECKSUM.fullmatch(self.checksum):
            raise BadSource(f"{self.shown}: expected a checksum sha256:<64 hex digits in lower case>")
        headers = credentials.authorization_for(place) if credentials else {}
        with _client(egress, place, credentials) as client:
            reply = client.get(self.url, max_bytes=max_bytes, headers=headers)
        _check_status(self, reply, place, has_shown=bool(headers) or client.has_client_certificate)
        if self.checksum and reply.digest != self.checksum:
            raise DigestMismatch(f"{self.shown}: its checksum is {reply.digest}; expected {self.checksum}")
        pin = Pin(self.kind, pinned_url(self.url), reply.digest, self.destination)
        return Fetched(pin, (Archive(_file_name(self.url, reply.headers), reply.body),))

    def poll(self, *, egress: EgressPolicy, max_bytes: int, known: Polled) -> Polled:
        """The digest of what the URL gives now; the body is read only where its ETag is not the `known` one.

        At most `max_bytes` are read, and none of them kept. Raises as `fetch`.
        """
        place, credentials = self.place(), self.credentials
        secret = credentials.authorization_for(place) if credentials else {}
        asked = secret | ({"If-None-Match": known.etag} if known.etag and known.digest else {})

        def is_known(headers: Mapping[str, str]) -> bool:
            return bool(known.digest and known.etag) and _etag(headers) == known.etag

        with _client(egress, place, credentials) as client:
            reply = client.get_digest(self.url, max_bytes=max_bytes, headers=asked, is_known=is_known)
        if known.etag and known.digest and (reply.status == 304 or (reply.status == 200 and not reply.digest)):
            return known
        _check_status(self, reply, place, has_shown=bool(secret) or client.has_client_certificate)
        return Polled(reply.digest, _etag(reply.headers))

    def is_floating(self, egress: EgressPolicy) -> bool:
        return not self.checksum and egress.allow_mutable

    def pinned(self, pin: Pin) -> HttpSource:
        return replace(self, checksum=pin.digest)

    def place(self) -> Origin:
        return place_of(self.url)

    @property
    def shown(self) -> str:
        return shown(self.url)

    @property
    def address(self) -> tuple[str, ...]:
        return (self.url,)


def _client(egress: EgressPolicy, place: Origin, credentials: Credentials | None) -> SourceClient:
    from provisioner.source.client import SourceClient  # noqa: PLC0415 - urllib3 takes long: with the first fetch

    return SourceClient(egress, place, credentials)


def _etag(headers: Mapping[str, str]) -> str:
    """A strong ETag: a weak one may stand for other bytes."""
    etag = headers.get("etag", "")
    return etag if STRONG_ETAG.fullmatch(etag) else ""


def _check_status(source: HttpSource, reply: SourceReply, place: Origin, *, has_shown: bool) -> None:
    if reply.status in (401, 403):
        known = "the given credentials do not fit" if has_shown else f"no credentials for {place} were given"
        raise SourceUnavailable(f"{shown(source.url)}: the server answered {reply.status}: {known}")
    if reply.status != 200:
        error = SourceUnavailable if reply.status == 404 else BadSource
        raise error(f"{shown(source.url)}: the server answered {reply.status}; expected 200")


def _file_name(url: str, headers: Mapping[str, str]) -> str:
    """The file's name: the last part of the URL, with the suffix of the content type where it has none of its own."""
    name = posixpath.basename(unquote(urlsplit(url).path)) or "bundle"
    if name.lower().endswith(TEXT_SUFFIXES):
        return name
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return name + SUFFIX_OF_TYPE.get(kind, "")
