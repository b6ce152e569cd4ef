"""From a spec's words to the library's sources, with the operator's limits."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from provisioner.errors import BadSource
from provisioner.source import (
    EgressPolicy,
    GitSource,
    HttpSource,
    ImageSource,
    Source,
)
from provisioner.unpack import Limits


def sources_of(spec: Mapping[str, Any]) -> list[Source]:
    """The sources that a BundleDeployment's spec names; raises BadSource in the spec's own terms."""
    listed = spec.get("sources") or []
    if not listed:
        raise BadSource("spec.sources is empty; expected at least one source")
    return [_source(number, source) for number, source in enumerate(listed)]


def _source(number: int, source: Mapping[str, Any]) -> Source:
    kind = source.get("kind", "")
    destination = str(source.get("destination") or "")
    body = source.get(kind) or {}
    where = f"spec.sources[{number}]"
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
    raise BadSource(f"{where}.kind is {kind!r}; expected image, git or http")


def _needed(body: Mapping[str, Any], key: str, where: str) -> str:
    if not body.get(key):
        raise BadSource(f"{where} has no {key}")
    return str(body[key])


def secrets_of(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(namespace, name) of every Secret that the sources name, for the check of S08."""
    named = []
    for source in spec.get("sources") or []:
        secret = ((source.get(source.get("kind", "")) or {}).get("auth") or {}).get("secret")
        if secret:
            named.append((str(secret.get("namespace") or spec.get("installNamespace", "")), str(secret["name"])))
    return named


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
