"""What every kind of notification target does."""

from __future__ import annotations

import fnmatch
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from django.conf import settings

from approvals.errors import InvalidInput
from approvals.events.cloud_event import home_url
from approvals.events.message import EventMessage, write_digest, write_message
from approvals.events.signed_post import PostResult, post_body
from approvals.lifecycle import State
from approvals.models import NotificationTarget, OutboxEvent, Request
from provisioner.errors import BadSource
from provisioner.sentences import number
from provisioner.source.egress import EgressPolicy, Origin, place_of

LONGEST_ADDRESS = 500


class TargetKind(ABC):
    """One kind. It checks addresses and delivers; who is told of what is decided before, in one place for all.

    `event_types` are those that it can tell of, empty for all. `signs` says whether the receiver needs a secret.
    One that `is_for_people` tells of several events in one message; to others each is sent alone.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    address_help: ClassVar[str]
    event_types: ClassVar[tuple[str, ...]] = ()
    signs: ClassVar[bool] = False
    is_for_people: ClassVar[bool] = False

    @abstractmethod
    def check_address(self, address: str) -> None:
        """Raise InvalidInput for what can be no address of this kind, whoever it may belong to."""

    @abstractmethod
    def show_address(self, address: str) -> str:
        """The address without what is secret in it, for pages and REST."""

    @abstractmethod
    def deliver(self, target: NotificationTarget, events: Sequence[OutboxEvent], egress: EgressPolicy) -> PostResult:
        """Send the events once. The same event may be sent again, and has the same id then."""


class MessageHook(TargetKind):
    """An incoming webhook of a tool: whoever knows its URL may post there. `hosts` are its vendor's, empty for any."""

    is_for_people = True
    hosts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def write_body(self, message: EventMessage) -> dict[str, Any]:
        """The message as the tool takes it, within its limits and with what others wrote escaped."""

    def check_address(self, address: str) -> None:
        place = check_url(address)
        is_theirs = place.scheme == "https" and place.port == 443
        if self.hosts and not (is_theirs and any(fnmatch.fnmatchcase(place.host, host) for host in self.hosts)):
            expected = " or ".join(self.hosts)
            raise InvalidInput(f"the URL leads to {place}; expected https and {expected}", field="address")

    def show_address(self, address: str) -> str:
        place = place_of(address)
        return f"{place.scheme}://{place}/…"

    def deliver(self, target: NotificationTarget, events: Sequence[OutboxEvent], egress: EgressPolicy) -> PostResult:
        return post_json(target.address, self.write_body(read_messages(events)), egress)


def check_url(address: str) -> Origin:
    """Where the URL leads; raises InvalidInput for what is none."""
    if len(address) > LONGEST_ADDRESS:
        words = f"the URL has {len(address)} characters; at most {LONGEST_ADDRESS} are allowed"
        raise InvalidInput(words, field="address")
    try:
        return place_of(address)
    except BadSource as exc:
        raise InvalidInput(str(exc), field="address") from exc


def post_json(url: str, body: dict[str, Any], egress: EgressPolicy) -> PostResult:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    # Some vendors refuse the names of HTTP libraries.
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Pratique"}
    return post_body(url, text.encode(), headers, egress)


def read_messages(events: Sequence[OutboxEvent]) -> EventMessage:
    """The message of one event, or the one that tells of several."""
    if len(events) == 1:
        return read_message(events[0])
    plain = [
        write_message(event_id=str(one.number), event_type=one.type, data=one.data, home=home_url()) for one in events
    ]
    return write_digest(plain, home=home_url())


def read_message(event: OutboxEvent) -> EventMessage:
    """The message of an event, with the counts and the headline of its report, which every reader of the deployment
    reads in the inbox and with kubectl, and who is needed while it is in review."""
    about, told = event.data.get("request"), dict[str, Any]()
    request = Request.objects.filter(uid=about["uid"]).first() if about else None
    if request and about:
        report = request.reports.filter(round=about["round"]).only("severities", "headline").first()
        told["severities"] = report.severities if report else None
        if about["state"] == State.IN_REVIEW:
            told["headline"] = report.headline if report else ()
            if (request.state, request.round) == (State.IN_REVIEW, about["round"]):
                least = number(settings.PRATIQUE["APPROVALS_NEEDED"], "approval")
                told["needed"] = request.rules_left if request.approval_rules else [least]
    return write_message(event_id=str(event.number), event_type=event.type, data=event.data, home=home_url(), **told)
