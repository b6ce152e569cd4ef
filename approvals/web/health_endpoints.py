"""The probes beside the pages, for who can reach only these; `approvals.probes` answers them apart, and says more."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from approvals import probes


def healthz(http: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def readyz(http: HttpRequest) -> JsonResponse:
    """503 where something is missing; strangers are not told what."""
    is_ready = probes.is_ready()
    return JsonResponse({"status": "ok" if is_ready else "not ready"}, status=200 if is_ready else 503)
