"""What becomes of a bundle's webhook definitions: configurations, conversions of CRDs, and the Services before them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.errors import BadBundle
from provisioner.render.objects import Found
from provisioner.render.registry.bundle import RegistryBundle
from provisioner.render.registry.certificates import issued, serving, trusting
from provisioner.render.registry.config import ALL_NAMESPACES, CertificateIssuer, RegistryConfig
from provisioner.render.registry.csv import REINVOCATION, WebhookDefinition, WebhookType
from provisioner.render.registry.fields import Fields
from provisioner.render.registry.names import service_name
from provisioner.values import JsonObject

_API = f"{ADMISSION_GROUP}/v1"
_KINDS = {
    WebhookType.VALIDATING: "ValidatingWebhookConfiguration",
    WebhookType.MUTATING: "MutatingWebhookConfiguration",
}
_OF_NAMESPACE = "kubernetes.io/metadata.name"


def configurations(bundle: RegistryBundle, config: RegistryConfig, namespace: str) -> Iterator[JsonObject]:
    """The validating ones, then the mutating ones, each with one webhook."""
    for kind in (WebhookType.VALIDATING, WebhookType.MUTATING):
        for webhook in bundle.csv.webhooks:
            if webhook.type == kind:
                yield _configuration(kind, webhook, config, namespace)


def _configuration(kind: WebhookType, webhook: WebhookDefinition, config: RegistryConfig, namespace: str) -> JsonObject:
    name = webhook.name.removesuffix("-")
    body: dict[str, Any] = {
        **copy.deepcopy(dict(webhook.passed_on)),
        "name": name,
        "admissionReviewVersions": list(webhook.review_versions),
        "clientConfig": {"service": _service(webhook, namespace, webhook.path)},
    }
    if kind is not WebhookType.MUTATING:
        body.pop(REINVOCATION, None)
    if config.namespaces != ALL_NAMESPACES:
        chosen = {"key": _OF_NAMESPACE, "operator": "In", "values": list(config.namespaces)}
        body["namespaceSelector"] = {"matchExpressions": [chosen]}
    annotations = trusting(config.certificates, webhook.deployment, namespace)
    meta = {"name": name} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": _API, "kind": _KINDS[kind], "metadata": meta, "webhooks": [body]}


def definitions(bundle: RegistryBundle, issuer: CertificateIssuer, namespace: str) -> Iterator[Found]:
    """The CRDs, those with a conversion webhook converted by it.

    Raises BadBundle where the API server would not call it.
    """
    converters = {crd: one for one in bundle.csv.webhooks if one.type == WebhookType.CONVERSION for crd in one.crds}
    for found in bundle.crds:
        body = Fields.of(found.body, found.place)
        webhook = converters.get(body.mapping("metadata").text("name"))
        yield replace(found, body=_converted(body, webhook, issuer, namespace)) if webhook else found


def _converted(crd: Fields, webhook: WebhookDefinition, issuer: CertificateIssuer, namespace: str) -> JsonObject:
    meta, spec = crd.mapping("metadata"), crd.mapping("spec")
    if spec.is_true("preserveUnknownFields"):
        raise BadBundle(f"{spec.where}.preserveUnknownFields is true, so the API server would not call its webhook")
    annotations = meta.text_map("annotations") | trusting(issuer, webhook.deployment, namespace)
    service = _service(webhook, namespace, "/" if webhook.path is None else webhook.path)
    conversion = {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service},
            "conversionReviewVersions": list(webhook.review_versions),
        },
    }
    return {
        **crd.value,
        "metadata": {**meta.value, **({"annotations": annotations} if annotations else {})},
        "spec": {**spec.value, "conversion": conversion},
    }


def own_services(bundle: RegistryBundle) -> list[Found]:
    """The Services of manifests/ whose names those that are made here have, each alone in its file.

    OLM v0 replaces them. OLM v1 has both, of which an API server takes one.
    """
    made = {service_name(webhook.deployment) for webhook in bundle.csv.webhooks}
    held = Counter([bundle.csv_file, *(one.file for one in (*bundle.crds, *bundle.others))])
    bodies = ((one, Fields.of(one.body, one.place)) for one in bundle.others if held[one.file] == 1)
    return [
        one for one, body in bodies if body.text("kind") == "Service" and body.mapping("metadata").text("name") in made
    ]


def services(bundle: RegistryBundle, issuer: CertificateIssuer, namespace: str) -> Iterator[JsonObject]:
    """A Service for each deployment with webhooks, and what asks for its certificate."""
    ports: dict[str, set[tuple[int, int | str]]] = {}
    for webhook in bundle.csv.webhooks:
        ports.setdefault(webhook.deployment, set()).add((webhook.port, webhook.target_port))
    for deployment in bundle.csv.deployments:
        if deployment.name not in ports:
            continue
        selector = Fields.of(deployment.spec, deployment.name).mapping("selector").text_map("matchLabels")
        annotations = serving(issuer, deployment.name)
        meta = {"name": service_name(deployment.name), "namespace": namespace}
        listed = [
            {"name": str(port), "port": port, "targetPort": target}
            for port, target in sorted(ports[deployment.name], key=lambda one: (one[0], str(one[1])))
        ]
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta | ({"annotations": annotations} if annotations else {}),
            "spec": {"ports": listed} | ({"selector": selector} if selector else {}),
        }
    for name in sorted(ports):
        yield from issued(issuer, name, namespace)


def _service(webhook: WebhookDefinition, namespace: str, path: str | None) -> JsonObject:
    place: dict[str, Any] = {"namespace": namespace, "name": service_name(webhook.deployment), "port": webhook.port}
    return place | ({"path": path} if path is not None else {})
