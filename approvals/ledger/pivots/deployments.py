"""A BundleDeployment as it was seen in the cluster, copied into its row; a pivot asks for a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from approvals import audit, wake
from approvals.access.port import check_registered
from approvals.audit import MACHINE, Actor
from approvals.catalogs import followed_packages
from approvals.clock import database_now
from approvals.errors import Busy
from approvals.ledger import change_words, claims, labels, quotas, references
from approvals.ledger.change_words import ChangeWords
from approvals.ledger.digests import options_digest
from approvals.ledger.moves import move
from approvals.ledger.pivots.requests import (
    ask_as_before,
    correct_requesters,
    ensure_deletion_request,
    ensure_request,
    ensure_rollback_request,
    ensure_rotation_request,
    hold_open,
    join,
    list_words,
    problem_of,
)
from approvals.ledger.pivots.writers import SpecWriter
from approvals.lifecycle import AT_WORK, SUPERSEDABLE, Event, State
from approvals.locks import for_change
from approvals.models import BundleDeployment, Cluster, Request, Revision, SpecWrite
from provisioner.api_groups import OWN_GROUP

# `kubectl annotate bd NAME core.rukpak.io/ask-again=$(date +%s) --overwrite`: the same once more, from the source on.
ASK_AGAIN = f"{OWN_GROUP}/ask-again"
# `kubectl annotate bd NAME core.rukpak.io/rollback-to=3 --overwrite`: back to the content of revision 3. What follows a
# slash means nothing, so that the same can be asked for twice: 3/1, 3/2.
ROLLBACK_TO = f"{OWN_GROUP}/rollback-to"
# `kubectl annotate bd NAME core.rukpak.io/rotate=db/password@$(date +%s) --overwrite`: what runs, with a new value in
# this key of the Secret, in all of its keys (`db@…`), or wherever the chart makes one up (`*@…`). What follows the @
# means nothing.
ROTATE = f"{OWN_GROUP}/rotate"
ANNOTATION_LENGTH = 100
ROTATION_LENGTH = 600
# Why it is paused, for people; written beside spec.paused by whoever pauses it.
PAUSE_REASON = f"{OWN_GROUP}/pause-reason"
PAUSE_REASON_LENGTH = 1000


@transaction.atomic
def see(
    *,
    cluster: Cluster,
    obj: Mapping[str, Any],
    writer: SpecWriter | None,
    asker: SpecWriter | None = None,
    words: ChangeWords | None = None,
) -> BundleDeployment:
    """Copy a BundleDeployment as it stands in the cluster, and make a request where that is a pivot.

    An older open request is superseded in this same transaction. Seeing the same object again changes nothing; what
    is older than the row is ignored. `writer` is who made this generation of the spec, None where nobody can tell;
    `asker` is who asked for it once more or for its deletion, which may leave the spec someone else's (S05). `words` is
    what a door of ours wrote of the change.
    """
    meta = obj["metadata"]
    spec = dict(obj.get("spec") or {})
    known = BundleDeployment.objects.select_related("cluster").filter(cluster=cluster, uid=meta["uid"])
    namesakes = BundleDeployment.objects.filter(cluster=cluster, name=meta["name"], gone_at__isnull=True)
    namesakes = namesakes.exclude(uid=meta["uid"])
    # What is called gone, and whose name another one has by now, was seen late: it never comes back.
    if namesakes.exists() and (former := known.filter(gone_at__isnull=False).first()):
        return former
    # The same name made again is another deployment (docs/architecture). What is locked for the new one after the audit
    # of the old one's end is locked before it (approvals.locks).
    replaced = list(for_change(namesakes.order_by("pk")))
    for other in replaced:
        hold_open(other)
    if replaced:
        references.hold_all(BundleDeployment(cluster=cluster, spec=spec), let_go_by=replaced)
    for other in replaced:
        _mark_gone(other)
    deployment = for_change(known).first()
    generation = int(meta.get("generation") or 1)
    if deployment is None:
        cluster.refresh_from_db(fields=["removed_at"])
        deployment = BundleDeployment(cluster=cluster, uid=meta["uid"], name=meta["name"], generation=0)
    check_registered(deployment.cluster)
    if generation < deployment.generation:
        return deployment
    hold_open(deployment)
    gone_at, deployment.gone_at, is_first = deployment.gone_at, None, deployment.pk is None
    # While a request is applied, what is asked for stands in the annotation until it can be done.
    is_at_work = bool(deployment.pk) and deployment.requests.filter(state__in=AT_WORK).exists()
    is_asked_again = not is_at_work and bool(_newly_asked(deployment, meta, ASK_AGAIN, "asked_again"))
    rollback_to = _newly_asked(deployment, meta, ROLLBACK_TO, "asked_rollback").partition("/")[0]
    rotated = "" if is_at_work else _newly_asked(deployment, meta, ROTATE, "asked_rotation", ROTATION_LENGTH)
    # A copy of another deployment's manifest has its annotation, too: of a new one there is nothing to make anew.
    rotation = "" if is_first else rotated.partition("@")[0]
    _note_writes(deployment, generation, writer, spec, meta, is_back=gone_at is not None, words=words)
    # A request that was withdrawn because its deployment was called gone: nobody wanted to end it.
    latest = deployment.requests.order_by("-number").first() if gone_at else None
    is_withdrawn = latest and gone_at and latest.state == State.WITHDRAWN and latest.changed_at >= gone_at
    withdrawn = latest if is_withdrawn else None
    if meta.get("deletionTimestamp"):
        ensure_deletion_request(deployment, asker, again=is_asked_again or withdrawn is not None)
    elif withdrawn and withdrawn.options_digest == deployment.options_digest:
        ask_as_before(deployment, withdrawn)
    elif rollback_to:
        ensure_rollback_request(deployment, rollback_to, asker)
    elif rotation:
        ensure_rotation_request(deployment, [rotation], asker)
    else:
        ensure_request(deployment, again=is_asked_again, asker=asker)
    _follow_words(deployment, asker or writer)
    labels.follow(deployment)
    if asker:
        is_again = not rollback_to and not deployment.deletion_requested_at
        is_theirs = is_again and not is_asked_again and not rotation
        join(deployment, asker, is_theirs=is_theirs, is_again=is_again)
    return deployment


@transaction.atomic
def forget(*, cluster: Cluster, uid: str) -> None:
    """The BundleDeployment is gone from the cluster: nothing is asked for any more."""
    deployment = for_change(BundleDeployment.objects.filter(cluster=cluster, uid=uid)).first()
    if deployment and deployment.gone_at is None:
        _mark_gone(deployment)


@transaction.atomic
def forget_all(*, cluster: Cluster, actor: Actor) -> list[BundleDeployment]:
    """The cluster is removed: end all that is asked for there, as `forget` does; the deployments that it had.

    What was being applied has failed where nobody is at it any more, as on a cluster that does not answer. Raises Busy
    while a worker holds an approved request, or a deployment for drift correction.
    """
    rows = BundleDeployment.objects.select_related("cluster").filter(cluster=cluster, gone_at__isnull=True)
    deployments = list(for_change(rows.order_by("pk")))
    opened = [request for deployment in deployments for request in hold_open(deployment)]
    writing = Request.objects.filter(
        claims.held(), pk__in=[request.pk for request in opened], state__in=(State.APPROVED, *AT_WORK)
    )
    names = {request.deployment.name for request in writing.select_related("deployment")}
    names |= {deployment.name for deployment in rows.filter(claims.held())}
    if names:
        raise Busy(
            f"cluster {cluster.name} cannot be removed now: a worker is writing to it for {', '.join(sorted(names))}. "
            "Wait until that has ended, and try again"
        )
    references.hold_all(BundleDeployment(cluster=cluster, spec={}), let_go_by=deployments)
    why = f"cluster {cluster.name} was removed"
    for request in opened:
        if request.state in AT_WORK:
            Revision.objects.filter(request=request, state=Revision.State.APPLYING).update(
                state=Revision.State.FAILED, message=why, finished_at=database_now()
            )
            move(request, Event.FAIL, actor=actor, facts={"why": why}, problem=f"{why} before this had ended")
    for deployment in deployments:
        _mark_gone(deployment, why)
    return deployments


def _newly_asked(
    deployment: BundleDeployment, meta: Mapping[str, Any], annotation: str, kept: str, length: int = ANNOTATION_LENGTH
) -> str:
    """The annotation's value if it is another one than was last seen, which the row keeps in `kept`; else ""."""
    asked = str((meta.get("annotations") or {}).get(annotation, ""))[:length]
    if not asked or asked == getattr(deployment, kept):
        return ""
    setattr(deployment, kept, asked)
    return asked


