"""A ClusterServiceVersion as far as it decides what is installed, and what a bundle requires of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from provisioner.errors import BundleTooLarge
from provisioner.render.objects import Found
from provisioner.render.registry.fields import Fields
from provisioner.render.registry.needs import (
    API,
    CONSTRAINT,
    MAX_CHARACTERS,
    PACKAGE,
    constraint_text,
    need_of_property,
)
from provisioner.sentences import some
from provisioner.values import JsonObject, Requirement, RequirementKind

# No bundle of the public catalogs asks for more than 30.
MAX_REQUIREMENTS = 200
MAX_WORDS = 300


def version_requirements(spec: Fields) -> Iterator[Requirement]:
    """What the spec of a ClusterServiceVersion asks for."""
    if version := spec.text("minKubeVersion"):
        yield _requirement(RequirementKind.KUBERNETES, version=version)
    for one in spec.mapping("customresourcedefinitions").mappings("required"):
        _, _, group = one.text("name").partition(".")
        yield _api(group, one.text("version"), one.text("kind"))
    for one in spec.mapping("apiservicedefinitions").mappings("required"):
        yield _api(one.text("group"), one.text("version"), one.text("kind"))
    for native in spec.mappings("nativeAPIs"):
        yield _api(native.text("group"), native.text("version"), native.text("kind"))


def property_requirements(listed: list[Fields]) -> Iterator[Requirement]:
    """What properties (properties.yaml, the annotation olm.properties) and dependencies.yaml ask for.

    Properties that say what the bundle itself is or brings, and those of others, ask for nothing.
    """
    for one in listed:
        if read := _TYPES.get(one.text("type")):
            yield read(one)


def unknown_field_requirements(what: str, paths: list[str]) -> Iterator[Requirement]:
    """What an object of the bundle has of fields that no Kubernetes has."""
    if paths:
        yield _requirement(RequirementKind.FIELD, what, version=some(paths, 5))


def unreadable(file: str, why: str) -> Requirement:
    """A file that says what the bundle depends on, and that nobody can read."""
    return _requirement(RequirementKind.CONSTRAINT, file, version=f"its file cannot be read: {why}")


def bounded(found: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Each once, in order. Raises BundleTooLarge."""
    once = tuple(dict.fromkeys(found))
    if len(once) > MAX_REQUIREMENTS:
        raise BundleTooLarge(f"the bundle has {len(once)} requirements; at most {MAX_REQUIREMENTS} are read")
    return once


def _package(fields: Fields) -> Requirement:
    value = fields.mapping("value")
    name = value.text("packageName") or value.text("name")
    return _requirement(RequirementKind.PACKAGE, name, version=value.text("versionRange") or value.text("version"))


def _kind(fields: Fields) -> Requirement:
    value = fields.mapping("value")
    return _api(value.text("group"), value.text("version"), value.text("kind"))


def _constraint(fields: Fields) -> Requirement:
    value = fields.mapping("value")
    asked = ", ".join(sorted(str(key) for key in value.value if key != "failureMessage"))
    text = constraint_text(value.value)
    words = value.text("failureMessage") or str(need_of_property(CONSTRAINT, value.value))
    found = _requirement(RequirementKind.CONSTRAINT, asked, version=words)
    return replace(found, constraint=text if len(text) <= MAX_CHARACTERS else "")


def _openshift(fields: Fields) -> Requirement:
    value = fields.value.get("value")
    return _requirement(RequirementKind.OPENSHIFT, version=str(value if isinstance(value, str | int | float) else ""))


_TYPES: Mapping[str, Callable[[Fields], Requirement]] = {
    PACKAGE: _package,
    API: _kind,
    CONSTRAINT: _constraint,
    "olm.maxOpenShiftVersion": _openshift,
}
# In dependencies.yaml, what a bundle depends on has the names that properties use for what it is.
_DEPENDENCIES = {"olm.package": PACKAGE, "olm.gvk": API}


def as_properties(dependencies: list[Fields]) -> list[Fields]:
    """The entries of dependencies.yaml as the properties that OLM makes of them."""
    renamed = [_DEPENDENCIES.get(kind := dependency.text("type"), kind) for dependency in dependencies]
    return [Fields({**one.value, "type": kind}, one.where) for one, kind in zip(dependencies, renamed, strict=True)]


def _api(group: str, version: str, kind: str) -> Requirement:
    return _requirement(RequirementKind.API, kind, group=group, version=version)


def _requirement(kind: RequirementKind, name: str = "", **words: str) -> Requirement:
    return Requirement(kind, name[:MAX_WORDS], **{key: value[:MAX_WORDS] for key, value in words.items()})


class InstallMode(StrEnum):
    """Which namespaces an operator can watch."""

    OWN = "OwnNamespace"
    SINGLE = "SingleNamespace"
    MULTI = "MultiNamespace"
    ALL = "AllNamespaces"


