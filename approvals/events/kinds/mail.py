"""E-mail over the operator's SMTP server, as plain text and as HTML."""

from __future__ import annotations

import hashlib
import smtplib
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.smtp import EmailBackend
from django.core.validators import validate_email
from django.template.loader import render_to_string

from approvals.errors import InvalidInput
from approvals.events.cloud_event import home_url
from approvals.events.kinds.kind import LONGEST_ADDRESS, TargetKind, read_messages
from approvals.events.signed_post import SEND_SECONDS, PostResult
from approvals.models import NotificationTarget, OutboxEvent
from provisioner.errors import SourceUnavailable, Unreachable
from provisioner.escaping import visible
from provisioner.source.egress import EgressPolicy

MOST_ADDRESSES = 10
SUBJECT_ROOM = 200
NO_SERVER = "no mail server is set: an operator sets PRATIQUE_EMAIL_HOST"
_SENT, _LATER = 250, range(400, 500)
UNAVAILABLE, REFUSED = 503, 400


class MailTarget(TargetKind):
    name = "email"
    is_for_people = True
    words = "E-mail"
    address_help = f"At most {MOST_ADDRESSES} addresses, with commas between them. An operator names the mail server."

    def check_address(self, address: str) -> None:
        addresses = _addresses(address)
        if not settings.PRATIQUE["EMAIL_HOST"]:
            raise InvalidInput(NO_SERVER, field="address")
        if len(address) > LONGEST_ADDRESS or not 0 < len(addresses) <= MOST_ADDRESSES:
            words = f"expected 1 to {MOST_ADDRESSES} addresses, of at most {LONGEST_ADDRESS} characters in all"
            raise InvalidInput(words, field="address")
        for one in addresses:
            try:
                validate_email(one)
            except ValidationError:
                raise InvalidInput(f"{one[:100]!r} is no e-mail address", field="address") from None

    def show_address(self, address: str) -> str:
        return address

    def deliver(self, target: NotificationTarget, events: Sequence[OutboxEvent], egress: EgressPolicy) -> PostResult:
        """The server is the operator's, so it may stand on any network."""
        values, began = settings.PRATIQUE, time.monotonic()
        if not values["EMAIL_HOST"]:
            return PostResult(code=SourceUnavailable.code, problem=NO_SERVER)
        server = EmailBackend(
            host=values["EMAIL_HOST"],
            port=values["EMAIL_PORT"],
            username=values["EMAIL_HOST_USER"],
            password=values["EMAIL_HOST_PASSWORD"],
            use_tls=values["EMAIL_SECURITY"] == "starttls",
            use_ssl=values["EMAIL_SECURITY"] == "tls",
            timeout=SEND_SECONDS,
        )
        status, code, problem, is_away = _SENT, "", "", False
        try:
            server.send_messages([write_mail(target, events, values)])
        except smtplib.SMTPRecipientsRefused as exc:
            # None of them was accepted; where some are, the mail went to these.
            status, words = next(iter(exc.recipients.values()))
            code, problem, is_away = SourceUnavailable.code, _quoted(words), status in _LATER
        except smtplib.SMTPResponseException as exc:
            status, code, is_away = exc.smtp_code, SourceUnavailable.code, exc.smtp_code in _LATER
            problem = _quoted(exc.smtp_error)
        except (smtplib.SMTPException, OSError) as exc:  # of TLS, names and connections
            status, code, problem, is_away = 0, Unreachable.code, str(exc) or type(exc).__name__, True
        except ValueError as exc:  # a name of the server, or a password, that cannot be written
            status, code, problem = 0, SourceUnavailable.code, str(exc)
        if code:
            problem = f"{values['EMAIL_HOST']}: {f'answered {status}: ' if status else ''}{visible(problem[:300])}"
        spent = round((time.monotonic() - began) * 1000)
        # As HTTP says it, by which what waits is tried again: SMTP has 4xx for later and 5xx for never.
        told = UNAVAILABLE if is_away and status > 0 else REFUSED if status >= _LATER.stop else max(status, 0)
        return PostResult(told, code, problem, is_away=is_away, milliseconds=spent)


def write_mail(
    target: NotificationTarget, events: Sequence[OutboxEvent], values: Mapping[str, Any]
) -> EmailMultiAlternatives:
    """The mail of an event: the same event is the same mail, and what is about one subject is one thread."""
    message, event = read_messages(events), events[0]
    title, lines = message.fit(str, title_room=SUBJECT_ROOM)
    page, host = f"{home_url()}/notifications/of/{target.name}", urlsplit(home_url()).hostname or "localhost"
    facts = {"title": title, "lines": lines, "link": message.link, "page": page, "target": target.name}
    thread = hashlib.sha256(f"{target.uid} {event.subject}".encode()).hexdigest()
    mail = EmailMultiAlternatives(
        subject=title,
        body="\n".join([title, "", *lines, "", message.link, "", f"To stop these mails: {page}"]),
        from_email=values["EMAIL_FROM"] or f"Pratique <pratique@{host}>",
        to=_addresses(target.address),
        headers={
            "Message-ID": f"<{event.number}.{target.uid}@{host}>",
            "References": f"<{thread}@{host}>",
            "List-Id": f"Pratique {target.name} <{target.uid}.{host}>",
            "List-Unsubscribe": f"<{page}>",
            "Auto-Submitted": "auto-generated",
        },
    )
    mail.attach_alternative(render_to_string("notifications/mail.html", facts), "text/html")
    return mail


def _addresses(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _quoted(words: bytes | str) -> str:
    return words.decode(errors="replace") if isinstance(words, bytes) else words
