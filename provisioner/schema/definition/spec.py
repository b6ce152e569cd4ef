"""Names, versions and conversion of a CRD, as the API server wants them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from provisioner.schema.definition.crd import Crd, CrdVersion
from provisioner.schema.fields import FieldError, Record, child, forbidden, index, invalid, required, unsupported
from provisioner.schema.names import label_problems, subdomain_problems

SCOPES = ("Cluster", "Namespaced")
PROTECTED_GROUPS = ("k8s.io", "kubernetes.io")
APPROVAL = "api-approved.kubernetes.io"


def name_errors(crd: Crd) -> list[FieldError]:
    """Group, scope and all names."""
    found = _group_errors(crd.group)
    if not crd.scope:
        found.append(required("spec.scope"))
    elif crd.scope not in SCOPES:
        found.append(unsupported("spec.scope", crd.scope, SCOPES))
    names = crd.names
    for name in ("plural", "singular", "kind", "listKind"):
        path, text, has_case = f"spec.names.{name}", str(names.get(name) or ""), name in ("kind", "listKind")
        if not text:
            found.append(required(path))
        elif problems := label_problems(text.lower() if has_case else text):
            start = "may have mixed case, but should otherwise match: " if has_case else ""
            found.append(invalid(path, text, start + problems))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        found.append(invalid("spec.names.listKind", names["listKind"], detail))
    for listed in ("shortNames", "categories"):
        for place, name in enumerate(names.get(listed) or ()):
            if problems := label_problems(str(name)):
                found.append(invalid(index(f"spec.names.{listed}", place), name, problems))
    return found


def _group_errors(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    if problem := subdomain_problems(group):
        return [invalid("spec.group", group, problem)]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def version_errors(crd: Crd) -> list[FieldError]:
    """Names of versions, and one storage version."""
    found: list[FieldError] = []
    for place, version in enumerate(crd.versions):
        if problems := label_problems(version.name):
            found.append(invalid(child(index("spec.versions", place), "name"), version.name, problems))
    names = [version.name for version in crd.versions]
    shown = [_version_record(version) for version in crd.versions]
    if len(set(names)) != len(names):
        found.append(invalid("spec.versions", shown, "must contain unique version names"))
    if sum(version.is_storage for version in crd.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", shown, detail))
    return found


def _version_record(version: CrdVersion) -> Record:
    """A version as an error prints it."""
    fields = {
        "Name": version.name,
        "Served": version.is_served,
        "Storage": version.is_storage,
        "Deprecated": bool(version.body.get("deprecated")),
        "DeprecationWarning": version.body.get("deprecationWarning"),
        "Schema": None,
        "Subresources": None,
        "AdditionalPrinterColumns": None,
        "SelectableFields": None,
    }
    return Record(fields)


def has_invalid_ca(crd: Crd) -> bool:
    """Whether the conversion's caBundle is set and is no base64 text of a PEM certificate."""
    config = crd.conversion.get("webhookClientConfig")
    bundle = config.get("caBundle") if isinstance(config, Mapping) else None
    if not bundle:
        return False
    try:
        return b"-----BEGIN CERTIFICATE-----" not in base64.b64decode(str(bundle), validate=True)
    except (binascii.Error, ValueError):
        return True


def bad_ca_error(crd: Crd) -> FieldError:
    """What the server says of a caBundle that holds no certificate."""
    bundle = crd.conversion["webhookClientConfig"]["caBundle"]
    detail = "unable to load root certificates: unable to parse bytes as PEM block"
    return invalid("spec.conversion.webhookClientConfig.caBundle", bundle, detail)


def approval_errors(new: Crd, old: Crd | None) -> list[FieldError]:
    """Groups of the Kubernetes community need an approval; an update that leaves its state alone is let through."""
    if not any(new.group == group or new.group.endswith(f".{group}") for group in PROTECTED_GROUPS):
        return []
    state = _approval_state(new)
    if state in ("approved", "bypassed") or (old is not None and _approval_state(old) == state):
        return []
    path = f"metadata.annotations[{APPROVAL}]"
    words = f'protected groups must have approval annotation "{APPROVAL}"'
    see = ", see https://github.com/kubernetes/enhancements/pull/1111"
    if state == "missing":
        return [required(path, words + see)]
    detail = f'{words} with either a URL or a reason starting with "unapproved"{see}'
    return [invalid(path, new.annotations.get(APPROVAL), detail)]


def _approval_state(crd: Crd) -> str:
    text = str(crd.annotations.get(APPROVAL) or "")
    if not text:
        return "missing"
    if text.startswith("unapproved"):
        return "bypassed"
    parts = urlsplit(text)
    return "approved" if parts.scheme and parts.netloc else "invalid"


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
