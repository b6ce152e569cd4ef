"""Looking after a deployment: its finalizer, status and mirrored requests in the cluster, and its health.

A mirror is made again when it is deleted or edited, and never believed (docs/architecture). It is applied with force:
what somebody else wrote into it is theirs by field manager, and would stop every later status.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, DateTimeField, F, Q, Value, When

from approvals.access.port import connect
from approvals.catalogs import bundle_choice
from approvals.clock import database_now
from approvals.gate import live_deployment
from approvals.gate.unseen_limits import why_not_unseen
from approvals.ledger import change_words, pivots
from approvals.lifecycle import OPEN, State
from approvals.models import BundleDeployment, Request, Review, Revision
from approvals.selectors import debts, followed_sources, lists
from approvals.steps.mirroring import conditions, events
from approvals.steps.mirroring.deployment_words import mirror_name, why
from approvals.steps.running.observe import is_due, note_unknown, observe
from provisioner.api_groups import FINALIZER, OWN_GROUP, PAGE_ANNOTATION
from provisioner.catalogs.choice import explain_catalog
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import ClusterError, InvalidObject, PratiqueError, PreconditionFailed, TryLater
from provisioner.escaping import visible
from provisioner.values import JsonObject, ObjectRef

logger = logging.getLogger(__name__)

GROUP_VERSION = f"{OWN_GROUP}/v1alpha2"
FIELD_MANAGER = "pratique-mirror"
# As the CRD has them.
MAX_GROUPS, MAX_GROUP = 500, 253
# Where more requests than that are being prepared, each is first shown with its report, or after this time; the first
# one of a deployment after a longer time.
CROWD, SHOWN_WITHIN, FIRST_SHOWN_WITHIN = 10, timedelta(seconds=10), timedelta(minutes=2)
# So often it is tried to take off the finalizer of what others write at the same time.
RELEASES = 3
NOT_FOUND = 404
# Nobody asked for it just now: its requester is who wrote the spec.
UNATTENDED = "unattended"
AND_UNKNOWN = " and unknown requesters"
# In the place of a resourceVersion while a mirror is written.
WRITING = "?"
_HELD: dict[str, Any] = {"metadata": {"finalizers": [FINALIZER]}}
MANAGED_BY = {"app.kubernetes.io/managed-by": "pratique"}


def look_after(deployment_id: int) -> None:
    """Bring the cluster's picture of one deployment up to date, and ask for its health."""
    rows = BundleDeployment.objects.filter(pk=deployment_id)
    is_first = rows.filter(looked_after_at=None).exists()
    # Before all else is read: messages that were sent until then are answered by this look (approvals.wake).
    rows.update(looked_after_at=database_now())
    deployment = rows.select_related("cluster", "active_revision__content").get()
    if deployment.gone_at:
        return
    is_waiting = deployment.deletion_requested_at is None and _is_shown_soon(deployment)
    if is_waiting and not is_first:
        return
    api = connect(deployment.cluster)
    try:
        live = _hold_unread(api, deployment) if is_first else None
        live = live or live_deployment(api, deployment)
        if live is None:
            pivots.forget(cluster=deployment.cluster, uid=deployment.uid)
            return
        if is_due(deployment, database_now()):
            observe(deployment)
    except TryLater as exc:
        note_unknown(deployment.pk, str(exc))
        raise
    deployment.refresh_from_db()
    if deployment.deletion_requested_at is None:
        # First: nothing that is only shown may keep the finalizer from being there.
        _hold(api, deployment, live)
        if is_waiting:
            return
    problem = _mirror_requests(api, deployment)
    kept_by: Sequence[str] = ()
    if may_go(deployment):
        try:
            live = release(api, deployment, live)
        except PratiqueError as exc:
            problem = problem or exc
        if live is None:
            pivots.forget(cluster=deployment.cluster, uid=deployment.uid)
            return
        kept_by = live["metadata"].get("finalizers") or ()
    _mirror_status(api, deployment, live, kept_by)
    if problem:
        raise problem


def _is_shown_soon(deployment: BundleDeployment) -> bool:
    """Whether the cluster is better shown the report alone, seconds later: where many come at once, each write about
    one that is only being prepared holds up the reports of all."""
    latest = deployment.requests.order_by("-number").first()
    if latest is None or latest.mirrored_at or latest.state != State.PREPARING or latest.problem:
        return False
    if database_now() - latest.created_at >= (FIRST_SHOWN_WITHIN if latest.number == 1 else SHOWN_WITHIN):
        return False
    return Request.objects.filter(cluster=deployment.cluster_id, state=State.PREPARING).count() > CROWD


