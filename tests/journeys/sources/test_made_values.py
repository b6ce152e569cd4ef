"""What a chart makes up stays the same over the life of its deployment, and nobody is shown it."""

from __future__ import annotations

import base64
import json
import logging
from urllib.parse import quote

import pytest
from django.apps import apps
from django.db import connection

from approvals import services
from approvals.audit import Actor
from approvals.errors import InvalidInput, NotAllowed
from approvals.ledger import pivots
from approvals.ledger.pivots import ROTATE
from approvals.models import BundleDeployment, Drift, Finding, KeptValue, KubernetesIdentity, Request
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import Identity
from tests.support.approvals.world import acting
from tests.support.journeys import deployed_site
from tests.support.journeys.channels import channels, leaks
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.journeys.running import Watched
from tests.support.kubernetes.endpoint import Endpoint
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


TWO_SECRETS = """
{{- $password := .Values.given | default (randAlphaNum 20) }}
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {password: {{ $password | b64enc }}, user: {{ b64enc "shop" }}}
---
apiVersion: v1
kind: Secret
metadata: {name: cache}
data: {token: {{ randAlphaNum 24 | b64enc }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: url}
data: {url: 'postgres://shop:{{ $password }}@db/{{ .Chart.Version }}'}
"""


class Rotated:
    """A deployment that runs version 1 of the chart, and whose branch moves on with `commit`."""

    def __init__(self, site: DeployedSite, git_server: GitServer):
        self.site, self.repository = site, git_server.repository(site.namespace)
        self.deployment = site.approve(self.ask_for("1")).deployment
        self.first = self.values()

    def ask_for(self, version: str, template: str = TWO_SECRETS) -> BundleDeployment:
        self.commit(version, template)
        git = {"kind": "git", "git": {"repository": self.repository.url, "ref": {"branch": "main"}}}
        values = {"values": {"version": version}}
        return self.site.prepare(self.site.namespace, git, format="helm", config=values)

    def commit(self, version: str, template: str = TWO_SECRETS) -> None:
        self.repository.commit({**chart(version), "templates/db.yaml": template.encode()})

    def values(self) -> dict[str, str]:
        """The live ones; the address with the password has to be that of the Secret."""
        site = self.site
        data = {name: site.live("Secret", name)["data"] for name in ("db", "cache")}
        values = {key: base64.b64decode(text).decode() for part in data.values() for key, text in part.items()}
        assert f"shop:{values['password']}@db" in site.live("ConfigMap", "url")["data"]["url"]
        return values

    def rotate(self, target: str = "db/password") -> Request:
        self.site.rotate(self.deployment, target)
        return self.site.after_work(self.deployment)

    def version(self) -> str:
        return str(self.site.live("ConfigMap", "url")["data"]["url"].rpartition("/")[2])


@pytest.fixture
def rotated(sandbox_site: DeployedSite, git_server: GitServer) -> Rotated:
    return Rotated(sandbox_site, git_server)


def stored() -> str:
    """Every row of every table of ours, as the database has it."""
    found = []
    with connection.cursor() as cursor:
        for model in apps.get_app_config("approvals").get_models():
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            found += cursor.fetchall()
    return str(found)


def messages_of(request: Request, rule: str) -> list[str]:
    found = Finding.objects.filter(report__request=request, report__round=request.round, rule=rule)
    return list(found.values_list("message", flat=True))


