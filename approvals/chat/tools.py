"""What every chat tool does for us, and the table of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from django.http import HttpRequest

from approvals.models import Request


class Unverified(Exception):
    """The callback is not proved to come from the tool; everybody gets the same 401."""


class Unreadable(Exception):
    """Verified, but not a callback that we know how to read; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision as the tool delivered it: who there, on what, and which subject digest their message showed.

    `reply_to` is a URL of the tool's for the answer, "" where the tool takes none.
    """

    tool: str
    tenant: str
    account: str
    name: str
    request_uid: str
    decision: str
    subject_digest: str
    reason: str
    reply_to: str = ""

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A verified callback: `key` names it for good, so that a replay is known."""

    key: str
    wish: Wish


class Tool(Protocol):
    name: str

    def receive(self, http: HttpRequest, *, now: float) -> Delivery:
        """Verify the raw body and read it; raises Unverified or Unreadable."""

    def message(self, request: Request, occasion: str) -> dict[str, Any] | None:
        """The tool's message about a request; None where it does not speak."""
