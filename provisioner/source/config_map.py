"""Files out of a ConfigMap of the cluster. Whoever has read it gives it; nothing is fetched here."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.errors import BadSource, BundleTooLarge
from provisioner.source.egress import EgressPolicy
from provisioner.source.specs import (
    Credentials,
    Fetched,
    SourceField,
    SourceType,
    parse_reference,
    reference_words,
)
from provisioner.values import Archive, JsonObject, ObjectRef, Pin


@dataclass(frozen=True, slots=True)
class ConfigMapSource(SourceType):
    """A ConfigMap as it was read: `files` are its data and binaryData by key."""

    kind = "configMap"
    label = "ConfigMap"
    fields = (
        SourceField(
            "config_map",
            "ConfigMap",
            "namespace/name, or a name in the install namespace. Each key is a file.",
            is_needed=True,
            is_reference=True,
        ),
    )

    namespace: str
    name: str
    uid: str
    resource_version: str
    files: Mapping[str, bytes] = field(repr=False)
    destination: str = ""

    @classmethod
    def of(cls, config_map: JsonObject, *, destination: str = "") -> ConfigMapSource:
        """The source that a live ConfigMap is: each key of data and binaryData one file. Raises BadSource."""
        ref, meta = ObjectRef.of(config_map), config_map.get("metadata") or {}
        files = {str(key): str(text).encode() for key, text in (config_map.get("data") or {}).items()}
        for key, text in (config_map.get("binaryData") or {}).items():
            try:
                files[str(key)] = base64.b64decode(str(text), validate=True)
            except (binascii.Error, ValueError) as exc:
                raise BadSource(f"{ref}: the key {key} of its binaryData is no base64") from exc
        uid, version = str(meta.get("uid") or ""), str(meta.get("resourceVersion") or "")
        return cls(ref.namespace, ref.name, uid, version, files, destination)

    @staticmethod
    def to_spec(given: Mapping[str, str]) -> dict[str, Any]:
        return {"namespace": "", **parse_reference(given["config_map"])}

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        return {"config_map": reference_words(body)}

    @classmethod
    def place_words(cls, body: JsonObject, namespace: str) -> str:
        return reference_words({"namespace": body.get("namespace") or namespace, "name": body.get("name")})

    def pinned(self, pin: Pin) -> ConfigMapSource:
        return self

    def fetch(self, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
        """The files as a tar, pinned to the ConfigMap's uid, its resourceVersion and the SHA-256 of every file.

        Raises BadSource for one without files, and BundleTooLarge.
        """
        reference = f"{self.namespace}/{self.name}"
        if not self.files:
            words = "holds no files; expected manifests as keys of its data or binaryData"
            raise BadSource(f"ConfigMap {reference}: {words}")
        total = sum(map(len, self.files.values()))
        if total > max_bytes:
            words = f"has {total} bytes; the limit is {max_bytes} (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)"
            raise BundleTooLarge(f"ConfigMap {reference}: {words}")
        pin = Pin(self.kind, reference, _digest(self), self.destination)
        return Fetched(pin, (Archive("", _packed(self)),))


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
