"""From a reference to pinned archives. A source is one file and one line in the table, or a plug-in.

Plug-ins may use `SourceClient` for what they fetch, which asks addresses that the operator allows only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from provisioner.errors import BadSource, DigestMismatch
from provisioner.masking import masked
from provisioner.source import files, git, http, image, plugin
from provisioner.source.client import SourceClient, SourceReply
from provisioner.source.egress import EgressPolicy
from provisioner.source.files import source_of as source_of_config_map
from provisioner.source.git import course
from provisioner.source.image import place_of_image
from provisioner.source.image import tags as tags_of_image
from provisioner.source.plugin import kinds as plugin_kinds
from provisioner.source.plugin import source_plugins
from provisioner.source.remote import shown_repository
from provisioner.source.secrets import RemoteSource, place_of_remote, shown_reference, with_secret, with_secret_for
from provisioner.source.specs import (
    ConfigMapSource,
    Credentials,
    Fetched,
    GitSource,
    HttpSource,
    ImageSource,
    LocalSource,
    Opened,
    PluginSource,
    Polled,
    PrivateSource,
    Source,
)
from provisioner.values import Archive, Pin

FETCHERS: dict[type, Callable[..., Fetched]] = {
    ImageSource: image.fetch,
    GitSource: git.fetch,
    HttpSource: http.fetch,
    LocalSource: files.fetch_local,
    ConfigMapSource: files.fetch_config_map,
    PluginSource: plugin.fetch,
}
POLLERS: dict[type, Callable[..., Polled]] = {ImageSource: image.poll, GitSource: git.poll, HttpSource: http.poll}


def fetch(
    source: Source,
    *,
    egress: EgressPolicy,
    credentials: Credentials | None = None,
    max_bytes: int,
    pin: Pin | None = None,
) -> Fetched:
    """Fetch `source` once, at most `max_bytes`; with `pin` exactly that digest or commit, whatever a tag says now.

    `credentials` open a source that brings none of its own.
    Raises BadSource, DigestMismatch, ForbiddenAddress, UnsafePath, BundleTooLarge, PluginFailed and TryLater.
    """
    exact = pinned(source, pin) if pin else source
    own = exact.credentials if isinstance(exact, PrivateSource) else None
    fetched = _fetcher(type(exact))(exact, egress=egress, credentials=own or credentials, max_bytes=max_bytes)
    if pin and fetched.pin.digest != pin.digest:
        raise DigestMismatch(f"{masked(pin.reference)}: fetched {fetched.pin.digest}; pinned was {pin.digest}")
    return fetched


@contextmanager
def opened(source: Source, *, egress: EgressPolicy, max_bytes: int) -> Iterator[Opened]:
    """The source for reading it once, an archive at a time where it comes in several; raises as `fetch`, also later."""
    if isinstance(source, ImageSource):
        with image.opened(source, egress=egress, credentials=source.credentials, max_bytes=max_bytes) as found:
            yield found
    else:
        fetched = fetch(source, egress=egress, max_bytes=max_bytes)
        yield Opened(fetched.pin, iter(fetched.archives))


def poll(source: RemoteSource, *, egress: EgressPolicy, max_bytes: int, known: Polled | None = None) -> Polled:
    """Where a source that may move points to now, as its pin would have it; `known` is what was found last.

    Nothing is unpacked or kept. The rules of fetching hold, redirects included. Raises as `fetch`.
    """
    ask = POLLERS[type(source)]
    return ask(source, egress=egress, credentials=source.credentials, max_bytes=max_bytes, known=known or Polled(""))


def is_floating(source: Source, egress: EgressPolicy) -> bool:
    """Whether what the source names may be something else tomorrow, and can be looked at without being fetched."""
    if isinstance(source, ImageSource):
        return not image.is_pinned(source)
    if isinstance(source, GitSource):
        return not source.commit
    return isinstance(source, HttpSource) and not source.checksum and egress.allow_mutable


def pinned(source: Source, pin: Pin) -> Source:
    """The same source, naming exactly what `pin` says it was resolved to."""
    if isinstance(source, ImageSource):
        repository = source.ref.partition("@")[0]
        return replace(source, ref=f"{repository}@{pin.digest}")
    if isinstance(source, GitSource):
        return replace(source, commit=pin.digest, branch="", tag="")
    if isinstance(source, PluginSource):
        return replace(source, digest=pin.digest)
    return replace(source, checksum=pin.digest) if isinstance(source, HttpSource) else source


def _fetcher(kind: type) -> Callable[..., Fetched]:
    if kind in FETCHERS:
        return FETCHERS[kind]
    raise BadSource(f"there is no way to fetch a {kind.__name__}")


__all__ = [
    "Archive", "ConfigMapSource", "Credentials", "EgressPolicy", "Fetched", "GitSource", "HttpSource", "ImageSource",
    "LocalSource", "Opened", "PluginSource", "Polled", "PrivateSource", "RemoteSource", "Source", "SourceClient",
    "SourceReply", "course", "fetch", "is_floating", "opened", "pinned", "place_of_image", "place_of_remote",
    "plugin_kinds", "poll", "shown_reference", "shown_repository", "source_of_config_map", "source_plugins",
    "tags_of_image", "with_secret", "with_secret_for",
]  # fmt: skip
