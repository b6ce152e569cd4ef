"""What OLM v1 refuses of a bundle before it renders anything: its validators, all of them asked.

Source: operator-controller, internal/operator-controller/rukpak/render/registryv1/validators, and of its applier that
API services are refused. Which namespaces an operator can watch is judged in `config`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.errors import BadBundle
from provisioner.render.registry.bundle import RegistryBundle
from provisioner.render.registry.csv import InstallMode, WebhookType
from provisioner.render.registry.fields import Fields
from provisioner.render.registry.kinds import SUPPORTED

_Name = TypeVar("_Name", str, tuple[str, str])
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253
_FORBIDDEN_GROUPS = frozenset({"olm.operatorframework.io", "*"})
_FORBIDDEN_RESOURCES = frozenset(
    {
        "*",
        "mutatingwebhookconfiguration",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "validatingwebhookconfigurations",
    }
)


def check(bundle: RegistryBundle) -> None:
    """Raise BadBundle with every reason why OLM would not install it."""
    problems = [words for ask in _QUESTIONS for words in ask(bundle)]
    if problems:
        raise BadBundle("; ".join(problems))


def _deployments_are_named_once(bundle: RegistryBundle) -> Iterator[str]:
    for name in _repeated(one.name for one in bundle.csv.deployments):
        yield f"the ClusterServiceVersion has the deployment {name!r} more than once"


def _deployments_have_names(bundle: RegistryBundle) -> Iterator[str]:
    for name in sorted({one.name for one in bundle.csv.deployments}):
        if not _is_subdomain(name):
            yield f"the deployment name {name[:80]!r} is no DNS subdomain"


def _crds_are_there_once(bundle: RegistryBundle) -> Iterator[str]:
    for name in _repeated(_names(bundle)):
        yield f"the bundle has the CRD {name!r} more than once"


def _owned_crds_are_there(bundle: RegistryBundle) -> Iterator[str]:
    for name in sorted(set(bundle.csv.owned_crds) - set(_names(bundle))):
        yield f"the ClusterServiceVersion owns the CRD {name!r}, which is not in the bundle"


def _package_is_named(bundle: RegistryBundle) -> Iterator[str]:
    if not bundle.package:
        yield "metadata/annotations.yaml names no package"


def _conversion_is_for_all_namespaces(bundle: RegistryBundle) -> Iterator[str]:
    if bundle.csv.modes == {InstallMode.ALL}:
        return
    for webhook in bundle.csv.webhooks:
        if webhook.type == WebhookType.CONVERSION:
            modes = ", ".join(sorted(bundle.csv.modes)) or "none"
            yield f"the conversion webhook {webhook.name!r} needs AllNamespaces as the only install mode; found {modes}"


def _webhooks_have_deployments(bundle: RegistryBundle) -> Iterator[str]:
    known = {one.name for one in bundle.csv.deployments}
    for webhook in sorted(bundle.csv.webhooks, key=lambda one: (one.deployment, one.type, one.name)):
        if webhook.deployment not in known:
            yield f"the {webhook.type} {webhook.name!r} names the deployment {webhook.deployment!r}, which is not there"


def _webhooks_are_named_once(bundle: RegistryBundle) -> Iterator[str]:
    for kind, name in _repeated((one.type, one.name) for one in bundle.csv.webhooks):
        yield f"the {kind} {name!r} is there more than once"


def _webhooks_have_names(bundle: RegistryBundle) -> Iterator[str]:
    for kind, name in sorted({(one.type, one.name) for one in bundle.csv.webhooks}):
        if not _is_subdomain(name):
            yield f"the {kind} name {name[:80]!r} is no DNS subdomain"


def _crds_are_converted_once(bundle: RegistryBundle) -> Iterator[str]:
    crds = [crd for one in bundle.csv.webhooks if one.type == WebhookType.CONVERSION for crd in one.crds]
    for name in _repeated(crds):
        yield f"more than one conversion webhook is for the CRD {name!r}"


def _converted_crds_are_owned(bundle: RegistryBundle) -> Iterator[str]:
    for webhook in sorted(bundle.csv.webhooks, key=lambda one: one.name):
        if webhook.type != WebhookType.CONVERSION:
            continue
        for crd in sorted(set(webhook.crds) - set(bundle.csv.owned_crds)):
            yield f"the conversion webhook {webhook.name!r} is for the CRD {crd!r}, which the bundle does not own"


def _webhooks_leave_admission_alone(bundle: RegistryBundle) -> Iterator[str]:
    for webhook in bundle.csv.webhooks:
        if webhook.type == WebhookType.CONVERSION:
            continue
        for rule in webhook.rules:
            yield from _of_rule(webhook.name, rule)


def _of_rule(name: str, rule: Fields) -> Iterator[str]:
    for group in rule.texts("apiGroups"):
        if group in _FORBIDDEN_GROUPS:
            yield f"the webhook {name!r} has a rule for the API group {group!r}, which no bundle may have"
        if group == ADMISSION_GROUP:
            for resource in rule.texts("resources"):
                if resource.lower() in _FORBIDDEN_RESOURCES:
                    yield f"the webhook {name!r} has a rule for {resource!r} of {group}, which no bundle may have"


def _objects_are_supported(bundle: RegistryBundle) -> Iterator[str]:
    for one in bundle.others:
        kind = Fields.of(one.body, one.place).text("kind")
        if kind not in SUPPORTED:
            yield f"{one.place}: an operator bundle cannot have a {kind or 'object without a kind'}"


def _no_api_services(bundle: RegistryBundle) -> Iterator[str]:
    if bundle.csv.owned_api_services:
        yield "apiservicedefinitions are not supported"


_QUESTIONS: tuple[Callable[[RegistryBundle], Iterable[str]], ...] = (
    _deployments_are_named_once,
    _deployments_have_names,
    _crds_are_there_once,
    _owned_crds_are_there,
    _package_is_named,
    _conversion_is_for_all_namespaces,
    _webhooks_have_deployments,
    _webhooks_are_named_once,
    _webhooks_have_names,
    _crds_are_converted_once,
    _converted_crds_are_owned,
    _webhooks_leave_admission_alone,
    _objects_are_supported,
    _no_api_services,
)


def _names(bundle: RegistryBundle) -> list[str]:
    return [Fields.of(one.body, one.place).mapping("metadata").text("name") for one in bundle.crds]


def _repeated(names: Iterable[_Name]) -> list[_Name]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _is_subdomain(name: str) -> bool:
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None
