"""Lists, single objects, drift and reports over REST: bounded, filtered, cached by ETag."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from approvals import audit
from approvals.gate.reader import subject_of
from approvals.ledger.digests import digest_of, options_digest
from approvals.models import AuditEntry, Request
from approvals.steps import failures
from approvals.steps.mirroring import conditions
from provisioner.errors import BadBundle
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import scene, world
from tests.support.approvals.changes import action, planned
from tests.support.approvals.containers import AFTER, BEFORE, NEW, OLD
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import opened


def results(call: Call, env: World, path: str) -> list[dict[str, Any]]:
    response = call(env.ada, "get", path)
    assert response.status_code == 200, response.content
    found: list[dict[str, Any]] = json.loads(response.content)["results"]
    return found


def test_requests_are_filtered(env: World, afternoon: dict[str, Any], call: Call) -> None:
    assert {one["state"] for one in results(call, env, "requests?state=in_review")} == {"in_review"}
    assert [one["deployment"] for one in results(call, env, "requests?deployment=harbour")] == ["harbour"]
    assert results(call, env, "requests?cluster=moon") == []


def test_pages_are_bounded(env: World, call: Call, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MAX_OPEN_REQUESTS_OF_ONE": 60}
    for number in range(60):
        scene.asked(env.cluster, f"d{number}", env.rita)
    first = json.loads(call(env.ada, "get", "requests").content)
    assert (first["count"], len(first["results"])) == (60, 50)
    assert len(results(call, env, "requests?page=2")) == 10
    assert len(results(call, env, "requests?page_size=1000000")) == 60
    for page in ("0", "99", "x"):
        problem_of(call(env.ada, "get", f"requests?page={page}"))


def test_a_list_costs_the_same_however_long_it_is(
    env: World, call: Call, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(40):
        world.in_review(scene.asked(env.cluster, f"d{number}", env.rita))
    token = f"Bearer {world.api_token(env.ada)[1]}"
    for path in ("requests", "deployments"):
        with django_assert_max_num_queries(16):
            answer = call(env.ada, "get", path, authorization=token)
        assert len(json.loads(answer.content)["results"]) == 40


def test_S09_a_key_in_the_path_of_a_source_is_hidden_in_its_pin(env: World, call: Call) -> None:
    request = scene.asked(env.cluster, "harbour", env.rita)
    pin = {"kind": "http", "reference": "https://a.example.com/dl/3f9aZ81kQpLm20xYtR77/a.tgz", "digest": "sha256:1"}
    Request.objects.filter(pk=request.pk).update(pins=[pin])
    told = json.loads(call(env.ada, "get", f"requests/{request.uid}").content)
    assert told["pins"] == [{**pin, "reference": "https://a.example.com/dl/hidden/a.tgz"}]


def test_what_is_known_already_is_not_sent_again(env: World, afternoon: dict[str, Any], call: Call) -> None:
    path = f"requests/{afternoon['serious'].uid}"
    first = call(env.ada, "get", path)
    assert first["Cache-Control"] == "private, no-cache"
    again = call(env.ada, "get", path, **{"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Request.objects.filter(pk=afternoon["serious"].pk).update(state="denied")
    assert call(env.ada, "get", path, **{"if-none-match": first["ETag"]}).status_code == 200


def test_a_request_carries_what_a_decision_needs(env: World, afternoon: dict[str, Any], call: Call) -> None:
    found = json.loads(call(env.ada, "get", f"requests/{afternoon['serious'].uid}").content)
    assert found["subject_digest"] == afternoon["serious"].subject_digest
    report = json.loads(call(env.ada, "get", f"requests/{afternoon['serious'].uid}/report").content)
    assert report["worst"] == "critical"
    assert report["findings"]


def test_S09_live_values_are_hidden_from_who_may_not_get_the_object(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    path = f"requests/{afternoon['deleting'].uid}/report"
    shown = json.loads(call(env.ada, "get", path).content)["plan"]["actions"]
    live = {one["ref"]["kind"]: one for one in shown if one["before"]}
    assert live
    cache.clear()
    env.kubernetes.closed = {f"{kind.lower()}s" for kind in live}
    hidden = json.loads(call(env.ada, "get", path).content)["plan"]["actions"]
    assert not [one for one in hidden if one["before"]]
    assert {one["hidden"] for one in hidden if one["ref"]["kind"] in live} == {"exists, hidden from you"}


@pytest.mark.parametrize("path", ["clusters/prod", "policies/routine", "audit/1"])
def test_every_kind_can_be_read_one_by_one(env: World, afternoon: dict[str, Any], call: Call, path: str) -> None:
    response = call(env.ada, "get", path)
    assert response.status_code == 200
    assert "kubeconfig" not in response.content.decode()


def test_promise_4_an_empty_list_of_a_silent_cluster_is_not_the_one_that_is_known(env: World, call: Call) -> None:
    known = call(env.ada, "get", "requests")
    assert call(env.ada, "get", "requests", **{"if-none-match": known["ETag"]}).status_code == 304
    cache.clear()
    env.kubernetes.is_down = True
    silent = call(env.ada, "get", "requests", **{"if-none-match": known["ETag"]})
    assert (silent.status_code, silent["Pratique-Could-Not-Ask"]) == (200, "prod")
    assert "ETag" not in silent


@pytest.mark.parametrize("closed", ["bundledeployments", "configmaps"])
def test_S27_what_a_failing_chart_says_of_its_values_is_for_who_may_get_them(
    env: World, call: Call, browse: Callable[[User], Client], closed: str
) -> None:
    config = {"lookup": [{"kind": "ConfigMap", "name": "zone"}, {"kind": "Secret", "name": "db"}]}
    row = world.submit_spec(env.cluster, world.seen("strimzi", world.spec(format="helm", config=config)), by=env.rita)
    request = row.requests.get()
    failures.fail_request(
        request, BadBundle("the chart: templates/a.yaml:3: Helm cannot render it", server_words="zq4711")
    )
    request.refresh_from_db()
    (prepared,) = conditions.of_request(request, None, None)
    assert ("templates/a.yaml:3" in prepared.message, "zq4711" in prepared.message) == (True, False)
    assert "zq4711" not in str(AuditEntry.objects.values_list("facts"))

    def told() -> set[bool]:
        shown = call(env.ada, "get", f"requests/{request.uid}").content.decode()
        return {"zq4711" in text for text in (shown, opened(browse(env.ada), f"/requests/{request.uid}"))}

    env.kubernetes.closed.add("secrets")  # of which a chart is told no value
    assert told() == {True}
    env.kubernetes.closed.add(closed)
    cache.clear()
    assert told() == {False}


def test_S09_values_of_config_are_for_who_may_get_the_deployment_itself(
    env: World, call: Call, browse: Callable[[User], Client]
) -> None:
    config = {"values": {"pin": "zq4711", "nested": [{"dsn": "zq4711"}]}, "release": "zq4711"}
    source = {"kind": "http", "http": {"url": "https://zqtoken12@example.com/x.tar.gz"}}
    wish = world.spec(format="helm", config=config, sources=[source])
    live = env.kubernetes.objects["strimzi"] = world.seen("strimzi", wish)
    row = world.submit_spec(env.cluster, live, by=env.rita)
    request = row.requests.get()
    pages = (f"/deployments/prod/{row.name}", f"/deployments/prod/{row.name}/edit", f"/requests/{request.uid}")

    def told() -> dict[str, str]:
        addresses = (f"deployments/{row.uid}", "deployments", f"requests/{request.uid}", "requests")
        rest = {one: call(env.ada, "get", one).content.decode() for one in addresses}
        return rest | {one: opened(browse(env.ada), one) for one in pages}

    seen = {where for where, text in told().items() if "zq4711" in text}
    assert seen == {f"deployments/{row.uid}", "deployments", f"requests/{request.uid}", *pages[:2]}
    env.kubernetes.closed.add("bundledeployments")
    cache.clear()
    hidden = told()
    assert [where for where, text in hidden.items() if "zq4711" in text or "zqtoken12" in text] == []
    shown = json.loads(hidden[f"requests/{request.uid}"])["spec"]
    assert shown["config"] == {"values": {"pin": "hidden", "nested": "hidden"}, "release": "hidden"}
    assert shown["installNamespace"] == wish["installNamespace"]
    for verb in ("get", "update"):
        env.kubernetes.allow("rita", verb)
    sent = {"generation": row.generation, "spec": shown}
    refused = problem_of(call(env.rita, "put", f"deployments/{row.uid}", sent))
    row.refresh_from_db()
    assert (refused["code"], row.spec["config"]) == ("not-allowed", config)
    assert "would overwrite values" in refused["detail"]


def test_S09_nobody_tries_words_of_config_on_what_is_read_of_a_request(env: World, call: Call) -> None:
    """Whoever knows all else of a spec makes every digest of it that a plain hash would give, for each word."""

    def wish(word: str) -> dict[str, Any]:
        return world.spec(format="helm", config={"values": {"pin": word}})

    row = world.submit_spec(env.cluster, world.seen("strimzi", wish("zq4711")), by=env.rita)
    request = world.in_review(row.requests.get())
    subject = subject_of(request, content_digest=request.content_id or "")
    Request.objects.filter(pk=request.pk).update(subject_digest=subject.digest)
    env.kubernetes.closed.add("bundledeployments")
    addresses = (f"deployments/{row.uid}", f"requests/{request.uid}", "audit?page_size=200")
    told = "".join(call(env.ada, "get", one).content.decode() for one in addresses)
    known = {one.name: str(getattr(subject, one.name)) for one in fields(subject) if one.name != "salt"}
    found = {options_digest(wish("zq4711")), digest_of(known.values())}
    for entry in AuditEntry.objects.all():
        entry.salt = None
        found.add(audit.entry_hash(entry))
    assert subject.digest in told
    assert [digest for digest in found if digest in told] == []


def drift(call: Call, env: World, afternoon: dict[str, Any]) -> list[dict[str, Any]]:
    answer = call(env.ada, "get", f"deployments/{afternoon['deployment'].uid}/drift")
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = json.loads(answer.content)["results"]
    return found


def test_drift_says_who_changed_what_and_when(env: World, afternoon: dict[str, Any], call: Call) -> None:
    scene.drifted(afternoon["deployment"])
    (row,) = drift(call, env, afternoon)
    assert (row["object"], row["kind"], row["state"], row["is_hidden"]) == (
        "ConfigMap harbour/berth-0",
        "changed",
        "open",
        False,
    )
    assert row["changes"] == [
        {
            "path": "data.depth",
            "change": "changed",
            "manager": "kubectl-edit",
            "at": "2026-11-21T12:00:00Z",
            "expected": "ten fathoms",
            "found": "two feet",
        }
    ]


def test_S09_values_are_hidden_from_who_may_not_get_the_object(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    scene.drifted(afternoon["deployment"])
    env.kubernetes.closed.add("configmaps")
    (row,) = drift(call, env, afternoon)
    assert row["is_hidden"]
    assert "two feet" not in json.dumps(row)
    assert row["changes"][0]["path"] == "data.depth"


def test_S38_whether_a_secret_differs_is_told_only_to_who_may_get_it(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    def told() -> list[Any]:
        paths = (f"deployments/{afternoon['deployment'].uid}/drift", "audit")
        return [json.loads(call(env.ada, "get", path).content) for path in paths]

    afternoon["deployment"].inventory.filter(name="berth-1").update(group="", version="v1", kind="Secret")
    env.kubernetes.closed.add("secrets")
    equal = told()
    secret = scene.drifted(afternoon["deployment"], "berth-1", kind="added")
    with transaction.atomic():
        facts = {"object": str(secret.item), "kind": "added", "fields": secret.fields}
        audit.record(verb="drift.found", actor=audit.MACHINE, deployment=afternoon["deployment"], facts=facts)
    assert told() == equal
    env.kubernetes.closed.clear()
    cache.clear()
    assert [row["object"] for row in drift(call, env, afternoon)] == ["Secret harbour/berth-1"]


def test_a_page_of_drift_is_bounded(env: World, afternoon: dict[str, Any], call: Call) -> None:
    for number in range(12):
        scene.drifted(afternoon["deployment"], f"berth-{number}")
    answer = call(env.ada, "get", f"deployments/{afternoon['deployment'].uid}/drift?page_size=5")
    found = json.loads(answer.content)
    assert (found["count"], len(found["results"])) == (12, 5)


def test_containers_are_a_part_of_the_report_over_rest(env: World, call: Call) -> None:
    request = planned(env, action(AFTER, BEFORE))
    answer = call(env.ada, "get", f"requests/{request.uid}/report")
    shown = json.loads(answer.content)
    (one,) = shown["containers"]
    assert (one["container"], one["image"]) == ("main", {"before": OLD, "after": NEW})
    assert {"change": "gone", "in": "env", "value": "MODE=live-mode"} in one["settings"]
    assert {"change": "new", "in": "env", "value": "DB_PASSWORD=hidden"} in one["settings"]
    assert (shown["containersHidden"], shown["parts"]["containers"]["total"]) == (0, 1)
    (workload,) = shown["workloads"]
    assert (workload["change"], workload["scale"]) == ("changed", {"before": "1 replica", "after": "1 replica"})
    assert shown["parts"]["workloads"]["total"] == 1


def test_on_a_first_install_rest_names_images_and_no_settings(env: World, call: Call) -> None:
    answer = call(env.ada, "get", f"requests/{planned(env, action(AFTER)).uid}/report")
    (one,) = json.loads(answer.content)["containers"]
    assert (one["change"], one["image"], one["settings"]) == ("new", {"before": "", "after": NEW}, [])


def test_S09_over_rest_no_container_is_told_of_an_object_that_the_caller_may_not_get(env: World, call: Call) -> None:
    env.kubernetes.closed = {"deployments"}
    request = planned(env, action(AFTER, BEFORE))
    answer = call(env.ada, "get", f"requests/{request.uid}/report")
    shown = json.loads(answer.content)
    assert (shown["workloads"], shown["containers"], shown["containersHidden"]) == ([], [], 1)
    assert not [words for words in (OLD, NEW, "live-arg", "live-mode", "hunter") if words in answer.content.decode()]
