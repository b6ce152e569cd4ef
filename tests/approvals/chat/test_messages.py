"""Messages out: what they say, where they go, and what untrusted words can do in them."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core import signing
from pytest_django import Settings

from approvals.chat import sending
from approvals.chat.tools.slack import SALT, Slack
from approvals.models import Report, Request
from provisioner.errors import Unreachable
from tests.support.approvals.chat import Listener
from tests.support.approvals.fixtures import World

pytestmark = pytest.mark.django_db
PAGE = "https://pratique.example/requests/"


def told(request: Request, listener: Listener, occasion: str = "needs_you") -> dict[str, Any]:
    sending.tell(request.pk, occasion)
    (message,) = listener.received
    return message


def buttons(message: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (actions,) = [block for block in message["blocks"] if block["type"] == "actions"]
    return {it["text"]["text"]: it for it in actions["elements"]}


def words(message: dict[str, Any]) -> str:
    text: str = message["blocks"][0]["text"]["text"]
    return text


def test_a_request_in_review_is_told_with_its_headline_and_buttons(asked: Request, listener: Listener) -> None:
    message = told(asked, listener)
    assert "*strimzi* on prod" in words(message)
    assert "one object is new" in words(message)
    assert list(buttons(message)) == ["Open", "Approve", "Deny"]
    assert buttons(message)["Open"]["url"] == f"{PAGE}{asked.uid}"


def test_a_button_carries_the_digest_that_the_message_is_about(asked: Request, listener: Listener) -> None:
    shown = buttons(told(asked, listener))
    values = {name: signing.loads(shown[name]["value"], salt=SALT) for name in ("Approve", "Deny")}
    assert values == {
        name: {"request": str(asked.uid), "digest": asked.subject_digest, "decision": name} for name in values
    }
    assert all(len(shown[name]["value"]) < 2000 for name in values)


@pytest.mark.parametrize("worst", ["dangerous", "unknown", "breaking", "critical"])
def test_a_risky_request_is_opened_not_approved(asked: Request, listener: Listener, worst: str) -> None:
    Report.objects.update(worst=worst)
    assert list(buttons(told(asked, listener))) == ["Open", "Deny"]


def test_a_request_that_deletes_is_opened_not_approved(asked: Request, listener: Listener) -> None:
    report = asked.reports.get()
    ref = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "harbour", "name": "old"}
    report.body["plan"]["actions"] = [{"action": "delete", "ref": ref}]
    report.save()
    assert list(buttons(told(asked, listener))) == ["Open", "Deny"]


def test_a_decision_is_told(asked: Request, listener: Listener) -> None:
    Request.objects.filter(pk=asked.pk).update(state="denied")
    words = "denied: No reason was given."
    assert told(asked, listener, "decided") == {"text": f"*strimzi* on prod: {words} <{PAGE}{asked.uid}|open>"}


def test_S24_untrusted_words_cannot_pretend_in_slack(asked: Request, listener: Listener) -> None:
    Report.objects.update(
        headline=[
            "<!channel> see <https://evil.example|the page> & approve",
            "safe\n• no\u202esecrets\u200b",
            "p\u0430ypal",
        ]
    )
    text = words(message := told(asked, listener))
    assert "&lt;!channel&gt; see &lt;https://evil.example|the page&gt; &amp; approve" in text
    assert "safe\\n• no\\u202esecrets\\u200b" in text
    assert "p\\u0430ypal" in text
    assert message["blocks"][0]["text"]["verbatim"] is True


def test_S24_totals_are_stated_and_what_does_not_fit_is_counted(asked: Request, listener: Listener) -> None:
    Report.objects.update(
        headline=[f"{number} " + "&" * 200 for number in range(40)],
        severities={"critical": 2, "notable": 38, "safe": 0},
    )
    text = words(told(asked, listener))
    shown = text.count("•")
    assert "2 critical · 38 notable\n" in text
    assert 0 < shown < 40
    assert f"… and {40 - shown} more" in text
    assert len(text) <= 3000


def test_nothing_is_sent_where_no_webhook_is_configured(
    asked: Request, listener: Listener, configured: Settings
) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "SLACK_WEBHOOK_URL": ""}
    sending.tell(asked.pk, "needs_you")
    assert listener.received == []


def test_a_request_that_went_on_meanwhile_needs_nobody(asked: Request, listener: Listener) -> None:
    Request.objects.filter(pk=asked.pk).update(state="superseded")
    sending.tell(asked.pk, "needs_you")
    assert listener.received == []


def test_a_chat_that_does_not_answer_is_said_without_its_secret_address(
    asked: Request, configured: Settings, listener: Listener
) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "SLACK_WEBHOOK_URL": "http://127.0.0.1:1/services/SECRET"}
    with pytest.raises(Unreachable) as found:
        sending.tell(asked.pk, "needs_you")
    assert "SECRET" not in str(found.value)


def test_a_chat_that_refuses_is_noted(asked: Request, listener: Listener, caplog: pytest.LogCaptureFixture) -> None:
    listener.status = 403
    with caplog.at_level(logging.WARNING, logger="approvals.chat.sending"):
        told(asked, listener)
    assert [record.message for record in caplog.records] == ["chat message refused"]


def test_a_redirect_is_not_followed(asked: Request, listener: Listener) -> None:
    listener.status, listener.headers = 307, {"Location": listener.url}
    told(asked, listener)


def test_a_busy_chat_is_an_error_that_may_be_tried_again(asked: Request, listener: Listener) -> None:
    listener.status = 429
    with pytest.raises(Unreachable):
        sending.tell(asked.pk, "needs_you")


def test_a_request_without_a_report_is_not_offered_for_approval(env: World, asked: Request) -> None:
    Report.objects.all().delete()
    message = Slack().message(asked, "needs_you")
    assert message is not None
    assert list(buttons(message)) == ["Open", "Deny"]


def test_what_an_approval_has_to_name_is_told_with_what_goes_with_it(asked: Request, listener: Listener) -> None:
    def ref(kind: str, name: str) -> dict[str, str]:
        return {"group": "", "version": "v1", "kind": kind, "namespace": "shop", "name": name}

    report = Report.objects.get()
    things = [ref("PersistentVolumeClaim", "data"), ref("ConfigMap", "a"), ref("ConfigMap", "b")]
    message = "Deletes PersistentVolumeClaim shop/data: 10Gi on <pv-1>"
    report.body["plan"]["actions"] = [{"action": "delete", "ref": one} for one in things]
    report.body["findings"] = [{"rule": "DEL-01", "ref": things[0], "message": message}]
    report.save()
    sent = told(asked, listener)
    lines = words(sent).splitlines()
    assert (
        "• an approval must acknowledge: delete PersistentVolumeClaim shop/data (Deletes PersistentVolumeClaim shop/data: 10Gi on &lt;pv-1&gt;)"
        in lines
    )
    assert "• an approval must acknowledge: 2 other objects" in lines
    assert list(buttons(sent)) == ["Open", "Deny"]
