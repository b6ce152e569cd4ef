"""From a reference to pinned archives. A kind of source is one class in one file and one line in `kinds`, or a plug-in.

Plug-ins may use `SourceClient` for what they fetch, which asks addresses that the operator allows only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from provisioner.errors import DigestMismatch
from provisioner.masking import masked
from provisioner.source import plugin
from provisioner.source.egress import EgressPolicy
from provisioner.source.files import ConfigMapSource, LocalSource
from provisioner.source.git import GitSource, course
from provisioner.source.git_addresses import shown_repository
from provisioner.source.http import HttpSource
from provisioner.source.image import ImageSource
from provisioner.source.kinds import SOURCE_TYPES
from provisioner.source.plugin import kinds as plugin_kinds
from provisioner.source.plugin import source_plugins
from provisioner.source.secrets import with_secret, with_secret_for
from provisioner.source.source_type import (
    Credentials,
    Fetched,
    Opened,
    PluginSource,
    Polled,
    RemoteSource,
    SourceField,
    SourceType,
    needed,
    parse_reference,
    reference_words,
)
from provisioner.values import Archive, Pin

if TYPE_CHECKING:
    from provisioner.source.client import SourceClient, SourceReply
else:

    def __getattr__(name: str) -> object:
        """What talks to servers, loaded with its first use."""
        if name not in ("SourceClient", "SourceReply"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from provisioner.source import client  # noqa: PLC0415 - urllib3 takes long to load: with its first use

        return getattr(client, name)


Source = RemoteSource | LocalSource | ConfigMapSource | PluginSource


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
    exact = source.pinned(pin) if pin else source
    if isinstance(exact, PluginSource):
        fetched = plugin.fetch(exact, egress=egress, max_bytes=max_bytes)
    else:
        own = exact.credentials if isinstance(exact, RemoteSource) else None
        fetched = exact.fetch(egress=egress, credentials=own or credentials, max_bytes=max_bytes)
    if pin and fetched.pin.digest != pin.digest:
        raise DigestMismatch(f"{masked(pin.reference)}: fetched {fetched.pin.digest}; pinned was {pin.digest}")
    return fetched


@contextmanager
def opened(source: Source, *, egress: EgressPolicy, max_bytes: int) -> Iterator[Opened]:
    """The source for reading it once, an archive at a time where it comes in several; raises as `fetch`, also later."""
    if isinstance(source, ImageSource):
        with source.opened(egress=egress, max_bytes=max_bytes) as found:
            yield found
    else:
        fetched = fetch(source, egress=egress, max_bytes=max_bytes)
        yield Opened(fetched.pin, iter(fetched.archives))


def poll(source: RemoteSource, *, egress: EgressPolicy, max_bytes: int, known: Polled | None = None) -> Polled:
    """Where a source that may move points to now, as its pin would have it; `known` is what was found last.

    Nothing is unpacked or kept. The rules of fetching hold, redirects included. Raises as `fetch`.
    """
    return source.poll(egress=egress, max_bytes=max_bytes, known=known or Polled(""))


__all__ = [
    "SOURCE_TYPES",
    "Archive",
    "ConfigMapSource",
    "Credentials",
    "EgressPolicy",
    "Fetched",
    "GitSource",
    "HttpSource",
    "ImageSource",
    "LocalSource",
    "Opened",
    "PluginSource",
    "Polled",
    "RemoteSource",
    "Source",
    "SourceClient",
    "SourceField",
    "SourceReply",
    "SourceType",
    "course",
    "fetch",
    "needed",
    "opened",
    "parse_reference",
    "plugin_kinds",
    "poll",
    "reference_words",
    "shown_repository",
    "source_plugins",
    "with_secret",
    "with_secret_for",
]
