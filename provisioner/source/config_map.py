"""Files out of a ConfigMap of the cluster. Whoever has read it gives it; nothing is fetched here."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import tarfile

from provisioner.errors import BadSource, BundleTooLarge
from provisioner.source.egress import EgressPolicy
from provisioner.source.specs import ConfigMapSource, Credentials, Fetched
from provisioner.values import Archive, JsonObject, ObjectRef, Pin, SourceKind


def source_of(config_map: JsonObject, *, destination: str = "") -> ConfigMapSource:
    """The source that a live ConfigMap is: each key of data and binaryData one file. Raises BadSource."""
    ref, meta = ObjectRef.of(config_map), config_map.get("metadata") or {}
    files = {str(key): str(text).encode() for key, text in (config_map.get("data") or {}).items()}
    for key, text in (config_map.get("binaryData") or {}).items():
        try:
            files[str(key)] = base64.b64decode(str(text), validate=True)
        except (binascii.Error, ValueError) as exc:
            raise BadSource(f"{ref}: the key {key} of its binaryData is no base64") from exc
    uid, version = str(meta.get("uid") or ""), str(meta.get("resourceVersion") or "")
    return ConfigMapSource(ref.namespace, ref.name, uid, version, files, destination)


def fetch(source: ConfigMapSource, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
    """The files as a tar, pinned to the ConfigMap's uid, its resourceVersion and the SHA-256 of every file.

    Raises BadSource for one without files, and BundleTooLarge.
    """
    reference = f"{source.namespace}/{source.name}"
    if not source.files:
        raise BadSource(f"ConfigMap {reference}: holds no files; expected manifests as keys of its data or binaryData")
    total = sum(map(len, source.files.values()))
    if total > max_bytes:
        raise BundleTooLarge(
            f"ConfigMap {reference}: has {total} bytes; the limit is {max_bytes} (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)"
        )
    pin = Pin(SourceKind.CONFIG_MAP, reference, _digest(source), source.destination)
    return Fetched(pin, (Archive("", _packed(source)),))


def _digest(source: ConfigMapSource) -> str:
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in source.files.items()}
    told = [source.uid, source.resource_version, hashes]
    return f"sha256:{hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()}"


def _packed(source: ConfigMapSource) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in sorted(source.files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()
