"""The YAML that Install proposes is copied by a button: by keyboard, said aloud, and also where it comes in later."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest
import yaml
from pytest_django.live_server_helper import LiveServer

from approvals.models import BundleComparison
from tests.browser.complaints import complaints, listen
from tests.browser.conftest import SignIn
from tests.support import comparisons
from tests.support.approvals.fixtures import World

CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.mark.thorough
def test_the_proposed_yaml_is_copied_as_it_is_and_that_is_announced(
    env: World, addresses: dict[str, str], live_server: LiveServer, sign_in: SignIn
) -> None:
    env.kubernetes.names = {("Namespace", ""): ["shop"]}
    env.kubernetes.allow("ada", "list", "Namespace")
    page = sign_in(env.ada)
    heard = listen(page)
    page.context.grant_permissions(CLIPBOARD, origin=live_server.url)
    page.goto(addresses["deployment-install"].replace("1.1.0", "1.2.0"))
    page.get_by_role("button", name="Propose account and rights").click()
    pw.expect(page.get_by_text("Working out account and rights")).to_be_visible()
    comparisons.finish(BundleComparison.objects.get(state="waiting", wish__before=""), is_first=True)
    copy = page.get_by_role("button", name="Copy YAML")
    pw.expect(copy).to_be_visible()
    copy.focus()
    page.keyboard.press("Enter")
    pw.expect(page.locator("main > p.sr[role=status]")).to_have_text("Copied")
    pw.expect(page.get_by_role("button", name="Copied YAML")).to_be_focused()
    kinds = [one["kind"] for one in yaml.safe_load_all(page.evaluate("navigator.clipboard.readText()"))]
    assert kinds[:2] == ["Namespace", "ServiceAccount"]
    pw.expect(copy).to_be_visible()
    assert complaints(page) == []
    assert heard == []


def test_where_nothing_can_be_copied_that_is_said(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    page.goto(addresses["catalog-first"])
    page.get_by_text("ServiceAccount, roles and bindings as YAML").click()
    page.get_by_role("button", name="Copy YAML").click()
    pw.expect(page.get_by_text("Not copied: select the text and copy it yourself.")).to_be_attached()
