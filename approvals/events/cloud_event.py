"""CloudEvents 1.0, structured, as JSON: of a request only what every reader of its deployment may know.

Findings, values of objects, words of the API server and names of Secrets are in no event.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings

from approvals.models import Request

CONTENT_TYPE = "application/cloudevents+json"


def home_url() -> str:
    return str(settings.PRATIQUE["PUBLIC_URL"]).rstrip("/")


def request_record(request: Request, *, round_number: int, severity: str) -> dict[str, Any]:
    return {
        "uid": str(request.uid),
        "number": request.number,
        "purpose": request.purpose,
        "round": round_number,
        "version": request.bundle_version,
        "severity": severity,
        "page": f"{home_url()}/requests/{request.uid}",
    }


def write_event(*, event_id: str, event_type: str, subject: str, at: datetime, data: dict[str, Any]) -> dict[str, Any]:
    """The whole event, the same each time that it is sent."""
    return {
        "specversion": "1.0",
        "id": event_id,
        "source": home_url(),
        "type": event_type,
        "subject": subject,
        "time": at.isoformat(),
        "datacontenttype": "application/json",
        "data": data,
    }
