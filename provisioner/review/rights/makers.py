"""Who of a bundle makes what its pods need: objects that name it as their result, and pods that may create it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from provisioner import rbac
from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import Facts, mapping
from provisioner.review.rights.account_powers import account_of
from provisioner.review.rights.rbac_before_after import rbac_before_after_of
from provisioner.review.workloads.mentions import Mention
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import AccessRequest, JsonObject, ObjectRef

# Annotations of Services by which a controller of the platform makes a Secret.
_SERVING_CERTIFICATES = (
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
)
# Fields of custom resources that hold the object that is made of them.
_TARGETS = ("target", "destination")
# What runs to an end.
_ENDING = frozenset({"Job", "Pod"})
MAX_MAKERS = 3


class Makers:
    """Who of the bundle makes what its pods need, read once for all that is missing."""

    def __init__(self, facts: Facts):
        self._facts = facts

    def with_result(self, wanted: ObjectRef) -> ObjectRef | None:
        """The object that names the wanted one as its result."""
        found = (one.ref for one in self._facts.content.manifests if _results_in(one.ref, one.body, wanted))
        return next(found, None)

    def able(self, need: Mention) -> dict[str, Any]:
        """Which pods of the bundle may create what one of them needs, as `makers`, and as `by` whether those are `own`
        containers of the pod, `others` or `both`; nothing for none.

        So init containers, jobs and operators make what pods read: nobody can see by their names what they make. Those
        that run to an end come first, as that is what they are for.
        """
        wanted, own = need.ref, need.pod.ref
        asked = AccessRequest("create", wanted.group, f"{wanted.kind.lower()}s", namespace=wanted.namespace)
        may = [
            account
            for account in self._running
            if rbac.allows_in(rbac.effective_rules(account.identity, self._known), asked)
        ]
        refs = {ref for account in may for ref in self._running[account]}
        ordered = sorted(refs, key=lambda it: (it == own, it.kind not in _ENDING, it))
        makers = ordered[:MAX_MAKERS]
        if not makers:
            return {}
        is_own, others = own in makers, [ref for ref in makers if ref != own]
        return {"by": "both" if is_own and others else "own" if is_own else "others", "makers": others}

    @cached_property
    def _running(self) -> dict[RbacSubject, list[ObjectRef]]:
        """What runs as which account."""
        found: dict[RbacSubject, list[ObjectRef]] = {}
        for pod in pod_specs(tuple(one.body for one in self._facts.content.manifests)):
            found.setdefault(account_of(pod, self._facts.content.install_namespace), []).append(pod.ref)
        return found

    @cached_property
    def _known(self) -> rbac.RbacObjects:
        return rbac_before_after_of(self._facts).after


def _results_in(ref: ObjectRef, body: JsonObject, wanted: ObjectRef) -> bool:
    """Whether an object names the wanted one as its result, as certificates and external secrets do."""
    spec = mapping(body.get("spec"))
    if ref.group_kind.kind == "Service" and not ref.group and ref.namespace == wanted.namespace:
        annotations = mapping(mapping(body.get("metadata")).get("annotations"))
        return wanted.kind == "Secret" and wanted.name in {annotations.get(one) for one in _SERVING_CERTIFICATES}
    if "." not in ref.group or ref.namespace not in {"", wanted.namespace}:
        return False
    results: list[Any] = [spec.get("secretName"), *(mapping(spec.get(key)).get("name") for key in _TARGETS)]
    return wanted.name in results or (ref.name == wanted.name and wanted.kind in ref.kind)
