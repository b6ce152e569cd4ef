"""What of a bundle's Deployments and CRDs Kubernetes knows: OLM reads both into Kubernetes' own types.

A field that those types do not have is gone then, such as `containers` beside the `spec` of a pod template, and the
operator is installed. The API server refuses such a field from us, so we leave it out as well, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from provisioner.builtin import MINORS, Schemas, schemas_of
from provisioner.render.objects import Found
from provisioner.render.registry.bundle import RegistryBundle
from provisioner.render.registry.csv import DeploymentTemplate
from provisioner.render.registry.fields import Fields
from provisioner.render.registry.requirements import bounded, of_unknown_fields
from provisioner.values import Requirement

_DEPLOYMENT, _CRD = ("apps/v1", "Deployment"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def known_part(bundle: RegistryBundle) -> RegistryBundle:
    """The bundle without fields that the newest Kubernetes we know does not have, which are among its requirements.

    A CRD of another version than v1 is left as it is.
    """
    schemas = schemas_of(MINORS[-1])
    if schemas is None:
        return bundle
    asked: list[Requirement] = []
    deployments = tuple(_deployment(one, schemas, asked) for one in bundle.csv.deployments)
    crds = tuple(_crd(one, schemas, asked) for one in bundle.crds)
    return replace(
        bundle,
        csv=replace(bundle.csv, deployments=deployments),
        crds=crds,
        requirements=bounded(chain(bundle.requirements, asked)),
    )


def _deployment(one: DeploymentTemplate, schemas: Schemas, asked: list[Requirement]) -> DeploymentTemplate:
    gone: list[str] = []
    schema = schemas.of(*_DEPLOYMENT)
    if schema is None:
        return one
    body = _known(schemas, schema, {"spec": one.spec}, "", gone)
    asked.extend(of_unknown_fields(f"Deployment {one.name}", gone))
    return replace(one, spec=body["spec"]) if gone else one


def _crd(found: Found, schemas: Schemas, asked: list[Requirement]) -> Found:
    body = Fields.of(found.body, found.place)
    gone: list[str] = []
    schema = schemas.of(*_CRD)
    if schema is None or body.text("apiVersion") != _CRD[0]:
        return found
    kept = _known(schemas, schema, body.value, "", gone)
    asked.extend(of_unknown_fields(f"CustomResourceDefinition {body.mapping('metadata').text('name')}", gone))
    return replace(found, body=kept) if gone else found


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
