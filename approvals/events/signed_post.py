"""The one sender of events over HTTP: to checked addresses, without redirects, signed by Standard Webhooks or not."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from standardwebhooks import Webhook

from approvals.events.cloud_event import CONTENT_TYPE
from provisioner.errors import PratiqueError, SourceUnavailable, TryLater
from provisioner.source.client import SourceClient
from provisioner.source.egress import EgressPolicy, place_of, shown

# For all of an attempt. An answer has no body that anybody reads.
SEND_SECONDS = 15.0
# The secret before signs as well for so long, so that the receiver can change it without a gap.
BOTH_SIGN = timedelta(hours=24)
# Of two secrets that are made within so long nobody has installed the first one.
TWICE = timedelta(minutes=1)
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class PostResult:
    """What came of one attempt: `code` and `problem` are "" where it was received, `status` is 0 without an answer.

    `is_away`: the receiver did not answer, or said that it cannot now; what else waits for it need not be tried.
    """

    status: int = 0
    code: str = ""
    problem: str = ""
    wait_seconds: float = 0.0
    is_away: bool = False
    milliseconds: int = 0


def make_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


def secrets_in_force(secret: str, earlier: str, earlier_until: datetime | None) -> list[str]:
    """The secrets that sign now: the one before as well, until its time is over."""
    return [secret, *([earlier] if earlier_until and earlier_until > datetime.now(UTC) else [])]


def post_event(
    url: str, event: Mapping[str, Any], *, event_id: str, signed_by: Sequence[str], egress: EgressPolicy
) -> PostResult:
    """Send it signed, with its id."""
    body, now = json.dumps(event, separators=(",", ":")), datetime.now(UTC)
    headers = {
        "Content-Type": CONTENT_TYPE,
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(event_id, now, body) for secret in signed_by),
    }
    return post_body(url, body.encode(), headers, egress)


def post_body(url: str, body: bytes, headers: Mapping[str, str], egress: EgressPolicy) -> PostResult:
    """Send it to this address and to no other; any 2xx means that it was received. No word of ours holds the path: of
    many receivers it is the key."""
    began, host = time.monotonic(), urlsplit(url).hostname
    status, code, problem, wait, is_away = 0, "", "", 0.0, False
    try:
        with SourceClient(egress) as client:
            response, _ = client.open("POST", url, own=place_of(url), headers=headers, body=body)
            response.close()
        status = response.status
        if not 200 <= status < 300:
            no_redirect = ": redirects are not followed" if 300 <= status < 400 else ""
            code = SourceUnavailable.code
            problem = f"{host} answered {status}{no_redirect}"
    except PratiqueError as exc:
        status, code, problem = getattr(exc, "status", 0), exc.code, str(exc).replace(shown(url), str(host))
        wait, is_away = getattr(exc, "retry_after_seconds", 0.0), isinstance(exc, TryLater) or not status
    return PostResult(status, code, problem, wait, is_away, round((time.monotonic() - began) * 1000))
