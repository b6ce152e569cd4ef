"""Accepting findings in the browser: what is offered to whom, what is kept, and what everybody sees afterwards."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from approvals.models import AuditEntry, Report, Request, Review
from approvals.policy import OWN_RULES_PREFIX
from approvals.services.waivers import MAX_WAIVERS, Waiver
from approvals.web.requests import decision_form
from approvals.web.requests.decision_form import FIELD
from approvals.web.requests.report_view import MAX_OPENED
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, decide, text_of
from tests.support.approvals.reports import with_findings
from tests.support.approvals.waivers import finding
from tests.support.approvals.world import acting

NAMED = {"typed": "harbour", "reason": "we talked"}


@pytest.fixture
def serious(env: World, afternoon: dict[str, Any]) -> Request:
    """A request with many findings; ada may override it."""
    env.kubernetes.allow("ada", "override", "harbour")
    request: Request = afternoon["serious"]
    return request


def found(request: Request) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = Report.objects.get(request=request).body["findings"]
    return listed


def fingerprints(request: Request) -> list[str]:
    """Of what may be accepted: a power over Pratique itself may not."""
    return [one["fingerprint"] for one in found(request) if not one["rule"].startswith(OWN_RULES_PREFIX)]


def page_of(client: Client, request: Request) -> str:
    return text_of(client.get(f"/requests/{request.uid}/findings"))


def fields_of(page: str) -> list[str]:
    """The findings that have a field of their own."""
    return re.findall(f'name="{FIELD}([^",]+)"', page)


def history_of(client: Client, request: Request) -> str:
    return text_of(client.get(f"/requests/{request.uid}/activity"))


def test_who_may_override_finds_a_field_at_each_finding(env: World, serious: Request, browse: Browse) -> None:
    page = page_of(browse(env.ada), serious)
    fields = fields_of(page) + fields_of(list_of(browse(env.ada), serious, "?quiet=yes"))
    assert sorted(fields) == sorted(fingerprints(serious))
    assert len(fingerprints(serious)) < len(found(serious)), "there is one that nobody may accept"
    assert page.count('id="review-form"') == 1
    assert "You may accept a finding" in page


def test_who_may_approve_only_is_told_why_there_is_none(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    page = page_of(browse(env.ada), afternoon["serious"])
    assert FIELD not in page
    assert "You cannot accept findings: accepting a finding needs the verb override" in page
    assert "verbs: [&quot;override&quot;]" in page


def test_who_may_not_decide_is_not_asked_about(env: World, serious: Request, browse: Browse) -> None:
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("bert", "override")
    env.kubernetes.asked.clear()
    assert FIELD not in page_of(browse(env.bert), serious)
    assert "override" not in {one.verb for _, one in env.kubernetes.asked}


def test_what_was_written_at_a_finding_is_kept_with_the_approval(env: World, serious: Request, browse: Browse) -> None:
    first, second, *_ = fingerprints(serious)
    client = browse(env.ada)
    form = {FIELD + first: " the nodes are\r\nours ", FIELD + second: "", **NAMED}
    assert decide(client, serious, **form).status_code == 302
    review = Review.objects.get(request=serious)
    assert review.waives == [{"fingerprint": first, "reason": "the nodes are\nours"}]
    page = page_of(client, serious)
    assert page.count("the nodes are\nours") == 2, "next to the finding, in the form to decide again"
    assert history_of(client, serious).count("the nodes are\nours") == 1
    assert 'Accepted by <span class="mono">ada</span>' in page
    assert page.count('<span class="label label-plain">accepted</span>') == 1


def test_a_denial_accepts_nothing(env: World, serious: Request, browse: Browse) -> None:
    form = {FIELD + fingerprints(serious)[0]: "why not", "decision": "Deny", "reason": "no"}
    assert decide(browse(env.ada), serious, **form).status_code == 302
    assert Review.objects.get(request=serious).waives == []


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({FIELD + "foreign": "why not"}, "not in the report", id="foreign"),
        pytest.param({FIELD: "why not"}, "not in the report", id="no fingerprint"),
        pytest.param(
            {"reason": "", FIELD + "f": "so that <b>all</b> is kept"}, "enter why you approve it anyway", id="form"
        ),
    ],
)
def test_what_is_refused_is_shown_again_with_what_was_written(
    env: World, serious: Request, browse: Browse, form: dict[str, str], words: str
) -> None:
    first = fingerprints(serious)[0]
    response = decide(browse(env.ada), serious, **{**NAMED, **form, FIELD + first: "kept & <i>safe</i>"})
    assert response.status_code == 422
    assert words in text_of(response)
    assert "kept &amp; &lt;i&gt;safe&lt;/i&gt;</textarea>" in text_of(response)
    assert not Review.objects.filter(request=serious).exists()


def test_S12_a_forged_field_without_the_right_is_refused(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    serious = afternoon["serious"]
    response = decide(browse(env.ada), serious, **{FIELD + fingerprints(serious)[0]: "why not", **NAMED})
    assert response.status_code == 403
    assert "needs the verb override" in text_of(response)
    assert not Review.objects.filter(request=serious).exists()


def test_S03_a_stale_tab_accepts_nothing(env: World, serious: Request, browse: Browse) -> None:
    form = {FIELD + fingerprints(serious)[0]: "why not", "subject_digest": "sha256:old", **NAMED}
    assert decide(browse(env.ada), serious, **form).status_code == 409
    assert not Review.objects.filter(request=serious).exists()


def test_a_form_sent_twice_accepts_once(env: World, serious: Request, browse: Browse) -> None:
    form = {FIELD + fingerprints(serious)[0]: "why not", **NAMED}
    answers = [decide(browse(env.ada), serious, **form).status_code for _ in range(2)]
    assert answers == [302, 302]
    assert Review.objects.filter(request=serious).count() == 1


def test_ten_thousand_fields_are_refused(env: World, serious: Request, browse: Browse) -> None:
    form = {f"{FIELD}{number}": "x" for number in range(10_000)}
    assert decide(browse(env.ada), serious, **form, **NAMED).status_code in (400, 413)
    assert not Review.objects.filter(request=serious).exists()


def test_what_nobody_may_accept_says_so_instead(env: World, browse: Browse) -> None:
    found = (finding(1), finding(2, "unknown", "GAP-01"), finding(3, "critical", "OWN-PRATIQUE-01"))
    page = page_of(browse(env.ada), with_findings(env, *found))
    assert [number for number in (1, 2, 3) if f'name="{FIELD}f{number}"' in page] == [1]
    assert "This finding cannot be accepted: its effect is unknown" in page
    assert "This finding cannot be accepted: it affects Pratique itself" in page


def test_a_very_long_report_can_still_be_decided_on(env: World, browse: Browse) -> None:
    """More fields than a form may have would make even the denial impossible."""
    request = with_findings(env, *(finding(number, "notable") for number in range(1200)))
    page = page_of(browse(env.ada), request)
    assert len(fields_of(page)) == MAX_OPENED
    assert page.count('form="review-form"') == MAX_OPENED + 1, "and one for the rule"
    form = {f"{FIELD}f{number}": "" for number in range(MAX_WAIVERS)}
    assert decide(browse(env.ada), request, **form).status_code == 302


def list_of(client: Client, request: Request, query: str = "") -> str:
    return text_of(client.get(f"/requests/{request.uid}/findings{query}"))


@pytest.fixture
def long(env: World) -> Request:
    """A request with more findings than a section of its page opens."""
    return with_findings(env, *(finding(number, "notable") for number in range(3 * MAX_OPENED)))


def test_every_finding_of_a_long_report_can_be_accepted(env: World, browse: Browse, long: Request) -> None:
    client = browse(env.ada)
    pages = [list_of(client, long, f"?page={number}") for number in (1, 2)]
    offered = [one for one in fingerprints(long) if any(f'name="{FIELD}{one}"' in page for page in pages)]
    assert offered == fingerprints(long)
    assert [page.count('id="review-form"') for page in pages] == [1, 1]


def test_a_finding_can_be_accepted_where_it_stands_alone(env: World, browse: Browse, long: Request) -> None:
    client, last = browse(env.ada), fingerprints(long)[-1]
    assert f'name="{FIELD}{last}"' not in page_of(client, long)
    page = list_of(client, long, f"?only={last}")
    assert (page.count(FIELD), page.count(f'name="{FIELD}{last}"')) == (1, 1)
    assert f'name="subject_digest" value="{long.subject_digest}"' in page
    assert decide(client, long, **{FIELD + last: "ours"}).status_code == 302
    assert Review.objects.get(request=long).waives == [{"fingerprint": last, "reason": "ours"}]
    assert "Accepted by" in list_of(client, long, f"?only={last}")


def test_the_list_of_findings_asks_for_the_same_right(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    page = list_of(browse(env.ada), afternoon["serious"])
    assert FIELD not in page
    assert "You cannot accept findings: accepting a finding needs the verb override" in page


def test_a_list_of_findings_that_are_settled_offers_nothing(env: World, browse: Browse, long: Request) -> None:
    client = browse(env.ada)
    assert decide(client, long).status_code == 302
    Request.objects.filter(pk=long.pk).update(state="approved")
    page = list_of(client, long)
    assert FIELD not in page
    assert 'id="review-form"' not in page


def test_what_was_written_in_the_list_is_kept_where_the_decision_is_refused(
    env: World, browse: Browse, serious: Request
) -> None:
    found = [finding(number, "dangerous") for number in range(2 * MAX_OPENED)]
    request = with_findings(env, *found)
    Report.objects.filter(request=request).update(worst="dangerous")
    last = fingerprints(request)[-1]
    form = {FIELD + last: "kept <b>here</b>", FIELD + "foreign": "and not this", "reason": ""}
    response = decide(browse(env.ada), request, **form)
    page = text_of(response)
    assert response.status_code == 422
    assert "Findings on other pages that you accept" in page
    assert page.count(f'name="{FIELD}{last}"') == 1
    assert "kept &lt;b&gt;here&lt;/b&gt;</textarea>" in page
    assert "and not this" not in page
    response = decide(browse(env.ada), request, **{FIELD + last: "kept", "typed": "barge", "reason": "we talked"})
    assert response.status_code == 302
    assert Review.objects.get(request=request).waives == [{"fingerprint": last, "reason": "kept"}]


def test_S09_a_secret_that_one_may_not_see_is_not_offered(env: World, browse: Browse) -> None:
    ref = {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "keys"}
    request = with_findings(env, finding(1, ref=ref))
    report = Report.objects.get(request=request)
    report.body["plan"]["actions"] = [
        {
            **report.body["plan"]["actions"][0],
            "ref": ref,
            "action": "update",
            "before": {"kind": "Secret"},
            "after": {"kind": "Secret"},
        }
    ]
    report.save()
    env.kubernetes.closed.add("secrets")
    for page in (page_of(browse(env.ada), request), list_of(browse(env.ada), request)):
        assert FIELD not in page
        assert "This finding cannot be accepted: you may not see it" in page


def waive(env: World, request: Request, fingerprint: str, reason: str) -> None:
    world.review(request, acting(env.ada), channel="rest", waives=[Waiver(fingerprint, reason)])


@pytest.mark.parametrize("where", ["requests/{}", "requests/{}/report.html", "audit"])
def test_S24_a_reason_hides_nothing_wherever_it_is_shown(
    env: World, serious: Request, browse: Browse, where: str
) -> None:
    waive(env, serious, fingerprints(serious)[0], "fine \u202egnp.exe <script>alert(1)</script>")
    page = text_of(browse(env.ada).get("/" + where.format(serious.uid)))
    assert "gnp.exe" in page
    assert "\u202e" not in page
    assert "<script>alert" not in page


def test_the_printed_report_says_who_accepted_what(env: World, serious: Request, browse: Browse) -> None:
    waive(env, serious, fingerprints(serious)[0], "the nodes are ours")
    page = text_of(browse(env.ada).get(f"/requests/{serious.uid}/report.html"))
    assert page.count("Accepted by ada on ") == 1
    assert " UTC: the nodes are ours" in page


def test_the_audit_page_says_what_was_accepted(env: World, serious: Request, browse: Browse) -> None:
    first = fingerprints(serious)[0]
    waive(env, serious, first, "the nodes are ours")
    page = text_of(browse(env.ada).get("/audit"))
    (rule,) = [one["rule"] for one in found(serious) if one["fingerprint"] == first]
    assert f"rule {rule}" in page
    assert "the nodes are ours" in page
    assert AuditEntry.objects.get(verb="review.given", request_uid=serious.uid).facts["waives"][0]["rule"] == rule


def test_a_waiver_of_an_earlier_round_is_history_and_no_longer_next_to_the_finding(
    env: World, serious: Request, browse: Browse
) -> None:
    first = fingerprints(serious)[0]
    waive(env, serious, first, "the nodes are ours")
    body = Report.objects.get(request=serious).body
    Request.objects.filter(pk=serious.pk).update(round=2)
    serious.refresh_from_db()
    world.in_review(serious)
    second = Report.objects.get(request=serious, round=2)
    second.body = body
    second.save()
    client = browse(env.ada)
    assert "the nodes are ours" not in page_of(client, serious)
    page = history_of(client, serious)
    assert page.count("the nodes are ours") == 1
    assert f"accepts <code>{first[:12]}</code>" in page


def turned(client: Client, request: Request, page: int, **form: Any) -> Any:
    given = {"subject_digest": request.subject_digest, **form}
    return client.post(f"/requests/{request.uid}/findings?severity=notable&page={page}", given)


def test_what_was_written_goes_along_to_the_next_page_of_findings(env: World, browse: Browse, long: Request) -> None:
    client, found = browse(env.ada), fingerprints(long)
    first, last = found[0], found[-1]
    page = text_of(turned(client, long, 2, **{FIELD + first: "kept <b>here</b>", FIELD + "foreign": "no"}, reason="so"))
    assert (page.count(f'name="{FIELD}{first}"'), page.count(f'name="{FIELD}{last}"')) == (1, 1)
    assert "kept &lt;b&gt;here&lt;/b&gt;</textarea>" in page
    assert ">so</textarea>" in page
    assert 'role="alert"' not in page
    assert f'formaction="/requests/{long.uid}/findings?severity=notable&amp;page=1"' in page
    assert not Review.objects.filter(request=long).exists()
    assert decide(client, long, **{FIELD + first: "ours", FIELD + last: "ours, too"}).status_code == 302
    assert {one["fingerprint"] for one in Review.objects.get(request=long).waives} == {first, last}


def test_S03_what_was_written_about_another_round_does_not_go_along(env: World, browse: Browse, long: Request) -> None:
    response = turned(browse(env.ada), long, 2, subject_digest="sha256:old", **{FIELD + fingerprints(long)[0]: "x"})
    assert (response.status_code, "changed since you opened it" in text_of(response)) == (409, True)


def test_who_accepts_nothing_turns_the_page_by_links(env: World, browse: Browse, long: Request) -> None:
    env.kubernetes.allowed.discard(("ada", "override", "*"))
    page = list_of(browse(env.ada), long, "?severity=notable")
    assert ("formaction=" in page, 'rel="next"' in page) == (False, True)


def test_what_was_ticked_is_kept_where_the_decision_is_refused(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    deleting = afternoon["deleting"]
    first, *_ = decision_form.ticks_of(deleting)
    page = text_of(decide(browse(env.ada), deleting, acknowledges=first.value, typed="buoy", reason="moved away"))
    assert page.count('name="acknowledges"') > page.count(" checked>") == 1


def test_findings_of_a_rule_are_accepted_together_by_one_reason(env: World, serious: Request, browse: Browse) -> None:
    first, second, third, *_ = fingerprints(serious)
    form = {f"{FIELD}{first},{second},{third}": "all of these are ours", FIELD + second: "but this one is theirs"}
    assert decide(browse(env.ada), serious, **form, **NAMED).status_code == 302
    assert {one["fingerprint"]: one["reason"] for one in Review.objects.get(request=serious).waives} == {
        first: "all of these are ours",
        second: "but this one is theirs",
        third: "all of these are ours",
    }


def test_a_rule_offers_one_field_for_exactly_its_findings(env: World, browse: Browse) -> None:
    same = [finding(at, "notable", rule="IMG-01", message=f"image {at} is odd") for at in range(3)]
    request = with_findings(env, *same, finding(7, "notable", rule="IMG-02"))
    page = page_of(browse(env.ada), request)
    names = ",".join(one["fingerprint"] for one in same)
    assert page.count(f'name="{FIELD}{names}"') == 1
    assert page.count("findings together") == 1
