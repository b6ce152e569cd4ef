"""/metrics of the site, for whoever has the token; for everybody else there is no such page."""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from approvals import instruments
from approvals.metrics.exposition import exposition


@csrf_exempt  # a refusal of its own would tell that there is such a page
def metrics(http: HttpRequest) -> HttpResponse:
    if http.method != "GET" or not may_read(http.headers.get("Authorization", "")):
        raise Http404
    body, content_type = exposition()
    return HttpResponse(body, content_type=content_type, headers={"Cache-Control": "no-store"})


def may_read(authorization: str) -> bool:
    """Whether an Authorization header holds PRATIQUE_METRICS_TOKEN; never where that is empty."""
    expected = str(settings.PRATIQUE["METRICS_TOKEN"])
    kind, _, given = authorization.partition(" ")
    if not expected or kind.lower() != "bearer":
        return False
    # Digests are of one length, so that the time tells nothing of the token's.
    is_right = hmac.compare_digest(_digest(given.strip()), _digest(expected))
    if not is_right:
        instruments.refused_sign_ins.labels("metrics_token").inc()
    return is_right


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
