"""Callbacks of chat tools: verified on the raw body, kept, answered at once; the work comes after."""

from __future__ import annotations

import time

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from approvals import instruments, services
from approvals.chat import deliveries
from approvals.chat.tool import UnreadableCallback, Unverified
from approvals.chat.tools import TOOLS
from approvals.errors import TooManyAttempts
from approvals.rate_limits import CHAT_SIGNATURE, Attempt, client_address


@csrf_exempt
@require_POST
def receive(http: HttpRequest, tool: str) -> HttpResponse:
    """One decision. 401 for everything unproved, 400 for what cannot be read, else an answer within milliseconds."""
    known = TOOLS.get(tool)
    if known is None:
        return HttpResponse(status=404)
    attempt = Attempt(CHAT_SIGNATURE, client_address(http), tool)
    try:
        attempt.begin()
        delivery = known.receive(http, now=time.time())
    except TooManyAttempts as exc:
        return _too_many(exc)
    except Unverified:
        return _unverified(tool)
    except UnreadableCallback as exc:
        attempt.succeed()
        instruments.refused_callbacks.labels(tool, "unreadable").inc()
        return JsonResponse({"error": str(exc)}, status=400)
    attempt.succeed()
    if delivery is None:
        return HttpResponse()
    is_new = deliveries.take_in(tool, delivery)
    return JsonResponse({"delivery": delivery.key, "duplicate": not is_new}, status=known.accepted)


@csrf_exempt
@require_POST
def receive_command(http: HttpRequest, tool: str) -> HttpResponse:
    """Answer a command with a one-time code that a signed-in browser session turns into a link."""
    known = TOOLS.get(tool)
    if known is None:
        return HttpResponse(status=404)
    attempt = Attempt(CHAT_SIGNATURE, client_address(http), tool)
    try:
        attempt.begin()
        asked = known.receive_command(http, now=time.time())
    except TooManyAttempts as exc:
        return _too_many(exc)
    except Unverified:
        return _unverified(tool)
    attempt.succeed()
    if asked is None:
        return HttpResponse(status=404)
    code = services.issue_link_code(tool=tool, tenant=asked.tenant, account=asked.account, name=asked.name)
    url = f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/me"
    return JsonResponse(
        {"response_type": "ephemeral", "text": f"Sign in at {url} and enter the code {code} within 10 minutes."}
    )


def _too_many(refusal: TooManyAttempts) -> HttpResponse:
    """Nothing of the callback was read: not even its signature."""
    seconds = str(refusal.facts["retryAfter"])
    return JsonResponse({"error": str(refusal)}, status=refusal.status, headers={"Retry-After": seconds})


def _unverified(tool: str) -> HttpResponse:
    """The same for every reason, so that a forger learns nothing. `tool` is one of TOOLS."""
    instruments.refused_callbacks.labels(tool, "unverified").inc()
    return JsonResponse({"error": "not verified"}, status=401)