def may_go(deployment: BundleDeployment) -> bool:
    """Whether a deployment that was deleted has nothing left to delete and no request that would."""
    is_leaving = deployment.deletion_requested_at is not None and not deployment.needs_deletion
    return is_leaving and not deployment.requests.filter(purpose=Request.Purpose.DELETE, state__in=OPEN).exists()


def _hold(api: Api, deployment: BundleDeployment, live: Mapping[str, Any]) -> None:
    """Have it stay until its deletion request is applied (S15); what is being deleted takes no new finalizer."""
    about = live["metadata"]
    if FINALIZER not in (about.get("finalizers") or ()) and not about.get("deletionTimestamp"):
        _apply(api, deployment, _HELD)


def _hold_unread(api: Api, deployment: BundleDeployment) -> JsonObject | None:
    """The same of one that was made just now, without reading it before; the object. None where it has to be read."""
    if deployment.deletion_requested_at is not None:
        return None
    try:
        return api.apply(_body(deployment, _HELD), field_manager=FIELD_MANAGER, force=True).object
    except TryLater:
        raise
    except ClusterError:  # it is being deleted, it is another one, or it is gone
        return None


def release(api: Api, deployment: BundleDeployment, live: JsonObject) -> JsonObject | None:
    """Take off exactly our finalizer, whoever owns it, of the object as it was read; what the cluster has of it then.

    An apply without it would take off only what our manager alone owns (S42). None where it is gone: others may hold
    it, and a policy may put ours back.
    """
    found: JsonObject | None = live
    for _ in range(RELEASES):
        about = found["metadata"] if found else {}
        finalizers = about.get("finalizers") or []
        if FINALIZER not in finalizers:
            break
        path = f"/metadata/finalizers/{finalizers.index(FINALIZER)}"
        read = {"/metadata/uid": deployment.uid, "/metadata/resourceVersion": about["resourceVersion"], path: FINALIZER}
        tests = [{"op": "test", "path": where, "value": value} for where, value in read.items()]
        try:
            api.patch(ObjectRef.of(live), [*tests, {"op": "remove", "path": path}], field_manager=FIELD_MANAGER)
        except (InvalidObject, PreconditionFailed):
            logger.info("a finalizer was not taken off yet", extra={"deployment_id": deployment.pk})
        except ClusterError as exc:
            if exc.status != NOT_FOUND:
                raise
        found = live_deployment(api, deployment)
    return found


def release_all(api: Api, deployments: Sequence[BundleDeployment]) -> tuple[list[str], str]:
    """Take our finalizer off the deployments of a cluster that was removed: nobody else will. The names of those that
    still have it, and why.
    """
    kept: list[str] = []
    problem = ""
    for n, deployment in enumerate(deployments):
        try:
            live = live_deployment(api, deployment)
            found = release(api, deployment, live) if live else None
            if FINALIZER in (found["metadata"].get("finalizers") or () if found else ()):
                kept.append(deployment.name)
        except TryLater as exc:
            return [*kept, *(left.name for left in deployments[n:])], str(exc)
        except PratiqueError as exc:
            kept.append(deployment.name)
            problem = str(exc)
    return kept, problem


def _mirror_status(api: Api, deployment: BundleDeployment, live: JsonObject, kept_by: Sequence[str]) -> None:
    latest = deployment.requests.select_related("content", "to_revision").order_by("-number").first()
    active, paused = deployment.active_revision, lists.pause_words(deployment=deployment)
    shown = conditions.of_readiness(deployment, latest, why(deployment, latest, paused, kept_by))
    shown += conditions.of_deployment(deployment, latest, _stands(deployment, latest), paused)
    shown.append(conditions.of_drift(deployment, latest, lists.summary(deployment=deployment)))
    shown += conditions.of_sources(followed_sources.followed(deployment=deployment))
    shown += conditions.of_upgrades(followed_sources.offered(deployment=deployment))
    shown += _reviews_owed(debts.owed().filter(request__deployment=deployment)[:1])
    status: dict[str, Any] = {
        "observedGeneration": deployment.generation,
        "conditions": [condition.record(generation=deployment.generation) for condition in shown],
        "contentDigest": active.content.public_digest if active else "",
        "activeRevision": active.number if active else 0,
        "activeRequest": mirror_name(latest) if latest else "",
        "pins": [f"{pin['kind']}:{pin['digest']}" for pin in latest.pins] if latest else [],
        "bundles": _bundles(latest) if latest else [],
        "inventorySummary": {"objects": deployment.inventory.count()},
    }
    if _by_type(live.get("status") or {}) != _by_type(status):
        _apply(api, deployment, {"status": status}, apply_status)


def _reviews_owed(broken: Iterable[Review]) -> list[conditions.Condition]:
    return [conditions.of_break_glass(row, debts.answer_to(row), debts.due_at(row)) for row in broken]


