"""How the objects of a CRD are converted, as the API server wants it said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.schema.definition.crd import Crd
from provisioner.schema.fields import FieldError, child, forbidden, index, invalid, required, unsupported
from provisioner.schema.names import label_problems

REVIEW_VERSIONS = frozenset({"v1", "v1beta1"})


def conversion_errors(crd: Crd, *, needs_known_version: bool) -> list[FieldError]:
    """The conversion webhook, in the flat form in which the server names its fields."""
    conversion, path = crd.conversion, "spec.conversion"
    strategy, config = conversion["strategy"], conversion.get("webhookClientConfig")
    versions = list(conversion.get("conversionReviewVersions") or ())
    if strategy not in ("None", "Webhook"):
        return [unsupported(child(path, "strategy"), strategy, ("None", "Webhook"))]
    at, versions_at = child(path, "webhookClientConfig"), child(path, "conversionReviewVersions")
    if strategy == "None":
        detail = "should not be set when strategy is not set to Webhook"
        return [forbidden(it, detail) for it, value in ((at, config), (versions_at, versions)) if value]
    found: list[FieldError] = []
    if crd.preserves_unknown:
        detail = "must be None if spec.preserveUnknownFields is true"
        found.append(invalid(child(path, "strategy"), strategy, detail))
    if not isinstance(config, Mapping):
        found.append(required(at, "required when strategy is set to Webhook"))
    elif (config.get("url") is None) == (config.get("service") is None):
        found.append(required(at, "exactly one of url or service is required"))
    return found + _review_errors(versions, versions_at, needs_known_version=needs_known_version)


def _review_errors(versions: list[Any], path: str, *, needs_known_version: bool) -> list[FieldError]:
    if not versions:
        return [required(path)]
    found = []
    for place, version in enumerate(versions):
        if version in versions[:place]:
            found.append(invalid(index(path, place), version, "duplicate version"))
        elif problems := label_problems(str(version)):
            found.append(invalid(index(path, place), version, problems))
    if needs_known_version and not REVIEW_VERSIONS & set(versions):
        found.append(invalid(path, versions, "must include at least one of v1, v1beta1"))
    return found