def _mark_gone(deployment: BundleDeployment, why: str = "the BundleDeployment is gone") -> None:
    open_requests = hold_open(deployment)
    deployment.gone_at = database_now()
    deployment.save(update_fields=["gone_at"])
    quotas.stop_waiting(deployment)
    references.let_go(deployment)
    followed_packages.unfollow_packages(deployment)
    audit.record(verb="deployment.gone", actor=MACHINE, deployment=deployment)
    for request in open_requests:
        if request.state in SUPERSEDABLE:
            move(request, Event.WITHDRAW, actor=MACHINE, facts={"why": why})


def _note_writes(
    deployment: BundleDeployment,
    generation: int,
    writer: SpecWriter | None,
    spec: dict[str, Any],
    meta: Mapping[str, Any],
    *,
    is_back: bool,
    words: ChangeWords | None,
) -> None:
    """`is_back`: it was called gone, and the cluster is right (S42)."""
    previous = deployment.generation
    is_new, was_paused = deployment.pk is None, deployment.is_paused
    deployment.generation = generation
    deployment.resource_version = str(meta.get("resourceVersion", ""))
    deployment.spec = spec
    deployment.labels = dict(meta.get("labels") or {})
    deployment.options_digest = options_digest(spec)
    is_paused = deployment.bundle_spec.is_paused
    if is_paused and not was_paused:
        deployment.paused_generation = generation
    deployment.is_paused = is_paused
    reason = str((meta.get("annotations") or {}).get(PAUSE_REASON, "")) if is_paused else ""
    deployment.pause_reason = reason[:PAUSE_REASON_LENGTH]
    if generation > previous:
        deployment.problem = problem_of(deployment.bundle_spec)
    deployment.seen_at = database_now()
    if meta.get("deletionTimestamp") and deployment.deletion_requested_at is None:
        deployment.deletion_requested_at = database_now()
    deployment.save()
    change_words.observe(deployment, meta, is_new_spec=generation > previous, written=words)
    # What may move of its sources is looked at from now on, as the spec says.
    is_written = generation > previous or is_back
    if is_written or not deployment.followed_references.exists():
        references.follow(deployment)
    if is_written:
        followed_packages.follow_packages(deployment)
    if was_paused != is_paused or deployment.deletion_requested_at:
        references.resume(deployment)
        followed_packages.ask_soon(deployment)
    if not is_new and generation > previous + 1:
        # Somebody wrote a generation that we never saw (S05).
        _note_write(deployment, previous + 1, None)
    noted = _note_write(deployment, generation, writer)
    if noted:
        audit.record(
            verb="deployment.seen",
            actor=Actor(writer.identity.username, writer.via) if writer else Actor("unknown", "cluster"),
            deployment=deployment,
            facts={"generation": generation},
        )
    if is_back:
        audit.record(verb="deployment.back", actor=MACHINE, deployment=deployment)
    if noted or is_back:
        wake.deployment(deployment.pk)


def _follow_words(deployment: BundleDeployment, person: SpecWriter | None) -> None:
    actor = Actor(person.identity.username, person.via) if person else Actor("unknown", "cluster")
    if request := change_words.follow(deployment, actor):
        list_words(request)


def _note_write(deployment: BundleDeployment, generation: int, writer: SpecWriter | None) -> bool:
    """True where this generation is new, or its writer was not known before."""
    facts: dict[str, Any] = writer.columns() if writer else {"via": "cluster"}
    write, is_new = SpecWrite.objects.get_or_create(
        deployment=deployment, generation=generation, defaults={**facts, "seen_at": database_now()}
    )
    if is_new or writer is None or write.username:
        return is_new
    for name, value in facts.items():
        setattr(write, name, value)
    write.save(update_fields=list(facts))
    if writer.is_known:
        correct_requesters(deployment, writer)
    return writer.is_known
