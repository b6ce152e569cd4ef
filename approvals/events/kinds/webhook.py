"""A webhook: CloudEvents over HTTPS, signed by Standard Webhooks."""

from __future__ import annotations

from approvals.errors import InvalidInput
from approvals.events.cloud_event import write_event
from approvals.events.kinds.kind import TargetKind
from approvals.events.signed_post import PostResult, post_event, secrets_in_force
from approvals.models import NotificationTarget, OutboxEvent
from provisioner.errors import BadSource
from provisioner.source.egress import EgressPolicy, place_of

LONGEST_ADDRESS = 500


class WebhookTarget(TargetKind):
    name = "webhook"
    words = "webhook: signed CloudEvents"
    address_help = "An https URL that takes POST, without credentials in it: the signature proves who sends."

    def check_address(self, address: str) -> None:
        if len(address) > LONGEST_ADDRESS:
            words = f"the URL has {len(address)} characters; at most {LONGEST_ADDRESS} are allowed"
            raise InvalidInput(words, field="address")
        try:
            place_of(address)
        except BadSource as exc:
            raise InvalidInput(str(exc), field="address") from exc

    def deliver(self, target: NotificationTarget, event: OutboxEvent, egress: EgressPolicy) -> PostResult:
        event_id = str(event.number)
        body = write_event(
            event_id=event_id, event_type=event.type, subject=event.subject, at=event.at, data=event.data
        )
        signed_by = secrets_in_force(target.secret, target.earlier, target.earlier_until)
        return post_event(target.address, body, event_id=event_id, signed_by=signed_by, egress=egress)
