"""The objects that OLM would make of a bundle: accounts and roles, Deployments, webhooks and their certificates.

What `deploymentConfig` does is what OLM v1 does with it (generators.applyCustomConfigToDeployment).
"""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP
from provisioner.errors import BadBundle
from provisioner.render.objects import Found
from provisioner.render.registry.bundle import RegistryBundle
from provisioner.render.registry.config import ALL_NAMESPACES, CertificateIssuer, RegistryConfig
from provisioner.render.registry.csv import (
    REINVOCATION,
    AccountRules,
    ClusterServiceVersion,
    DeploymentTemplate,
    WebhookDefinition,
    WebhookType,
)
from provisioner.render.registry.fields import Fields, certificate_name, go_json, ordered, service_name, suffixed
from provisioner.values import JsonObject

# Where programs look for their certificate: the volume, its path, and the names of the two files.
_CERTIFICATE_VOLUMES = (
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),  # noqa: S108 -- a path in a pod
    ("apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
)
Body = dict[str, Any]
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")


def deployments(bundle: RegistryBundle, config: RegistryConfig, namespace: str) -> Iterator[Body]:
    """In the order of the bundle."""
    with_webhooks = {webhook.deployment for webhook in bundle.csv.webhooks}
    olm = {"olm.targetNamespaces": ",".join(config.namespaces), "olm.operatorNamespace": namespace}
    for deployment in bundle.csv.deployments:
        spec = copy.deepcopy(dict(deployment.spec))
        spec["revisionHistoryLimit"] = 1
        template = _part(spec, "template")
        meta, pod = _part(template, "metadata"), _part(template, "spec")
        meta["annotations"] = {**bundle.csv.annotations, **(meta.get("annotations") or {}), **olm}
        if deployment.name in with_webhooks and config.certificates is not CertificateIssuer.NONE:
            # Mount the Secret where programs look for it, in place of what the bundle has there.
            secret = certificate_name(deployment.name)
            containers = _containers(pod)
            paths = {path for _, path, _, _ in _CERTIFICATE_VOLUMES}
            mounted = [mount for item in containers for mount in item.get("volumeMounts") or ()]
            replaced = {name for name, _, _, _ in _CERTIFICATE_VOLUMES}
            replaced |= {mount.get("name") for mount in mounted if mount.get("mountPath") in paths}
            volumes = [_certificate_volume(name, secret, files) for name, _, *files in _CERTIFICATE_VOLUMES]
            pod["volumes"] = [*_without(pod.get("volumes"), replaced), *volumes]
            for item in containers:
                mounts = [{"name": name, "mountPath": path} for name, path, _, _ in _CERTIFICATE_VOLUMES]
                item["volumeMounts"] = [*_without(item.get("volumeMounts"), replaced), *mounts]
        made = _deployment(deployment, spec, namespace)
        # What the spec's config adds: by name it replaces what is there, and of two annotations the bundle's stays.
        wanted = config.deployment.value
        for container in _containers(pod):
            _put(container, "env", _by_name(container.get("env"), wanted.get("env")))
            _put(container, "envFrom", _once(container.get("envFrom"), wanted.get("envFrom")))
            _put(container, "volumeMounts", _by_name(container.get("volumeMounts"), wanted.get("volumeMounts")))
            if wanted.get("resources") is not None:
                container["resources"] = copy.deepcopy(wanted["resources"])
        _put(pod, "volumes", _by_name(pod.get("volumes"), wanted.get("volumes")))
        _put(pod, "tolerations", _once(pod.get("tolerations"), wanted.get("tolerations")))
        if wanted.get("nodeSelector") is not None:
            pod["nodeSelector"] = dict(wanted["nodeSelector"])
        if wanted.get("affinity") is not None:
            _put(pod, "affinity", _affinity(pod.get("affinity") or {}, wanted["affinity"]))
        for of in (made["metadata"], meta) if wanted.get("annotations") else ():
            of["annotations"] = {**wanted["annotations"], **(of.get("annotations") or {})}
        yield made


def _deployment(one: DeploymentTemplate, spec: Body, namespace: str) -> Body:
    meta: Body = {"name": one.name, "namespace": namespace}
    if one.labels:
        meta["labels"] = dict(one.labels)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def _certificate_volume(name: str, secret: str, files: Sequence[str]) -> Body:
    items = [{"key": key, "path": path} for key, path in zip(("tls.crt", "tls.key"), files, strict=True)]
    return {"name": name, "secret": {"secretName": secret, "items": items}}


