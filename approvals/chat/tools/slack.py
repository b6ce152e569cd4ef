"""Slack: interactive messages in (v0 signature over the raw body), incoming webhooks out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from slack_sdk.signature import Clock, SignatureVerifier

from approvals import services
from approvals.chat.tool import (
    ChatAccountName,
    ChatDecision,
    ChatTool,
    Delivery,
    UnreadableCallback,
    Unverified,
    identifier,
    raw_body,
    storable,
)
from approvals.clock import database_now
from approvals.events.message import count_findings, fit_lines
from approvals.ledger.change_words import ticket_url
from approvals.models import ACCEPT, Report, Request
from approvals.selectors import debts
from approvals.selectors.status import status
from provisioner.escaping import visible
from provisioner.sentences import number, some

NAME = "slack"
PATIENCE_SECONDS = 300
MAX_BODY_BYTES = 1024 * 1024
SALT = "approvals.chat.slack"
# Slack takes 3000 characters in one section.
MAX_TEXT = 2600
MAX_WORDS = 300
REPLY_ORIGIN = ("https", "hooks.slack.com")
# A click on a button that opens a page is told to us too, and asks for nothing.
OPENS = "open"
MALFORMED = (LookupError, TypeError, AttributeError, ValueError, RecursionError, signing.BadSignature)


class Slack(ChatTool):
    name = NAME
    accepted = 200

    def receive(self, http: HttpRequest, *, now: float) -> Delivery | None:
        key, form = verified_form(http, now=now)
        try:
            payload = json.loads(form["payload"][0])
            team, user = identifier(payload["team"]["id"]), payload["user"]
            # In a shared channel (Slack Connect) people of other teams see our message, and may click.
            check_team(team, str(user.get("team_id") or team))
            action = payload["actions"][0]
            if action.get("action_id") == OPENS:
                return None
            return Delivery(key, _wish(team, user, action, str(payload.get("response_url") or "")))
        except MALFORMED as exc:
            raise UnreadableCallback("expected block_actions from a message that Pratique sent") from exc

    def receive_command(self, http: HttpRequest, *, now: float) -> ChatAccountName | None:
        """`/pratique link`: a one-time code that a signed-in browser session turns into a link."""
        _, form = verified_form(http, now=now)
        try:
            team, account = form["team_id"][0], identifier(form["user_id"][0])
        except (LookupError, ValueError) as exc:
            raise Unverified from exc
        check_team(team)
        return ChatAccountName(team, account, storable(form.get("user_name", [""])[0]))

    def message_url(self) -> str:
        return str(settings.PRATIQUE["SLACK_WEBHOOK_URL"])

    def escape(self, words: str) -> str:
        return escaped(words)

    def reply(self, words: str) -> dict[str, Any]:
        return {"text": words, "response_type": "ephemeral", "replace_original": False}

    def message(self, request: Request, occasion: str) -> dict[str, Any] | None:
        url = services.page_of(request)
        title = f"*{escaped(request.deployment.name)}* on {escaped(request.deployment.cluster.name)}"
        if occasion in ("decided", "changes_requested"):
            return {"text": f"{title}: {_standing(request)} <{url}|open>"}
        if occasion == "carried":
            return {"text": f"{title}: {escaped('; '.join(_earlier(request))[:MAX_TEXT])} <{url}|open>"}
        if occasion in ("break_glass", "reviewed"):
            return {"text": f"{_break_glass(request, title, occasion)} <{url}|open>"}
        if occasion == "check_holds":
            checks = escaped("; ".join(request.checks_left)[:MAX_TEXT])
            return {"text": f"{title} is held by external check {checks} <{url}|open>"} if checks else None
        if occasion == "voided":
            return {"text": f"{title}: {_voided(request)} <{url}|open>"}
        report = request.reports.filter(round=request.round).first()
        buttons: list[dict[str, Any]] = [_button("Open", OPENS, url=url)]
        named = services.acknowledgements(request)
        if report and not services.why_not_unseen(request) and not named:
            buttons.append(_button("Approve", "approve", value=button_value(request, "Approve"), style="primary"))
        buttons.append(_button("Deny", "deny", value=button_value(request, "Deny"), style="danger"))
        change = _change(request)
        facts = [*_rules(request), *_earlier(request), *_to_name(named)]
        what = f"still needs a review, for {_age(request)}" if occasion == "reminder" else "needs a review"
        words = f"{title} {what}\n{change}{_summary(report, facts, MAX_TEXT - len(change))}"
        return {
            "text": f"{escaped(request.deployment.name)} {what}: {url}",
            "blocks": [
                # verbatim: names and addresses in untrusted words do not become links or mentions.
                {"type": "section", "text": {"type": "mrkdwn", "verbatim": True, "text": words}},
                {"type": "actions", "elements": buttons},
            ],
        }


def _age(request: Request) -> str:
    """Since when it is in review: `26 hours`."""
    return number(int((database_now() - request.changed_at) / timedelta(hours=1)), "hour")


def _change(request: Request) -> str:
    """A line with the ticket and the reason of the change, "" where there are none."""
    ticket, reason = (escaped(text)[:MAX_WORDS] for text in (request.change_ticket, request.change_reason))
    url = escaped(ticket_url(request.change_ticket))
    ticket = f"<{url}|{ticket}>" if 0 < len(url) <= MAX_WORDS else ticket
    words = ": ".join(filter(None, (ticket, reason)))
    return f"for {words}\n" if words else ""


def _break_glass(request: Request, title: str, occasion: str) -> str:
    """Who broke glass and why, loud; or how it was reviewed afterwards."""
    broken = debts.break_glass_of(request)
    if broken is None:
        return f"{title}: the break-glass was taken back"
    who, incident = escaped(broken.username), escaped(broken.incident)[:MAX_WORDS]
    answer = debts.answer_to(broken) if occasion == "reviewed" else None
    if answer:
        what = "accepts" if answer.decision == ACCEPT else "objects to"
        said = f"{escaped(answer.username)} {what} the break-glass of {who} for incident {incident}"
        return f"{title}: {said}{f': {escaped(answer.reason)[:MAX_TEXT]}' if answer.reason else ''}"
    owed = f"someone else must review it by {debts.due_at(broken):%Y-%m-%d %H:%M} UTC"
    reason = escaped(broken.reason)[:MAX_TEXT]
    return f":rotating_light: *BREAK-GLASS* {title} by {who}, incident {incident}: {reason}\n{owed}"


def _standing(request: Request) -> str:
    """How it stands, by whom and why, in one line."""
    how = status(request)
    by = f" by {how.by_words}" if how.by else ""
    cause = [how.cause] if how.is_told and how.cause else []
    carried = [one["words"] for one in request.earlier_approvals if not one["why_not"]]
    return escaped(": ".join(filter(None, (f"{how.label}{by}", "; ".join([*cause, *carried])[:MAX_TEXT]))))


def _voided(request: Request) -> str:
    """Whose approval no longer counts, and why; what differs is on the page, for who may get it."""
    ended = request.voided_rounds.last()
    if ended is None:
        return "approvals no longer count"
    given = request.reviews.counted().filter(round=ended.round, decision="Approve", policy=None)
    names = sorted(set(given.values_list("username", flat=True)))
    whose = f"the approval by {some(names)}" if names else "the approval"
    return escaped(f"{whose} no longer counts, because {ended.words}"[:MAX_TEXT])


def verified_form(http: HttpRequest, *, now: float) -> tuple[str, dict[str, list[str]]]:
    """(replay key, form fields) of a callback whose signature and age are right; raises Unverified.

    Slack signs `v0:<timestamp>:<raw body>`; slack_sdk raises several errors on malformed headers, all mean the same.
    """
    secret = settings.PRATIQUE["SLACK_SIGNING_SECRET"].strip()
    body = raw_body(http, at_most=MAX_BODY_BYTES)
    signature = http.headers.get("X-Slack-Signature", "")
    timestamp = http.headers.get("X-Slack-Request-Timestamp", "")
    if not secret or not signature or not timestamp.isascii() or not timestamp.isdigit():
        raise Unverified
    try:
        verifier = SignatureVerifier(secret, clock=_FixedClock(now))
        is_valid = abs(now - int(timestamp)) <= PATIENCE_SECONDS and verifier.is_valid(body, timestamp, signature)
        form = parse_qs(body.decode(), max_num_fields=50) if is_valid else {}
    except (ValueError, TypeError) as exc:
        raise Unverified from exc
    if not is_valid:
        raise Unverified
    return hashlib.sha256(f"{timestamp}:{signature}".encode()).hexdigest(), form


def check_team(*teams: str) -> None:
    """Raises Unverified unless all are the team whose members count."""
    expected = settings.PRATIQUE["SLACK_TEAM"]
    if not expected or any(team != expected for team in teams):
        raise Unverified


def button_value(request: Request, decision: str) -> str:
    """What a button carries: the request, the digest that the message showed, the decision; signed, never a right."""
    wish = {"request": str(request.uid), "digest": request.subject_digest, "decision": decision}
    return signing.dumps(wish, salt=SALT)


def escaped(text: str) -> str:
    """Untrusted words for mrkdwn: Slack's three characters, and ours made visible (S24)."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _wish(team: str, user: Mapping[str, Any], action: Mapping[str, Any], reply_to: str) -> ChatDecision:
    button = signing.loads(action["value"], salt=SALT, max_age=settings.PRATIQUE["REQUEST_HOURS"] * 3600)
    return ChatDecision(
        NAME,
        team,
        identifier(user["id"]),
        storable(str(user.get("username") or "")),
        button["request"],
        button["decision"],
        button["digest"],
        "decided in Slack",
        _own(reply_to),
    )


