"""The editor of a config offers its keys, and puts one into the YAML by keyboard alone; nothing is sent meanwhile."""

from __future__ import annotations

from typing import Any

import playwright.sync_api as pw
from pytest_django.live_server_helper import LiveServer

from approvals.models import Request
from provisioner.values import Identity
from tests.browser.complaints import complaints, listen, wider_than
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


def test_a_key_is_added_to_a_config_by_keyboard(
    env: World, live_server: LiveServer, sign_in: Any, transactional_db: None
) -> None:
    source = {"kind": "image", "image": {"ref": "registry.example.com/barge:1.2.0"}}
    spec = world.spec(format="helm", config={"values": {"replicaCount": 3}}, sources=[source])
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    Request.objects.update(chart_values={"replicaCount": "3", "image.tag": '"1.2"'})
    env.kubernetes.allow("ada", "update")
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/deployments/prod/barge/edit")
    key, config = page.get_by_label("Add a key"), page.get_by_label("Config (optional)", exact=True)
    offered = page.locator("#config-keys option").evaluate_all("all => all.map(one => one.value)")
    assert {"values.image.tag", "valuesFrom", "patches"} <= set(offered)
    key.focus()
    page.keyboard.type("values.image.tag")
    page.keyboard.press("Enter")
    pw.expect(page.get_by_role("status").filter(has_text="values.image.tag was added.")).to_be_visible()
    pw.expect(config).to_have_value('values:\n  replicaCount: 3\n  image:\n    tag: "1.2"\n')
    pw.expect(key).to_be_focused()
    key.fill("valuesFrm")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    pw.expect(page.locator("#config-note")).to_contain_text("did you mean valuesFrom?")
    assert page.url.endswith("/edit")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("document.getAnimations().forEach(one => one.finish())")
        assert complaints(page) + wider_than(page, 390, 1280) == []
    config.fill("valuesFrm: []")
    page.get_by_role("button", name="Request this change").click()
    pw.expect(page.locator(".wrong")).to_contain_text("spec.config has valuesFrm (did you mean valuesFrom?)")
    assert page.get_by_label("Config (optional)", exact=True).get_attribute("aria-invalid") == "true"
    assert [one for one in heard if "422" not in one] == []
