"""A ClusterServiceVersion as far as it decides what is installed: deployments, permissions, webhooks, install modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from provisioner.render.objects import Found
from provisioner.render.registry.fields import Fields
from provisioner.render.registry.requirements import of_version
from provisioner.values import JsonObject, Requirement


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
        modes=frozenset(one.text("type") for one in spec.mappings("installModes") if one.is_true("supported")),
        deployments=tuple(map(_deployment, strategy.mappings("deployments"))),
        permissions=tuple(map(_permission, strategy.mappings("permissions"))),
        cluster_permissions=tuple(map(_permission, strategy.mappings("clusterPermissions"))),
        webhooks=tuple(map(_webhook, spec.mappings("webhookdefinitions"))),
        owned_crds=tuple(one.text("name") for one in spec.mapping("customresourcedefinitions").mappings("owned")),
        owned_api_services=len(spec.mapping("apiservicedefinitions").mappings("owned")),
        requirements=tuple(of_version(spec)),
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
    rules = tuple(_rule(one) for one in fields.mappings("rules"))
    return AccountRules(fields.text("serviceAccountName"), rules, fields.value.get("rules") is not None)


def _rule(fields: Fields) -> JsonObject:
    """A rule with the fields that it can have, in the order in which Kubernetes' own types have them (see `names`)."""
    optional = ("apiGroups", "resources", "resourceNames", "nonResourceURLs")
    verbs = fields.texts("verbs") if fields.value.get("verbs") is not None else None
    return {"verbs": verbs} | {name: found for name in optional if (found := fields.texts(name))}


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