def _rules(request: Request) -> list[str]:
    """Whose approvals rules need, by group."""
    return [f"approval rule {words}" for words in request.rules_left]


def _earlier(request: Request) -> list[str]:
    """Whose approvals of earlier rounds and requests are carried over, and why others are not."""
    return [one["words"] for one in request.earlier_approvals]


def _to_name(named: list[services.Acknowledgement]) -> list[str]:
    """What an approval must name because something goes with it; of everything else how much it is."""
    telling = [str(one) for one in named if one.words]
    rest = len(named) - len(telling)
    more = f"{rest} {'other objects' if telling else 'objects'}" if rest else ""
    return [f"an approval must acknowledge: {each}" for each in (*telling, more) if each]


def _summary(report: Report | None, to_name: list[str], room: int) -> str:
    """How many findings of each severity, then what fits of what is to be named and of the headline."""
    if report is None:
        return "the report is not ready yet"
    lines = [f"• {escaped(line)}" for line in (*to_name, *report.headline)]
    return "\n".join([count_findings(report.severities), *fit_lines(lines, room)])


def _button(text: str, action: str, **rest: str) -> dict[str, Any]:
    return {"type": "button", "action_id": action, "text": {"type": "plain_text", "text": text}, **rest}


def _own(url: str) -> str:
    """Answers go to Slack, or to where our own messages go; anywhere else would be a request forged by the caller."""
    origin = _origin(url)
    return url if all(origin) and origin in {REPLY_ORIGIN, _origin(settings.PRATIQUE["SLACK_WEBHOOK_URL"])} else ""


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


class _FixedClock(Clock):
    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now
