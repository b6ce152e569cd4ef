"""From a spec's words to the library's sources, with the operator's limits."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from approvals.models import Request
from provisioner.errors import BadSource
from provisioner.source import (
    EgressPolicy,
    GitSource,
    HttpSource,
    ImageSource,
    RemoteSource,
    Source,
    source_of_config_map,
    with_secret,
)
from provisioner.unpack import Limits
from provisioner.values import JsonObject, ObjectRef

Read = Callable[[ObjectRef], JsonObject]


def read_by(spec: Mapping[str, Any]) -> list[ObjectRef]:
    """Every Secret and ConfigMap that the sources name: who asks must be allowed to get each of them (S08)."""
    found = []
    for number, source in enumerate(_listed(spec)):
        where, body = f"spec.sources[{number}]", _body(source)
        if source.get("kind") == "configMap":
            found.append(_named("ConfigMap", body, spec, f"{where}.configMap"))
        elif secret := (body.get("auth") or {}).get("secret"):
            found.append(_named("Secret", secret, spec, f"{where}.auth.secret"))
    return list(dict.fromkeys(found))


def read_for(request: Request) -> list[ObjectRef]:
    """Only a deployment fetches its sources; a rollback has its content, and a deletion none."""
    return read_by(request.spec) if request.purpose == Request.Purpose.DEPLOY else []


def sources_of(spec: Mapping[str, Any], read: Read) -> list[Source]:
    """The sources that a BundleDeployment's spec names, with their credentials; raises BadSource in the spec's terms.

    `read` is called for what `read_by` lists, and raises BadSource for what is not there.
    """
    listed = _listed(spec)
    if not listed:
        raise BadSource("spec.sources is empty; expected at least one source")
    return [_source(number, source, spec, read) for number, source in enumerate(listed)]


def _source(number: int, source: Mapping[str, Any], spec: Mapping[str, Any], read: Read) -> Source:
    where, body = f"spec.sources[{number}]", _body(source)
    if source.get("kind") == "configMap":
        ref = _named("ConfigMap", body, spec, f"{where}.configMap")
        return source_of_config_map(read(ref), destination=_destination(source))
    made = _fetched_source(source, body, where)
    secret = (body.get("auth") or {}).get("secret")
    return with_secret(made, read(_named("Secret", secret, spec, f"{where}.auth.secret"))) if secret else made


def _fetched_source(source: Mapping[str, Any], body: Mapping[str, Any], where: str) -> RemoteSource:
    """A source from outside the cluster, as written."""
    kind, destination = source.get("kind", ""), _destination(source)
    if kind == "image":
        plain = settings.PRATIQUE["PLAIN_HTTP"]
        return ImageSource(_needed(body, "ref", where), insecure_http=plain, destination=destination)
    if kind == "http":
        return HttpSource(
            _needed(body, "url", where), checksum=str(body.get("checksum") or ""), destination=destination
        )
    if kind == "git":
        ref = body.get("ref") or {}
        return GitSource(
            _needed(body, "repository", where),
            commit=str(ref.get("commit") or ""),
            branch=str(ref.get("branch") or ""),
            tag=str(ref.get("tag") or ""),
            directory=str(body.get("directory") or ""),
            destination=destination,
        )
    raise BadSource(f"{where}.kind is {kind!r}; expected image, git, http or configMap")


def _listed(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(spec.get("sources") or [])


def _body(source: Mapping[str, Any]) -> Mapping[str, Any]:
    return source.get(source.get("kind", "")) or {}


def _destination(source: Mapping[str, Any]) -> str:
    return str(source.get("destination") or "")


def _named(kind: str, name: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> ObjectRef:
    """The object of the core group that a reference means; without a namespace that of the installation."""
    namespace = str(name.get("namespace") or spec.get("installNamespace") or "")
    return ObjectRef("", "v1", kind, namespace, _needed(name, "name", where))


def _needed(body: Mapping[str, Any], key: str, where: str) -> str:
    if not body.get(key):
        raise BadSource(f"{where} has no {key}")
    return str(body[key])


def egress() -> EgressPolicy:
    operator = settings.PRATIQUE
    return EgressPolicy(
        allowed_networks=tuple(ipaddress.ip_network(text) for text in operator["ALLOWED_NETWORKS"]),
        allowed_hosts=tuple(operator["ALLOWED_SOURCE_HOSTS"]),
        allow_http=operator["PLAIN_HTTP"],
        allow_mutable=operator["MUTABLE_HTTP"],
    )


def limits() -> Limits:
    return Limits(max_bytes=settings.PRATIQUE["MAX_BUNDLE_MIB"] * 1024 * 1024)
