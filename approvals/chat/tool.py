"""What every chat tool does for us."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError

from approvals import access
from approvals.access import Caller
from approvals.errors import NotAllowed
from approvals.models import ChatAccount, Request, Review

MAX_IDENTIFIER = 100


class Unverified(Exception):
    """The callback is not proved to come from the tool; everybody gets the same 401."""


class UnreadableCallback(Exception):
    """Verified, but not a callback that we know how to read; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class ChatDecision:
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
    acknowledges: Sequence[str] = ()

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ChatAccountName:
    """An account of a tool that is to be linked to a person."""

    tenant: str
    account: str
    name: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A verified callback: `key` names it for good, so that a replay is known."""

    key: str
    wish: ChatDecision


class ChatTool(ABC):
    """One tool. `accepted` is the status that it wants for a decision that was taken in."""

    name: ClassVar[str]
    accepted: ClassVar[int] = 202
    channel: ClassVar[Review.Channel] = Review.Channel.CHAT

    @abstractmethod
    def receive(self, http: HttpRequest, *, now: float) -> Delivery | None:
        """Verify the raw body and read it; None where it asks for nothing. Raises Unverified or UnreadableCallback."""

    def receive_command(self, http: HttpRequest, *, now: float) -> ChatAccountName | None:
        """Verify a command by which somebody asks to link their account; None where the tool has none. Raises
        Unverified."""
        return None

    def person(self, wish: ChatDecision) -> Caller | None:
        """Whose decision this is; None where nobody has linked the account yet, or what was proved then has ended."""
        accounts = ChatAccount.objects.select_related("user")
        account = accounts.filter(tool=self.name, tenant=wish.tenant, account=wish.account).first()
        if account and not account.user.is_active:
            raise NotAllowed("the user linked to this chat account is disabled")
        caller = access.of_chat(account) if account else None
        return caller if caller and caller.proofs else None

    def message_url(self) -> str:
        """Where messages are posted to; "" where none are."""
        return ""

    def message(self, request: Request, occasion: str) -> dict[str, Any] | None:
        """The message about a request; None where the tool does not speak."""
        return None

    def escape(self, words: str) -> str:
        """Untrusted words as the tool shows them."""
        return words

    def reply(self, words: str) -> dict[str, Any]:
        """An answer that only whoever decided sees."""
        return {"text": words}


def raw_body(http: HttpRequest, *, at_most: int) -> bytes:
    """The body as it came, for signatures; raises Unverified where it is longer or broke off."""
    try:
        if int(http.META.get("CONTENT_LENGTH") or 0) > at_most:
            raise Unverified
        return http.body
    except (ValueError, RequestDataTooBig, UnreadablePostError) as exc:
        raise Unverified from exc


def storable(text: str) -> str:
    """`text` as every database takes it: no NUL, no half of a surrogate pair. What it may do to an eye stays in it."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


def identifier(text: object) -> str:
    """A tool's name for something; raises ValueError for what is none."""
    if not isinstance(text, str) or not text or len(text) > MAX_IDENTIFIER or not text.isprintable():
        raise ValueError("not an identifier")
    return text
