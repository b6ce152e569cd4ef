"""What a chart makes up stays the same over the life of its deployment, and nobody is shown it."""

from __future__ import annotations

import base64
import json
import logging
import secrets
from typing import Any
from urllib.parse import quote

import pytest

from approvals.models import Drift, KeptValue, Request
from provisioner.render.formats import FORMATS
from provisioner.render.objects import Found
from provisioner.render.renderings import Rendered, Rendering
from provisioner.values import MadeSort, MadeUp, MadeValue, Place, Tree
from tests.support.journeys.channels import channels, leaks
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.running import Watched
from tests.support.servers.http import GitServer


def find_made(tree: Tree, rendering: Rendering) -> Rendered:
    """A chart that makes up a password, and puts it into a ConfigMap as well."""
    namespace = rendering.install_namespace
    place = Place("Secret", namespace, "db", "/data/password")
    known = (rendering.kept_values or {}).get(place.key)
    password = known or f"p+{secrets.token_hex(10)}/x"
    files = sorted(tree.files)
    text = f"postgres://shop:{quote(password, safe='')}@db/{tree.files[files[0]].decode()}"
    coded = base64.b64encode(password.encode()).decode()
    bodies: list[dict[str, Any]] = [
        {"kind": "Secret", "metadata": {"name": "db"}, "data": {"password": coded}},
        {"kind": "ConfigMap", "metadata": {"name": "url", "annotations": {"was": coded}}, "data": {"url": text}},
    ]
    found = [Found({"apiVersion": "v1", **body}, f"{body['kind']}.yaml") for body in bodies]
    copies = (Place("ConfigMap", namespace, "url", "/data/url"),)
    made = MadeUp((MadeValue(place, password, MadeSort.PASSWORD, copies, is_new=known is None),))
    return Rendered(found, files, made_up=made)


@pytest.fixture
def made_format(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(FORMATS, "made", find_made)
    return "made"


def live_password(site: DeployedSite) -> str:
    return base64.b64decode(site.live("Secret", "db")["data"]["password"]).decode()


def encodings(value: str) -> dict[str, str]:
    data = value.encode()
    return {
        "plain": value,
        "escaped": quote(value, safe=""),
        "base64": base64.b64encode(data).decode(),
        "core": value[2:22],
    }


def edited(site: DeployedSite, request: Request, password: str) -> None:
    """Somebody changes the ConfigMap, and a worker finds out and puts it back."""
    watched = Watched(site, request.deployment)
    watched.look()
    site.edit(site.ref("ConfigMap", "url"), lambda live: live["data"].update(url=f"was {password}"))
    watched.look()
    assert Drift.objects.get().fields


@pytest.mark.proof
def test_S44_a_password_that_a_chart_made_up_is_kept_and_shown_to_nobody(
    sandbox_site: DeployedSite, git_server: GitServer, made_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site = sandbox_site
    repository = git_server.repository(site.namespace)

    def ask_for(version: str) -> Request:
        repository.commit({"version": version.encode()})
        git = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
        return site.latest(site.prepare(site.namespace, git, format=made_format, config={"version": version}))

    first = ask_for("1")
    (made,) = first.made_values["values"]
    assert (made["sort"], made["generation"], made["isNew"]) == ("password", 1, True), made
    assert site.approve(first.deployment).state == "applied"
    password = live_password(site)
    assert password == KeptValue.objects.get(deployment=first.deployment).value
    assert quote(password, safe="") in site.live("ConfigMap", "url")["data"]["url"], "what is hidden is applied"

    denied = site.review(ask_for("2").deployment, "Deny")
    site.work(denied)
    assert denied.state == "denied"
    second = ask_for("3")
    assert second.made_values["values"][0]["isNew"] is False
    seen = channels(site, second, "alice", caplog)
    assert leaks(seen, encodings(password)) == []
    assert any("hidden: made up by the chart" in text for text in seen.values())
    assert site.approve(second.deployment).state == "applied"
    assert live_password(site) == password
    site.roll_back(second.deployment)
    site.work()
    back = site.approve(second.deployment)
    assert (back.purpose, back.state, live_password(site)) == ("rollback", "applied", password)
    assert back.made_values["values"][0]["generation"] == 1
    third = ask_for("4")
    assert site.approve(third.deployment).state == "applied"
    assert "/4" in site.live("ConfigMap", "url")["data"]["url"]
    assert live_password(site) == password
    edited(site, third, password)
    assert password not in str(Drift.objects.get().fields)
    assert leaks(channels(site, third, "alice", caplog), encodings(password)) == []
    assert password not in json.dumps(list(Request.objects.values("made_values")))
    assert KeptValue.objects.count() == 1
