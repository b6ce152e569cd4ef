"""What would change from one bundle to another, over REST: asked with POST, read with GET, by who has both rights."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from approvals.access import Scope
from approvals.catalogs import comparisons
from approvals.models import BundleComparison
from approvals.rate_limits import counters
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored

ADDRESS = "catalogs/prod/port/packages/harbour/changes"
QUERY = f"{ADDRESS}?from=1.0.0&to=1.1.0"
ASKED = {"from": "1.0.0", "to": "harbour.v1.1.0"}
REF = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "harbour", "name": "harbour"}
RESULT: dict[str, Any] = {
    "pins": {"before": ["sha256:1"], "after": ["sha256:2"]},
    "content_digests": {"before": "sha256:a", "after": "sha256:b"},
    "install_namespace": "harbour",
    "service_account": "harbour-installer",
    "suggested_namespace": "",
    "config": {},
    "report": {
        "version": 3,
        "headline": ["1 object to update."],
        "worst": "notable",
        "totals": {"notable": 1},
        "findings": [],
        "private": [],
        "plan": {"digest": "sha256:p", "actions": [{"ref": REF, "action": "update", "before": None, "after": None}]},
    },
    "held": [],
    "changed": {"0": [1, 1]},
    "permissions": {"worst": "safe", "accounts": [], "everybody": [], "problems": []},
    "images": [{"ref": REF, "container": "main", "before": "example.com/a:1", "after": "example.com/a:2"}],
    "installer": None,
}

LINES = {
    "0": {
        "lines": [["@", "spec", 0, 0], ["-", "  replicas: 1", 4, 0], ["+", "  replicas: 2", 0, 4], ["@", "", 0, 0]],
        "left": 3,
    }
}


@pytest.fixture
def port(env: World) -> World:
    row = catalog("port", of=env.cluster)
    entries = [{"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0"}]
    stored(row, package(defaultChannel="stable"), bundle("1.0.0"), bundle("1.1.0"), channel("stable", *entries))
    env.kubernetes.allow("ada", "get")
    env.kubernetes.allow("ada", "create")
    counters.memory.clear()
    return env


def finish(row: BundleComparison) -> None:
    with transaction.atomic():
        comparisons.finish_comparison(row, RESULT, LINES, timezone.now())


def test_it_is_asked_for_and_read_until_it_is_done(port: World, call: Call) -> None:
    assert problem_of(call(port.ada, "get", QUERY))["code"] == "not-found"
    answer = call(port.ada, "post", ADDRESS, ASKED)
    assert answer.status_code == 202
    found = json.loads(answer.content)
    assert (found["state"], found["before"], found["after"]) == ("waiting", "harbour.v1.0.0", "harbour.v1.1.0")
    row = BundleComparison.objects.get()
    comparisons.record_progress(row, "fetching and rendering it")
    found = json.loads(call(port.ada, "get", QUERY).content)
    assert (found["state"], found["progress"], found["result"]) == ("waiting", "fetching and rendering it", None)
    finish(row)
    found = json.loads(call(port.ada, "get", QUERY).content)
    assert (found["state"], found["result"]["report"]["headline"]) == ("done", ["1 object to update."])
    assert found["result"]["images"] == RESULT["images"]
    assert "held" not in found["result"]
    assert call(port.ada, "post", ADDRESS, ASKED).status_code == 200


def test_a_token_that_reads_may_ask_and_no_other_scope_is_needed(port: World, call: Call) -> None:
    _, text = world.api_token(port.ada, scopes=[Scope.READ.value])
    headers = {"authorization": f"Bearer {text}"}
    assert call(port.ada, "post", ADDRESS, ASKED, **headers).status_code == 202
    assert call(port.ada, "get", QUERY, **headers).status_code == 200
    _, text = world.api_token(port.ada, scopes=[Scope.DECIDE.value])
    headers = {"authorization": f"Bearer {text}"}
    assert problem_of(call(port.ada, "post", ADDRESS, ASKED, **headers))["code"] == "out-of-scope"


def test_the_lines_of_an_object_are_read_by_its_position(port: World, call: Call) -> None:
    address = f"{ADDRESS}/objects/0?from=1.0.0&to=1.1.0"
    assert problem_of(call(port.ada, "get", address))["code"] == "not-found"
    call(port.ada, "post", ADDRESS, ASKED)
    finish(BundleComparison.objects.get())
    found = json.loads(call(port.ada, "get", address).content)
    (hunk,) = found["hunks"]
    told = [(one["kind"], one["text"], one["old"], one["new"]) for one in hunk["lines"]]
    assert told == [("-", "  replicas: 1", 4, 0), ("+", "  replicas: 2", 0, 4)]
    assert (found["ref"], hunk["place"], found["left_out"], found["is_hidden"]) == (REF, "spec", 3, False)
    rest = json.loads(call(port.ada, "get", f"{address}&lines_from=2").content)
    assert [one["kind"] for one in rest["hunks"][0]["lines"]] == ["+"]
    assert problem_of(call(port.ada, "get", address.replace("objects/0", "objects/1")))["code"] == "not-found"
    assert problem_of(call(port.ada, "get", f"{address}&colour=red"))["code"] == "invalid-query"


LINES_QUERY = f"{ADDRESS}/objects/0?from=1.0.0&to=1.1.0"
READ_AND_ASKED = [("get", QUERY, None), ("post", ADDRESS, ASKED), ("get", LINES_QUERY, None)]


@pytest.mark.parametrize(("method", "path", "body"), READ_AND_ASKED)
def test_who_lacks_one_of_the_rights_is_told_nothing_that_is_known(
    port: World, call: Call, method: str, path: str, body: dict[str, str] | None
) -> None:
    call(port.ada, "post", ADDRESS, ASKED)
    finish(BundleComparison.objects.get())
    assert problem_of(call(port.bert, method, path, body))["code"] == "not-found"
    port.kubernetes.allow("bert", "get", "port")
    cache.clear()
    refused = problem_of(call(port.bert, method, path, body))
    assert (refused["code"], "bundledeployments" in refused["rule"]) == ("not-allowed", True)
    port.kubernetes.allow("bert", "create")
    cache.clear()
    assert call(port.bert, method, path, body).status_code == 200


@pytest.mark.parametrize(("method", "path", "body"), READ_AND_ASKED)
def test_S02_who_is_nobody_on_a_cluster_is_told_the_same_whether_it_exists(
    port: World, call: Call, method: str, path: str, body: dict[str, str] | None
) -> None:
    catalog("port", of=world.cluster("moon"))
    there, nowhere = (call(port.ada, method, path.replace("prod", name), body).content for name in ("moon", "void"))
    assert there.replace(b"moon", b"void") == nowhere


def test_quotas_are_refused_with_what_to_do(port: World, call: Call, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "COMPARISONS": 1}
    assert call(port.ada, "post", ADDRESS, {"to": "1.0.0"}).status_code == 202
    refused = problem_of(call(port.ada, "post", ADDRESS, ASKED))
    assert (refused["status"], refused["code"]) == (429, "too-many")
    finish(BundleComparison.objects.get())
    settings.PRATIQUE = {**settings.PRATIQUE, "COMPARISONS_PER_HOUR": 1}
    refused = problem_of(call(port.ada, "post", ADDRESS, ASKED))
    assert (refused["status"], refused["code"]) == (429, "too-many-attempts")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{ADDRESS}?from=1.0.0", "invalid-input"),
        (f"{ADDRESS}?from=1.0.0&to=9.9.9", "invalid-input"),
        (f"{QUERY}&colour=red", "invalid-query"),
        ("catalogs/prod/port/packages/quay/changes?to=1.0.0", "not-found"),
        (f"{QUERY}&findings_from=-1", "invalid-input"),
    ],
    ids=["no version", "no such version", "no such parameter", "no such package", "no part"],
)
def test_what_cannot_be_asked_is_refused(port: World, call: Call, path: str, code: str) -> None:
    assert problem_of(call(port.ada, "get", path))["code"] == code
