"""The reason and the ticket of a change: kept with its request, never taken for another one."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from approvals import services
from approvals.chat.tools.slack import Slack
from approvals.gate.deciding_objects import load_policies
from approvals.gate.people import Accepted
from approvals.gate.policies import facts_of, guards_of
from approvals.ledger import pivots
from approvals.ledger.change_words import CHANGE_REASON, CHANGE_TICKET, ChangeWords
from approvals.models import AuditEntry, Policy, Report, Request, RequestText, VoidedRound
from approvals.project.settings_table import ticket_site
from approvals.selectors import inbox
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse
from tests.support.approvals.policies import save
from tests.support.approvals.world import acting

UID = "11111111-1111-4111-8111-111111111111"


def written(reason: str = "", ticket: str = "") -> dict[str, str]:
    return {name: text for name, text in ((CHANGE_REASON, reason), (CHANGE_TICKET, ticket)) if text}


def see(env: World, version: str, generation: int, annotations: dict[str, str], **more: str) -> None:
    obj = world.seen("strimzi", world.spec(version), uid=UID, generation=generation)
    obj["metadata"]["annotations"] = annotations | {f"core.rukpak.io/{name}": text for name, text in more.items()}
    world.submit_spec(env.cluster, obj, env.rita)


def kept() -> list[tuple[str, str]]:
    return list(Request.objects.order_by("number").values_list("change_reason", "change_ticket"))


BOTH = written("certificates end", "CHG0001234")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(BOTH, ("", ""), id="left from an earlier change"),
        pytest.param({}, ("", ""), id="taken away"),
        pytest.param(written("other", "CHG0001234"), ("other", ""), id="each alone"),
        pytest.param(written("certificates end", "CHG0001234@2"), ("", "CHG0001234"), id="the same ticket once more"),
    ],
)
def test_a_new_spec_takes_only_words_that_were_written_with_it(
    env: World, second: dict[str, str], expected: tuple[str, str]
) -> None:
    see(env, "1", 1, BOTH)
    see(env, "1", 1, BOTH)
    see(env, "2", 2, second)
    assert kept() == [("certificates end", "CHG0001234"), expected]
    assert AuditEntry.objects.filter(verb="request.made").order_by("number")[0].facts["ticket"] == "CHG0001234"


def test_words_that_are_written_later_are_the_open_requests_without_another_round(env: World) -> None:
    see(env, "1", 1, {})
    request = world.in_review(Request.objects.get())
    see(env, "1", 1, written("", "CHG0001234"))
    see(env, "1", 1, written("why", "CHG0001234"))
    see(env, "1", 1, {})
    request.refresh_from_db()
    assert (request.round, request.state, request.mirrored_at) == (1, "in_review", None)
    assert kept() == [("why", "CHG0001234")]
    assert not VoidedRound.objects.exists()
    changed = AuditEntry.objects.filter(verb="request.change-words").order_by("number")
    assert [row.facts["before"]["ticket"] for row in changed] == ["", "CHG0001234"]
    assert RequestText.objects.get().text == "strimzi\nchg0001234\nwhy\none object is new"


def test_once_it_is_approved_only_a_missing_ticket_is_taken_over(env: World) -> None:
    see(env, "1", 1, written("why"))
    world.in_review(Request.objects.get())
    Request.objects.update(state="approved")
    see(env, "1", 1, written("another", "CHG0001234"))
    assert kept() == [("why", "CHG0001234")]
    see(env, "1", 1, written("another", "CHG9999999"))
    assert kept() == [("why", "CHG0001234")]


def test_S51_who_approved_decided_by_the_ticket_that_they_saw_whatever_is_written_in_a_later_round(env: World) -> None:
    see(env, "1", 1, written("why", "CHG0001234"))
    request = world.in_review(Request.objects.get())
    world.review(request, acting(env.ada))
    Request.objects.update(round=2)
    see(env, "1", 1, written("another", "CHG9999999"))
    assert kept() == [("why", "CHG0001234")]


def test_words_written_while_nothing_is_open_are_for_no_later_change(env: World) -> None:
    see(env, "1", 1, {})
    world.in_review(Request.objects.get())
    Request.objects.update(state="applied")
    see(env, "1", 1, BOTH)
    see(env, "1", 1, BOTH, **{"ask-again": "now"})
    see(env, "2", 2, BOTH)
    assert kept() == [("", "")] * 3


def test_words_of_a_change_wait_with_it_while_another_is_applied(env: World) -> None:
    see(env, "1", 1, {})
    world.in_review(Request.objects.get())
    Request.objects.update(state="applying")
    see(env, "2", 2, BOTH)
    see(env, "2", 2, BOTH)
    assert kept() == [("", "")]
    Request.objects.update(state="applied")
    see(env, "2", 2, BOTH)
    assert kept() == [("", ""), ("certificates end", "CHG0001234")]


def test_a_change_that_came_while_another_is_applied_leaves_earlier_words_behind(env: World) -> None:
    see(env, "1", 1, {})
    world.in_review(Request.objects.get())
    Request.objects.update(state="applying")
    see(env, "1", 1, BOTH)
    see(env, "2", 2, BOTH)
    Request.objects.update(state="applied")
    see(env, "2", 2, BOTH)
    assert kept() == [("", ""), ("", "")]


def test_doors_of_ours_write_the_same_ticket_again_also_where_the_watch_was_first(env: World) -> None:
    words = ChangeWords("first", "CHG0001234")
    made = services.create_deployment(
        by=acting(env.rita),
        cluster=env.cluster,
        name="strimzi",
        spec=world.spec("1"),
        labels={},
        via="rest",
        words=words,
    )
    replace = env.kubernetes.replace

    def seen_at_once(*args: Any, **more: Any) -> Any:
        obj = replace(*args, **more)
        pivots.see(cluster=env.cluster, obj=obj, writer=None)
        return obj

    env.kubernetes.replace = seen_at_once  # type: ignore[method-assign] # the watch is faster than the door
    services.change_deployment(
        by=acting(env.rita), deployment=made, spec=world.spec("2"), generation=1, via="rest", words=words
    )
    made.refresh_from_db()
    services.change_deployment(by=acting(env.rita), deployment=made, spec=world.spec("3"), generation=2, via="rest")
    assert kept() == [("first", "CHG0001234"), ("first", "CHG0001234"), ("", "")]
    assert not {CHANGE_REASON, CHANGE_TICKET} & env.kubernetes.objects["strimzi"]["metadata"]["annotations"].keys()


HOSTILE = "\0 <b>*x*</b> \u202efdp\ud800 <!channel> <https://evil.example|ok>"


def test_hostile_words_are_cut_and_shown_as_what_they_are(env: World, browse: Browse, settings: Settings) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "TICKET_URL": "https://tickets.example/{ticket}?x"}
    see(env, "1", 1, written(HOSTILE + "y" * 5000, f"../{HOSTILE}" + "z" * 5000))
    request = world.in_review(Request.objects.get())
    assert (len(request.change_reason), len(request.change_ticket)) == (1000, 200)
    assert request.change_reason.startswith("\ufffd <b>")
    page = browse(env.ada).get(f"/requests/{request.uid}").content.decode()
    assert "&lt;b&gt;*x*&lt;/b&gt;" in page and "\\u202efdp" in page and "<b>*x*" not in page
    assert 'href="https://tickets.example/..%2F%EF%BF%BD%20%3Cb%3E' in page
    message = Slack().message(request, "needs_you")
    assert message is not None
    text = message["blocks"][0]["text"]["text"]
    assert len(text) <= 3000 and "<!channel>" not in text and "|ok>" not in text and "\u202e" not in text


def test_a_guard_can_require_a_ticket(env: World) -> None:
    see(env, "1", 1, {})
    request = world.in_review(Request.objects.get())
    form = "change_ticket.matches('^CHG[0-9]{7}$')"
    save(env, kind=Policy.Kind.GUARD, expression=form)
    report = Report.objects.get()

    def said(ticket: str) -> str:
        see(env, "1", 1, written("", ticket))
        request.refresh_from_db()
        assert facts_of(request, report).keys() >= {"change_reason", "change_ticket"}
        return guards_of(request, report, Accepted(), load_policies(request))[0].result

    assert [said(ticket) for ticket in ("CHG1", "CHG0001234", "xCHG0001234")] == ["holds", "passes", "holds"]


def test_the_inbox_finds_a_ticket(env: World) -> None:
    see(env, "1", 1, BOTH)
    found = inbox.InboxFilter(text="chg0001").narrow(Request.objects.all())
    assert found.count() == 1


def test_a_ticket_address_says_where_the_ticket_stands_but_not_on_which_host() -> None:
    assert ticket_site("https://tickets.example/{ticket}") and not ticket_site("")
    for text in ("https://{ticket}.example/", "https://tickets.example/", "javascript:{ticket}", "{ticket}"):
        with pytest.raises(ValueError, match="was given"):
            ticket_site(text)
