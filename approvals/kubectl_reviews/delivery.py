"""From a BundleDeploymentReview to a review of ours, and the answer in its status.

The row says what is due: a lost message or a dead worker costs seconds, and nothing is counted twice, because the
moment at which a review was seen stays the same.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import DataError, transaction
from django.db.models import Case, Count, F, Q, QuerySet, When, Window
from django.db.models.functions import RowNumber

from approvals import admission, audit, services, wake
from approvals.access.port import connect
from approvals.admission import PolicyState
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import CouldNotAsk, NotAllowed, Refused, Unacknowledged
from approvals.kubectl_reviews.review_rules import (
    LATE,
    MAX_PER_HOUR,
    NUL,
    KnownRequest,
    NotCounted,
    SaidReview,
    judge,
    too_many,
    unproved,
)
from approvals.ledger.rounds import ASKED_AGAIN, LABELS_CHANGED
from approvals.lifecycle import State
from approvals.locks import for_change
from approvals.models import AuthorAdmission, Cluster, KubectlReview, Request, Review, ReviewAdmission
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import ClusterError, InvalidObject, PratiqueError, PreconditionFailed, TryLater
from provisioner.escaping import visible
from provisioner.values import Identity, ObjectRef

logger = logging.getLogger(__name__)

VERSION, KIND = "v1alpha2", "BundleDeploymentReview"
FIELD_MANAGER = "pratique-reviews"
CHANNEL = Review.Channel.KUBECTL
DENY = "Deny"
# Since when the policies are in force is known from looks like these.
LOOK_SECONDS = 20
# Of one batch, after which others have their turn; of all that one call tries; of the newest, and of the oldest, that
# it reads before each batch.
AT_ONCE, MOST_TRIED, READ_AT_ONCE, READERS = 8, 2000, 25, 8
MAX_NAME = 253
# In the place of who made what cannot be read.
NOBODY = "?"
# What Kubernetes did not answer is asked again until then.
PATIENCE = timedelta(hours=1)
MAX_MESSAGE = 8000
HOUR = timedelta(hours=1)


class _SettledMeanwhile(Exception):
    """Another worker has said what became of the review."""


def note_seen(cluster: Cluster, about: Mapping[str, Any]) -> None:
    """Keep a review that the watch saw, by its metadata, and have a worker count it."""
    facts = {
        "name": about["name"],
        "created_at": datetime.fromisoformat(about["creationTimestamp"]),
        "seen_at": database_now(),
    }
    with transaction.atomic():
        _, is_new = KubectlReview.objects.get_or_create(cluster=cluster, uid=about["uid"], defaults=facts)
        if is_new:
            wake.kubectl_reviews(cluster.pk)


def note_gone(cluster: Cluster, uid: str) -> None:
    """A deleted review keeps counting; nobody has to be told any more."""
    KubectlReview.objects.filter(cluster=cluster, uid=uid, settled_at__isnull=False).update(finished_at=database_now())


def pending_clusters(now: datetime) -> list[int]:
    """Clusters with reviews to count, or whose policies have not been looked at for a while.

    Policies of authors that have just come into force are looked at as soon as MARGIN is over: only what is written
    after that look has an author.
    """
    stale = now - timedelta(seconds=LOOK_SECONDS)
    reviewed = KubectlReview.objects.filter(finished_at__isnull=True).values("cluster")
    lately = ReviewAdmission.objects.filter(looked_at__gt=stale).values("cluster")
    fresh = AuthorAdmission.objects.filter(sure_from=None, since__lt=now - admission.MARGIN)
    ripe = fresh.filter(looked_at__lte=F("since") + admission.MARGIN).values("cluster")
    due = Cluster.objects.filter(Q(pk__in=reviewed) | Q(pk__in=ripe) | ~Q(pk__in=lately), uid__isnull=False)
    return list(due.values_list("pk", flat=True))


def count(cluster_id: int) -> None:
    """Look at the policies, count what is due, and write what became of it.

    Raises PratiqueError where the cluster does not answer: the sweep comes by again.
    """
    cluster, now = Cluster.every.get(pk=cluster_id), database_now()
    ReviewAdmission.objects.filter(cluster=cluster).update(looked_at=now)
    api = connect(cluster)
    due = KubectlReview.objects.filter(cluster=cluster, finished_at__isnull=True)
    tried: list[int] = []
    while True:
        _read_reviewers(api, due.filter(reviewer=""))
        rows = list(order_by_turn(cluster, due.exclude(pk__in=tried))[:AT_ONCE]) if len(tried) < MOST_TRIED else []
        if tried and not rows:
            return
        # After all of these were made: what stood before and stands now, stood when each of them was admitted.
        admission.survey(api, cluster)
        known = admission.state_of(cluster, admission.REVIEWS)
        for row in rows:
            try:
                _count_review(api, cluster, row, known)
            except TryLater:
                raise
            except (PratiqueError, DataError, ValueError) as exc:
                # One that cannot be kept or answered holds up no other.
                logger.exception("a review could not be counted", extra={"review": row.name})
                _give_up(row, exc)
        if not rows:
            return
        tried += [row.pk for row in rows]


def _read_reviewers(api: Api, rows: QuerySet[KubectlReview]) -> None:
    """Who made some of them, as their objects say: by that people take turns, and it proves nothing. The newest, so
    that nobody waits for all that somebody else made before, and the oldest, so that nobody is put off by what comes
    after. One that cannot be read is nobody's, and says so in its turn.
    """
    ends = [rows.order_by(*order)[:READ_AT_ONCE] for order in (("-created_at", "-pk"), ("created_at", "pk"))]
    unread = list({row.pk: row for some in ends for row in some}.values())
    if not unread:
        return
    with ThreadPoolExecutor(READERS) as pool:
        for row, name in zip(unread, pool.map(partial(read_reviewer, api), unread), strict=True):
            row.reviewer = name
    KubectlReview.objects.bulk_update(unread, ["reviewer"])


def read_reviewer(api: Api, row: KubectlReview) -> str:
    """Who made a review, as its object says, which proves nothing; NOBODY where it cannot be read."""
    try:
        live = api.get(_ref(row))
    except ClusterError:
        return NOBODY
    if live is None or live["metadata"]["uid"] != row.uid:
        return NOBODY
    return str(live["spec"]["reviewer"]["username"]).replace(NUL, "")[:MAX_NAME]


def order_by_turn(cluster: Cluster, rows: QuerySet[KubectlReview]) -> QuerySet[KubectlReview]:
    """One of each reviewer, then the second of each, and last what is over somebody's limit (S40)."""
    lately = KubectlReview.objects.filter(cluster=cluster, created_at__gt=database_now() - HOUR).exclude(username="")
    counted = lately.values("username").annotate(made=Count("pk")).filter(made__gte=MAX_PER_HOUR)
    is_over = Case(When(reviewer__in=counted.values("username"), then=1), default=0)
    turn = Window(RowNumber(), partition_by=[F("reviewer")], order_by=["created_at", "pk"])
    return rows.annotate(is_over=is_over, turn=turn).order_by("is_over", "turn", "created_at", "pk")


