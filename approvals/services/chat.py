"""Linking chat accounts: a one-time code shown in chat, entered in a signed-in browser session."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction

from approvals import access, audit
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotFound
from approvals.locks import for_change
from approvals.models import ChatAccount, LinkCode
from approvals.rate_limits import LINK_CODE, Attempt

CODE_MINUTES = 10


@transaction.atomic
def issue_link_code(*, tool: str, tenant: str, account: str, name: str) -> str:
    """A code for exactly this chat account, good once and for ten minutes."""
    text = secrets.token_hex(5)
    LinkCode.objects.create(
        digest=_digest(text),
        tool=tool,
        tenant=tenant,
        account=account,
        name=name[:100],
        expires_at=database_now() + timedelta(minutes=CODE_MINUTES),
    )
    return text


def link_chat_account(*, by: Caller, code: str) -> ChatAccount:
    """Bind the chat account that the code was shown to: it decides as whom this session has proved, and nobody else.

    Raises InvalidInput for a code that does not hold, ProofTooOld, and TooManyAttempts for whoever guesses.
    """
    access.check_fresh(by)
    attempt = Attempt(LINK_CODE, name=str(by.user.pk))
    attempt.begin()
    account = _link(by, code)
    attempt.succeed()
    return account


@transaction.atomic(durable=True)
def _link(by: Caller, code: str) -> ChatAccount:
    now = database_now()
    row = for_change(LinkCode.objects.filter(digest=_digest(code.strip().lower()))).first()
    if row is None or row.used_at or row.expires_at < now:
        raise InvalidInput(
            "this code is unknown, already used, or older than ten minutes: ask the bot for a new one", field="code"
        )
    row.used_at = now
    row.save(update_fields=["used_at"])
    account, is_new = ChatAccount.objects.get_or_create(
        tool=row.tool,
        tenant=row.tenant,
        account=row.account,
        defaults={"user": by.user, "name": row.name, "linked_at": now},
    )
    if not is_new and account.user_id != by.user.pk:
        raise InvalidInput("this chat account is linked to another person, who must unlink it first", field="code")
    limit = access.groups_limit()
    account.identities.set(proof.identity_id for proof in by.proofs if proof.is_fresh(now, limit))
    audit.record(verb="chat.linked", actor=Actor(by.name, "browser"), facts={"account": str(account)})
    return account


@transaction.atomic(durable=True)
def unlink_chat_account(*, by: Caller, account_id: int) -> None:
    account = ChatAccount.objects.filter(user=by.user, pk=account_id).first()
    if account is None:
        raise NotFound("this chat account is not linked to your account")
    audit.record(verb="chat.unlinked", actor=Actor(by.name, "browser"), facts={"account": str(account)})
    account.delete()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
