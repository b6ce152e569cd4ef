"""Health endpoints beside the pages, for who can reach only these; `approvals.health_endpoints` says more, apart."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from approvals import health_endpoints


def healthz(http: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def readyz(http: HttpRequest) -> JsonResponse:
    """503 where something is missing; strangers are not told what."""
    is_ready = health_endpoints.is_ready()
    return JsonResponse({"status": "ok" if is_ready else "not ready"}, status=200 if is_ready else 503)
