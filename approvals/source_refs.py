"""The sources of a BundleDeployment's spec as it is written, and what they name in the cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.catalogs.choice import PackageWish, UpgradeEdges
from provisioner.errors import BadConfig, BadSource, InvalidRange
from provisioner.render import is_told_of_target, wanted_lookups
from provisioner.source import GitSource, HttpSource, ImageSource, RemoteSource
from provisioner.values import ObjectRef
from provisioner.versions import constraint_of

NEVER = "Never"
# As the CRD has it: 1h30m, 10m, 90s.
INTERVAL = re.compile(r"(?:([0-9]{1,4})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,8})s)?")
INTERVAL_FORM = re.compile(rf"^(?:{NEVER}|(?=[0-9]){INTERVAL.pattern})$")
KINDS = ("image", "git", "http", "configMap", "catalog")
CATALOG = "catalog"


class UpgradePolicy(StrEnum):
    """What follows where a catalog offers what may follow the bundle that runs."""

    # It is shown, and taken when somebody asks for it.
    MANUAL = "Manual"
    # A request that people decide on.
    REQUEST = "Request"
    # A request that grants may approve too.
    AUTOMATIC = "Automatic"


def read_by(spec: Mapping[str, Any], *, where: str = "") -> list[ObjectRef]:
    """Every object that the sources, or what a chart may look up, name: who asks must be allowed to get each (S08)."""
    found = []
    for number, source in enumerate(listed_sources(spec)):
        place, body = where or f"spec.sources[{number}]", body_of(source)
        if source.get("kind") == "configMap":
            found.append(named("ConfigMap", body, spec, f"{place}.configMap"))
        elif secret := secret_of(source):
            found.append(named("Secret", secret, spec, f"{place}.{source['kind']}.auth.secret"))
    with suppress(BadConfig):  # nothing is read for a config that the chart is then refused for
        found.extend(lookups_in(spec) or ())
    return list(dict.fromkeys(found))


def read_by_catalog(spec: Mapping[str, Any]) -> list[ObjectRef]:
    """Every object that the source of a Catalog names: who wrote it must be allowed to get each (S08)."""
    return read_by({"sources": [spec.get("source") or {}]}, where="spec.source")


def lookups_in(spec: Mapping[str, Any]) -> tuple[ObjectRef, ...] | None:
    """What a chart may look up, None where nothing. Raises BadConfig."""
    config = spec.get("config")
    if not isinstance(config, Mapping) or not is_told_of_target(str(spec.get("format") or "")):
        return None
    return wanted_lookups(config, str(spec.get("installNamespace") or ""))


def catalogs_named(spec: Mapping[str, Any]) -> list[ObjectRef]:
    """Every Catalog that the sources name: who asks must be allowed to get each of them, too."""
    names = {str(body_of(one).get("name") or ""): None for one in listed_sources(spec) if is_catalog(one)}
    return [ObjectRef(OWN_GROUP, "v1alpha2", "Catalog", "", name) for name in names if name]


def is_catalog(source: Mapping[str, Any]) -> bool:
    return source.get("kind") == CATALOG


def package_wish(source: Mapping[str, Any], where: str) -> PackageWish:
    """What a catalog is asked for; raises BadSource in the spec's terms."""
    body = body_of(source)
    package, channel = needed(body, "package", f"{where}.{CATALOG}"), str(body.get("channel") or "")
    try:
        versions = constraint_of(str(body["version"])) if body.get("version") else None
    except InvalidRange as exc:
        raise BadSource(f"{where}.{CATALOG}.version: {exc}") from exc
    edges = str(body.get("upgradeConstraintPolicy") or UpgradeEdges.CATALOG_PROVIDED)
    if edges not in list(UpgradeEdges):
        raise BadSource(
            f"{where}.{CATALOG}.upgradeConstraintPolicy is {edges!r}; expected one of {', '.join(UpgradeEdges)}"
        )
    return PackageWish(package, (channel,) if channel else (), versions, UpgradeEdges(edges))


def upgrade_policy(spec: Mapping[str, Any]) -> UpgradePolicy:
    """What the spec wants done about upgrades; what the CRD would not take counts as not said."""
    wanted = spec.get("upgradePolicy")
    return UpgradePolicy(wanted) if wanted in list(UpgradePolicy) else UpgradePolicy.REQUEST


def listed_sources(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(spec.get("sources") or [])


def body_of(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the field of its kind says; a kind is a free name, and that of another field means nothing."""
    kind = source.get("kind")
    return source.get(kind) or {} if kind in KINDS else {}


def secret_of(source: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The Secret that a source names, as it is written."""
    return (body_of(source).get("auth") or {}).get("secret") or None


def remote_source(source: Mapping[str, Any], where: str) -> RemoteSource | None:
    """An image, a git repository or an archive at an address, as written and without credentials; None for others.

    Raises BadSource where what it needs is missing.
    """
    kind, body, destination = source.get("kind"), body_of(source), str(source.get("destination") or "")
    if kind == "image":
        return ImageSource(needed(body, "ref", where), insecure_http=True, destination=destination)
    if kind == "http":
        return HttpSource(needed(body, "url", where), checksum=str(body.get("checksum") or ""), destination=destination)
    if kind != "git":
        return None
    ref = body.get("ref") or {}
    return GitSource(
        needed(body, "repository", where),
        commit=str(ref.get("commit") or ""),
        branch=str(ref.get("branch") or ""),
        tag=str(ref.get("tag") or ""),
        directory=str(body.get("directory") or ""),
        destination=destination,
    )


def named(kind: str, name: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> ObjectRef:
    """The object of the core group that a reference means; without a namespace that of the installation."""
    namespace = str(name.get("namespace") or spec.get("installNamespace") or "")
    return ObjectRef("", "v1", kind, namespace, needed(name, "name", where))


def interval_seconds(source: Mapping[str, Any]) -> int | None:
    """How often this source shall be looked at: 0 for never, None where the spec leaves that to the operator.

    What the CRD would not take counts as not said: such a spec comes from before it, or past it.
    """
    text = str(source.get("interval") or "")
    if text == NEVER:
        return 0
    parts = INTERVAL.fullmatch(text)
    if not text or not parts:
        return None
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return hours * 3600 + minutes * 60 + seconds


def needed(body: Mapping[str, Any], key: str, where: str) -> str:
    if not body.get(key):
        raise BadSource(f"{where} has no {key}")
    return str(body[key])
