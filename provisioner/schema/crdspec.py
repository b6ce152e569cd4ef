"""Names, versions and conversion of a CRD, as the API server wants them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from provisioner.schema.crd import Crd, CrdVersion
from provisioner.schema.embedded import label_problems
from provisioner.schema.fields import (
    FieldError,
    Record,
    child,
    forbidden,
    index,
    invalid,
    required,
    unsupported,
)

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
SCOPES = ("Cluster", "Namespaced")
REVIEW_VERSIONS = frozenset({"v1", "v1beta1"})
PROTECTED_GROUPS = ("k8s.io", "kubernetes.io")
APPROVAL = "api-approved.kubernetes.io"
MAX_SUBDOMAIN, MAX_SELECTABLE, MAX_WARNING = 253, 8, 256


def name_errors(crd: Crd) -> list[FieldError]:
    """Group, scope and all names."""
    found = _group_errors(crd.group)
    if not crd.scope:
        found.append(required("spec.scope"))
    elif crd.scope not in SCOPES:
        found.append(unsupported("spec.scope", crd.scope, SCOPES))
    names = crd.names
    for name in ("plural", "singular", "kind", "listKind"):
        found += _one_name(f"spec.names.{name}", str(names.get(name) or ""), has_case=name in ("kind", "listKind"))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        found.append(invalid("spec.names.listKind", names["listKind"], detail))
    return found + _listed_names(names)


def _group_errors(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    if not SUBDOMAIN.fullmatch(group) or len(group) > MAX_SUBDOMAIN:
        return [invalid("spec.group", group, SUBDOMAIN_WORDS)]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _listed_names(names: Mapping[str, Any]) -> list[FieldError]:
    found = []
    for listed in ("shortNames", "categories"):
        for place, name in enumerate(names.get(listed) or ()):
            if problems := label_problems(str(name)):
                found.append(invalid(index(f"spec.names.{listed}", place), name, problems))
    return found


def _one_name(path: str, name: str, *, has_case: bool) -> list[FieldError]:
    if not name:
        return [required(path)]
    problems = label_problems(name.lower() if has_case else name)
    if not problems:
        return []
    start = "may have mixed case, but should otherwise match: " if has_case else ""
    return [invalid(path, name, start + problems)]


def version_errors(crd: Crd) -> list[FieldError]:
    """Names of versions, one storage version, and what each version says beside its schema."""
    found: list[FieldError] = []
    for place, version in enumerate(crd.versions):
        path = index("spec.versions", place)
        if problems := label_problems(version.name):
            found.append(invalid(child(path, "name"), version.name, problems))
        found += _deprecation_errors(version, path)
    names = [version.name for version in crd.versions]
    shown = [_shown(version) for version in crd.versions]
    if len(set(names)) != len(names):
        found.append(invalid("spec.versions", shown, "must contain unique version names"))
    if sum(version.is_storage for version in crd.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", shown, detail))
    return found


def _shown(version: CrdVersion) -> Record:
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


def _deprecation_errors(version: CrdVersion, path: str) -> list[FieldError]:
    at, warning = child(path, "deprecationWarning"), version.body.get("deprecationWarning")
    if warning is None:
        return []
    if not version.body.get("deprecated"):
        return [invalid(at, warning, "can only be set for deprecated versions")]
    if not warning:
        return [invalid(at, warning, "must not be an empty string")]
    if len(str(warning).encode()) > MAX_WARNING:
        return [invalid(at, warning, f"must be <= {MAX_WARNING} characters long")]
    return []


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
    else:
        found += _client_errors(config, at)
    if not versions:
        found.append(required(versions_at))
    elif needs_known_version and not REVIEW_VERSIONS & set(versions):
        found.append(invalid(versions_at, versions, "must include at least one of v1, v1beta1"))
    return found


def _client_errors(config: Mapping[str, Any], path: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _url_errors(str(url), child(path, "url"))
    named = service if isinstance(service, Mapping) else {}
    return [
        required(child(path, f"service.{name}"), f"service {name} is required")
        for name in ("name", "namespace")
        if not named.get(name)
    ]


def _url_errors(url: str, path: str) -> list[FieldError]:
    parts = urlsplit(url)
    if parts.scheme != "https":
        return [invalid(path, url, f'{parts.scheme!r} is not an allowed URL scheme; "https" is required')]
    return [] if parts.netloc else [invalid(path, url, "host must be specified")]


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