@pytest.mark.proof
def test_S44_a_rotation_replaces_what_it_names_when_it_is_applied_and_nothing_else(
    rotated: Rotated, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site, deployment, first = rotated.site, rotated.deployment, rotated.first
    rotated.commit("2")  # the branch moves on, and a rotation is of what runs
    request = rotated.rotate()
    assert (request.state, request.purpose, request.rotation) == ("in_review", "rotate", ["db/password"]), (
        request.problem
    )
    (told,) = messages_of(request, "MADE-06")
    assert told == f"1 value that the chart makes up is made anew: data.password of Secret {site.namespace}/db"
    assert rotated.values() == first
    new = KeptValue.objects.get(origin="rotation").value
    seen = channels(site, request, "alice", caplog)
    assert leaks(seen, encodings(first["password"])) == leaks(seen, encodings(new)) == []
    assert site.approve(deployment).state == "applied"
    after = rotated.values()
    assert after == {**first, "password": new}
    assert new != first["password"]
    assert rotated.version() == "1.0.0"

    assert site.approve(rotated.ask_for("3")).state == "applied"
    assert (rotated.values(), rotated.version()) == (after, "3.0.0"), "the next upgrade keeps the new value"

    site.roll_back(deployment)
    back = site.after_work(deployment)
    (told,) = messages_of(back, "MADE-06")
    place = f"data.password of Secret {site.namespace}/db"
    assert told == f"1 value that the chart made up comes back from an earlier revision: {place}"
    assert site.approve(deployment).state == "applied"
    assert (rotated.values(), rotated.version()) == (first, "1.0.0")
    again = rotated.rotate("*")
    assert again.purpose == "rotate"
    assert site.approve(deployment).state == "applied"
    last = rotated.values()
    assert rotated.version() == "1.0.0", "who went back stays there"
    assert site.condition(deployment, "UpToDate")["reason"] == "RolledBack"
    assert all(last[key] not in (first[key], after[key]) for key in ("password", "token"))
    assert last["user"] == "shop"
    values = (first["password"], new, last["password"], last["token"])
    seen = channels(site, again, "alice", caplog)
    seen["database"] = stored()
    assert [leaks(seen, forms) for forms in map(encodings, values)] == [[]] * len(values)
    assert sorted(KeptValue.objects.values_list("generation", flat=True)) == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    "end",
    ["denied", *(pytest.param(end, marks=pytest.mark.thorough) for end in ("withdrawn", "expired", "superseded"))],
)
def test_S44_a_rotation_that_is_not_applied_leaves_the_values_as_they_are(rotated: Rotated, end: str) -> None:
    site, deployment, first = rotated.site, rotated.deployment, rotated.first
    request = rotated.rotate()
    match end:
        case "denied":
            site.review(deployment, "Deny")
        case "withdrawn":
            site.withdraw(request)
        case "expired":
            Request.objects.filter(pk=request.pk).update(expires_at=request.created_at)
        case "superseded":
            site.roll_back(deployment)
    site.work(request)
    assert (request.state, rotated.values()) == (end, first)
    assert site.approve(rotated.ask_for("2")).state == "applied"
    assert (rotated.values(), rotated.version()) == (first, "2.0.0")


@pytest.mark.thorough
def test_a_rotation_and_a_change_of_the_spec_become_one_request_for_both(rotated: Rotated) -> None:
    site, deployment, first = rotated.site, rotated.deployment, rotated.first
    changing = site.latest(rotated.ask_for("2"))
    request = rotated.rotate("cache")
    changing.refresh_from_db()
    assert (changing.state, request.purpose, request.rotation) == ("superseded", "deploy", ["cache"])
    second = rotated.rotate("db/password")
    assert (second.purpose, second.rotation) == ("deploy", ["cache", "db/password"]), "one after the other"
    third = site.latest(rotated.ask_for("3"))
    assert (third.purpose, third.rotation, third.state) == ("deploy", ["cache", "db/password"], "in_review")
    assert site.approve(deployment).state == "applied"
    now = rotated.values()
    assert rotated.version() == "3.0.0"
    assert all(now[key] != first[key] for key in ("password", "token"))
    assert site.latest(rotated.ask_for("4")).rotation == [], "it is done once"
    assert site.approve(deployment).state == "applied"
    assert rotated.values() == now