def _without(named: Any, names: set[Any]) -> list[Any]:
    return [one for one in named or () if one.get("name") not in names]


def _put(into: Body, name: str, value: Any) -> None:
    if value:
        into[name] = value
    else:
        into.pop(name, None)


def _by_name(own: Any, wanted: Any) -> list[Any]:
    """Both lists, where one of `wanted` stands in place of the one of its name."""
    if not wanted:
        return own or []
    found = {one.get("name"): one for one in own or ()}
    return [*(found | {one["name"]: copy.deepcopy(one) for one in wanted or ()}).values()]


def _once(own: Any, wanted: Any) -> list[Any]:
    known = {go_json(ordered(one)) for one in own or ()}
    return [*(own or ()), *(copy.deepcopy(one) for one in wanted or () if go_json(ordered(one)) not in known)]


def _affinity(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> Body:
    """{} erases all of it, and an empty part that part; a part that is not named stays."""
    if not any(wanted.get(name) is not None for name in _AFFINITIES):
        return {}
    parts = {name: wanted[name] if wanted.get(name) is not None else own.get(name) for name in _AFFINITIES}
    return {name: copy.deepcopy(part) for name, part in parts.items() if part and any(part.values())}


def _containers(pod: Body) -> list[Body]:
    return pod.get("containers") or []


def _part(of: Body, name: str) -> Body:
    """The mapping at `name`, made where there is none."""
    part: Body = of.get(name) or {}
    of[name] = part
    return part


_CERTIFICATE_API = "cert-manager.io/v1"
_INJECT = {
    CertificateIssuer.CERT_MANAGER: "cert-manager.io/inject-ca-from",
    CertificateIssuer.SERVICE_CA: "service.beta.openshift.io/inject-cabundle",
}
_SERVED_FROM = "service.beta.openshift.io/serving-cert-secret-name"


def trusting(issuer: CertificateIssuer, deployment: str, namespace: str) -> dict[str, str]:
    """The annotations of a webhook configuration or CRD into which the issuer writes its CA."""
    if issuer is CertificateIssuer.NONE:
        return {}
    value = f"{namespace}/{certificate_name(deployment)}" if issuer is CertificateIssuer.CERT_MANAGER else "true"
    return {_INJECT[issuer]: value}


def serving(issuer: CertificateIssuer, deployment: str) -> dict[str, str]:
    """The annotations of the Service whose certificate is issued."""
    return {_SERVED_FROM: certificate_name(deployment)} if issuer is CertificateIssuer.SERVICE_CA else {}


def issued(issuer: CertificateIssuer, deployment: str, namespace: str) -> Iterator[JsonObject]:
    """The objects by which the certificate is asked for."""
    if issuer is not CertificateIssuer.CERT_MANAGER:
        return
    name, host = certificate_name(deployment), f"{service_name(deployment)}.{namespace}"
    issuer_name = suffixed(name, "selfsigned-issuer")
    yield {
        "apiVersion": _CERTIFICATE_API,
        "kind": "Issuer",
        "metadata": {"name": issuer_name, "namespace": namespace},
        "spec": {"selfSigned": {}},
    }
    yield {
        "apiVersion": _CERTIFICATE_API,
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "commonName": host,
            "dnsNames": [host, f"{host}.svc", f"{host}.svc.cluster.local"],
            "duration": "17520h0m0s",
            "issuerRef": {"name": issuer_name},
            "renewBefore": "24h0m0s",
            "secretName": name,
            "usages": ["server auth"],
        },
    }


_WEBHOOK_API = f"{ADMISSION_GROUP}/v1"
_KINDS = {
    WebhookType.VALIDATING: "ValidatingWebhookConfiguration",
    WebhookType.MUTATING: "MutatingWebhookConfiguration",
}
_OF_NAMESPACE = "kubernetes.io/metadata.name"


def configurations(bundle: RegistryBundle, config: RegistryConfig, namespace: str) -> Iterator[JsonObject]:
    """The validating ones, then the mutating ones, each with one webhook."""
    admitting = [webhook for webhook in bundle.csv.webhooks if webhook.type in _KINDS]
    for webhook in sorted(admitting, key=lambda webhook: webhook.type != WebhookType.VALIDATING):
        kind = WebhookType(webhook.type)
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
        yield {"apiVersion": _WEBHOOK_API, "kind": _KINDS[kind], "metadata": meta, "webhooks": [body]}


