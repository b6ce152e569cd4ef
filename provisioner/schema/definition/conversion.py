"""How the objects of a CRD are converted, as the API server wants it said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from provisioner.schema.definition.crd import Crd
from provisioner.schema.fields import FieldError, child, forbidden, go_quoted, index, invalid, required, unsupported
from provisioner.schema.names import label_problems, subdomain_problems

REVIEW_VERSIONS = frozenset({"v1", "v1beta1"})
MAX_PORT = 65_535
BAD_PORT = f"port is not valid: must be between 1 and {MAX_PORT}, inclusive"
FORM = "; desired format: https://host[/path]"
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
NOT_IN_HOST = re.compile(r'[\x00-\x20"<>\\^`{|}\x7f]')


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


def _client_errors(config: Mapping[str, Any], path: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return list(_url_errors(str(url), child(path, "url")))
    return list(_service_errors(service if isinstance(service, Mapping) else {}, child(path, "service")))


def _service_errors(service: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """The server tells a missing name under `namespace`, and a missing namespace under `name`."""
    for name, said_at in (("name", "namespace"), ("namespace", "name")):
        if not service.get(name):
            yield required(child(path, said_at))
    port = service.get("port")
    if isinstance(port, int) and not 1 <= port <= MAX_PORT:
        yield invalid(child(path, "port"), port, BAD_PORT)
    yield from _path_errors(str(service.get("path") or "/"), child(path, "path"))


def _path_errors(url_path: str, path: str) -> Iterator[FieldError]:
    if url_path == "/":
        return
    if not url_path.startswith("/"):
        yield invalid(path, url_path, "must start with a '/'")
    segments = url_path[1:].removesuffix("/").split("/")
    for place, segment in enumerate(segments):
        if not segment:
            yield invalid(path, url_path, f"segment[{place}] may not be empty")
        elif problem := subdomain_problems(segment):
            yield invalid(path, url_path, f"segment[{place}]: {problem}")


def _url_errors(url: str, path: str) -> Iterator[FieldError]:
    problem, parts = _parsed(url)
    if parts is None:
        yield required(path, f"url must be a valid URL: parse {go_quoted(url)}: {problem}{FORM}")
        return
    user, _, _ = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{FORM}")
    if not parts.netloc.rpartition("@")[2]:
        yield invalid(path, "", f"host must be specified{FORM}")
    for value, what in (
        (user, "user information is"),
        (parts.fragment, "fragments are"),
        (parts.query, "query parameters are"),
    ):
        if value:
            yield invalid(path, value, f"{what} not permitted in the URL")


def _parsed(url: str) -> tuple[str, SplitResult | None]:
    """The parts of a URL, or what Go's reader would have against it."""
    if escape := BAD_ESCAPE.search(url):
        return f"invalid URL escape {go_quoted(escape[0])}", None
    try:
        parts = urlsplit(url)
    except ValueError as exc:
        return str(exc), None
    if char := NOT_IN_HOST.search(parts.netloc):
        return f"invalid character {go_quoted(char[0])} in host name", None
    return "", parts
