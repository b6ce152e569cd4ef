"""What belongs to custom objects: what names one as its owner, and the disruption budgets over pods that one runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.facts import Facts, Listing, mapping, maps, said
from provisioner.selectors import selects
from provisioner.values import JsonObject, ObjectRef

BUDGETS = Listing("policy", "", "PodDisruptionBudget")
PODS = Listing("", "", "Pod", metadata_only=True)
# What operators make. ConfigMaps and Secrets are left out: few accounts may list all of them, and they run nothing.
OWNED = (
    PODS,
    *(Listing("", "", kind, metadata_only=True) for kind in ("PersistentVolumeClaim", "Service", "ServiceAccount")),
    *(Listing("apps", "", kind, metadata_only=True) for kind in ("DaemonSet", "Deployment", "StatefulSet")),
    Listing("batch", "", "Job", metadata_only=True),
)


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """A kind as owner references name it; with `version` "" in whichever version."""

    group: str
    kind: str
    version: str = ""

    def owns(self, obj: JsonObject, *, as_controller: bool = False) -> bool:
        references = maps(mapping(obj.get("metadata")).get("ownerReferences"))
        return any(self._is_named(one) and (one.get("controller") is True or not as_controller) for one in references)

    def _is_named(self, reference: Mapping[str, Any]) -> bool:
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        is_kind = (group, reference.get("kind")) == (self.group, self.kind)
        return is_kind and self.version in {"", version}


def owned(facts: Facts, owner: OwnerKind) -> list[ObjectRef]:
    """What of the kinds OWNED names the owner, as far as those lists were read."""
    found = (ObjectRef.of(obj) for listing in OWNED for obj in _listed(facts, listing) if owner.owns(obj))
    return sorted(found)


def budgets(facts: Facts, owner: OwnerKind) -> list[str]:
    """Budgets that are counted by the scale of the owner: they select a pod that one of its objects controls."""
    found = [obj for obj in _listed(facts, BUDGETS) if needs_scale(obj)]
    pods = [one for one in _listed(facts, PODS) if owner.owns(one, as_controller=True)] if found else []
    return sorted({said(ObjectRef.of(one)) for one in found if any(_covers(one, pod) for pod in pods)})


def needs_scale(budget: JsonObject) -> bool:
    """Whether a budget asks how many pods there should be: for a share of them, or for how many may be missing."""
    spec = mapping(budget.get("spec"))
    return "maxUnavailable" in spec or isinstance(spec.get("minAvailable"), str)


def _covers(budget: JsonObject, pod: JsonObject) -> bool:
    selector = mapping(budget.get("spec")).get("selector")
    if selector is None or ObjectRef.of(budget).namespace != ObjectRef.of(pod).namespace:
        return False
    return selects(selector, mapping(mapping(pod.get("metadata")).get("labels")))


def _listed(facts: Facts, listing: Listing) -> Iterator[JsonObject]:
    listed = facts.around.lists.get(listing)
    yield from listed.objects if listed is not None else ()
