"""A BundleDeployment's spec as everybody reads it: parsed in one place into frozen values.

The raw spec stays stored: it is the evidence that digests are over. Parsing never fails, because a spec may be from
before the CRD, or past it. What cannot be read is refused by the method that reads it, in the spec's terms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from provisioner import health_checks
from provisioner.api_groups import OWN_GROUP
from provisioner.catalogs.choice import PackageWish
from provisioner.catalogs.spec_source import CatalogSource, is_selecting
from provisioner.errors import BadConfig, BadSource
from provisioner.health_checks import HealthCheck
from provisioner.json_values import mapping
from provisioner.render import (
    DependencyAuth,
    ValuesReference,
    is_told_of_target,
    wanted_dependency_auth,
    wanted_lookups,
    wanted_values,
)
from provisioner.source import SOURCE_TYPES, ConfigMapSource, RemoteSource, SourceType, needed
from provisioner.values import CollisionProtection, DeletionPolicy, GroupKind, HelmRelease, Identity, ObjectRef

NEVER = "Never"
# As the CRD has it: 1h30m, 10m, 90s.
INTERVAL = re.compile(r"(?:([0-9]{1,4})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,8})s)?")
INTERVAL_FORM = re.compile(rf"^(?:{NEVER}|(?=[0-9]){INTERVAL.pattern})$")
_TYPES: tuple[type[SourceType], ...] = (*SOURCE_TYPES, CatalogSource)
KINDS = {source_type.kind: source_type for source_type in _TYPES}
DEFAULT_FORMAT = "plain"
RESTORE_PREVIOUS = "RestorePrevious"
MAX_OPTIONAL_KINDS = 100
MAX_RELEASE_NAME = 53  # Helm's


class UpgradePolicy(StrEnum):
    """What follows where a catalog offers what may follow the bundle that runs."""

    # It is shown, and taken when somebody asks for it.
    MANUAL = "Manual"
    # A request that people decide on.
    REQUEST = "Request"
    # A request that grants may approve too.
    AUTOMATIC = "Automatic"


@dataclass(frozen=True, slots=True)
class SpecSource:
    """A source as a spec has it at `where`; `body` is what the field of its kind says.

    `namespace` is that of the installation, for references that name none.
    """

    kind: str
    where: str
    body: Mapping[str, Any]
    destination: str = ""
    parameters: Any = None
    interval: str = ""
    namespace: str = ""

    @property
    def interval_seconds(self) -> int | None:
        """How often it shall be looked at: 0 for never, None where the spec leaves that to the operator."""
        if self.interval == NEVER:
            return 0
        parts = INTERVAL.fullmatch(self.interval)
        if not self.interval or not parts:
            return None
        hours, minutes, seconds = (int(part or 0) for part in parts.groups())
        return hours * 3600 + minutes * 60 + seconds

    @property
    def is_catalog(self) -> bool:
        return self.type is CatalogSource

    @property
    def is_selecting(self) -> bool:
        """Whether it selects among catalogs."""
        return self.is_catalog and is_selecting(self.body)

    @property
    def auth(self) -> Mapping[str, Any]:
        return mapping(self.body.get("auth"))

    @property
    def secret(self) -> ObjectRef | None:
        """The Secret that it names. Raises BadSource for one without a name."""
        name = self.auth.get("secret")
        return self._local_ref("Secret", mapping(name), f"{self.where}.{self.kind}.auth.secret") if name else None

    @property
    def config_map(self) -> ObjectRef:
        return self._local_ref("ConfigMap", self.body, f"{self.where}.{self.kind}")

    def reads(self) -> list[ObjectRef]:
        """The objects that it names: who asks must be allowed to get each (S08)."""
        if self.type is ConfigMapSource:
            return [self.config_map]
        secret = self.secret
        return [secret] if secret else []

    @property
    def type(self) -> type[SourceType] | None:
        """The class of its kind; None of a plug-in's, or one that nobody knows."""
        return KINDS.get(self.kind)

    @property
    def version_words(self) -> str:
        """What people call the version that it asks for."""
        return self.type.version_words(self.body) if self.type else ""

    @property
    def is_remote(self) -> bool:
        """Whether it is outside of the cluster and checked for changes."""
        return self.type is not None and issubclass(self.type, RemoteSource)

    def package_wish(self) -> PackageWish:
        """What a catalog is asked for. Raises BadSource."""
        return CatalogSource.parse_wish(self.body, f"{self.where}.{self.kind}")

    def remote(self) -> RemoteSource | None:
        """The source outside of the cluster as written, without credentials; None for others. Raises BadSource."""
        found = self.type
        if found is None or not issubclass(found, RemoteSource):
            return None
        return found.parse(self.body, self.where, self.destination)

    def _local_ref(self, kind: str, name: Mapping[str, Any], where: str) -> ObjectRef:
        namespace = str(name.get("namespace") or self.namespace)
        return ObjectRef("", "v1", kind, namespace, needed(name, "name", where))