def _stands(deployment: BundleDeployment, latest: Request | None) -> str:
    """Where the latest request stands, in words, and what of the wish cannot be."""
    words = "no request yet"
    if latest:
        back = f" (rollback to revision {latest.to_revision.number})" if latest.to_revision else ""
        words = f"request {mirror_name(latest)}{back} is {latest.state.replace('_', ' ')}"
        is_said = latest.problem and latest.state not in (State.APPLIED, State.SUPERSEDED)
        words += f": {conditions.told(latest)}" if is_said else ""
    return "; ".join(filter(None, [words, deployment.waiting_words, deployment.problem]))


def _mirror_requests(api: Api, deployment: BundleDeployment) -> PratiqueError | None:
    """Write the mirrors that are due, and their events; the first error, which keeps no other mirror and no status from
    being written. While a mirror is written the watch waits with what it sees of it.
    """
    problem: PratiqueError | None = None
    to_show = deployment.requests.select_related("content", "from_revision", "to_revision").filter(
        Q(mirrored_at__isnull=True) | Q(mirrored_at__lt=F("changed_at"))
    )
    for request in to_show.order_by("number"):
        row = Request.objects.filter(pk=request.pk)
        row.update(mirrored_version=WRITING)
        try:
            version = _mirror_request(api, deployment, request)
        except PratiqueError as exc:
            problem = problem or exc
            if isinstance(exc, TryLater):
                break
            continue
        # What was said meanwhile, or changed in the mirror, is mended by the next look.
        said = {name: getattr(request, name) for name in ("changed_at", "problem", "problem_code", "remedy")}
        is_shown = Case(When(**said, then=Value(request.changed_at)), default=None, output_field=DateTimeField())
        row.update(mirrored_version=version, mirrored_at=is_shown if version else None)
        events.tell(api, deployment, request, name=mirror_name(request), url=_page_of(request))
    return problem


