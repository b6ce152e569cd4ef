"""Findings that say the same, in a real browser: in their entry each place is one click away, in both widths."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest
from pytest_django.live_server_helper import LiveServer

from tests.browser.complaints import OPEN_ALL, complaints, listen
from tests.browser.conftest import SignIn
from tests.support.approvals.fixtures import World
from tests.support.approvals.reports import drawn
from tests.support.provisioner.example_crd import TEXT, crd

FIELDS = [f"f{at:02}" for at in range(20)]


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.thorough)])
def test_every_field_that_breaks_is_one_click_away_in_the_entry_of_its_cause(
    width: int, env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    env.kubernetes.allow("ada", "override")
    env.kubernetes.allow("ada", "get")
    limits = {name: {**TEXT, "maxLength": 10 if at < 12 else 20} for at, name in enumerate(FIELDS)}
    request = drawn(env, [crd(dict.fromkeys(FIELDS, TEXT))], [crd(limits)])
    page = sign_in(env.ada)
    heard = listen(page)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{live_server.url}/requests/{request.uid}/findings")
    pw.expect(page.get_by_role("heading", name="12 fields of 1 object; and 8 more 9 findings")).to_be_visible()
    statements = page.locator("details.finding details.finding")
    pw.expect(statements.first).to_be_hidden()
    page.locator("details.together > summary").first.focus()
    page.keyboard.press("Enter")
    for words, fields in (("there: 12 fields", FIELDS[:12]), ("there: 8 fields", FIELDS[12:])):
        group = statements.filter(has_text=words).first
        field = group.locator(".places").first.get_by_text(f"spec.{fields[-1]}")
        pw.expect(field).to_be_hidden()
        group.locator("summary").first.click()
        pw.expect(field).to_be_visible()
        shown = group.locator(".places").first.inner_text()
        assert [name for name in fields if f"spec.{name}" not in shown] == []
    page.evaluate(OPEN_ALL)
    assert complaints(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert heard == []
