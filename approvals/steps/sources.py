"""From a spec's words to the library's sources, with the operator's limits."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from django.conf import settings

from approvals.errors import MissingRight
from approvals.gate.remedies import missing_right
from approvals.models import Cluster, Request
from approvals.source_refs import (
    CATALOG,
    KINDS,
    body_of,
    catalogs_named,
    is_catalog,
    listed_sources,
    named,
    read_by,
    remote_source,
)
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import BadSource, BundleTooLarge, Forbidden, SourceUnavailable
from provisioner.source import (
    EgressPolicy,
    HttpSource,
    ImageSource,
    PluginSource,
    RemoteSource,
    Source,
    place_of_image,
    plugin_kinds,
    source_of_config_map,
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
    """Only a deployment fetches its sources; a rollback has its content, and a deletion none."""
    is_fetched = request.purpose == Request.Purpose.DEPLOY
    return [*read_by(request.spec), *catalogs_named(request.spec)] if is_fetched else []


def sources_of(spec: Mapping[str, Any], read: Read, bundles: Mapping[str, ChosenBundle] = NO_BUNDLES) -> list[Source]:
    """The sources that a BundleDeployment's spec names, with their credentials; raises BadSource in the spec's terms.

    `read` is called for what `read_by` lists, and raises BadSource for what is not there. `bundles` are by destination
    those that sources of catalogs were resolved to.
    """
    listed = listed_sources(spec)
    if not listed:
        raise BadSource("spec.sources is empty; expected at least one source")
    return [
        _bundle_source(number, spec, read, bundles[_destination(one)])
        if is_catalog(one)
        else source_at(number, spec, read)
        for number, one in enumerate(listed)
    ]


def _bundle_source(number: int, spec: Mapping[str, Any], read: Read, bundle: ChosenBundle) -> RemoteSource:
    """Where the catalog says that the bundle is. Whoever writes the catalog chooses that, so the Secret goes only to a
    host that who wrote the deployment named (S08)."""
    made = _address_of(bundle)
    auth = body_of(listed_sources(spec)[number]).get("auth") or {}
    if not auth.get("secret"):
        return made
    where = f"spec.sources[{number}].{CATALOG}.auth"
    secret = read(named("Secret", auth["secret"], spec, f"{where}.secret"))
    return with_secret_for(made, secret, host=str(auth.get("host") or ""))


def _address_of(bundle: ChosenBundle) -> RemoteSource:
    if bundle.image:
        return image_source(bundle.image, destination=bundle.destination)
    return HttpSource(bundle.url, checksum=bundle.checksum, destination=bundle.destination)


def image_source(ref: str, *, destination: str = "") -> ImageSource:
    """An image without credentials, by the operator's rules."""
    return _by_operator(ImageSource(ref, destination=destination))


def _by_operator(image: ImageSource) -> ImageSource:
    """Asked without TLS where the operator lists its host."""
    return replace(image, insecure_http=egress().is_plain_http(place_of_image(image)))


def source_at(number: int, spec: Mapping[str, Any], read: Read) -> Source:
    """The source of this number alone, which is of no catalog; raises as `sources_of`."""
    return source_of(listed_sources(spec)[number], f"spec.sources[{number}]", spec, read)


def source_of(source: Mapping[str, Any], where: str, spec: Mapping[str, Any], read: Read) -> Source:
    """One source as it is written at `where` of a spec, with its credentials; raises as `sources_of`."""
    body = body_of(source)
    if source.get("kind") == "configMap":
        ref = named("ConfigMap", body, spec, f"{where}.configMap")
        return source_of_config_map(read(ref), destination=_destination(source))
    made = _fetched_source(source, where)
    kind, secret = source["kind"], (body.get("auth") or {}).get("secret")
    if not secret or isinstance(made, PluginSource):
        return made
    return with_secret(made, read(named("Secret", secret, spec, f"{where}.{kind}.auth.secret")))


def _fetched_source(source: Mapping[str, Any], where: str) -> RemoteSource | PluginSource:
    """A source from outside the cluster, as written."""
    made = remote_source(source, where)
    if isinstance(made, ImageSource):
        return _by_operator(made)
    return made or _plugin_source(source, where)


def _plugin_source(source: Mapping[str, Any], where: str) -> PluginSource:
    """What a plug-in fetches. It sees no Secret: whatever its parameters name, nothing is read for it (S08)."""
    kind, parameters = source.get("kind", ""), source.get("parameters") or {}
    if kind not in (known := plugin_kinds()):
        words = ", ".join([*KINDS, *known])
        raise BadSource(f"{where}.kind is {kind!r}, which Pratique does not know; expected one of {words}")
    if not isinstance(parameters, Mapping):
        raise BadSource(f"{where}.parameters is a {type(parameters).__name__}; expected a mapping")
    return PluginSource(kind, parameters, _destination(source))


def _destination(source: Mapping[str, Any]) -> str:
    return str(source.get("destination") or "")


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


def egress(*, timeout_seconds: float | None = None) -> EgressPolicy:
    """The operator's rules; `timeout_seconds` is for one fetch as a whole."""
    found = _egress(settings.PRATIQUE)
    return replace(found, timeout_seconds=timeout_seconds) if timeout_seconds else found


def _egress(operator: Mapping[str, Any]) -> EgressPolicy:
    return EgressPolicy(
        allowed_networks=tuple(ipaddress.ip_network(text) for text in operator["ALLOWED_NETWORKS"]),
        allowed_hosts=tuple(operator["ALLOWED_SOURCE_HOSTS"]),
        plain_http_hosts=tuple(operator["PLAIN_HTTP_HOSTS"]),
        allow_mutable=operator["MUTABLE_HTTP"],
    )


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