@dataclass(frozen=True, slots=True)
class BundleSpec:
    """What a BundleDeployment asks for. The parts that are `Any` are as they are written; a method reads each."""

    install_namespace: str
    service_account: str
    sources: tuple[SpecSource, ...]
    format: str
    config: Mapping[str, Any]
    constraints: Mapping[str, Any]
    is_paused: bool
    upgrade_policy: UpgradePolicy
    drift: str
    deletion_policy: str
    is_restoring: bool
    release_name: Any
    collisions: Any
    optional: Any
    health: Mapping[str, Any]

    @property
    def account(self) -> tuple[str, str]:
        """The namespace and name of the ServiceAccount."""
        return self.install_namespace, self.service_account

    @property
    def installer(self) -> Identity:
        """The ServiceAccount that everything of its bundle is read and written as."""
        return Identity.of_service_account(*self.account)

    @property
    def is_orphaning(self) -> bool:
        """Whether the objects stay when the deployment is deleted."""
        return self.deletion_policy == DeletionPolicy.ORPHAN

    def reads(self) -> list[ObjectRef]:
        """Every object that the sources, what a chart may look up, gets values of, or opens its dependencies with name:
        who asks must be allowed to get each (S08).

        Raises BadSource.
        """
        found = [ref for source in self.sources for ref in source.reads()]
        with suppress(BadConfig):  # nothing is read for a config that the chart is then refused for
            found.extend(self.lookups() or ())
        with suppress(BadConfig):
            found.extend(wanted.ref for wanted in self.values_from())
        with suppress(BadConfig):
            found.extend(auth.secret for auth in self.dependency_auth())
        return list(dict.fromkeys(found))

    def lookups(self) -> tuple[ObjectRef, ...] | None:
        """What a chart may look up, None where nothing. Raises BadConfig."""
        return wanted_lookups(self.config, self.install_namespace) if is_told_of_target(self.format) else None

    def values_from(self) -> tuple[ValuesReference, ...]:
        """What a chart gets values of. Raises BadConfig."""
        return wanted_values(self.config, self.install_namespace) if is_told_of_target(self.format) else ()

    def dependency_auth(self) -> tuple[DependencyAuth, ...]:
        """The Secrets for dependencies of a chart, each for its host. Raises BadConfig."""
        is_chart = is_told_of_target(self.format)
        return wanted_dependency_auth(self.config, self.install_namespace) if is_chart else ()

    def catalogs(self) -> list[ObjectRef]:
        """Every Catalog that the sources name: who asks must be allowed to get each of them, too.

        A source that selects may take from any catalog, now or later: it is for who may get all, which a ref without a
        name stands for.
        """
        named = (source for source in self.sources if source.is_catalog)
        names = dict.fromkeys("" if source.is_selecting else str(source.body.get("name") or "") for source in named)
        is_any = any(source.is_selecting for source in self.sources)
        return [ObjectRef(OWN_GROUP, "v1alpha2", "Catalog", "", name) for name in names if name or is_any]

    def collision_protection(self) -> CollisionProtection:
        """What happens to objects that exist already. Raises BadSource."""
        try:
            return CollisionProtection(self.collisions or CollisionProtection.PREVENT)
        except ValueError as exc:
            expected = " or ".join(CollisionProtection)
            raise BadSource(f"collisionProtection is {self.collisions!r}; expected {expected}") from exc

    def helm_release(self) -> HelmRelease | None:
        """The release that adoptHelmRelease names, in the namespace that everything is installed into. Raises
        BadSource."""
        name = self.release_name
        if not name:
            return None
        if not isinstance(name, str) or len(name) > MAX_RELEASE_NAME:
            raise BadSource(f"adoptHelmRelease: expected the name of a release, at most {MAX_RELEASE_NAME} characters")
        return HelmRelease(name, self.install_namespace)

    def optional_kinds(self) -> frozenset[GroupKind]:
        """The optionalKinds. Raises BadSource for what cannot be read: a kind that is lost there is not optional."""
        listed = self.optional or []
        if not isinstance(listed, list) or len(listed) > MAX_OPTIONAL_KINDS:
            raise BadSource(f"optionalKinds: expected a list of at most {MAX_OPTIONAL_KINDS}")
        found = set()
        for entry in listed:
            words = dict(entry) if isinstance(entry, Mapping) else {}
            is_text = all(isinstance(value, str) for value in words.values())
            if not is_text or not words.get("kind") or words.keys() - {"group", "kind"}:
                expected = "expected kind, and group for any but the core group"
                raise BadSource(f"optionalKinds has {str(entry)[:100]!r}; {expected}")
            found.add(GroupKind(words.get("group", ""), words["kind"]))
        return frozenset(found)

    def health_checks(self) -> tuple[HealthCheck, ...]:
        """The health checks. Raises BadHealthCheck where the health part cannot be read; CEL is not compiled."""
        return health_checks.health_checks(self.health)

    def deadline_minutes(self, *, default: int) -> int:
        """Within how many minutes a revision shall be healthy. Raises BadHealthCheck out of range."""
        return health_checks.deadline_minutes(self.health, default=default)


