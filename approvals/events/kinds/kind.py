"""What every kind of notification target does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from approvals.events.signed_post import PostResult
from approvals.models import NotificationTarget, OutboxEvent
from provisioner.source.egress import EgressPolicy


class TargetKind(ABC):
    """One kind. It checks addresses and delivers; who is told of what is decided before, in one place for all."""

    name: ClassVar[str]
    words: ClassVar[str]
    address_help: ClassVar[str]

    @abstractmethod
    def check_address(self, address: str) -> None:
        """Raise InvalidInput for what can be no address of this kind, whoever it may belong to."""

    @abstractmethod
    def deliver(self, target: NotificationTarget, event: OutboxEvent, egress: EgressPolicy) -> PostResult:
        """Send the event once. The same event may be sent again, and has the same id then."""
