"""The pictures and the list of findings in a real browser: by keyboard, without scripts, with hostile names, on a telephone."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest
from pytest_django.live_server_helper import LiveServer

from approvals.models import Review
from tests.browser.complaints import OPEN_ALL, complaints, listen, wider_than
from tests.browser.conftest import SignIn
from tests.support.approvals.fixtures import World
from tests.support.approvals.reports import drawn, many, with_findings
from tests.support.approvals.waivers import finding
from tests.support.provisioner.example_crd import TEXT, crd
from tests.support.provisioner.example_roles import PODS, SECRETS, binding, role

LONG = "n" * 253
WIDE = {"width": 1280, "height": 800}
PATHS = ("", "/findings", "/rights", "/schemas")


def hostile(env: World) -> str:
    """The address of a request with names as long and as misleading as Kubernetes takes them."""
    other = {**PODS, "resources": [f"things{at}" for at in range(30)]}
    old = [role(LONG, PODS), binding(LONG, LONG), crd({LONG: TEXT, "a": TEXT, "b": TEXT})]
    new = [role(LONG, PODS, SECRETS, other), binding(LONG, LONG), crd({LONG: {"type": "integer"}, "a": TEXT})]
    new.append(binding("x\u202ey", "view", namespace="shop"))
    return f"/requests/{drawn(env, old, new).uid}"


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_hostile_names_break_no_picture(scheme: str, env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    address = hostile(env)
    page = sign_in(env.ada)
    heard = listen(page)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    wrong: dict[str, list[str]] = {}
    for path in PATHS:
        page.goto(f"{live_server.url}{address}{path}")
        page.evaluate(OPEN_ALL)
        if found := complaints(page) + wider_than(page, 1280, 390):
            wrong[path] = found
    assert wrong == {}
    assert heard == []
    assert "x\\u202ey" in page.goto(f"{live_server.url}{address}/rights").text()  # type: ignore[union-attr] # a page, and no None


def test_a_schema_is_folded_and_opened_by_keys(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    request = drawn(
        env, [crd({"a": TEXT, "b": TEXT, "c": TEXT})], [crd({"a": TEXT, "b": {"type": "integer"}, "c": TEXT})]
    )
    page = sign_in(env.ada)
    page.goto(f"{live_server.url}/requests/{request.uid}/schemas")
    branch = page.locator("summary", has_text="spec").first
    inner = page.locator("summary", has_text="string → integer")
    pw.expect(inner).to_be_visible()
    pw.expect(page.get_by_text("2 fields unchanged: a, c")).to_be_visible()
    branch.focus()
    page.keyboard.press("Enter")
    pw.expect(inner).to_be_hidden()
    page.keyboard.press("Space")
    pw.expect(inner).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    pw.expect(page.get_by_role("heading", level=2, name="1 of")).to_be_visible()
    pw.expect(page.get_by_text("Affected lines")).to_have_count(0)
    pw.expect(page.get_by_role("group", name="Affected lines")).to_be_visible()


def test_a_screen_reader_is_told_what_the_graph_shows(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    request = drawn(env, [role("a", PODS), binding("a", "a")], [role("a", PODS, SECRETS), binding("a", "a")])
    page = sign_in(env.ada)
    page.goto(f"{live_server.url}/requests/{request.uid}/rights")
    graph = page.get_by_role("list", name="Permissions of ServiceAccount shop/robot, by binding")
    told = " ".join(graph.inner_text().split())
    place = [
        told.index(words) for words in ("shop/robot", "ClusterRoleBinding a", "± changed ClusterRole a", "secrets")
    ]
    assert place == sorted(place)
    # What changes is said in words: colours and signs are for those who see them.
    assert graph.locator(".mark .shape[aria-hidden=true]").count() == graph.locator(".mark").count()
    graph.locator("summary").focus()
    page.keyboard.press("Enter")
    pw.expect(graph.get_by_text("get, list", exact=True)).to_be_visible()


@pytest.mark.thorough
def test_findings_are_filtered_without_scripts(
    env: World, live_server: LiveServer, browser: pw.Browser, sign_in: SignIn
) -> None:
    request = many(env, 300, 300)
    signed_in = sign_in(env.ada)
    context = browser.new_context(java_script_enabled=False, storage_state=signed_in.context.storage_state())
    page = context.new_page()
    page.goto(f"{live_server.url}/requests/{request.uid}")
    page.get_by_role("navigation", name="Request").get_by_role("link", name="Findings").click()
    page.get_by_label("Severity").select_option("critical")
    page.get_by_label("Text, rule or object").fill("hostPID")
    page.get_by_role("button", name="Filter").click()
    pw.expect(page.get_by_role("heading", level=2, name="of 300 findings")).to_be_visible()
    pw.expect(page.get_by_label("Severity")).to_have_value("critical")
    page.locator(".finding.together").first.locator("summary").last.click()
    pw.expect(page.locator(".finding .finding .finding-body").last).to_be_visible()
    page.get_by_role("navigation", name="Request").get_by_role("link", name="Overview").click()
    pw.expect(page.get_by_role("heading", name="Decision")).to_be_visible()
    context.close()


def test_findings_of_two_pages_are_accepted_in_one_approval_without_scripts(
    env: World, live_server: LiveServer, browser: pw.Browser, sign_in: SignIn
) -> None:
    env.kubernetes.allow("ada", "override")
    request = with_findings(env, *(finding(number, "notable") for number in range(75)))
    context = browser.new_context(
        java_script_enabled=False, storage_state=sign_in(env.ada).context.storage_state(), viewport=WIDE
    )
    page = context.new_page()
    page.goto(f"{live_server.url}/requests/{request.uid}/findings?severity=notable")
    for button in ("Next", "Approve"):
        row = page.locator(".finding .finding").first
        row.locator("summary").first.click()
        row.locator("summary", has_text="Accept this finding").click()
        row.get_by_label("Reason for accepting it").fill("ours")
        page.get_by_role("button", name=button).click()
    pw.expect(page.get_by_text("Your decision: Approve")).to_be_visible()
    assert [one["reason"] for one in Review.objects.get(request=request).waives] == ["ours", "ours"]
    context.close()


@pytest.mark.thorough
def test_a_very_large_request_can_be_used_on_a_telephone(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    request = many(env)
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("", "/findings", "/changes", "/rights", "/schemas"):
        page.goto(f"{live_server.url}/requests/{request.uid}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.goto(f"{live_server.url}/requests/{request.uid}")
    page.evaluate(OPEN_ALL)
    assert complaints(page) == []
