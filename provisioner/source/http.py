"""Archives and YAML files by URL: https, and a checksum unless the operator allows mutable ones."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from provisioner.errors import BadSource, DigestMismatch, SourceUnavailable
from provisioner.source.client import SourceClient, SourceReply
from provisioner.source.egress import EgressPolicy, Origin, pinned_url, place_of, shown
from provisioner.source.specs import Credentials, Fetched, HttpSource, Polled
from provisioner.values import Archive, Pin, SourceKind

CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}")
STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]{1,500}"')
TEXT_SUFFIXES = (".yaml", ".yml", ".json")
# What a server calls a single file whose URL does not say it; archives are recognised by their bytes.
SUFFIX_OF_TYPE = {
    "application/yaml": ".yaml",
    "application/x-yaml": ".yaml",
    "text/yaml": ".yaml",
    "text/x-yaml": ".yaml",
    "application/json": ".json",
}


def fetch(source: HttpSource, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
    """The file at the URL, once, pinned to the SHA-256 of what came. Raises DigestMismatch and BadSource."""
    place = place_of(source.url)
    if not source.checksum and not egress.allow_mutable:
        words = "expected a checksum: add sha256:<digest of the file> to the source"
        raise BadSource(f"{shown(source.url)}: {words}. PRATIQUE_MUTABLE_HTTP=true allows sources without one")
    if source.checksum and not CHECKSUM.fullmatch(source.checksum):
        raise BadSource(f"{shown(source.url)}: expected a checksum sha256:<64 hex digits in lower case>")
    headers = credentials.authorization_for(place) if credentials else {}
    with SourceClient(egress, place, credentials) as client:
        reply = client.get(source.url, max_bytes=max_bytes, headers=headers)
    _check_status(source, reply, place, has_shown=bool(headers) or client.has_client_certificate)
    if source.checksum and reply.digest != source.checksum:
        raise DigestMismatch(f"{shown(source.url)}: its checksum is {reply.digest}; expected {source.checksum}")
    pin = Pin(SourceKind.HTTP, pinned_url(source.url), reply.digest, source.destination)
    return Fetched(pin, (Archive(_name(source.url, reply.headers), reply.body),))


def poll(
    source: HttpSource, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int, known: Polled
) -> Polled:
    """The digest of what the URL gives now; the body is read only where its ETag is not the `known` one.

    At most `max_bytes` are read, and none of them kept. Raises as `fetch`.
    """
    place = place_of(source.url)
    secret = credentials.authorization_for(place) if credentials else {}
    asked = secret | ({"If-None-Match": known.etag} if known.etag and known.digest else {})

    def is_known(headers: Mapping[str, str]) -> bool:
        return bool(known.digest and known.etag) and _etag(headers) == known.etag

    with SourceClient(egress, place, credentials) as client:
        reply = client.get_digest(source.url, max_bytes=max_bytes, headers=asked, is_known=is_known)
    if known.etag and known.digest and (reply.status == 304 or (reply.status == 200 and not reply.digest)):
        return known
    _check_status(source, reply, place, has_shown=bool(secret) or client.has_client_certificate)
    return Polled(reply.digest, _etag(reply.headers))


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


def _name(url: str, headers: Mapping[str, str]) -> str:
    """The file's name: the last part of the URL, with the suffix of the content type where it has none of its own."""
    name = posixpath.basename(unquote(urlsplit(url).path)) or "bundle"
    if name.lower().endswith(TEXT_SUFFIXES):
        return name
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return name + SUFFIX_OF_TYPE.get(kind, "")
