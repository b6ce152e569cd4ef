"""Sessions: whose a browser's cookie is now, and how they end (security-rules.md S01, S25)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q, QuerySet

from approvals import access, audit
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import NotFound
from approvals.models import ApiToken, IssuerGrant, SignIn
from approvals.proxies import Said
from approvals.services.issuers import leave_issuer, renew_grant
from approvals.services.proxy_people import is_still_said, sign_out_url_of, title_of

# Where a session keeps the key of its row.
SIGN_IN = "sign_in"
# That somebody was there is written at most this often.
NOTED_EVERY = timedelta(minutes=1)


def caller_of(*, user: User, sign_in_id: int | None, said: Said | None = None, is_there: bool = True) -> Caller | None:
    """Who is asking with the session of this row; None where the session has ended. `said` is a proxy's word of now.

    Only what a person did themselves keeps it from ending for inactivity: `is_there` is False where a page asked.

    It ends by its limits, with what it has proved, where local accounts are switched off and it is one's, and where a
    proxy began it that now names nobody, or somebody else.
    """
    found = SignIn.objects.select_related("grant").filter(pk=sign_in_id or 0, user=user)
    row = found.first()
    # Where its issuer has to prove it anew, it may have ended just now.
    if row is not None and row.grant is not None and renew_grant(row.grant):
        row = found.first()
    if row is None:
        return None
    row.user = user
    now = database_now()
    if not is_still_said(row, said):
        SignIn.objects.filter(pk=row.pk).delete()
        return None
    caller = access.of_sign_in(row)
    whole, idle = _limits()
    is_over = now - row.began_at > whole or now - row.seen_at > idle
    is_local = row.password_at is not None and settings.PRATIQUE["LOCAL_ACCOUNTS"]
    # An issuer proved all there is, and gave nothing to prove it anew with.
    is_unrenewable = row.grant is not None and not row.grant.refresh_token
    is_stale = is_unrenewable and caller.is_all_stale(now, access.groups_limit())
    if is_over or not (caller.proofs or is_local) or is_stale:
        SignIn.objects.filter(pk=row.pk).delete()
        return None
    if is_there and now - row.seen_at > NOTED_EVERY:
        SignIn.objects.filter(pk=row.pk).update(seen_at=now)
    return caller


def awaited_proxy(*, user: User, sign_in_id: int | None) -> str:
    """The title of the proxy whose word a session needs with each request; "" where none began it."""
    name = SignIn.objects.filter(pk=sign_in_id or 0, user=user).values_list("proxy", flat=True).first()
    return title_of(name) if name else ""


def sharing_identity(caller: Caller) -> tuple[QuerySet[SignIn], QuerySet[ApiToken]]:
    """The account's sessions and tokens that have proved something which this caller has proved, too.

    A cluster to which the account is linked as well learns nothing of those that were proved elsewhere.
    """
    of_same = Q(proofs__identity__in=caller.identity_ids)
    if any(proof.is_mapped for proof in caller.proofs) or not caller.proofs:
        of_same |= Q(password_at__isnull=False)
    rows = caller.user.sign_ins.filter(of_same | Q(pk=caller.holder_id)).distinct().order_by("-seen_at")
    return rows, ApiToken.objects.filter(of_same | Q(proofs=None), user=caller.user).distinct().order_by("-created_at")


@transaction.atomic(durable=True)
def end_session(*, by: Caller, sign_in_id: int) -> None:
    """Raises NotFound for what is not one of theirs."""
    mine, _ = sharing_identity(by)
    if sign_in_id not in mine.values_list("pk", flat=True):
        raise NotFound("your account has no such session")
    SignIn.objects.filter(pk=sign_in_id).delete()
    audit.record(verb="session.ended", actor=Actor(by.name, "browser"), facts={"session": sign_in_id})


@transaction.atomic(durable=True)
def end_other_sessions(*, by: Caller) -> int:
    """How many ended; the one that asks stays."""
    mine, _ = sharing_identity(by)
    others = [pk for pk in mine.values_list("pk", flat=True) if pk != by.holder_id]
    if not others:
        return 0
    SignIn.objects.filter(pk__in=others).delete()
    audit.record(verb="session.ended", actor=Actor(by.name, "browser"), facts={"others": len(others)})
    return len(others)


def sign_out(*, sign_in_id: int | None) -> str:
    """End the session; the address at which one signs out of the issuer or proxy that began it, "" where none is."""
    row = SignIn.objects.select_related("grant").filter(pk=sign_in_id or 0).first()
    if row is None:
        return ""
    SignIn.objects.filter(pk=row.pk).delete()
    if row.grant:
        return leave_issuer(row.grant)
    return sign_out_url_of(row)


def forget_ended(now: datetime) -> None:
    """Delete what nobody can use any more: browsers' sessions, strangers' too, and what issuers gave for them."""
    Session.objects.filter(expire_date__lt=now).delete()
    whole, idle = _limits()
    SignIn.objects.filter(Q(began_at__lt=now - whole) | Q(seen_at__lt=now - idle)).delete()
    IssuerGrant.objects.filter(signin=None, apitoken=None).delete()


def _limits() -> tuple[timedelta, timedelta]:
    hours, minutes = settings.PRATIQUE["SESSION_HOURS"], settings.PRATIQUE["SESSION_IDLE_MINUTES"]
    return timedelta(hours=hours), timedelta(minutes=minutes)
