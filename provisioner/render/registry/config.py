"""`spec.config` of an operator bundle: which namespaces it watches, and what its deployments get beside their own.

`watchNamespace` and `deploymentConfig` are OLM v1's (ClusterExtension, `spec.config.inline`), and it follows from the
install modes of the bundle which namespaces may be watched, and by default are. `watchNamespaces` is RukPak's, for
MultiNamespace. `certificates` is ours: who issues the certificates of the bundle's webhooks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice
from typing import Any

from provisioner.builtin import MINORS, Schemas, schemas_of
from provisioner.errors import BadConfig, InvalidManifest
from provisioner.render.known_keys import check_config_keys, check_keys
from provisioner.render.objects import IsNamespaced
from provisioner.render.registry.bundle import RegistryBundle
from provisioner.render.registry.config_schema import find_misfits
from provisioner.render.registry.csv import InstallMode, bounded, unknown_field_requirements
from provisioner.render.registry.fields import Fields
from provisioner.values import GroupKind, Requirement

ALL_NAMESPACES = ("",)
MAX_WATCHED = 100
# So many are told at once.
MAX_MISFITS = 5
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CERTIFICATE = GroupKind("cert-manager.io", "Certificate")
_SERVICE_CA = GroupKind("operator.openshift.io", "ServiceCA")
_KEYS = ("watchNamespace", "watchNamespaces", "deploymentConfig", "certificates")
_DEPLOYMENT_KEYS = (
    "env", "envFrom", "volumes", "volumeMounts", "tolerations", "resources", "nodeSelector", "affinity", "annotations",
)  # fmt: skip


class CertificateIssuer(StrEnum):
    """Who issues the certificates of webhooks."""

    CERT_MANAGER = "cert-manager"
    SERVICE_CA = "openshift-service-ca"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """`namespaces` are those that the operator watches, `ALL_NAMESPACES` for all of them."""

    namespaces: tuple[str, ...]
    deployment: Fields
    certificates: CertificateIssuer


def config_of(
    config: Mapping[str, Any], bundle: RegistryBundle, *, install_namespace: str, is_namespaced: IsNamespaced
) -> RegistryConfig:
    """Raises BadConfig for what this bundle cannot be given."""
    wanted, deployment, issuer = check_config(config)
    namespaces = _watched(wanted, bundle.csv.modes, install_namespace)
    return RegistryConfig(namespaces, deployment, _certificates(issuer, is_namespaced))


def check_config(config: Mapping[str, Any]) -> tuple[tuple[str, ...], Fields, str]:
    """The namespaces that are named, the deploymentConfig and the issuer of certificates. Raises BadConfig for what no
    operator can be given."""
    check_config_keys(config, _KEYS, "an operator bundle")
    try:
        fields = Fields.of(config, "config")
        # What `config` names; () where it names nothing.
        one, several = fields.text("watchNamespace"), fields.texts("watchNamespaces")
        if one and several:
            raise BadConfig("config has both watchNamespace and watchNamespaces; expected one of them")
        wanted = tuple(dict.fromkeys([one] if one else several))
        if len(wanted) > MAX_WATCHED:
            raise BadConfig(f"config.watchNamespaces has {len(wanted)} namespaces; the most are {MAX_WATCHED}")
        for name in wanted:
            if not is_namespace_name(name):
                raise BadConfig("config names what cannot be a namespace", server_words=repr(name[:80]))
        deployment = fields.mapping("deploymentConfig")
        _check_deployment(deployment)
        issuer = fields.text("certificates")
    except InvalidManifest as exc:
        raise BadConfig(str(exc)) from exc
    if issuer and issuer not in set(CertificateIssuer):
        raise BadConfig(f"config.certificates: expected {', '.join(CertificateIssuer)}", server_words=repr(issuer[:40]))
    return wanted, deployment, issuer


def is_namespace_name(text: str) -> bool:
    """Whether Kubernetes lets a namespace be named so."""
    return bool(_NAMESPACE.fullmatch(text))


def _watched(wanted: tuple[str, ...], modes: frozenset[str], install_namespace: str) -> tuple[str, ...]:
    """What is watched, as the install modes allow it."""
    supported = f"it supports {', '.join(sorted(modes)) or 'no install mode'}"
    if not wanted:
        if InstallMode.ALL in modes:
            return ALL_NAMESPACES
        own = f"; set it to {install_namespace} to watch only that" if InstallMode.OWN in modes else ""
        raise BadConfig(
            f"config.watchNamespace is missing: this operator cannot watch all namespaces, {supported}{own}"
        )
    if modes == {InstallMode.ALL}:
        raise BadConfig(f"config names a namespace to watch, but this operator watches all namespaces: {supported}")
    if install_namespace in wanted and InstallMode.OWN not in modes:
        raise BadConfig(f"config names {install_namespace}, where it is installed, but {supported}")
    if len(wanted) > 1 and InstallMode.MULTI not in modes:
        raise BadConfig(f"config names {len(wanted)} namespaces, but {supported}")
    if len(wanted) == 1 and wanted[0] != install_namespace and InstallMode.SINGLE not in modes:
        words = f"config names another namespace than the one it is installed in, but {supported}"
        raise BadConfig(words, server_words=wanted[0])
    return wanted


def _check_deployment(fields: Fields) -> None:
    check_keys(fields.value, _DEPLOYMENT_KEYS, "config.deploymentConfig", "it")
    for name in ("env", "volumes", "volumeMounts"):
        for entry in fields.mappings(name):
            if not entry.text("name"):
                raise BadConfig(f"{entry.where} has no name")
    for name in ("envFrom", "tolerations"):
        fields.mappings(name)
    for name in ("nodeSelector", "annotations"):
        fields.text_map(name)
    for name in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        fields.mapping("affinity").mapping(name)
    fields.mapping("resources")
    if misfits := list(islice(find_misfits(fields.value, fields.where), MAX_MISFITS)):
        raise BadConfig("; ".join(misfits))


def _certificates(issuer: str, is_namespaced: IsNamespaced) -> CertificateIssuer:
    """As `config` says; else OpenShift's own where only that is served, and cert-manager everywhere else."""
    if issuer:
        return CertificateIssuer(issuer)
    is_openshift_only = is_namespaced(_SERVICE_CA) is not None and is_namespaced(_CERTIFICATE) is None
    return CertificateIssuer.SERVICE_CA if is_openshift_only else CertificateIssuer.CERT_MANAGER


