"""Acting on deliveries: linked person, same checks, same service; the answer to the tool comes after."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta

import urllib3
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from approvals import services, wake
from approvals.chat import slack, webhook
from approvals.chat.tools import Delivery, Wish
from approvals.errors import NotAllowed, NotFound, Refused
from approvals.models import ChatAccount, ChatDelivery, Request, Review
from provisioner.values import Severity

logger = logging.getLogger(__name__)

OVERDUE_SECONDS = 15
REPLY_SECONDS = 5.0


def take_in(tool: str, delivery: Delivery) -> bool:
    """Keep the delivery and wake a worker; False where it was delivered before: answered again, not acted on."""
    try:
        with transaction.atomic():
            row = ChatDelivery.objects.create(
                tool=tool, key=delivery.key, wish=delivery.wish.record(), received_at=timezone.now()
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
    wish = Wish(**row.wish)
    try:
        words = _decide(wish)
    except Refused as exc:
        words = str(exc)
    done = ChatDelivery.objects.filter(pk=row.pk, done_at__isnull=True).update(done_at=timezone.now(), words=words)
    if done and wish.reply_to:
        _reply(wish.reply_to, words)


def _decide(wish: Wish) -> str:
    request = _request(wish)
    if wish.decision == "Approve" and wish.tool == slack.NAME:
        _check_small_enough(request)
    user = _person(wish)
    given = services.review(
        by=user,
        request_id=request.pk,
        decision=wish.decision,
        subject_digest=wish.subject_digest,
        reason=wish.reason,
        channel=Review.Channel.WEBHOOK if wish.tool == webhook.NAME else Review.Channel.CHAT,
    )
    return f"{given.decision} by {given.username} is recorded for {request.deployment.name}"


def _request(wish: Wish) -> Request:
    try:
        wanted = uuid.UUID(wish.request_uid)
    except ValueError:
        raise NotFound("there is no such request") from None
    found = Request.objects.select_related("deployment__cluster").filter(uid=wanted).first()
    if found is None:
        raise NotFound("there is no such request")
    return found


def _check_small_enough(request: Request) -> None:
    report = request.reports.filter(round=request.round).first()
    if report is None or Severity(report.worst).is_at_least(slack.DECIDED_IN_BROWSER):
        url = f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/requests/{request.uid}"
        raise NotAllowed(f"this request is too serious to approve from a message: open {url}")


def _person(wish: Wish) -> User:
    if wish.tool == webhook.NAME:
        robot = User.objects.filter(username=wish.account, is_active=True).first() if wish.account else None
        if robot is None:
            raise NotAllowed("PRATIQUE_DECISION_WEBHOOK_USER names no active user")
        return robot
    account = (
        ChatAccount.objects.select_related("user")
        .filter(tool=wish.tool, tenant=wish.tenant, account=wish.account, user__is_active=True)
        .first()
    )
    if account is None:
        code = services.issue_link_code(tool=wish.tool, tenant=wish.tenant, account=wish.account, name=wish.name)
        url = f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/me"
        raise NotAllowed(
            f"this account is not linked yet: sign in at {url} and enter the code {code} within 10 minutes"
        )
    return account.user


def _reply(url: str, words: str) -> None:
    try:
        urllib3.request(
            "POST",
            url,
            json={"text": words, "response_type": "ephemeral", "replace_original": False},
            timeout=REPLY_SECONDS,
            redirect=False,
            retries=False,
        )
    except urllib3.exceptions.HTTPError as exc:
        logger.warning("chat reply not delivered", extra={"error": type(exc).__name__})