def parse_spec(spec: Mapping[str, Any]) -> BundleSpec:
    """The spec of a BundleDeployment, whoever wrote it; what the CRD would not take counts as not said."""
    namespace, listed, policy = str(spec.get("installNamespace") or ""), spec.get("sources"), spec.get("upgradePolicy")
    sources = listed if isinstance(listed, list) else []
    return BundleSpec(
        install_namespace=namespace,
        service_account=str(spec.get("serviceAccountName") or ""),
        sources=tuple(_parse_source(entry, f"spec.sources[{n}]", namespace) for n, entry in enumerate(sources)),
        format=str(spec.get("format") or DEFAULT_FORMAT),
        config=mapping(spec.get("config")),
        constraints=spec.get("constraints") or {},
        is_paused=bool(spec.get("paused")),
        upgrade_policy=UpgradePolicy(policy) if policy in list(UpgradePolicy) else UpgradePolicy.REQUEST,
        drift=str(spec.get("drift") or ""),
        deletion_policy=str(spec.get("deletionPolicy") or DeletionPolicy.DELETE),
        is_restoring=spec.get("onFailure") == RESTORE_PREVIOUS,
        release_name=spec.get("adoptHelmRelease"),
        collisions=spec.get("collisionProtection"),
        optional=spec.get("optionalKinds"),
        health={key: spec[key] for key in ("healthChecks", "progressDeadlineMinutes") if key in spec},
    )


def parse_catalog_source(spec: Mapping[str, Any]) -> SpecSource:
    """The one source of a Catalog's spec: who wrote it must be allowed to get what it names (S08)."""
    source = _parse_source(spec.get("source"), "spec.source", "")
    return replace(source, interval=str(spec.get("interval") or ""))


def _parse_source(written: Any, where: str, namespace: str) -> SpecSource:
    source = mapping(written)
    kind = str(source.get("kind") or "")
    return SpecSource(
        kind,
        where,
        # A kind is a free name, and that of another field means nothing.
        mapping(source.get(kind)) if kind in KINDS else {},
        str(source.get("destination") or ""),
        source.get("parameters"),
        str(source.get("interval") or ""),
        namespace,
    )
