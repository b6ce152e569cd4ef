"""A CRD of orders, old and new, with the orders that exist; and what is found there."""

from __future__ import annotations

from typing import Any

from provisioner.review.base.facts import ClusterSurroundings, Facts, Listed, Listing
from provisioner.review.checks.objects import crds
from provisioner.review.crds.references import DEPENDENTS
from provisioner.values import Action, Finding, ObjectRef
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned

GROUP = "shop.example.com"
HPA = Listing("autoscaling", "", "HorizontalPodAutoscaler")
TEXT = {"type": "string"}
SIZES = {"type": "integer"}


def version(name: str = "v1", *, served: bool = True, storage: bool = True, **fields: Any) -> dict[str, Any]:
    rest = {key: fields.pop(key) for key in ("subresources",) if key in fields}
    spec = {"type": "object", **fields}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **rest}


def crd(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    names = {"plural": "orders", "singular": "order", "kind": "Order", "listKind": "OrderList"}
    body = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": list(versions), **spec}
    found = an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"orders.{GROUP}", spec=body)
    stored = [one["name"] for one in versions if one["storage"]]
    return {**found, "status": {"storedVersions": stored}}


def props(**properties: Any) -> dict[str, Any]:
    return version(properties=properties)


def order(name: str = "one", *, managed: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    found = an_object(f"{GROUP}/v1", "Order", name, "shop", spec=spec)
    found["metadata"] |= {"managedFields": managed or []}
    return found


def scene(old: dict[str, Any], new: dict[str, Any], *objects: dict[str, Any], **lists: Any) -> Facts:
    action = planned(new, Action.UPDATE, before=old)
    known: dict[Listing, Listed] = {Listing(GROUP, "v1", "Order"): Listed(objects, len(objects))}
    known |= {listing: Listed() for listing in DEPENDENTS} | lists.get("lists", {})
    content = content_with({key: value for key, value in new.items() if key != "status"})
    return facts(
        action, content=content, live={ObjectRef.of(old).identity: old}, around=ClusterSurroundings(lists=known)
    )


def found_by(given: Facts) -> list[Finding]:
    return judged_by(given, [crds.DEFINITIONS_CHECK, crds.OBJECTS_CHECK])


def one_of(given: Facts, rule: str) -> Finding:
    return next(finding for finding in found_by(given) if finding.rule == rule)
