"""A webhook: CloudEvents over HTTPS, signed by Standard Webhooks."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.events.cloud_event import write_event
from approvals.events.kinds.kind import TargetKind, check_url
from approvals.events.signed_post import PostResult, post_event, secrets_in_force
from approvals.models import NotificationTarget, OutboxEvent
from provisioner.source.egress import EgressPolicy, shown


class WebhookTarget(TargetKind):
    name = "webhook"
    words = "Webhook: signed CloudEvents"
    address_help = "An https URL that takes POST, without credentials in it: the signature proves who sends."
    signs = True

    def check_address(self, address: str) -> None:
        check_url(address)

    def show_address(self, address: str) -> str:
        return told if (told := shown(address)) == address else f"{told}…"

    def deliver(self, target: NotificationTarget, events: Sequence[OutboxEvent], egress: EgressPolicy) -> PostResult:
        (event,) = events
        event_id = str(event.number)
        body = write_event(
            event_id=event_id, event_type=event.type, subject=event.subject, at=event.at, data=event.data
        )
        signed_by = secrets_in_force(target.secret, target.earlier, target.earlier_until)
        return post_event(target.address, body, event_id=event_id, signed_by=signed_by, egress=egress)
