"""The requests that would come first, in a real browser: read and made by keyboard, also on a telephone."""

from __future__ import annotations

import json

import pytest
from pytest_django.live_server_helper import LiveServer

from approvals.models import BundleDeployment, Request
from tests.browser.complaints import complaints, listen, wider_than
from tests.browser.conftest import SignIn
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored

LONG = "n" * 200
CEL = {"cel": {"rule": "true"}, "failureMessage": f"<b>{LONG}\u202e"}


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_a_plan_is_read_and_made_by_keyboard(scheme: str, env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    of_disk = {"type": "olm.package.required", "value": {"packageName": "disk", "versionRange": ">=1.0.0"}}
    constraint = {"type": "olm.constraint", "value": CEL}
    stored(
        catalog(of=env.cluster),
        package("store", defaultChannel="stable"),
        channel("stable", {"name": "store.v1.2.0"}, of="store"),
        bundle("1.2.0", of="store", properties=(of_disk, constraint)),
        package("disk", defaultChannel="stable"),
        channel("stable", {"name": "disk.v1.0.0"}, of="disk"),
        bundle("1.0.0", of="disk"),
    )
    env.kubernetes.allow("ada", "create")
    request = world.in_review(world.submit_spec(env.cluster, world.seen("quay", world.spec()), env.rita).requests.get())
    asked = [("package", "store", ">=1.0.0", ""), ("package", LONG, ">=2.0.0", ""), ("constraint", "cel", "", CEL)]
    requirements = [
        {"kind": kind, "name": name, "group": "", "version": text, "constraint": json.dumps(more) if more else ""}
        for kind, name, text, more in asked
    ]
    Request.objects.filter(pk=request.pk).update(requirements=requirements)
    page = sign_in(env.ada)
    heard = listen(page)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    page.goto(f"{live_server.url}/requests/{request.uid}")
    panel = page.get_by_role("region", name="Dependencies")
    assert panel.locator("ol > li strong").all_inner_texts() == ["disk 1.0.0", "store 1.2.0"]
    assert "\\u202e" in panel.inner_text()
    assert complaints(page) + wider_than(page, 1280, 390) == []
    panel.get_by_role("button", name="Create 2 deployments").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Created: disk, store.").wait_for()
    assert list(BundleDeployment.objects.order_by("name").values_list("name", flat=True)) == ["disk", "quay", "store"]
    assert heard == []