def _give_up(row: KubectlReview, error: Exception) -> None:
    """Leave a review alone that can never be kept or answered; what the cluster forbids may be allowed later."""
    if not isinstance(error, InvalidObject | DataError | ValueError):
        return
    now, row = database_now(), KubectlReview.objects.get(pk=row.pk)
    row.finished_at = now
    if row.settled_at is None:
        row.code, row.words, row.settled_at = "failed", "Pratique could not record this review", now
    row.save(update_fields=["code", "words", "settled_at", "finished_at"])


def _count_review(api: Api, cluster: Cluster, row: KubectlReview, known: PolicyState) -> None:
    """Count a review or say why not, and write that into its status; it stays due where that cannot be found out."""
    if row.settled_at is None and _made_before(cluster, row, row.reviewer) >= MAX_PER_HOUR:
        # Neither read nor judged: it would count for nothing, whoever made it.
        _settle(row, too_many(row.reviewer))
        _tell(api, row)
        return
    live = api.get(_ref(row))
    if live is None or live["metadata"]["uid"] != row.uid:
        if row.settled_at is None:
            _settle(row, NotCounted("deleted", "it was deleted before it was counted"))
        KubectlReview.objects.filter(pk=row.pk).update(finished_at=database_now())
        return
    said = parse_review(live)
    if row.settled_at is None and not _decide(cluster, row, said, known):
        return
    # All that an approval had to acknowledge and did not; the message has the first of them only.
    request = _find_request(cluster, said) if row.code == Unacknowledged.code else None
    left_out: list[str] = []
    if request and request.subject_digest == said.subject_digest:
        left_out = [each for each in services.to_acknowledge(request) if each not in said.acknowledges]
    _tell(api, row, left_out)


