"""PagerDuty: Events API v2. What goes wrong with a deployment opens an alert, and what mends it resolves it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from approvals.errors import InvalidInput
from approvals.events.cloud_event import home_url
from approvals.events.kinds.kind import TargetKind, post_json, read_message
from approvals.events.occasions import EventType
from approvals.events.signed_post import PostResult
from approvals.models import NotificationTarget, OutboxEvent
from provisioner.source.egress import EgressPolicy

ADDRESS = re.compile(r"(?:(?P<region>eu):)?(?P<key>[A-Za-z0-9]{32})")
URLS = {None: "https://events.pagerduty.com/v2/enqueue", "eu": "https://events.eu.pagerduty.com/v2/enqueue"}
SUMMARY_ROOM = 1024
# What an event does to which alert of its deployment: one of a failed request is not resolved by health.
ACTIONS: Mapping[str, tuple[str, str, str]] = {
    EventType.REQUEST_FAILED: ("trigger", "error", "request"),
    EventType.REQUEST_RESTORING: ("trigger", "warning", "request"),
    EventType.REQUEST_APPLYING: ("acknowledge", "info", "request"),
    EventType.REQUEST_APPLIED: ("resolve", "info", "request"),
    EventType.DEPLOYMENT_UNHEALTHY: ("trigger", "error", "health"),
    EventType.DEPLOYMENT_HEALTHY: ("resolve", "info", "health"),
    EventType.DEPLOYMENT_DRIFTED: ("trigger", "warning", "drift"),
    EventType.DEPLOYMENT_CORRECTED: ("resolve", "info", "drift"),
    EventType.REVIEW_OWED: ("trigger", "critical", "break-glass"),
}
_TEST = ("trigger", "info", "test")


class PagerDutyTarget(TargetKind):
    name = "pagerduty"
    words = "PagerDuty: Events API v2"
    address_help = "The integration key of a service, of 32 letters and digits; eu: before it in the EU service region."
    event_types = tuple(ACTIONS)

    def check_address(self, address: str) -> None:
        if not ADDRESS.fullmatch(address):
            words = "expected an integration key of 32 letters and digits, or eu: and the key"
            raise InvalidInput(words, field="address")

    def show_address(self, address: str) -> str:
        found = ADDRESS.fullmatch(address)
        return f"{URLS[found['region'] if found else None]}, key …"

    def deliver(self, target: NotificationTarget, events: Sequence[OutboxEvent], egress: EgressPolicy) -> PostResult:
        found = ADDRESS.fullmatch(target.address)
        if found is None:  # only where the row was written by hand
            return PostResult(code=InvalidInput.code, problem="the address is no integration key")
        (event,) = events
        return post_json(URLS[found["region"]], _write_event(event, found["key"]), egress)


def _write_event(event: OutboxEvent, key: str) -> dict[str, Any]:
    message = read_message(event)
    action, severity, concern = ACTIONS.get(event.type, _TEST)
    title, lines = message.fit(str, title_room=SUMMARY_ROOM)
    deployment = event.data.get("deployment", {}).get("uid") or event.subject
    # Of several objects that drifted, one that is as approved again leaves the alerts of the others open.
    about = f"{event.cluster}/{deployment}/{event.data.get('object', '')}"
    return {
        "routing_key": key,
        "event_action": action,
        "dedup_key": f"pratique-{concern}-{hashlib.sha256(about.encode()).hexdigest()}",
        "client": "Pratique",
        "client_url": home_url(),
        "links": [{"href": message.link, "text": "Open in Pratique"}],
        "payload": {
            "summary": title,
            "source": event.cluster or "pratique",
            "severity": severity,
            "timestamp": event.at.isoformat(),
            "custom_details": {"event": message.event_id, "text": "\n".join(lines)},
        },
    }