def _mirror_request(api: Api, deployment: BundleDeployment, request: Request) -> str:
    """Write one mirror; its resourceVersion after that, "" where somebody changed it in between.

    Its spec never changes, and holds what is known at once.
    """
    name = mirror_name(request)
    obj: dict[str, Any] = {
        "apiVersion": GROUP_VERSION,
        "kind": "BundleDeploymentRequest",
        "metadata": {
            "name": name,
            "labels": {**MANAGED_BY, f"{OWN_GROUP}/bundle-deployment": deployment.name[:63]},
            "annotations": {PAGE_ANNOTATION: _page_of(request)},
            "ownerReferences": [
                {
                    "apiVersion": GROUP_VERSION,
                    "kind": "BundleDeployment",
                    "name": deployment.name,
                    "uid": deployment.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "bundleDeploymentRef": {"name": deployment.name, "uid": deployment.uid, "generation": request.generation},
            "purpose": request.purpose,
            "fromRevision": request.from_revision.number if request.from_revision else 0,
            "toRevision": request.to_revision.number if request.to_revision else 0,
            "requester": _requester(request),
        },
    }
    verdict = request.verdicts.filter(round=request.round).first()
    revision = Revision.objects.filter(request=request).first()
    found = conditions.of_request(request, verdict, revision, request.voided_rounds.last())
    found += _reviews_owed([broken] if (broken := debts.break_glass_of(request)) and verdict else [])
    status = {
        "conditions": [condition.record() for condition in found],
        "round": request.round,
        "subjectDigest": request.public_subject_digest,
        "state": request.state,
        "contentDigest": request.content.public_digest if request.content else "",
        "pins": [f"{pin['kind']}:{pin['digest']}" for pin in request.pins],
        "bundles": _bundles(request),
        **({"applyAt": conditions.instant(request.apply_at)} if request.apply_at else {}),
        "changeReason": visible(request.change_reason, keep_newlines=True)[: change_words.REASON_LENGTH],
        "changeTicket": visible(request.change_ticket)[: change_words.TICKET_LENGTH],
        "expiresAt": conditions.instant(request.expires_at),
        "reportSummary": _report_summary(request),
        "reviewsSummary": _reviews_summary(request),
    }
    live = _apply_mirror(api, obj, status, request.mirrored_version if request.mirrored_at else "")
    # Our labels and annotations, and all owners, have to be those that were written a moment ago.
    shown, sent = live["metadata"], obj["metadata"]
    is_kept = all(sent[part].items() <= (shown.get(part) or {}).items() for part in ("labels", "annotations"))
    (sent_owner,) = sent["ownerReferences"]
    owners = [{key: owner.get(key) for key in sent_owner} for owner in shown.get("ownerReferences") or ()]
    return str(shown["resourceVersion"]) if is_kept and owners == [sent_owner] else ""


def _requester(request: Request) -> dict[str, Any]:
    """Who asked last, and that nobody knows who else did, as the page says it. For reading only, so what the CRD would
    refuse is cut."""
    last = request.requesters[-1] if request.requesters else {"username": "unknown", "groups": [], "via": "cluster"}
    via = UNATTENDED if request.is_unattended else last["via"]
    if request.requesters and not request.is_requester_known:
        named = last["username"][: MAX_GROUP - len(AND_UNKNOWN)]
        return {"username": f"{named}{AND_UNKNOWN}", "groups": [], "via": via}
    return {
        "username": last["username"],
        "groups": [group[:MAX_GROUP] for group in last["groups"]][:MAX_GROUPS],
        "via": via,
    }


def _bundles(request: Request) -> list[dict[str, str]]:
    return [
        {
            "catalog": bundle.catalog,
            "catalogDigest": bundle.digest,
            "package": bundle.package,
            "channel": bundle.channel,
            "bundle": bundle.bundle,
            "version": bundle.version,
            **({"whyCatalog": explain_catalog(bundle)} if bundle.is_selected else {}),
        }
        for bundle in bundle_choice.recorded_bundles(request)
    ]


def apply_status(api: Api, obj: dict[str, Any]) -> dict[str, Any]:
    """The status of `obj` and nothing beside it: what an apply leaves of someone else's, such as a forged condition of
    a type that is not written yet, goes with a replace. Returns the live object.
    """
    live = api.apply(obj, field_manager=FIELD_MANAGER, subresource="status", force=True).object
    if _by_type(live.get("status") or {}) != _by_type(obj["status"]):
        live = api.replace({**live, "status": obj["status"]}, field_manager=FIELD_MANAGER, subresource="status")
    return live


def _by_type(status: dict[str, Any]) -> dict[str, Any]:
    """Conditions are a map by type: an apply keeps the order that it finds."""
    return {**status, "conditions": {condition["type"]: condition for condition in status.get("conditions") or ()}}


def _apply_mirror(api: Api, obj: dict[str, Any], status: dict[str, Any], version: str) -> dict[str, Any]:
    """The status alone where the mirror is as our last write left it, at `version`; else all of it."""
    if version and version != WRITING:
        try:
            return apply_status(
                api, {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}, "status": status}
            )
        except ClusterError as exc:
            if not isinstance(exc, PreconditionFailed) and exc.status != NOT_FOUND:
                raise
    try:
        _apply_object(api, obj)
    except InvalidObject:
        # A mirror's spec cannot be changed: one that differs is made anew. It differs where a deployment of this name
        # was deleted and made again, or where the requester became known late.
        api.delete(ObjectRef.of(obj))
        _apply_object(api, obj)
    return apply_status(api, {**obj, "status": status})


def _page_of(request: Request) -> str:
    """Where people see all of it; kubectl pratique finds the service by it."""
    return f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/requests/{request.uid}"


def _report_summary(request: Request) -> dict[str, Any]:
    report = request.reports.filter(round=request.round).first()
    if report is None:
        return {}
    why_not = why_not_unseen(request, names_deletions=True)
    said = {"onlyInBrowser": visible(why_not)} if why_not else {}
    return {"worst": report.worst, "headline": [visible(one) for one in report.headline], **said}


def _reviews_summary(request: Request) -> dict[str, int]:
    """`waivers`: how many findings somebody accepted, by a review or by a FindingException."""
    approvals = request.reviews.counted().filter(round=request.round, decision="Approve")
    waived = {waiver["fingerprint"] for waives in approvals.values_list("waives", flat=True) for waiver in waives}
    waived |= {name for one in request.finding_exceptions for name in one["fingerprints"]}
    return {"approvals": approvals.count(), "waivers": len(waived)}


def _apply_object(api: Api, obj: dict[str, Any]) -> None:
    api.apply(obj, field_manager=FIELD_MANAGER, force=True)


def _apply(
    api: Api,
    deployment: BundleDeployment,
    body: dict[str, Any],
    apply: Callable[[Api, dict[str, Any]], object] = _apply_object,
) -> None:
    """Server-side apply to exactly this object: its uid is the precondition, so it is never made anew."""
    try:
        apply(api, _body(deployment, body))
    except ClusterError as exc:
        # A conflict may also be with who wrote it just now: then it is there.
        may_be_gone = isinstance(exc, PreconditionFailed) or exc.status == NOT_FOUND
        if not may_be_gone or live_deployment(api, deployment) is not None:
            raise
        pivots.forget(cluster=deployment.cluster, uid=deployment.uid)


def _body(deployment: BundleDeployment, body: Mapping[str, Any]) -> dict[str, Any]:
    about = {"name": deployment.name, "uid": deployment.uid, **body.get("metadata", {})}
    return {"apiVersion": GROUP_VERSION, "kind": "BundleDeployment", **body, "metadata": about}