class WebhookType(StrEnum):
    """What a webhook definition becomes."""

    VALIDATING = "ValidatingAdmissionWebhook"
    MUTATING = "MutatingAdmissionWebhook"
    CONVERSION = "ConversionWebhook"


@dataclass(frozen=True, slots=True)
class AccountRules:
    """Rules for one ServiceAccount; `account` is "" where the bundle names none, which means `default`.

    `has_list` where the bundle has a list of rules, be it an empty one.
    """

    account: str
    rules: tuple[Mapping[str, Any], ...]
    has_list: bool

    @property
    def subject(self) -> str:
        return self.account or "default"


@dataclass(frozen=True, slots=True)
class DeploymentTemplate:
    name: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WebhookDefinition:
    """A webhook definition; `passed_on` are the fields that a webhook of Kubernetes has as they stand."""

    type: str
    name: str
    deployment: str
    port: int
    target_port: int | str
    path: str | None
    review_versions: tuple[str, ...]
    crds: tuple[str, ...]
    rules: tuple[Fields, ...]
    passed_on: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterServiceVersion:
    name: str
    annotations: Mapping[str, str]
    modes: frozenset[str]
    deployments: tuple[DeploymentTemplate, ...]
    permissions: tuple[AccountRules, ...]
    cluster_permissions: tuple[AccountRules, ...]
    webhooks: tuple[WebhookDefinition, ...]
    owned_crds: tuple[str, ...]
    owned_api_services: int
    requirements: tuple[Requirement, ...]
    version: str


REINVOCATION = "reinvocationPolicy"  # only mutating webhooks have it
_PASSED_ON = (
    "rules", "failurePolicy", "matchPolicy", "objectSelector", "sideEffects", "timeoutSeconds", REINVOCATION,
)  # fmt: skip
DEFAULT_PORT = 443


def csv_of(found: Found) -> ClusterServiceVersion:
    """Raises InvalidManifest for a field of a type that it cannot have."""
    body = Fields.of(found.body, found.place)
    meta, spec = body.mapping("metadata"), body.mapping("spec")
    install = spec.mapping("install")
    install.text("strategy")
    strategy = install.mapping("spec")
    return ClusterServiceVersion(
        name=meta.text("name"),
        annotations=meta.text_map("annotations"),
        modes=frozenset(
            install_mode.text("type")
            for install_mode in spec.mappings("installModes")
            if install_mode.is_true("supported")
        ),
        deployments=tuple(map(_deployment, strategy.mappings("deployments"))),
        permissions=tuple(map(_permission, strategy.mappings("permissions"))),
        cluster_permissions=tuple(map(_permission, strategy.mappings("clusterPermissions"))),
        webhooks=tuple(map(_webhook, spec.mappings("webhookdefinitions"))),
        owned_crds=tuple(one.text("name") for one in spec.mapping("customresourcedefinitions").mappings("owned")),
        owned_api_services=len(spec.mapping("apiservicedefinitions").mappings("owned")),
        requirements=tuple(version_requirements(spec)),
        version=spec.text("version"),
    )


def _deployment(fields: Fields) -> DeploymentTemplate:
    spec = fields.mapping("spec")
    template = spec.mapping("template")
    template.mapping("metadata").text_map("annotations")
    pod = template.mapping("spec")
    for container in pod.mappings("containers"):
        container.mappings("volumeMounts")
    pod.mappings("volumes")
    spec.mapping("selector").text_map("matchLabels")
    return DeploymentTemplate(fields.text("name"), fields.text_map("label"), spec.value)


def _permission(fields: Fields) -> AccountRules:
    rules: list[JsonObject] = []
    for rule in fields.mappings("rules"):
        # The fields that it can have stand in the order of Kubernetes' own types: a role is named by their hash.
        optional = ("apiGroups", "resources", "resourceNames", "nonResourceURLs")
        verbs = rule.texts("verbs") if rule.value.get("verbs") is not None else None
        rules.append({"verbs": verbs} | {name: found for name in optional if (found := rule.texts(name))})
    return AccountRules(fields.text("serviceAccountName"), tuple(rules), fields.value.get("rules") is not None)


def _webhook(fields: Fields) -> WebhookDefinition:
    port = fields.whole_number("containerPort") or DEFAULT_PORT
    target = fields.value.get("targetPort")
    return WebhookDefinition(
        type=fields.text("type"),
        name=fields.text("generateName"),
        deployment=fields.text("deploymentName"),
        port=port,
        target_port=target if isinstance(target, str) else fields.whole_number("targetPort") or port,
        path=fields.text("webhookPath") if fields.value.get("webhookPath") is not None else None,
        review_versions=tuple(fields.texts("admissionReviewVersions")),
        crds=tuple(fields.texts("conversionCRDs")),
        rules=tuple(fields.mappings("rules")),
        passed_on={name: value for name in _PASSED_ON if (value := fields.value.get(name)) is not None},
    )
