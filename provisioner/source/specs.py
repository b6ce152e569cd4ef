"""What a source is as people write it, and what fetching it gives."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.source.egress import Origin
from provisioner.source.tls import SourceCertificates
from provisioner.values import Archive, Pin


@dataclass(frozen=True, slots=True)
class Credentials:
    """What opens a source. `host` (`host` or `host:port`) is the only place that ever gets them (S08).

    `bearer` is a token that is sent as it is, in place of user and password. `docker_config` is the text of a
    dockerconfigjson, which names its hosts itself; `ssh_private_key` and `ssh_known_hosts` are those files' texts.
    `certificates` are for TLS to that host, beside any of these or alone.
    """

    host: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    docker_config: str = field(default="", repr=False)
    ssh_private_key: str = field(default="", repr=False)
    ssh_known_hosts: str = field(default="", repr=False)
    certificates: SourceCertificates | None = field(default=None, repr=False)

    def are_for(self, place: Origin) -> bool:
        host = f"[{place.host}]" if ":" in place.host else place.host
        return bool(self.host) and self.host.lower() in (host, place.host, f"{host}:{place.port}")

    def certificates_for(self, place: Origin) -> SourceCertificates | None:
        """The certificates for `place`; None where they are for another one, or there are none."""
        return self.certificates if self.are_for(place) else None

    def authorization_for(self, place: Origin) -> dict[str, str]:
        """The Authorization header for `place`; empty where they are for another one."""
        if self.bearer and self.are_for(place):
            return {"Authorization": f"Bearer {self.bearer}"}
        return self.basic_for(place)

    def basic_for(self, place: Origin) -> dict[str, str]:
        """As `authorization_for`, with user and password only: a registry takes no other token than its own."""
        if not self.username or not self.are_for(place):
            return {}
        pair = f"{self.username}:{self.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSource:
    """A source that may need `credentials` of its own; they open no other source."""

    credentials: Credentials | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ImageSource(PrivateSource):
    """An OCI image or artifact. `platform` (linux/amd64) chooses from an index."""

    ref: str
    insecure_http: bool = False
    platform: str = ""
    destination: str = ""


@dataclass(frozen=True, slots=True)
class GitSource(PrivateSource):
    """A repository at exactly one of commit, branch or tag; `directory` is the folder wanted of it."""

    repository: str
    commit: str = ""
    branch: str = ""
    tag: str = ""
    directory: str = ""
    destination: str = ""


@dataclass(frozen=True, slots=True)
class HttpSource(PrivateSource):
    url: str
    checksum: str = ""
    destination: str = ""


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A folder, an archive or a YAML file on this machine: for the command line only (S18)."""

    path: str
    destination: str = ""


@dataclass(frozen=True, slots=True)
class ConfigMapSource:
    """A ConfigMap as it was read (see files.source_of): `files` are its data and binaryData by key."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    files: Mapping[str, bytes] = field(repr=False)
    destination: str = ""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """What the plug-in `kind` fetches, by the `parameters` of the spec. It has no credentials.

    Where `digest` is given, exactly what it names is to be fetched.
    """

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    destination: str = ""
    digest: str = ""

    def pin(self, reference: str, digest: str) -> Pin:
        """The pin of what was fetched: `reference` says to people where it is from, `digest` exactly what it is."""
        return Pin(self.kind, reference, digest, self.destination)


Source = ImageSource | GitSource | HttpSource | LocalSource | ConfigMapSource | PluginSource


@dataclass(frozen=True, slots=True)
class Polled:
    """Where a reference that may move points to now: `digest` as its pin would have it.

    `etag` is what an http server calls these bytes, "" where it has no strong name for them.
    """

    digest: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """A source that is being read: its `archives` come one by one, once. `labels` are those of an image."""

    pin: Pin
    archives: Iterator[Archive]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fetched:
    """`archives` are stacked in order, as image layers are."""

    pin: Pin
    archives: tuple[Archive, ...]
