"""What a chart makes up stays the same over the life of its deployment, and nobody is shown it."""

from __future__ import annotations

import base64
import json
import logging
from urllib.parse import quote

import pytest

from approvals.models import Drift, KeptValue, Request
from provisioner.values import Identity
from tests.support.journeys.channels import channels, leaks
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.journeys.running import Watched
from tests.support.servers.http import GitServer

TEMPLATE = """
{{- $password := printf "p+%s/x" (randAlphaNum 20) }}
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {password: {{ $password | b64enc }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: url, annotations: {was: {{ $password | b64enc }}}}
data: {url: 'postgres://shop:{{ $password | urlquery }}@db/{{ .Chart.Version }}'}
"""


def chart(version: str) -> dict[str, bytes]:
    return {
        "Chart.yaml": f"apiVersion: v2\nname: shop\nversion: {version}.0.0\n".encode(),
        "templates/db.yaml": TEMPLATE.encode(),
    }


def live_password(site: DeployedSite, name: str = "db") -> str:
    return base64.b64decode(site.live("Secret", name)["data"]["password"]).decode()


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
    sandbox_site: DeployedSite, git_server: GitServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site = sandbox_site
    repository = git_server.repository(site.namespace)

    def ask_for(version: str) -> Request:
        repository.commit(chart(version))
        git = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
        return site.latest(site.prepare(site.namespace, git, format="helm", config={"values": {"version": version}}))

    first = ask_for("1")
    made = {record["sort"]: record for record in first.made_values["values"]}
    assert made["password"]["place"]["path"] == "/data/password"
    assert {(record["generation"], record["isNew"]) for record in made.values()} == {(1, True)}
    assert site.approve(first.deployment).state == "applied"
    password = live_password(site)
    assert password == KeptValue.objects.get(deployment=first.deployment, sort="password").value
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
    assert "/4.0.0" in site.live("ConfigMap", "url")["data"]["url"]
    assert live_password(site) == password
    edited(site, third, password)
    assert password not in str(Drift.objects.get().fields)
    assert leaks(channels(site, third, "alice", caplog), encodings(password)) == []
    assert password not in json.dumps(list(Request.objects.values("made_values")))
    assert KeptValue.objects.count() == len(first.made_values["values"])


@pytest.mark.proof
def test_S44_a_password_that_runs_is_read_with_the_rights_of_who_asked_and_never_replaced_by_a_new_one(
    sandbox_site: DeployedSite, git_server: GitServer
) -> None:
    """As after a restore of a database from before the password was made; objects have other names than in the chart."""
    site = sandbox_site
    repository = git_server.repository(site.namespace)

    def ask_for(version: str) -> Request:
        repository.commit(chart(version))
        git = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
        config = {"values": {"version": version}, "namePrefix": "shop-"}
        return site.latest(site.prepare(site.namespace, git, format="helm", config=config))

    deployment = site.approve(ask_for("1").deployment).deployment
    password = live_password(site, "shop-db")
    KeptValue.objects.all().delete()
    Request.objects.update(made_values={})

    waiting = ask_for("2")
    assert waiting.content_id is None
    assert waiting.problem.startswith("Kubernetes does not allow rita to get"), waiting.problem
    rule = {
        "apiGroups": [""],
        "resources": ["secrets", "configmaps"],
        "resourceNames": ["shop-db", "shop-url"],
        "verbs": ["get"],
    }
    for each in role("get-db", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "secrets", name="shop-db")
    assert site.after_work(deployment).state == "in_review", site.latest(deployment).problem
    assert site.approve(deployment).state == "applied"
    assert live_password(site, "shop-db") == password
    assert quote(password, safe="") in site.live("ConfigMap", "shop-url")["data"]["url"]
    assert set(KeptValue.objects.values_list("sort", "origin")) >= {("password", "cluster")}

    KeptValue.objects.all().delete()
    Request.objects.update(made_values={})
    site.edit(site.ref("ConfigMap", "shop-url"), lambda live: live["data"].update(url="another text"))
    refused = ask_for("3")
    assert refused.state == "failed"
    assert "give the chart the value that is in use in `config.values`" in refused.problem
    assert live_password(site, "shop-db") == password


@pytest.mark.proof
def test_S44_a_password_that_was_never_applied_replaces_none_that_is_live(
    sandbox_site: DeployedSite, git_server: GitServer
) -> None:
    """Somebody sees in review that the Secret is there, and adopts it with the next request."""
    site, password = sandbox_site, "live-password-9f2c"
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: '{{ randAlphaNum 20 }}'}\n"
    repository = git_server.repository(site.namespace)
    repository.commit({**chart("1"), "templates/db.yaml": secret.encode()})
    data = {"password": base64.b64encode(password.encode()).decode()}
    marks = {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": site.namespace}
    metadata = {"name": "db", "namespace": site.namespace, "annotations": marks}
    metadata["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    site.api.apply(body, field_manager="test")
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["db"], "verbs": ["get"]}
    for each in role("get-db", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "secrets", name="db")

    git = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    assert site.latest(site.prepare(site.namespace, git, format="helm")).made_values["values"][0]["isNew"] is True
    adopting = site.prepare(site.namespace, git, format="helm", adoptHelmRelease="shop")
    assert site.latest(adopting).state == "in_review", site.latest(adopting).problem
    assert site.approve(adopting).state == "applied"
    assert live_password(site) == password
    assert list(KeptValue.objects.values_list("generation", "origin")) == [(1, "chart"), (2, "cluster")]