def _decide(cluster: Cluster, row: KubectlReview, said: SaidReview, known: PolicyState) -> bool:
    """Count it or say why not; False where that cannot be found out yet."""
    now = database_now()
    if unproved(said, known) is None:
        KubectlReview.objects.filter(pk=row.pk).update(username=said.reviewer.username)
    request = _find_request(cluster, said)
    if request and said.decision == DENY:
        if request.state == State.STALE and now - row.seen_at < PATIENCE:
            return False  # its report is made anew, which takes back no Deny
        if said.round < request.round:
            # A Deny of a round that ended only because somebody asked for a new report, or changed labels, is one of
            # the round after it: else who does so soon enough would shed every Deny before it is counted.
            ended = request.voided_rounds.filter(round__gte=said.round)
            if not ended.exclude(code__in=(ASKED_AGAIN, LABELS_CHANGED)).exists():
                said = replace(said, round=request.round, subject_digest=request.subject_digest)
    facts = KnownRequest(request.round, request.deployment.name) if request else None
    refusal = judge(said, facts, known, _made_before(cluster, row, said.reviewer.username) + 1)
    if refusal is None:
        assert request is not None
        try:
            refusal = _give_review(cluster, row, request, said)
        except CouldNotAsk as exc:
            if now - row.seen_at < PATIENCE:
                logger.warning("a review waits for Kubernetes' answer", extra={"cluster": cluster.name})
                return False
            refusal = NotCounted(exc.code, str(exc))
    if refusal:
        _settle(row, refusal, request, said)
    return True


def _give_review(cluster: Cluster, row: KubectlReview, request: Request, said: SaidReview) -> NotCounted | None:
    """Give the review through the same door as every channel. Raises CouldNotAsk."""

    def keep(review: Review) -> None:
        # In the transaction that records it: after its commit, the verdict may be there before this worker goes on, and
        # whoever asked again would hear that nothing can be decided any more.
        if not _is_still_due(row):
            raise _SettledMeanwhile
        row.review, row.settled_at = review, database_now()
        row.save(update_fields=["review", "settled_at"])

    try:
        by = services.caller_by_admission(proved=services.Proved(cluster, said.reviewer, said.created_at))
        services.give_review(
            by=by,
            request_id=request.pk,
            decision=said.decision,
            subject_digest=said.subject_digest,
            reason=said.reason,
            incident=said.incident,
            channel=CHANNEL,
            acknowledges=said.acknowledges,
            apply_at=said.apply_at,
            said_at=said.created_at if row.seen_at - said.created_at > LATE else row.seen_at,
            keep=keep,
        )
    except CouldNotAsk:
        raise
    except _SettledMeanwhile:
        return None
    except Refused as exc:
        rule = exc.facts.get("rule") if isinstance(exc, NotAllowed) else ""
        return NotCounted(exc.code, f"{exc}. To allow it, apply:\n{rule}" if rule else str(exc))
    return None


def _is_still_due(row: KubectlReview) -> bool:
    """Not where another worker settled it, while this one stood still; locked until the transaction ends."""
    return for_change(KubectlReview.objects.filter(pk=row.pk)).get().settled_at is None


