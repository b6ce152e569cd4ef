"""What a request lets be planned: as whom, over which objects that are its own, beside which of others."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from approvals import access, store
from approvals.models import BundleDeployment, Cluster, InventoryItem, Outcome, Request, Revision
from provisioner.cluster.plan.inputs import Options
from provisioner.rbac import CONTROL_PLANE
from provisioner.values import APPLYING, DELETING, Action, Content, HookMoment, ObjectIdentity, ObjectRef, OutcomeState
from provisioner.values import HookRun as Run

_REF = ("group", "version", "kind", "namespace", "name")


def running_content(request: Request) -> Content | None:
    active = (
        request.deployment.revisions.filter(state=Revision.State.ACTIVE).select_related("content", "request").first()
    )
    return store.get(active.content, fetched_by=active.request) if active else None


def installers_on(cluster: Cluster) -> frozenset[tuple[str, str]]:
    """The accounts, each (namespace, name), that the deployments of this cluster are applied by."""
    present = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True)
    named = present.values_list("spec__installNamespace", "spec__serviceAccountName")
    return frozenset((str(namespace or ""), str(name or "")) for namespace, name in named)


def reserved_namespaces() -> frozenset[str]:
    """Their accounts and Secrets are worth the whole cluster: no spec alone gives a right to them."""
    return frozenset((CONTROL_PLANE, str(settings.PRATIQUE["NAMESPACE"])))


def owned(deployment: BundleDeployment) -> Mapping[ObjectIdentity, str]:
    """uid by object identity of everything that is known to exist and be this deployment's."""
    rows = deployment.inventory.exclude(uid="").values_list(*_REF, "uid")
    return {ObjectRef(*place).identity: uid for *place, uid in rows}


def hook_runs(deployment: BundleDeployment, current: Request | None = None) -> dict[ObjectIdentity, Run]:
    """The last run of each hook; `current` is the request that is being applied.

    What a run left and a deployment holds since, this one or another, is no longer the hook's.
    """
    found, rows = {}, list(deployment.hook_runs.all())
    left = [row.uid for row in rows if row.uid]
    held = InventoryItem.objects.filter(deployment__cluster=deployment.cluster, uid__in=left)
    taken = set(held.values_list("uid", flat=True)) if left else set()
    for row in rows:
        if row.uid not in taken:
            ref = ObjectRef.from_parts(row)
            is_current = current is not None and row.request_id == current.pk
            found[ref.identity] = Run(ref, HookMoment(row.moment), row.nonce, row.uid, row.has_succeeded, is_current)
    return found


def plan_options(request: Request) -> Options:
    """What a request lets be planned, and which objects of the cluster other deployments hold."""
    deployment, spec = request.deployment, request.bundle_spec
    rows = InventoryItem.objects.filter(deployment__cluster=deployment.cluster).exclude(deployment=deployment)
    others = dict(rows.exclude(uid="").values_list("uid", "deployment__name"))
    is_removal = request.purpose == Request.Purpose.DELETE
    written = Outcome.objects.filter(request__revision=deployment.active_revision_id or 0).exclude(warnings=[])
    adopted = Outcome.objects.filter(
        request__deployment=deployment,
        request__spec__adoptHelmRelease=spec.release_name,
        action=Action.ADOPT,
        state=OutcomeState.DONE,
        step=Outcome.Step.APPLY,
    )
    return Options(
        spec.collision_protection(),
        others,
        is_removal=is_removal,
        is_orphaning=is_removal and spec.is_orphaning,
        optional_kinds=spec.optional_kinds(),
        warned={name: tuple(warnings) for name, warnings in written.values_list("object", "warnings")},
        # Those who asked are known by groups that count, so that their rights were asked.
        may_try_foreign=request.is_requester_known
        and bool(request.requesters)
        and not access.no_longer_current(request),
        helm_release=spec.helm_release(),
        is_taking_over=bool(spec.release_name) and adopted.exists(),
        moments=moments_of(request),
        hooks=hook_runs(deployment),
    )


def moments_of(request: Request) -> frozenset[HookMoment]:
    """When hooks run for a request: none where it goes back, or lets its objects go as they are."""
    if request.purpose in (Request.Purpose.DEPLOY, Request.Purpose.ROTATE):
        return APPLYING
    is_orphaning = request.bundle_spec.is_orphaning
    return DELETING if request.purpose == Request.Purpose.DELETE and not is_orphaning else frozenset()