_DEPLOYMENT, _CRD = ("apps/v1", "Deployment"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def known_part(bundle: RegistryBundle) -> RegistryBundle:
    """The bundle without fields that the newest Kubernetes we know does not have, which are among its requirements.

    A CRD of another version than v1 is left as it is.
    """
    schemas = schemas_of(MINORS[-1])
    if schemas is None:
        return bundle
    asked: list[Requirement] = []
    deployments, crds = list(bundle.csv.deployments), list(bundle.crds)
    schema = schemas.of(*_DEPLOYMENT)
    for place, deployment in enumerate(deployments if schema is not None else ()):
        gone: list[str] = []
        body = _known(schemas, schema or {}, {"spec": deployment.spec}, "", gone)
        asked.extend(unknown_field_requirements(f"Deployment {deployment.name}", gone))
        if gone:
            deployments[place] = replace(deployment, spec=body["spec"])
    schema = schemas.of(*_CRD)
    for place, crd in enumerate(crds if schema is not None else ()):
        fields, gone = Fields.of(crd.body, crd.place), []
        if fields.text("apiVersion") != _CRD[0]:
            continue
        body = _known(schemas, schema or {}, fields.value, "", gone)
        name = fields.mapping("metadata").text("name")
        asked.extend(unknown_field_requirements(f"CustomResourceDefinition {name}", gone))
        if gone:
            crds[place] = replace(crd, body=body)
    return replace(
        bundle,
        csv=replace(bundle.csv, deployments=tuple(deployments)),
        crds=tuple(crds),
        requirements=bounded(chain(bundle.requirements, asked)),
    )


def _known(schemas: Schemas, schema: Mapping[str, Any], value: Any, path: str, gone: list[str]) -> Any:
    """The part of `value` that `schema` names; the paths of the rest are added to `gone`."""
    _, node = schemas.resolved(schema)
    if isinstance(value, list):
        items = node.get("items") or {}
        return [_known(schemas, items, one, f"{path}[{place}]", gone) for place, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    fields, others = node.get("properties"), node.get("additionalProperties")
    if fields is None and not isinstance(others, Mapping):
        return value
    kept = {}
    for key, one in value.items():
        below = f"{path}.{key}" if path else str(key)
        if fields is None or key in fields:
            kept[key] = _known(schemas, fields[key] if fields else others or {}, one, below, gone)
        else:
            gone.append(below)
    return kept
