"""From a spec's words to the library's sources, with the operator's limits."""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

from approvals.bundle_spec import KINDS, BundleSpec, SpecSource
from approvals.errors import MissingRight
from approvals.gate.remedies import missing_right
from approvals.models import Cluster, Request
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import BadSource, BundleTooLarge, Forbidden, SourceUnavailable
from provisioner.render import ValuesObject, ValuesReference, canonical_json, values_object
from provisioner.source import (
    ConfigMapSource,
    EgressPolicy,
    HttpSource,
    ImageSource,
    PluginSource,
    RemoteSource,
    Source,
    plugin_kinds,
    with_secret,
    with_secret_for,
)
from provisioner.unpack import UnpackLimits
from provisioner.values import ChosenBundle, Content, Identity, JsonObject, ObjectRef

# One look at a reference as a whole, however slowly the other side drips.
POLL_SECONDS = 20.0
ACCOUNT = "system:serviceaccount:"
Read = Callable[[ObjectRef], JsonObject]
NO_BUNDLES: Mapping[str, ChosenBundle] = MappingProxyType({})


def read_for(request: Request) -> list[ObjectRef]:
    """Only a deployment and a rotation fetch their sources; a rollback has its content, and a deletion none."""
    spec = request.bundle_spec
    is_fetched = request.purpose in (Request.Purpose.DEPLOY, Request.Purpose.ROTATE)
    return [*spec.reads(), *spec.catalogs()] if is_fetched else []


def sources_of(spec: BundleSpec, read: Read, bundles: Mapping[str, ChosenBundle] = NO_BUNDLES) -> list[Source]:
    """The sources that a BundleDeployment's spec names, with their credentials; raises BadSource in the spec's terms.

    `read` is called for what `spec.reads()` lists, and raises BadSource for what is not there. `bundles` are by
    destination those that sources of catalogs were resolved to.
    """
    if not spec.sources:
        raise BadSource("spec.sources is empty; expected at least one source")
    sources: list[Source] = []
    for source in spec.sources:
        if not source.is_catalog:
            sources.append(source_of(source, read))
            continue
        bundle = bundles[source.destination]
        made: RemoteSource = HttpSource(bundle.url, checksum=bundle.checksum, destination=bundle.destination)
        if bundle.image:
            made = image_source(bundle.image, destination=bundle.destination)
        if source.secret is not None:
            # Whoever writes the catalog chooses where the bundle is, so the Secret goes only to a host that who wrote
            # the deployment named (S08).
            made = with_secret_for(made, read(source.secret), host=str(source.auth.get("host") or ""))
        sources.append(made)
    return sources


def image_source(ref: str, *, destination: str = "") -> ImageSource:
    """An image without credentials, by the operator's rules."""
    return allow_plain_http(ImageSource(ref, destination=destination))


def allow_plain_http(image: ImageSource) -> ImageSource:
    """The image, asked for without TLS where the operator lists its host."""
    return replace(image, insecure_http=egress().is_plain_http(image.place()))


def source_of(source: SpecSource, read: Read) -> Source:
    """A source that is of no catalog, with its credentials; raises as `sources_of`."""
    if source.type is ConfigMapSource:
        return ConfigMapSource.of(read(source.config_map), destination=source.destination)
    made = source.remote()
    if made is None:
        # A plug-in fetches it. It sees no Secret: whatever its parameters name, nothing is read for it (S08).
        if source.kind not in (known := plugin_kinds()):
            problem = f"{source.where}.kind is {source.kind!r}, which Pratique does not know"
            raise BadSource(f"{problem}; expected one of {', '.join([*KINDS, *known])}")
        parameters = source.parameters or {}
        if not isinstance(parameters, Mapping):
            raise BadSource(f"{source.where}.parameters is a {type(parameters).__name__}; expected a mapping")
        return PluginSource(source.kind, parameters, source.destination)
    if isinstance(made, ImageSource):
        made = allow_plain_http(made)
    return with_secret(made, read(source.secret)) if source.secret else made


