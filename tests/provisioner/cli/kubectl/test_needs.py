"""`needs`: what would come first, as the service tells it, and as objects for kubectl."""

from __future__ import annotations

import io

import pytest
import yaml

from provisioner.cli.kubectl import main
from tests.provisioner.cli.kubectl.conftest import Run
from tests.provisioner.cli.kubectl.scene import TOKEN, UID, Recorder

SPEC = {
    "installNamespace": "store",
    "serviceAccountName": "store-installer",
    "format": "registry-v1",
    "sources": [{"kind": "catalog", "catalog": {"name": "port", "package": "store", "channel": "stable"}}],
}
PLAN = {
    "digest": "sha256:plan",
    "unasked": "",
    "more_needs": 0,
    "needs": [{"need": "package store >=1", "state": "planned", "why": "store 1.2.0 would come first\x1b[31m"}],
    "deployments": [
        {"name": "store", "package": "store", "version": "1.2.0", "catalog": "port", "unjudged": ["CEL"], "spec": SPEC}
    ],
}


@pytest.fixture
def signed_in(service: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recorder:
    service.answers[f"/api/v1/requests/{UID}/dependencies"] = (200, PLAN)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    assert main(["login", "--service", service.url, "--token", "-"]) == 0
    capsys.readouterr()
    return service


def test_what_would_come_first_is_listed_in_order(
    run: Run, signed_in: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("needs", "web") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "package store >=1: planned" in shown
    assert (
        "1. store 1.2.0 of catalog port: deployment store in namespace store, account store-installer\n"
        "   not checked: CEL\n"
    ) in shown


def test_programs_get_the_objects_that_kubectl_creates(
    run: Run, signed_in: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("needs", "web", "-o", "yaml") == 0
    (made,) = yaml.safe_load(capsys.readouterr().out)["items"]
    assert (made["kind"], made["metadata"], made["spec"]) == ("BundleDeployment", {"name": "store"}, SPEC)
