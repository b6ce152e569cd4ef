"""CustomResourceDefinitions read into one form, whether written as v1 or v1beta1, and however incomplete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from provisioner.json_values import mapping, maps
from provisioner.schema.fields import Schema, same_json, schema_of


@dataclass(frozen=True)
class CrdVersion:
    """One version of a CRD. `schema` is its openAPIV3Schema, None where it has none."""

    name: str
    is_served: bool
    is_storage: bool
    schema: Schema | None = None
    subresources: Mapping[str, Any] | None = None
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_status(self) -> bool:
        return self.subresources is not None and self.subresources.get("status") is not None

    @property
    def scale(self) -> Mapping[str, Any] | None:
        return schema_of(mapping(self.subresources).get("scale"))

    @property
    def selectable_fields(self) -> list[str]:
        return [str(entry.get("jsonPath", "")) for entry in maps(self.body.get("selectableFields"))]


@dataclass(frozen=True)
class Crd:
    """A CRD as the API server holds it; `body` is what was read. Nothing of it is ever changed."""

    body: Mapping[str, Any]

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.body.get("spec"))

    @cached_property
    def names(self) -> Mapping[str, Any]:
        """The names with the API server's defaults."""
        given = mapping(self.spec.get("names"))
        kind = str(given.get("kind") or "")
        defaults = {"singular": kind.lower(), "listKind": f"{kind}List" if kind else ""}
        return {**given, **{name: given.get(name) or value for name, value in defaults.items()}}

    @property
    def name(self) -> str:
        return str(mapping(self.body.get("metadata")).get("name") or "")

    @property
    def annotations(self) -> Mapping[str, Any]:
        return mapping(mapping(self.body.get("metadata")).get("annotations"))

    @property
    def group(self) -> str:
        return str(self.spec.get("group") or "")

    @property
    def is_v1beta1(self) -> bool:
        return str(self.body.get("apiVersion", "")).endswith("/v1beta1")

    @property
    def scope(self) -> str:
        return str(self.spec.get("scope") or ("Namespaced" if self.is_v1beta1 else ""))

    @property
    def preserves_unknown(self) -> bool:
        """`spec.preserveUnknownFields`, which v1beta1 takes for true where nothing is said."""
        value = self.spec.get("preserveUnknownFields")
        return bool(value) if value is not None else self.is_v1beta1

    @cached_property
    def versions(self) -> list[CrdVersion]:
        """All versions in order, the shared schema and subresources of v1beta1 put into each."""
        entries = maps(self.spec.get("versions"))
        if not entries and self.spec.get("version"):
            entries = [{"name": self.spec["version"], "served": True, "storage": True}]
        return [self._version(entry) for entry in entries]

    def version(self, name: str) -> CrdVersion | None:
        return next((version for version in self.versions if version.name == name), None)

    @property
    def storage_version(self) -> CrdVersion | None:
        return next((version for version in self.versions if version.is_storage), None)

    @property
    def served_versions(self) -> list[CrdVersion]:
        return [version for version in self.versions if version.is_served]

    @cached_property
    def stored_versions(self) -> list[str]:
        """`status.storedVersions`; the storage version where the CRD comes from a file, which has no status."""
        listed = mapping(self.body.get("status")).get("storedVersions")
        if isinstance(listed, list) and listed:
            return [str(name) for name in listed]
        return [version.name for version in self.versions if version.is_storage]

    @property
    def is_established(self) -> bool:
        """Whether the API server has accepted the names; of a CRD without any status it is taken for granted."""
        status = self.body.get("status")
        if not isinstance(status, Mapping) or "conditions" not in status:
            return True
        conditions = maps(status["conditions"])
        return any(
            condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions
        )

    @cached_property
    def conversion(self) -> Mapping[str, Any]:
        """The conversion as v1beta1 has it, flat: strategy, webhookClientConfig, conversionReviewVersions."""
        given = mapping(self.spec.get("conversion"))
        webhook = mapping(given.get("webhook"))
        client = webhook.get("clientConfig")
        found = {
            "strategy": given.get("strategy") or "None",
            "webhookClientConfig": client if client is not None else given.get("webhookClientConfig"),
            "conversionReviewVersions": webhook.get("conversionReviewVersions")
            or given.get("conversionReviewVersions")
            or [],
        }
        return {name: value for name, value in found.items() if value or value == {}}

    @property
    def uses_webhook(self) -> bool:
        return self.conversion.get("strategy") == "Webhook"

    @cached_property
    def shared_schema(self) -> Schema | None:
        """The schema that the API server keeps once for all versions because all have the same one."""
        schemas = [version.schema for version in self.versions]
        first = schemas[0] if schemas else None
        if first is None or not all(schema is not None and same_json(schema, first) for schema in schemas[1:]):
            return None
        return first

    def _version(self, entry: Mapping[str, Any]) -> CrdVersion:
        own = mapping(entry.get("schema")).get("openAPIV3Schema")
        shared = mapping(self.spec.get("validation")).get("openAPIV3Schema")
        subresources = entry.get("subresources", self.spec.get("subresources"))
        return CrdVersion(
            name=str(entry.get("name") or ""),
            is_served=bool(entry.get("served")),
            is_storage=bool(entry.get("storage")),
            schema=schema_of(own if own is not None else shared),
            subresources=schema_of(subresources),
            body=entry,
        )
