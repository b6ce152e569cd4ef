"""Every kind of notification target: within the limits of its vendor, words of others as text, delivered by the queue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from approvals.clock import database_now
from approvals.errors import InvalidInput
from approvals.events.kinds import pagerduty
from approvals.events.kinds.kind import MessageHook, read_message
from approvals.events.kinds.table import TARGET_KINDS
from approvals.events.message import EventMessage, fit_lines, write_digest, write_message
from approvals.events.occasions import CHOSEN_TYPES, EventType
from approvals.ledger import notifications
from approvals.models import NotificationDelivery, OutboxEvent, Report, Request
from approvals.steps.notifications import SendNotifications
from approvals.working import do
from provisioner.escaping import visible
from tests.support.chat_vendors import VENDORS, read_html, read_message_of
from tests.support.notification_targets import happened, target_row
from tests.support.servers.http import Asked, FileServer, Reply
from tests.support.servers.smtp import MailServer, mail_server

HOOKS = [kind for kind in TARGET_KINDS.values() if isinstance(kind, MessageHook)]
KEY = "0123456789abcdef0123456789ABCDEF"
HOSTILE = (
    "<!channel> <@U123> <https://evil.example|the page> &lt;b&gt;",
    "@channel @here @everyone <@!1234> :tada:",
    "**bold** __under__ ~~gone~~ `code` ||spoiler|| [the page](https://evil.example) www.evil.example",
    "# heading > quote - list 1. one | table | \\*escaped\\* \\",
    "<script>alert(1)</script><a href='https://evil.example'>page</a>",
    "line\nSubject: x\r\nBcc: eve@evil.example\u202e\u200b\ttab",
)


def message(entries: tuple[str, ...], name: str = "strimzi") -> EventMessage:
    data = {
        "cluster": "prod",
        "deployment": {"name": name},
        "request": {"page": "https://pratique.example.com/requests/1", "version": HOSTILE[0]},
        "change": {"reason": HOSTILE[2], "ticket": "CHG-7"},
        "actor": {"name": HOSTILE[1], "via": "browser"},
    }
    told = {"severities": {"critical": 2, "safe": 1}, "needed": ["two: 1 of groups security"], "headline": entries}
    return write_message(event_id="7", event_type=EventType.REQUEST_READY, data=data, home="https://x.example", **told)


@pytest.mark.parametrize("kind", HOOKS, ids=lambda kind: kind.name)
def test_S54_words_of_others_are_text_wherever_they_are_read(kind: MessageHook) -> None:
    read = read_message_of(kind.name, kind.write_body(message(HOSTILE)))
    for words in HOSTILE:
        assert f"• {visible(words)}" in read.split("\n")
    for line in ("Still needed: two: 1 of groups security", "Findings: 2 critical · 1 safe"):
        assert line in read
    assert "strimzi on prod: ready for review" in read
    long = kind.write_body(message((), name=f"<!here>{'*' * 240}@all"))
    assert visible(f"<!here>{'*' * 240}@all on prod") in read_message_of(kind.name, long)


@pytest.mark.parametrize("kind", HOOKS, ids=lambda kind: kind.name)
def test_what_does_not_fit_is_counted_and_no_line_is_cut(kind: MessageHook) -> None:
    entries = ("*" * 5000, *(f"finding {number} {'<&*é😀' * 10}" for number in range(99)))
    read = read_message_of(kind.name, kind.write_body(message(entries)))
    shown = re.findall(r"• finding \d+ (.*)", read)
    assert 3 < len(shown) < 99
    assert {*shown} == {visible("<&*é😀" * 10)}
    assert f"… and {100 - len(shown)} more: open the page" in read


def test_lines_are_left_out_whole() -> None:
    assert fit_lines(["a" * 70, "b" * 10], 100) == ["b" * 10, "… and 1 more: open the page"]
    assert fit_lines([], 100) == []


@pytest.mark.parametrize("event_type", CHOSEN_TYPES)
def test_every_event_has_words(event_type: EventType) -> None:
    told = write_message(event_id="1", event_type=event_type, data={"cluster": "prod"}, home="https://x.example")
    assert re.fullmatch(r"Pratique on prod: [a-z -]+(, [a-z -]+)?", told.title)


@pytest.mark.parametrize(
    ("kind", "address", "shown"),
    [
        ("slack", "https://hooks.slack.com/services/T0/B0/secret", "https://hooks.slack.com/…"),
        ("slack", "https://hooks.slack.com.evil.example/services/T0/B0/x", ""),
        ("slack", "http://hooks.slack.com/services/T0/B0/x", ""),
        ("slack", "https://hooks.slack.com:8443/services/T0/B0/x", ""),
        ("slack", "https://hooks.slack.com@evil.example/", ""),
        ("discord", "https://discord.com/api/webhooks/1/secret", "https://discord.com/…"),
        ("discord", "https://cdn.discord.com/api/webhooks/1/x", ""),
        ("teams", "https://p-1.eu.logic.azure.com:443/workflows/1?sig=secret", "https://p-1.eu.logic.azure.com/…"),
        ("teams", "https://d.0.environment.api.powerplatform.com/x?sig=secret", None),
        ("teams", "https://logic.azure.com.evil.example/", ""),
        ("teams", "https://x.webhook.office.com/webhookb2/1", ""),
        ("google-chat", "https://chat.googleapis.com/v1/spaces/A/messages?key=secret", "https://chat.googleapis.com/…"),
        ("mattermost", "https://chat.example.com:8443/hooks/secret", "https://chat.example.com:8443/…"),
        ("mattermost", "ftp://chat.example.com/hooks/x", ""),
        ("webhook", "https://hooks.example.com/in?token=secret", "https://hooks.example.com/in…"),
        ("pagerduty", KEY, "https://events.pagerduty.com/v2/enqueue, key …"),
        ("pagerduty", f"eu:{KEY}", "https://events.eu.pagerduty.com/v2/enqueue, key …"),
        ("pagerduty", f"https://evil.example/{KEY}", ""),
        ("pagerduty", f"{KEY}\n", ""),
        ("email", "ops@example.com, dev@example.com", "ops@example.com, dev@example.com"),
        ("email", "ops@example.com\nBcc: eve@evil.example", ""),
        ("email", "Ops <ops@example.com>", ""),
        ("email", ",".join(["a@example.com"] * 11), ""),
        ("email", " , ", ""),
    ],
)
def test_S54_an_address_leads_to_its_vendor_and_its_secret_is_not_shown(
    kind: str, address: str, shown: str | None, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "EMAIL_HOST": "mail.example.com"}
    if shown == "":
        with pytest.raises(InvalidInput):
            TARGET_KINDS[kind].check_address(address)
        return
    TARGET_KINDS[kind].check_address(address)
    told = TARGET_KINDS[kind].show_address(address)
    assert "secret" not in told
    assert KEY not in told
    assert shown in (None, told)


def test_S54_a_message_says_what_every_reader_knows_and_who_is_needed_while_it_is_in_review(request_: Request) -> None:
    Report.objects.update(headline=["one object is new"], severities={"dangerous": 2})
    rule = {"name": "two", "problem": "", "needed": ["1 of groups security"], "note": ""}
    Request.objects.update(approval_rules=[rule])
    event = OutboxEvent.objects.get(pk=happened("request.prepared", request=Request.objects.get()))
    told = read_message(event)
    assert told.title == "strimzi on prod: ready for review"
    assert told.facts[:2] == (("Findings", "2 dangerous"), ("Still needed", "two: 1 of groups security"))
    assert (told.entries, told.link) == (("one object is new",), event.data["request"]["page"])
    Request.objects.update(state="denied")
    assert "Still needed" not in dict(read_message(event).facts)
    later = OutboxEvent.objects.get(pk=happened("request.deny", request=Request.objects.get()))
    assert read_message(later).entries == ()
    # What is sent again after the report is gone says less.
    Report.objects.all().delete()
    assert read_message(event).entries == ()


@pytest.mark.parametrize("kind", HOOKS, ids=lambda kind: kind.name)
def test_many_events_are_one_message_with_their_counts(kind: MessageHook) -> None:
    several = [message(HOSTILE, name=f"web-{number}") for number in range(48)]
    several += [replace(several[0], what="applied", subject=HOSTILE[0])] * 2
    digest = write_digest(several, home="https://x.example")
    read = read_message_of(kind.name, kind.write_body(digest))
    assert "50 events: 48 ready for review, 2 applied" in read
    assert f"Applied: {HOSTILE[0]}, {HOSTILE[0]}" in read
    assert "Ready for review: web-0 on prod, web-1 on prod" in read
    assert "and 38 more" in read


@pytest.fixture
def vendors(http_server: FileServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """Each vendor under its name, which takes only what it would really take."""
    allowed = {"ALLOWED_NETWORKS": ["127.0.0.0/8"], "PLAIN_HTTP_HOSTS": ["127.0.0.1"]}
    settings.PRATIQUE = {**settings.PRATIQUE, **allowed, "PUBLIC_URL": "https://pratique.example.com"}

    def answer(asked: Asked) -> Reply:
        try:
            read_message_of(asked.path.strip("/"), json.loads(asked.body))
        except Exception:  # noqa: BLE001 - whatever is wrong with it, a vendor answers the same
            return Reply(status=400)
        return Reply(status=204)

    for name in VENDORS:
        http_server.serve_reply(f"/{name}", answer)
    monkeypatch.setattr(pagerduty, "URLS", {None: f"{http_server.url}/pagerduty"})
    yield http_server
    http_server.forget()


def test_the_queue_delivers_to_each_vendor_what_it_takes(request_: Request, vendors: FileServer) -> None:
    targets = [
        target_row(KEY if name == "pagerduty" else f"{vendors.url}/{name}", name=name, kind=name) for name in VENDORS
    ]
    for verb in ("", "request.prepared", "request.fail", "drift.found"):  # the request itself comes first
        about = {"deployment": request_.deployment} if verb == "drift.found" else {"request": request_}
        if verb:
            happened(verb, **about)
        notifications.spread_events()
        for target in targets:
            do(SendNotifications(target.pk))
        # A minute passes: else the next ones would be one message.
        NotificationDelivery.objects.update(delivered_at=database_now() - notifications.DIGEST)
    assert {*NotificationDelivery.objects.values_list("status", "problem")} == {(204, "")}
    assert len(vendors.asked) == NotificationDelivery.objects.count() >= 3 * len(VENDORS)
    vendors.serve("/slack", status=429, headers={"Retry-After": "77"})
    happened("request.withdraw", request=request_)
    notifications.spread_events()
    do(SendNotifications(targets[0].pk))
    row = NotificationDelivery.objects.filter(target=targets[0]).latest("pk")
    assert row.tried_at is not None
    assert row.send_at is not None
    assert (row.send_at - row.tried_at).total_seconds() >= 77
    assert (row.problem, row.status) == ("127.0.0.1: the server answered 429", 429)


def test_an_alert_of_a_deployment_is_resolved_by_what_mends_it_and_by_nothing_else(
    request_: Request, vendors: FileServer
) -> None:
    target = target_row(KEY, kind="pagerduty")
    OutboxEvent.objects.all().delete()
    verbs = ["request.fail", "request.start", "request.finish", "drift.found", "drift.corrected", "revision.overdue"]
    for verb in verbs:
        about = {"request": request_} if verb.startswith("request") else {"deployment": request_.deployment}
        happened(verb, **about)
    notifications.spread_events()
    do(SendNotifications(target.pk))
    bodies = [json.loads(asked.body) for asked in vendors.asked]
    assert [body["event_action"] for body in bodies] == [
        *("trigger", "acknowledge", "resolve", "trigger", "resolve", "trigger")
    ]
    keys = [body["dedup_key"] for body in bodies]
    assert (keys[0] == keys[1] == keys[2], keys[3] == keys[4], len({*keys})) == (True, True, 3)


@pytest.fixture
def mails(vendors: FileServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server(vendors.authority) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(vendors.authority.ca_file))
        told = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": server.port, "EMAIL_SECURITY": "starttls", "EMAIL_FROM": ""}
        settings.PRATIQUE = {**settings.PRATIQUE, **told, "EMAIL_HOST_USER": "pratique", "EMAIL_HOST_PASSWORD": "pw"}
        yield server


def send_mail(request: Request) -> NotificationDelivery:
    target = target_row("ops@example.com, dev@example.com", kind="email", name=f"mail-{OutboxEvent.objects.count()}")
    OutboxEvent.objects.all().delete()
    happened("request.prepared", request=request)
    notifications.spread_events()
    do(SendNotifications(target.pk))
    return target.deliveries.get()


def test_S54_a_mail_is_text_and_html_over_tls_and_no_name_adds_a_header(request_: Request, mails: MailServer) -> None:
    Report.objects.update(headline=list(HOSTILE))
    request_.deployment.name = "x\r\nBcc: eve@evil.example"
    row = send_mail(request_)
    assert (row.delivered_at is not None, row.status, row.problem) == (True, 250, "")
    (mail,) = mails.mails
    assert (mails.recipients, mails.signed_in) == (["ops@example.com", "dev@example.com"], ["\0pratique\0pw"])
    assert mail["Subject"] == "x\\r\\nBcc: eve@evil.example on prod: ready for review"
    assert mail["Bcc"] is None
    assert mail["From"] == "Pratique <pratique@pratique.example.com>"
    assert mail["Message-ID"].startswith(f"<{row.event_id}.")
    assert mail["List-Unsubscribe"] == f"<https://pratique.example.com/notifications/of/{row.target.name}>"
    plain, rich = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None
    assert rich is not None
    read = read_html(rich.get_content().partition("</style>")[2], {"body", "main", "h1", "p", "a", "small"})
    for words in HOSTILE:
        assert f"• {visible(words)}" in plain.get_content()
        assert f"• {visible(words)}" in read


@pytest.mark.parametrize(
    ("reply", "words", "status"),
    [
        ("550 5.1.1 no such user", "127.0.0.1: answered 550: 5.1.1 no such user", 400),
        ("451 4.7.1 try later", "127.0.0.1: answered 451: 4.7.1 try later", 503),
        ("", "certificate verify failed", 0),
    ],
)
def test_a_mail_that_is_refused_or_not_safe_is_said_to_be(
    request_: Request, mails: MailServer, monkeypatch: pytest.MonkeyPatch, reply: str, words: str, status: int
) -> None:
    if reply:
        mails.refused = dict.fromkeys(["ops@example.com", "dev@example.com"], reply)
    else:
        monkeypatch.delenv("SSL_CERT_FILE")
    row = send_mail(request_)
    assert (row.delivered_at, row.status, words in row.problem) == (None, status, True), row.problem
    row.target.refresh_from_db()
    assert (row.target.failures, mails.mails) == (0 if status == 400 else 1, [])
