"""The Deployments of a bundle: as it has them, with OLM's annotations, certificates of webhooks, and the config.

What `deploymentConfig` does is what OLM v1 does with it (generators.applyCustomConfigToDeployment).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provisioner.render.registry.bundle import RegistryBundle
from provisioner.render.registry.config import CertificateIssuer, RegistryConfig
from provisioner.render.registry.csv import DeploymentTemplate
from provisioner.render.registry.names import certificate_name, go_json, ordered

# Where programs look for their certificate: the volume, its path, and the names of the two files.
_CERTIFICATE_VOLUMES = (
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),  # noqa: S108 -- a path in a pod
    ("apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
)
Body = dict[str, Any]
_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")


def deployments(bundle: RegistryBundle, config: RegistryConfig, namespace: str) -> Iterator[Body]:
    """In the order of the bundle."""
    with_webhooks = {one.deployment for one in bundle.csv.webhooks}
    olm = {"olm.targetNamespaces": ",".join(config.namespaces), "olm.operatorNamespace": namespace}
    for one in bundle.csv.deployments:
        spec = copy.deepcopy(dict(one.spec))
        spec["revisionHistoryLimit"] = 1
        template = _part(spec, "template")
        meta, pod = _part(template, "metadata"), _part(template, "spec")
        meta["annotations"] = {**bundle.csv.annotations, **(meta.get("annotations") or {}), **olm}
        if one.name in with_webhooks and config.certificates is not CertificateIssuer.NONE:
            _mount_certificate(pod, certificate_name(one.name))
        made = _deployment(one, spec, namespace)
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


def _mount_certificate(pod: Body, secret: str) -> None:
    """Mount the Secret where programs look for it, in place of what the bundle has there."""
    containers = _containers(pod)
    paths = {path for _, path, _, _ in _CERTIFICATE_VOLUMES}
    mounted = [mount for one in containers for mount in one.get("volumeMounts") or ()]
    replaced = {name for name, _, _, _ in _CERTIFICATE_VOLUMES}
    replaced |= {mount.get("name") for mount in mounted if mount.get("mountPath") in paths}
    volumes = [_certificate_volume(name, secret, files) for name, _, *files in _CERTIFICATE_VOLUMES]
    pod["volumes"] = [*_without(pod.get("volumes"), replaced), *volumes]
    for one in containers:
        mounts = [{"name": name, "mountPath": path} for name, path, _, _ in _CERTIFICATE_VOLUMES]
        one["volumeMounts"] = [*_without(one.get("volumeMounts"), replaced), *mounts]


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