def definitions(bundle: RegistryBundle, issuer: CertificateIssuer, namespace: str) -> Iterator[Found]:
    """The CRDs, those with a conversion webhook converted by it.

    Raises BadBundle where the API server would not call it.
    """
    converters = {crd: one for one in bundle.csv.webhooks if one.type == WebhookType.CONVERSION for crd in one.crds}
    for found in bundle.crds:
        crd = Fields.of(found.body, found.place)
        meta = crd.mapping("metadata")
        webhook = converters.get(meta.text("name"))
        if webhook is None:
            yield found
            continue
        spec = crd.mapping("spec")
        if spec.is_true("preserveUnknownFields"):
            raise BadBundle(f"{spec.where}.preserveUnknownFields is true, so the API server would not call its webhook")
        annotations = meta.text_map("annotations") | trusting(issuer, webhook.deployment, namespace)
        client = {"service": _service(webhook, namespace, "/" if webhook.path is None else webhook.path)}
        called = {"clientConfig": client, "conversionReviewVersions": list(webhook.review_versions)}
        body = {
            **crd.value,
            "metadata": {**meta.value, **({"annotations": annotations} if annotations else {})},
            "spec": {**spec.value, "conversion": {"strategy": "Webhook", "webhook": called}},
        }
        yield replace(found, body=body)


def own_services(bundle: RegistryBundle) -> list[Found]:
    """The Services of manifests/ whose names those that are made here have, each alone in its file.

    OLM v0 replaces them. OLM v1 has both, of which an API server takes one.
    """
    made = {service_name(webhook.deployment) for webhook in bundle.csv.webhooks}
    held = Counter([bundle.csv_file, *(one.file for one in (*bundle.crds, *bundle.others))])
    bodies = ((other, Fields.of(other.body, other.place)) for other in bundle.others if held[other.file] == 1)
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


_RBAC_API = f"{RBAC_GROUP}/v1"
# An operator that was written for one namespace and watches all has to find them itself: OLM gives it this, too.
_READS_NAMESPACES = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]}


def service_accounts(bundle: RegistryBundle, namespace: str) -> Iterator[JsonObject]:
    """One for each that is given something, but for those of manifests/ and `default`, which every namespace has.

    OLM has an account of manifests/ twice.
    """
    own = {meta.text("name") for meta in bundle.metadata_of("ServiceAccount")}
    named = {one.subject for one in (*bundle.csv.permissions, *bundle.csv.cluster_permissions)}
    for name in sorted(named - own - {"default"}):
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def roles(csv: ClusterServiceVersion, namespace: str, watched: tuple[str, ...]) -> Iterator[JsonObject]:
    """Roles in each namespace that is watched; where all are, the same as ClusterRoles. Then those for the cluster."""
    for_cluster = list(csv.cluster_permissions)
    if watched == ALL_NAMESPACES:
        for_cluster += [replace(one, rules=(*one.rules, _READS_NAMESPACES)) for one in csv.permissions]
    else:
        for each in watched:
            for permission in csv.permissions:
                yield from _role(csv.name, permission, namespace, each)
    for permission in for_cluster:
        yield from _role(csv.name, permission, namespace, "")


def _role(csv_name: str, permission: AccountRules, namespace: str, watched: str) -> Iterator[JsonObject]:
    """A role and its binding, in the namespace `watched` or for the whole cluster."""
    # The name of the role and of its binding: that of bundle and account, and a hash of account and rules.
    rules = list(permission.rules) if permission.rules or permission.has_list else None
    body = {"serviceAccountName": permission.account, "rules": rules}
    # base36(sha224(JSON)), without leading zeros.
    number = int.from_bytes(hashlib.sha224(f"{go_json(body)}\n".encode()).digest())
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    name = suffixed(f"{csv_name}-{permission.subject}", digits or "0")
    kind = "Role" if watched else "ClusterRole"
    meta = {"name": name, "namespace": watched} if watched else {"name": name}
    subject = {"kind": "ServiceAccount", "name": permission.subject, "namespace": namespace}
    yield {"apiVersion": _RBAC_API, "kind": kind, "metadata": meta, "rules": list(permission.rules)}
    yield {
        "apiVersion": _RBAC_API,
        "kind": f"{kind}Binding",
        "metadata": dict(meta),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [subject],
    }
