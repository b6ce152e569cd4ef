"""Strimzi and Argo CD as people see them who have never seen Pratique: what is asked, what stops it, who must agree."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest

from tests.browser.complaints import OPEN_ALL, complaints
from tests.browser.journeys.conftest import Offices
from tests.browser.journeys.office import Office
from tests.browser.tabs import press
from tests.support.folders import CORPUS
from tests.support.journeys.contents import bundles
from tests.support.journeys.contents.strimzi import custom_objects, storing_v1, strimzi

pytestmark = [pytest.mark.corpus, pytest.mark.thorough]
TABS = ("", "/findings", "/changes", "/activity", "/rights", "/schemas")


def first_look(page: pw.Page, it: Office, *, versions: str, severity: str, worst: str, stops: str = "") -> None:
    """The checklist of docs/reviewing, on every tab and at 1280 x 800, without scrolling."""
    for tab in TABS:
        page.goto(f"{it.address}{it.at_request}{tab}")
        bar = page.get_by_role("group", name="Where this request stands")
        answers = [
            page.get_by_role("heading", level=1).filter(has_text=it.name).filter(has_text=versions),
            page.get_by_text("requested by").first,
            bar.locator(".severity", has_text=severity),
            bar.locator(".request-sentence", has_text=worst),
            bar.get_by_text("1 more approval needed"),
            bar.get_by_role("link", name="Request changes"),
            bar.get_by_role("link", name="Deny"),
            *([page.get_by_text(stops).first] if stops else []),
        ]
        for answer in answers:
            pw.expect(answer, tab).to_be_in_viewport(ratio=0.9)
        assert page.evaluate("scrollY") == 0
        assert complaints(page) == [], tab
    for paper in ("", "/findings", "/report.html"):
        page.goto(f"{it.address}{it.at_request}{paper}")
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280, paper
        page.emulate_media(media="screen")


def commands_of(page: pw.Page, crd: str) -> list[str]:
    """What the finding about this CRD says to type, as it stands on the page of these findings, where all is open.

    Findings that say the same stand within one another: the innermost is about this CRD alone.
    """
    finding = page.locator("details.finding").filter(has_text="CRD-10").filter(has_text=f" {crd}").last
    lines = finding.inner_text().splitlines()
    return [f"kubectl {rest}" for line in lines for rest in line.split(": kubectl ")[1:]]


@pytest.mark.usefixtures("strimzi_site")
def test_strimzi_goes_from_0_51_to_1_0_by_what_the_pages_say(real_office: Offices) -> None:
    it = real_office("strimzi")
    it.content = lambda _, version: storing_v1(strimzi("0.51.0")) if version == "0.51.1" else strimzi(version)
    it.submit_spec("0.51.0")
    it.approve_at_once("alice")
    it.work()
    it.site.ctl("wait", "crd/kafkas.kafka.strimzi.io", "--for=condition=Established", "--timeout=60s")
    made = [it.site.api.create(one) for one in custom_objects(it.site.namespace)]

    # What the API server would refuse is said first, on every tab; an approval is asked about, and denied after all.
    it.submit_spec("1.0.0")
    stops = "As it stands this cannot be applied: 10 CRDs would be refused."
    alice = it.screen("alice", it.at_request)
    first_look(alice, it, versions="→", severity="breaking", worst="version v1beta2 removed", stops=stops)
    alice = it.screen("alice", it.at_request)
    for name in ("possible from you", "carol", "platform"):
        pw.expect(alice.locator(".request-people")).to_contain_text(name)
    alice.get_by_label("Reason").fill("I read every object")
    alice.locator("#typed").fill(it.name)
    press(alice, "Approve")
    pw.expect(alice.get_by_role("button", name="Approve anyway")).to_be_visible()
    assert not it.request.reviews.exists()
    alice.get_by_label("Reason").fill("first migrate what is stored as v1beta2")
    press(alice, "Deny")
    it.work()
    rita = it.screen("rita", "/home")
    pw.expect(rita.get_by_role("region", name="What happened")).to_contain_text("first migrate what is stored")
    rita = it.screen("rita", it.at_request)
    rita.get_by_role("link", name="Change it").click()

    # A version that stores v1, and the steps of the report; then it is applied.
    rita.get_by_label("Image", exact=True).fill(it.image("0.51.1"))
    press(rita, "Request this change")
    it.work()
    it.approve_at_once("alice")
    it.work()
    assert it.request.state == "applied", it.request.problem
    it.submit_spec("1.0.0")
    assert it.request.state == "in_review", it.request.problem
    alice = it.screen("alice", f"{it.at_request}/findings?search=CRD-10")
    alice.evaluate(OPEN_ALL)
    with_objects = {f"{one['kind'].lower()}s.kafka.strimzi.io" for one in made}
    for crd in it.site.ctl("get", "crd", "-o", "name").split():
        name = crd.partition("/")[2]
        if name.endswith("strimzi.io"):
            commands = commands_of(alice, name)
            assert commands, name
            for command in commands if name in with_objects else commands[-1:]:
                it.site.shell(command)
    it.work()
    alice = it.screen("alice", it.at_request)
    alice.get_by_label("Reason").fill("migrated")
    alice.locator("#typed").fill(it.name)
    press(alice, "Approve")
    if alice.get_by_role("button", name="Approve anyway").count():
        press(alice, "Approve anyway")
    it.work()
    assert it.request.state == "applied", it.request.problem
    rita = it.screen("rita", it.at_request)
    pw.expect(rita.locator("#progress")).to_contain_text("27 of 27 objects")


def test_argo_cd_goes_from_2_10_over_a_request_for_changes_to_2_12(office: Offices) -> None:
    it = office("argo-cd")
    it.content = lambda _, version: bundles.folder(CORPUS / "plain" / "argo-cd" / version)
    it.submit_spec("v2.10.0")
    it.approve_at_once("alice")
    it.work()
    it.submit_spec("v2.14.0")
    alice = it.screen("alice", it.at_request)
    first_look(alice, it, versions="→", severity="critical", worst="bypass the approvals of Pratique")
    alice = it.screen("alice", it.at_request)
    alice.get_by_label("Reason").fill("2.12 first: this is a release candidate")
    press(alice, "Request changes")
    rita = it.screen("rita", it.at_request)
    pw.expect(rita.get_by_role("main")).to_contain_text("2.12 first: this is a release candidate")
    rita.get_by_role("link", name="Change it").click()
    rita.get_by_label("Image", exact=True).fill(it.image("v2.12.0"))
    press(rita, "Request this change")
    it.work()
    alice = it.screen("alice", it.at_request)
    pw.expect(alice.get_by_role("heading", name="Since your review")).to_be_visible()
    rita = it.screen("rita", it.at_request)
    it.approve_at_once("alice", "carol")
    it.work()
    pw.expect(rita.locator("#progress .label", has_text="applied").first).to_be_visible()
    pw.expect(rita.locator("#progress[hx-get]")).to_have_count(0)
    assert it.request.state == "applied", it.request.problem
