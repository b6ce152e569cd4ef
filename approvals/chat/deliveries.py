"""Acting on deliveries: linked person, same checks, same service; the answer to the tool comes after."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

import urllib3
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from approvals import services, wake
from approvals.access import Caller
from approvals.chat.tool import ChatDecision, Delivery
from approvals.chat.tools import TOOLS
from approvals.clock import database_now
from approvals.errors import NotFound, NotOpen, Refused
from approvals.models import ChatDelivery, Policy, Request

logger = logging.getLogger(__name__)

OVERDUE_SECONDS = 15
REPLY_SECONDS = 5.0
# As long as Slack takes answers. A decision that nobody could act on until then is to be made anew.
PATIENCE = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came of a delivery: `kept` in its row, `said` in the chat."""

    kept: str
    said: str


_LATE = "this decision was too old to process: check the request, and decide again if needed"
TOO_LATE = ChatReply(_LATE, _LATE)


def take_in(tool: str, delivery: Delivery) -> bool:
    """Keep the delivery and wake a worker; False where it was delivered before: answered again, not acted on."""
    try:
        with transaction.atomic():
            row = ChatDelivery.objects.create(
                tool=tool, key=delivery.key, wish=delivery.wish.record(), received_at=database_now()
            )
            wake.delivery(row.pk)
    except IntegrityError:
        return False
    return True


def overdue(now: datetime) -> list[int]:
    """Deliveries whose message was lost."""
    late = now - timedelta(seconds=OVERDUE_SECONDS)
    return list(ChatDelivery.objects.filter(done_at__isnull=True, received_at__lt=late).values_list("pk", flat=True))


def act(delivery_id: int) -> None:
    """Give the review that a delivery asks for, once, and answer in words."""
    row = ChatDelivery.objects.get(pk=delivery_id)
    if row.done_at:
        return
    wish = ChatDecision(**row.wish)
    answer = _answer(wish, row.received_at) if database_now() - row.received_at < PATIENCE else TOO_LATE
    done = ChatDelivery.objects.filter(pk=row.pk, done_at__isnull=True)
    if done.update(done_at=database_now(), words=answer.kept) and wish.reply_to:
        body = TOOLS[wish.tool].reply(answer.said)
        try:
            urllib3.request("POST", wish.reply_to, json=body, timeout=REPLY_SECONDS, redirect=False, retries=False)
        except urllib3.exceptions.HTTPError as exc:
            logger.warning("chat reply not delivered", extra={"error": type(exc).__name__})


def give_up(delivery_id: int, words: str) -> None:
    """Nobody acts on this delivery any more."""
    words = f"this decision could not be processed: {words}. Check the request page, and decide there if needed"
    ChatDelivery.objects.filter(pk=delivery_id, done_at__isnull=True).update(done_at=database_now(), words=words)


def _answer(wish: ChatDecision, said_at: datetime) -> ChatReply:
    try:
        caller = TOOLS[wish.tool].person(wish)
        if caller is None:
            # A one-time code and nothing about the request. The code is said, never kept.
            words = "this chat account is not linked, or its link has expired"
            if not wish.reply_to:
                return ChatReply(words, words)
            code = services.issue_link_code(tool=wish.tool, tenant=wish.tenant, account=wish.account, name=wish.name)
            url = f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/me"
            return ChatReply(words, f"{words}: sign in at {url} and enter the code {code} within 10 minutes")
        words = _decide(wish, caller, said_at)
    except Refused as exc:
        words = str(exc)
    return ChatReply(words, TOOLS[wish.tool].escape(words))


def _decide(wish: ChatDecision, caller: Caller, said_at: datetime) -> str:
    try:
        uid = uuid.UUID(wish.request_uid)
        request = Request.objects.select_related("deployment__cluster").get(uid=uid)
    except (ValueError, Request.DoesNotExist):
        raise NotFound("the request does not exist") from None
    try:
        given = services.review(
            by=caller,
            request_id=request.pk,
            decision=wish.decision,
            subject_digest=wish.subject_digest,
            reason=wish.reason,
            channel=TOOLS[wish.tool].channel,
            acknowledges=wish.acknowledges,
            said_at=said_at,
        )
    except NotOpen:
        # Where a worker died between the review and the note that this delivery is done.
        given_here = request.reviews.counted().filter(user=caller.user, decision=wish.decision)
        earlier = given_here.filter(subject_digest=wish.subject_digest).first()
        if earlier is None:
            raise
        given = earlier
    words = f"{given.decision} by {given.username} is recorded for {request.deployment.name}"
    if given.decision != "Approve":
        return words
    # Guards may have held the request back when they were last asked.
    guards = request.evaluations.filter(
        round=request.round, policy__kind=Policy.Kind.GUARD, policy__mode=Policy.Mode.ENFORCE, policy__is_active=True
    )
    holding = guards.filter(policy_version=F("policy__version"), result__in=("holds", "error"))
    names = ", ".join(sorted({evaluation.policy.name for evaluation in holding.select_related("policy")}))
    where = f"accept findings on the request page, not in chat: {services.page_of(request)}"
    return f"{words}; held back by {names}: {where}" if names else words