def test_what_cannot_be_rotated_is_refused_with_what_can_and_so_is_who_may_not_ask(rotated: Rotated) -> None:
    site, deployment = rotated.site, rotated.deployment
    with pytest.raises(NotAllowed, match='User "carol" cannot'):
        services.rotate_deployment(by=acting(site.people["carol"]), deployment=deployment, target="db", via="api")
    with pytest.raises(InvalidInput, match="There are: cache, cache/token, db, db/password$"):
        rotated.rotate("db/user")
    name = site.ref("BundleDeployment", deployment.name)

    def annotate(value: str) -> Request:
        site.edit(name, lambda live: live["metadata"].setdefault("annotations", {}).update({ROTATE: value}))
        seen = site.api.get(name)
        assert seen is not None
        pivots.see(cluster=site.cluster, obj=seen, writer=None)
        return site.after_work(deployment)

    assert annotate("nosuch@1").number == 1
    assert "'nosuch'; expected SECRET" in site.condition(deployment, "UpToDate")["message"]
    asked = annotate("cache@2")
    assert (asked.state, asked.rotation, asked.is_requester_known) == ("in_review", ["cache"], False), asked.problem
    site.work(site.review(deployment, "Deny"))
    rotated.ask_for("2", TWO_SECRETS.replace("randAlphaNum 20", '"given-from-now-on"'))
    refused = rotated.rotate()
    assert refused.state == "failed"
    assert refused.problem.startswith("nothing of db/password is made anew: this version of the chart")


def let_read(site: DeployedSite) -> None:
    """Requesters may get the Secrets of the chart."""
    rule = {
        "apiGroups": [""],
        "resources": ["secrets", "configmaps"],
        "resourceNames": ["db", "cache", "url"],
        "verbs": ["get"],
    }
    for each in role("get-db", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "secrets", name="cache")


def second_site(site: DeployedSite, endpoint: Endpoint) -> DeployedSite:
    """The same people on another cluster of the same Pratique."""
    api = Api.connect(endpoint.kubeconfig("admin"))
    deployed_site.prepare_cluster(api)
    deployed_site.prepare_namespace(api, site.namespace)
    about = {"name": "other", "kubeconfig": endpoint.kubeconfig("pratique")}
    cluster = services.register_cluster(**about, by=Actor("test", "shell"))
    for identity in KubernetesIdentity.objects.filter(cluster=site.cluster):
        identity.pk, identity.cluster = None, cluster
        identity.save()
    return DeployedSite(cluster, api, site.namespace, endpoint.kubectl, site.kubeconfig, site.people)


@pytest.mark.thorough
def test_S44_a_password_stays_over_upgrades_a_rollback_a_lost_database_and_a_move_to_another_cluster(
    real_site: DeployedSite, sandbox: Endpoint, git_server: GitServer
) -> None:
    site, rotated = real_site, Rotated(real_site, git_server)
    deployment, first = rotated.deployment, rotated.first
    for version in ("2", "3", "4"):
        assert site.approve(rotated.ask_for(version)).state == "applied"
        assert (rotated.values(), rotated.version()) == (first, f"{version}.0.0")
    site.roll_back(deployment, 2)
    site.work()
    assert site.approve(deployment).state == "applied"
    assert (rotated.values(), rotated.version()) == (first, "2.0.0")

    assert rotated.rotate("db").state == "in_review"
    assert site.approve(deployment).state == "applied"
    second = rotated.values()
    assert (second["password"] != first["password"], second["token"]) == (True, first["token"])
    assert site.approve(rotated.ask_for("5")).state == "applied"
    assert rotated.values() == second

    # As of a database from before: what is live is kept.
    KeptValue.objects.all().delete()
    Request.objects.update(made_values={})
    let_read(site)
    assert site.approve(rotated.ask_for("6")).state == "applied"
    assert (rotated.values(), rotated.version()) == (second, "6.0.0")

    moved = second_site(site, sandbox)
    spec = {**deployment.spec, "config": {"values": {"given": second["password"]}}}
    there = moved.submit_spec(moved.namespace, *spec.pop("sources"), **spec)
    moved.work()
    assert moved.approve(there).state == "applied"
    rotated.site = moved
    third = rotated.values()
    assert third["password"] == second["password"], "what the data needs is given"
    assert third["token"] != second["token"], (
        "all else is made up anew, since it belongs to a deployment of one cluster"
    )
