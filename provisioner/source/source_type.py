"""What a source is as people write it, and what fetching it gives."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

from provisioner.errors import BadSource
from provisioner.source.egress import EgressPolicy, Origin
from provisioner.source.tls import SourceCertificates
from provisioner.values import Archive, JsonObject, Pin


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


class SourceProtocol(StrEnum):
    """How a source is opened."""

    REGISTRY = "an image"
    HTTP = "http and git over https"
    SSH = "git over ssh"


@dataclass(frozen=True, slots=True)
class SourceField:
    """One thing that a form asks for to write a source into a spec; `name` is unique among all kinds.

    `is_reference`: it is NAMESPACE/NAME or NAME. `is_checksum`: not needed where the operator allows none.
    """

    name: str
    label: str
    help_text: str = ""
    choices: tuple[str, ...] = ()
    is_needed: bool = False
    is_reference: bool = False
    is_checksum: bool = False


class SourceType:
    """A kind of source in a spec, where the field of its name says what it is.

    A kind is one class: what its field means, the form that writes it, its words on pages, and how it is fetched.
    """

    __slots__ = ()
    kind: ClassVar[str]
    label: ClassVar[str]
    fields: ClassVar[tuple[SourceField, ...]] = ()
    # What people call what it was resolved to.
    pin_name: ClassVar[str] = "digest"

    @staticmethod
    def to_spec(given: Mapping[str, str]) -> dict[str, Any]:
        """What its field says by what a form was given; what is empty is left out."""
        raise NotImplementedError

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        """What a form shows of what its field says."""
        raise NotImplementedError

    @classmethod
    def place_words(cls, body: JsonObject, namespace: str) -> str:
        """Where it is, without credentials; `namespace` is that of the installation."""
        return str(body.get("name") or "")

    @staticmethod
    def asked_words(body: JsonObject) -> list[tuple[str, str]]:
        """What else it asks for, each a name and its value."""
        return []

    @staticmethod
    def version_words(body: JsonObject) -> str:
        """What people call the version that it asks for."""
        return str(body.get("name", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSource(SourceType):
    """A source outside of the cluster. It may need `credentials` of its own; they open no other source."""

    credentials: Credentials | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, body: JsonObject, where: str, destination: str) -> RemoteSource:
        """The source as the field of its kind has it, without credentials. Raises BadSource."""
        raise NotImplementedError

    def fetch(self, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
        """Its files, once, with the pin of what they are."""
        raise NotImplementedError

    def poll(self, *, egress: EgressPolicy, max_bytes: int, known: Polled) -> Polled:
        """What it is now. Raises as `fetch`."""
        raise NotImplementedError

    def is_floating(self, egress: EgressPolicy) -> bool:
        """Whether what it names may be something else tomorrow."""
        raise NotImplementedError

    def pinned(self, pin: Pin) -> Self:
        """The same source, naming exactly what `pin` says it was resolved to."""
        raise NotImplementedError

    def place(self) -> Origin:
        """Where it is: what its credentials belong to. Raises BadSource."""
        raise NotImplementedError

    @property
    def protocol(self) -> SourceProtocol:
        return SourceProtocol.SSH if self.place().scheme == "ssh" else SourceProtocol.HTTP

    @property
    def shown(self) -> str:
        """The reference as people read it, without credentials: what moves of it, and where it is."""
        raise NotImplementedError

    @property
    def shown_place(self) -> str:
        return self.shown

    @property
    def address(self) -> tuple[str, ...]:
        """All that decides, beside its credentials, what a look at it sees."""
        raise NotImplementedError

    @classmethod
    def place_words(cls, body: JsonObject, namespace: str) -> str:
        try:
            return cls.parse(body, "", "").shown_place
        except BadSource:
            return ""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """What the plug-in `kind` fetches, by the `parameters` of the spec. It has no credentials.

    Where `digest` is given, exactly what it names is to be fetched.
    """

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    destination: str = ""
    digest: str = ""

    def pinned(self, pin: Pin) -> PluginSource:
        return replace(self, digest=pin.digest)

    def pin(self, reference: str, digest: str) -> Pin:
        """The pin of what was fetched: `reference` says to people where it is from, `digest` exactly what it is."""
        return Pin(self.kind, reference, digest, self.destination)


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


def needed(body: JsonObject, key: str, where: str) -> str:
    """What must be there. Raises BadSource."""
    if not body.get(key):
        raise BadSource(f"{where} has no {key}")
    return str(body[key])


def parse_reference(text: str) -> dict[str, str]:
    """`namespace/name` or `name` as a spec writes it."""
    namespace, _, name = text.rpartition("/")
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def reference_words(reference: JsonObject) -> str:
    """`namespace/name` or `name` of a reference in a spec."""
    return "/".join(str(reference[key]) for key in ("namespace", "name") if reference.get(key))
