"""Channels that do not show the report: one limit holds in all of them, and the answer is a link to the page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from approvals import services
from approvals.chat import deliveries
from approvals.errors import SelfApproval, TooSerious, Unacknowledged
from approvals.models import ChatDelivery, Report, Request, Review
from approvals.project import configuration
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.senders import decision_body, post_webhook, webhook_headers
from tests.support.approvals.world import acting

UNSEEN = [channel for channel in Review.Channel if not channel.shows_report]
SEEN = [Review.Channel.BROWSER, Review.Channel.REST]


def decide(request: Request, by: User, channel: str, decision: str = "Approve") -> Review:
    return world.review(request, acting(by), decision, channel=channel)


def limit(settings: Settings, severity: str) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "UNSEEN_SEVERITY": severity}


def test_S32_every_channel_says_whether_it_shows_the_report() -> None:
    assert {channel.value: channel.shows_report for channel in Review.Channel} == {
        "browser": True,
        "rest": True,
        "chat": False,
        "webhook": False,
        "kubectl": False,
        "policy": True,
    }


@pytest.mark.parametrize("worst", ["dangerous", "unknown", "breaking", "critical"])
def test_S32_the_generic_webhook_approves_nothing_serious_and_answers_with_the_page(
    asked: Request, robot: User, worst: str
) -> None:
    Report.objects.update(worst=worst)
    body = decision_body(asked)
    assert post_webhook(body, webhook_headers(body)).status_code == 202
    row = ChatDelivery.objects.get()
    deliveries.act(row.pk)
    row.refresh_from_db()
    assert f"Open https://pratique.example/requests/{asked.uid}" in row.words
    assert not Review.objects.exists()
    body = decision_body(asked, decision="Deny")
    assert json.loads(post_webhook(body, webhook_headers(body, key="msg_2")).content)["duplicate"] is False
    deliveries.act(ChatDelivery.objects.get(key="msg_2").pk)
    assert Review.objects.get().decision == "Deny"


@pytest.mark.parametrize("channel", UNSEEN)
def test_S32_the_limit_holds_in_the_service_for_every_channel(
    env: World, asked: Request, channel: Review.Channel
) -> None:
    Report.objects.update(worst="critical")
    with pytest.raises(TooSerious, match="its worst new finding is critical") as refused:
        decide(asked, env.ada, channel)
    assert refused.value.facts == {"page": f"https://pratique.example/requests/{asked.uid}"}
    assert decide(asked, env.ada, channel, "Deny").decision == "Deny"


@pytest.mark.parametrize("channel", SEEN)
def test_where_the_report_is_shown_no_limit_holds(env: World, asked: Request, channel: Review.Channel) -> None:
    Report.objects.update(worst="critical")
    assert decide(asked, env.ada, channel).decision == "Approve"


@pytest.mark.parametrize(
    ("limited_to", "worst", "is_refused"),
    [
        ("notable", "notable", False),
        ("safe", "notable", True),
        ("safe", "safe", False),
        ("dangerous", "dangerous", False),
        ("dangerous", "breaking", True),
        ("critical", "critical", False),
        ("critical", "unknown", True),
    ],
)
def test_S32_the_operator_sets_the_limit_and_unknown_is_above_every_one(
    env: World, asked: Request, settings: Settings, limited_to: str, worst: str, is_refused: bool
) -> None:
    limit(settings, limited_to)
    Report.objects.update(worst=worst)
    if is_refused:
        with pytest.raises(TooSerious):
            decide(asked, env.ada, "webhook")
    else:
        assert decide(asked, env.ada, "webhook").decision == "Approve"


def finding(request: Request, **columns: Any) -> None:
    told = {"section": "content", "message": "m", "fingerprint": "f", "position": 0, **columns}
    request.reports.get().findings.create(**told)


def test_S32_something_unknown_below_something_worse_counts_as_unknown(
    env: World, asked: Request, settings: Settings
) -> None:
    limit(settings, "critical")
    Report.objects.update(worst="critical")
    finding(asked, rule="SCH-60", severity="unknown")
    with pytest.raises(TooSerious, match="part of it is unknown"):
        decide(asked, env.ada, "webhook")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"rule": "OWN-PRATIQUE-03", "severity": "critical"}, "it affects Pratique itself"),
        ({"rule": "RB-02", "severity": "critical"}, "its worst new finding is critical"),
        ({"rule": "RB-00", "severity": "unknown"}, "part of it is unknown"),
    ],
)
def test_S32_what_the_report_keeps_from_some_readers_counts_as_well(
    env: World, asked: Request, found: dict[str, str], words: str
) -> None:
    report = Report.objects.get()
    report.body = {**report.body, "private": [found]}
    report.save()
    with pytest.raises(TooSerious, match=words):
        decide(asked, env.ada, "webhook")


def test_S09_S32_what_is_adopted_is_told_of_in_the_same_words_whatever_it_holds(env: World, asked: Request) -> None:
    report = Report.objects.get()
    adopted = {"action": "adopt", "problemCode": ""}
    words = set()
    for private in ([], [{"rule": "RB-02", "severity": "critical"}], [{"rule": "RB-00", "severity": "unknown"}]):
        report.body = {**report.body, "plan": {**report.body["plan"], "actions": [adopted]}, "private": private}
        report.save()
        words.add(services.why_not_unseen(asked))
    assert words == {"it adopts objects of someone else"}


@pytest.mark.parametrize(
    ("depends", "most", "other", "refusal"),
    [
        pytest.param(True, "notable", "", "is breaking, and the limit here is", id="one limit for both"),
        pytest.param(True, "notable", "breaking", "", id="a wider one for what depends on objects"),
        pytest.param(
            False, "notable", "breaking", "is breaking, and the limit", id="which is not that of what is proved"
        ),
        pytest.param(True, "notable", "dangerous", "is breaking, and the limit here is", id="not wide enough"),
        pytest.param(
            True,
            "breaking",
            "notable",
            "that depends on stored objects is breaking, and the limit here is notable",
            id="a stricter one holds too",
        ),
    ],
)
def test_S32_what_depends_on_stored_objects_has_a_limit_of_its_own(
    env: World, asked: Request, settings: Settings, depends: bool, most: str, other: str, refusal: str
) -> None:
    limit(settings, most)
    settings.PRATIQUE = {**settings.PRATIQUE, "UNSEEN_DEPENDING_SEVERITY": other}
    report = Report.objects.get()
    record = {"fingerprint": "f", "rule": "SCH-25", "severity": "breaking", "ref": None, "evidence": {"live": depends}}
    report.body, report.worst = {**report.body, "findings": [record]}, "breaking"
    report.save()
    finding(asked, rule="SCH-25", severity="breaking")
    if refusal:
        with pytest.raises(TooSerious, match=refusal):
            decide(asked, env.ada, "webhook")
    else:
        assert decide(asked, env.ada, "webhook").decision == "Approve"


def test_S32_without_a_report_nothing_is_approved_unseen(env: World, asked: Request) -> None:
    Report.objects.all().delete()
    with pytest.raises(TooSerious, match="the report is not ready yet"):
        decide(asked, env.ada, "chat")


def going(request: Request, kind: str = "ConfigMap", group: str = "", severity: str = "dangerous") -> str:
    """Let the plan delete one object more; returns how a review names it."""
    report = request.reports.get()
    ref = {"group": group, "version": "v1", "kind": kind, "namespace": "shop", "name": "old"}
    record = {"fingerprint": "gone", "rule": "DEL-01", "severity": severity, "ref": ref, "message": "", "evidence": {}}
    action = {"action": "delete", "ref": ref, "problemCode": ""}
    report.body = {**report.body, "findings": [record], "plan": {**report.body["plan"], "actions": [action]}}
    report.worst = severity
    report.save()
    finding(request, rule="DEL-01", severity=severity, fingerprint="gone")
    return f"delete {kind}{f'.{group}' if group else ''} shop/old"


def test_S32_a_deletion_without_data_that_the_review_names_counts_as_seen(env: World, asked: Request) -> None:
    named = going(asked)
    assert services.why_not_unseen(asked, names_deletions=True) == ""
    with pytest.raises(Unacknowledged) as refused:
        decide(asked, env.ada, "kubectl")
    assert refused.value.facts["missing"] == [named]
    for channel in ("chat", "webhook"):
        with pytest.raises(TooSerious):
            world.review(asked, acting(env.ada), "Approve", channel=channel, acknowledges=[named])
    assert world.review(asked, acting(env.ada), "Approve", channel="kubectl", acknowledges=[named]).pk


@pytest.mark.parametrize(
    ("kind", "group", "severity"),
    [
        pytest.param("Secret", "", "breaking", id="data that goes"),
        pytest.param("PersistentVolumeClaim", "", "dangerous", id="a claim whose volume is kept"),
        pytest.param("Cluster", "postgresql.cnpg.io", "dangerous", id="what only an operator knows"),
    ],
)
def test_S32_a_deletion_that_may_take_data_along_has_to_be_seen(
    env: World, asked: Request, kind: str, group: str, severity: str
) -> None:
    named = going(asked, kind, group, severity)
    with pytest.raises(TooSerious, match=f"its worst new finding is {severity}"):
        world.review(asked, acting(env.ada), "Approve", channel="kubectl", acknowledges=[named])


def test_S32_something_else_beside_a_named_deletion_has_to_be_seen(env: World, asked: Request) -> None:
    named = going(asked)
    finding(asked, rule="SV-04", severity="dangerous", fingerprint="other", position=1)
    with pytest.raises(TooSerious):
        world.review(asked, acting(env.ada), "Approve", channel="kubectl", acknowledges=[named])


def test_S05_who_asked_hears_that_before_what_the_report_holds(env: World, asked: Request) -> None:
    going(asked, severity="breaking")
    env.kubernetes.allow("rita", "approve")
    with pytest.raises(SelfApproval):
        decide(asked, env.rita, "kubectl")


def test_unknown_is_no_limit_that_can_be_set() -> None:
    with pytest.raises(ValueError, match="PRATIQUE_UNSEEN_SEVERITY"):
        configuration.read({"PRATIQUE_UNSEEN_SEVERITY": "unknown"})
