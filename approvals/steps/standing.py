"""May the machine write for a revision that runs? Asked before each correction (S25): nobody is there to ask.

What stood when it was approved must stand as recorded, and the wish in the cluster must still be that one.
"""

from __future__ import annotations

from approvals.ledger.digests import options_digest, subject_digest
from approvals.lifecycle import AT_WORK
from approvals.models import BundleDeployment, Request, Revision
from approvals.steps.prepare import account_uid_of, check_cluster
from provisioner.cluster.api import Cluster as Api
from provisioner.errors import DigestMismatch, TryLater
from provisioner.values import ObjectRef


class NotNow(TryLater):
    """Nothing is written for the running revision at present; the words say why."""

    code = "waiting"


def check_standing(revision: Revision, api: Api) -> None:
    """Raise NotNow, or DigestMismatch, where something stands in the way of writing what `revision` holds."""
    request = revision.request
    check_running(revision)
    _check_approval(revision, request)
    check_cluster(request, api)
    _check_wish(request, api)
    account_uid = account_uid_of(request, api)
    if account_uid != request.service_account_uid:
        raise NotNow(
            f"the ServiceAccount has uid {account_uid}; approved was {request.service_account_uid}: it was made again"
        )


def check_running(revision: Revision) -> None:
    """Raise NotNow unless this is the revision that runs, no other one was begun, or it was undone whole, and none is
    being applied.
    """
    row = BundleDeployment.objects.get(pk=revision.deployment_id)
    if row.active_revision_id != revision.pk or row.gone_at or row.deletion_requested_at:
        raise NotNow(f"revision {revision.number} is no longer the one that runs")
    if row.requests.filter(state__in=AT_WORK).exists():
        raise NotNow("a request is being applied: what differs is compared when it is done")
    newer = row.revisions.filter(number__gt=revision.number, undone_at=None).order_by("-number").first()
    if newer:
        raise NotNow(f"revision {newer.number} was begun and is {newer.state}: what it left behind is no drift")


def _check_approval(revision: Revision, request: Request) -> None:
    found = subject_digest(
        cluster_uid=request.deployment.cluster.uid or "",
        deployment_uid=request.deployment.uid,
        request_uid=str(request.uid),
        round_number=request.round,
        content_digest=revision.content_id,
        plan_digest=request.plan_digest,
        options_digest=request.options_digest,
        service_account_uid=request.service_account_uid,
    )
    verdict = request.verdicts.filter(round=request.round, verdict="Approved", subject_digest=found)
    if not verdict.exists():
        raise DigestMismatch(f"there is no Approved verdict for revision {revision.number}, whose subject is {found}")


def _check_wish(request: Request, api: Api) -> None:
    deployment = request.deployment
    live = api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name))
    if live is None or live["metadata"]["uid"] != deployment.uid:
        raise NotNow(f"BundleDeployment {deployment.name} is no longer the one that was reviewed")
    if live["metadata"].get("deletionTimestamp"):
        raise NotNow(f"BundleDeployment {deployment.name} is being deleted")
    spec = live.get("spec") or {}
    if spec.get("paused"):
        raise NotNow(f"{deployment.name} is paused: it is put back once somebody resumes it")
    if options_digest(spec) != request.options_digest:
        raise NotNow(
            f"the spec of {deployment.name} is no longer that of the running revision: its request comes first"
        )