@transaction.atomic
def _settle(
    row: KubectlReview, refusal: NotCounted, request: Request | None = None, said: SaidReview | None = None
) -> None:
    """Keep why it does not count; on the request's activity as well, but not of who creates them without end."""
    if not _is_still_due(row):
        return
    row.code, row.words, row.settled_at = refusal.code, refusal.words, database_now()
    row.save(update_fields=["code", "words", "settled_at"])
    told = KubectlReview.objects.filter(cluster=row.cluster_id, settled_at__gte=row.settled_at - HOUR, review=None)
    if request is None or said is None or told.count() > MAX_PER_HOUR:
        return
    who = "unknown" if refusal.code in ("unproved", "changed", "invalid") else said.reviewer.username
    facts = {"review": row.name, "decision": said.decision, "round": said.round, "reason": refusal.words}
    audit.record(verb="review.not_counted", actor=Actor(who, CHANNEL), request=request, facts=facts)


def _tell(api: Api, row: KubectlReview, left_out: Sequence[str] = ()) -> None:
    """Write the status of the review; of one that is gone, nobody."""
    row.refresh_from_db()
    assert row.settled_at is not None
    is_counted = row.review_id is not None
    words = f"recorded as review {row.review_id}" if is_counted else row.words
    condition = {
        "type": "Counted",
        "status": "True" if is_counted else "False",
        "reason": "Counted" if is_counted else "".join(word.capitalize() for word in row.code.split("-")),
        "message": visible(words, keep_newlines=True)[:MAX_MESSAGE],
        "observedGeneration": 1,
        "lastTransitionTime": row.settled_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    status = {"conditions": [condition], **({"unacknowledged": list(left_out)} if left_out else {})}
    about = {"name": row.name, "uid": row.uid}
    obj = {"apiVersion": f"{OWN_GROUP}/{VERSION}", "kind": KIND, "metadata": about, "status": status}
    try:
        api.apply(obj, field_manager=FIELD_MANAGER, subresource="status", force=True)
    except InvalidObject:
        logger.warning("the API server does not take the status of a review", extra={"review": row.name})
    except PreconditionFailed:
        logger.info("a review was deleted before its status was written", extra={"review": row.name})
    except PratiqueError as exc:
        if getattr(exc, "status", 0) != 404:
            raise
    KubectlReview.objects.filter(pk=row.pk).update(finished_at=database_now())


def parse_review(live: Mapping[str, Any]) -> SaidReview:
    """The object as the API server gives it: its schema was checked there."""
    about, spec = live["metadata"], live["spec"]
    who = spec["reviewer"]
    return SaidReview(
        uid=about["uid"],
        name=about["name"],
        generation=int(about.get("generation", 0)),
        created_at=datetime.fromisoformat(about["creationTimestamp"]),
        reviewer=Identity(who["username"], tuple(who.get("groups") or ()), who.get("uid") or ""),
        request_name=spec["requestRef"]["name"],
        deployment_name=spec["bundleDeploymentName"],
        decision=spec["decision"],
        subject_digest=spec["subjectDigest"],
        round=int(spec["round"]),
        reason=spec.get("reason") or "",
        incident=spec.get("incident") or "",
        acknowledges=tuple(spec.get("acknowledges") or ()),
        apply_at=datetime.fromisoformat(spec["applyAt"]) if spec.get("applyAt") else None,
    )


def _find_request(cluster: Cluster, said: SaidReview) -> Request | None:
    """The request that is called so: of the deployment that has the name now."""
    name, _, number = said.request_name.rpartition("-")
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    # web-01 is no name of request web-1.
    if not is_number or number != str(int(number)):
        return None
    there = Request.objects.filter(deployment__cluster=cluster, deployment__gone_at__isnull=True)
    return there.select_related("deployment__cluster").filter(deployment__name=name, number=int(number)).first()


def _made_before(cluster: Cluster, row: KubectlReview, username: str) -> int:
    """How many this person is known to have made before this one, within the hour before it."""
    theirs = KubectlReview.objects.filter(cluster=cluster, username=username).exclude(username="")
    lately = theirs.filter(created_at__gt=row.created_at - HOUR, created_at__lte=row.created_at)
    return lately.exclude(pk__gte=row.pk).count()


def _ref(row: KubectlReview) -> ObjectRef:
    return ObjectRef(OWN_GROUP, VERSION, KIND, "", row.name)