def found_as(person: Identity, cluster: Cluster, api: Api) -> Callable[[ObjectRef], JsonObject | None]:
    """Reads as this person, so that the service needs no right of its own to anybody's Secrets (S08).

    Kubernetes has said that they may get it, so it is mostly acting as them that is refused. For an account it is read
    by a right to this very object: the right to act as the account, with what installers may be asked to do, would be
    all that the account may (S31).
    """
    is_account = person.username.startswith(ACCOUNT)

    def find(ref: ObjectRef) -> JsonObject | None:
        try:
            return (api if is_account else api.acting_as(person)).get(ref)
        except Forbidden as exc:
            words = f"{ref} cannot be read {'for' if is_account else 'as'} {person.username}, who may get it"
            if is_account or "impersonate" in exc.in_full:
                raise MissingRight(missing_right(cluster.name, words)) from exc
            raise Forbidden(f"{words}: {exc}") from exc

    return find


def reader_as(person: Identity, cluster: Cluster, api: Api, *, named_in: str = "spec.sources") -> Read:
    """Reads as `found_as` does what must be there."""
    find = found_as(person, cluster, api)

    def read(ref: ObjectRef) -> JsonObject:
        if (found := find(ref)) is None:
            raise SourceUnavailable(f"{ref} does not exist; {named_in} names it")
        return found

    return read


def read_values(
    wanted: ValuesReference, cluster: Cluster, find: Callable[[ObjectRef], JsonObject | None]
) -> ValuesObject:
    """What a chart gets values of, with a version that nobody can try values on.

    Raises SourceUnavailable for what is not there and not optional, BadConfig, and what `find` raises.
    """
    body = find(wanted.ref)
    found = values_object(wanted, body)
    if found.value is None and not wanted.is_optional:
        words = f"{wanted.ref} does not exist" if body is None else f"{wanted.ref} has no key {wanted.key}"
        raise SourceUnavailable(f"{words}; spec.{wanted.where} names it")
    value = None if found.value is None else b64encode(found.value).decode()
    parts = canonical_json([cluster.pk, str(wanted.ref), wanted.key, value])
    digest, seed = (
        salted_hmac(f"pratique: {use}", parts, algorithm="sha256").hexdigest()
        for use in ("valuesFrom", "marks of valuesFrom")
    )
    return replace(found, version=f"sha256:{digest}", seed=seed)


def egress(*, timeout_seconds: float | None = None) -> EgressPolicy:
    """The operator's rules; `timeout_seconds` is for one fetch as a whole."""
    operator: Mapping[str, Any] = settings.PRATIQUE
    rules = EgressPolicy(
        allowed_networks=tuple(ipaddress.ip_network(text) for text in operator["ALLOWED_NETWORKS"]),
        allowed_hosts=tuple(operator["ALLOWED_SOURCE_HOSTS"]),
        plain_http_hosts=tuple(operator["PLAIN_HTTP_HOSTS"]),
        allow_mutable=operator["MUTABLE_HTTP"],
    )
    return replace(rules, timeout_seconds=timeout_seconds) if timeout_seconds else rules


def polling_egress() -> EgressPolicy:
    """The same rules for what is asked beside fetching, with less patience: there is a next time."""
    return replace(egress(), timeout_seconds=POLL_SECONDS)


def check_object_count(content: Content) -> None:
    """Raise BundleTooLarge where a bundle has more objects than the operator allows."""
    most, count = settings.PRATIQUE["MAX_OBJECTS"], len(content.everything)
    if count > most:
        raise BundleTooLarge(f"the bundle has {count} objects; PRATIQUE_MAX_OBJECTS is {most}")


def limits() -> UnpackLimits:
    return UnpackLimits(max_bytes=settings.PRATIQUE["MAX_BUNDLE_MIB"] * 1024 * 1024)
