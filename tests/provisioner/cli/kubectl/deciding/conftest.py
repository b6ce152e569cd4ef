"""A login at the service, whose token is kept in the test's own folder."""

from __future__ import annotations

import io

import pytest

from provisioner.cli.kubectl import main
from tests.provisioner.cli.kubectl.scene import TOKEN, Recorder


@pytest.fixture
def signed_in(service: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recorder:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    assert main(["login", "--service", service.url, "--token", "-"]) == 0
    capsys.readouterr()
    return service
