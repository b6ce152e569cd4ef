"""A webhook that comes with its bundle: the API server calls it over TLS, and refuses what it guards while it is down."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from approvals.models import Request
from approvals.steps.records.notes import Notes
from provisioner.values import ObjectOutcome
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import is_unreachable, wait_until
from tests.support.patience import scaled
from tests.support.servers.http import Asked, Authority, Listening, Reply
from tests.support.servers.process import free_port
from tests.support.servers.registry import Registry

HOOKS = "ValidatingWebhookConfiguration"
GUARDED = {"guarded": "yes"}
DEPENDS_ON = "config.kubernetes.io/depends-on"
FORBIDDEN = "this colour is forbidden"
LATE_SECONDS = 1.5


class Guard:
    """The webhook's bundle, and the server behind it, which can be switched on and off."""

    def __init__(self, site: DeployedSite, registry: Registry, authority: Authority):
        self.site, self.registry, self.authority = site, registry, authority
        self.name = f"{site.namespace}-guard"
        self.port = free_port()
        self.asked: list[str] = []
        self._listening: Listening | None = None

    def start(self) -> None:
        self._listening = Listening(self._answer, self.authority, self.port)

    def stop(self) -> None:
        if self._listening:
            self._listening.stop()
        self._listening = None

    def start_late(self) -> None:
        threading.Timer(LATE_SECONDS, self.start).start()

    def _answer(self, asked: Asked) -> Reply:
        review = json.loads(asked.body)["request"]
        self.asked.append(f"{review['operation']} {review['name']}")
        colour = ((review["object"] or {}).get("data") or {}).get("colour")
        answer = {"uid": review["uid"], "allowed": colour != "black", "status": {"message": FORBIDDEN}}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        return Reply(json.dumps(body).encode(), headers={"Content-Type": "application/json", "Connection": "close"})

    def files(self, colour: str) -> dict[str, bytes]:
        objects = [self.configuration(), self.lamp(colour)]
        return bundles.app(self.name, "1") | {"manifests/50.yaml": yaml.safe_dump_all(objects).encode()}

    def configuration(self) -> dict[str, Any]:
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["configmaps"],
        }
        hook = {
            "name": f"{self.name}.example.com",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self.port}/",
                "caBundle": base64.b64encode(self.authority.ca_pem.encode()).decode(),
            },
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.site.namespace}},
            "objectSelector": {"matchLabels": GUARDED},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 10,  # of a server on this machine; where none is, the answer comes at once
        }
        api_version = "admissionregistration.k8s.io/v1"
        return {"apiVersion": api_version, "kind": HOOKS, "metadata": {"name": self.name}, "webhooks": [hook]}

    def lamp(self, colour: str) -> dict[str, Any]:
        first = f"admissionregistration.k8s.io/{HOOKS}/{self.name}"
        meta = {"name": "lamp", "labels": GUARDED, "annotations": {DEPENDS_ON: first}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"colour": colour}}

    def colour(self) -> str | None:
        live = self.site.live("ConfigMap", "lamp")
        return live["data"]["colour"] if live else None

    def submit_spec(self, colour: str) -> Request:
        deployment = self.site.prepare(self.name, bundles.image(self.registry, self.name, self.files(colour)))
        return self.site.latest(deployment)

    def wait_until_in_force(self) -> None:
        """The API server takes up a webhook a moment after it has stored it."""
        meta = {"name": "probe", "namespace": self.site.namespace, "labels": GUARDED}
        probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        wait_until(lambda: is_unreachable(lambda: self.site.api.create(probe, dry_run=True)))


@pytest.fixture
def guard(real_site: DeployedSite, registry: Registry, authority: Authority) -> Iterator[Guard]:
    made = Guard(real_site, registry, authority)
    yield made
    made.stop()
    real_site.ctl("delete", HOOKS, made.name, "--ignore-not-found")


def once_written(monkeypatch: pytest.MonkeyPatch, kind: str, happens: Callable[[], object]) -> None:
    """`happens` after the object of that kind was written, and before the next step."""
    take = Notes.take

    def taken(notes: Notes, outcome: ObjectOutcome) -> None:
        take(notes, outcome)
        if outcome.ref.kind == kind:
            happens()

    monkeypatch.setattr(Notes, "take", taken)


def test_what_a_webhook_guards_is_written_once_the_webhook_has_come_up(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def come_up_late() -> None:
        guard.wait_until_in_force()
        guard.start_late()

    first = guard.submit_spec("red")
    assert first.state == "in_review", first.problem
    with monkeypatch.context() as patch:
        once_written(patch, HOOKS, come_up_late)
        applied = guard.site.approve(first.deployment)
    assert applied.state == "applied", applied.problem
    assert (guard.colour(), set(guard.asked)) == ("red", {"CREATE lamp"})

    refused = guard.submit_spec("black")
    problems = [one for one in refused.reports.get().body["plan"]["actions"] if one["problem"]]
    assert len(problems) == 1
    assert "the API server refuses it" in problems[0]["problem"]
    assert FORBIDDEN not in problems[0]["problem"]
    assert FORBIDDEN in problems[0]["serverWords"]
    held = guard.site.approve(refused.deployment)
    assert (held.state, guard.colour()) == ("approved", "red")
    assert "the API server refuses it" in held.problem
    assert FORBIDDEN not in held.problem
    (said,) = held.server_words
    assert (said["ref"]["kind"], said["ref"]["name"]) == ("ConfigMap", "lamp")
    assert FORBIDDEN in said["words"]


@pytest.mark.thorough
def test_an_apply_ends_in_words_where_its_webhook_never_comes_up_and_the_bundle_can_still_be_mended(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    usual = settings.PRATIQUE
    settings.PRATIQUE = {**usual, "APPLY_MINUTES": scaled(0.2)}
    first = guard.submit_spec("red")
    with monkeypatch.context() as patch:
        once_written(patch, HOOKS, guard.wait_until_in_force)
        failed = guard.site.approve(first.deployment)
    assert (failed.state, failed.problem_code) == ("failed", "apply-failed")
    assert "lamp" in failed.problem
    called = f'failed calling webhook "{guard.name}.example.com"'
    assert called in guard.site.said(failed)
    assert called not in failed.problem
    assert guard.colour() is None

    settings.PRATIQUE = usual
    second = guard.submit_spec("green")
    assert second.state == "in_review", second.problem
    untried = second.reports.get().findings.get(rule="OBJ-04")
    hook = f"a webhook of the bundle itself ({guard.name}.example.com) does not answer"
    assert f"lamp is not known before apply: {hook}" in untried.message
    guard.start()
    applied = guard.site.approve(second.deployment)
    assert applied.state == "applied", applied.problem
    assert (guard.colour(), set(guard.asked)) == ("green", {"CREATE lamp"})


@pytest.mark.thorough
def test_a_bundle_whose_own_webhook_is_dead_can_be_removed(guard: Guard) -> None:
    guard.start()
    first = guard.submit_spec("red")
    applied = guard.site.approve(first.deployment)
    assert applied.state == "applied", applied.problem
    guard.stop()
    guard.wait_until_in_force()
    site, deployment = guard.site, applied.deployment
    site.look_after(deployment)
    site.delete(deployment)
    site.work()
    removed = site.approve(deployment)
    assert removed.state == "applied", removed.problem
    assert guard.colour() is None
