"""The sandbox as a fixture, with the same users as the real control plane, met in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from provisioner.sandbox import Sandbox, SandboxUser
from tests.support.kubernetes.endpoint import USERS, Endpoint


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One sandbox a worker, on a free port. Its `kubectl` is whatever the path says: tests that need one ask for it."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as started:
        yield started


@pytest.fixture
def own_sandbox(tmp_path: Path) -> Iterator[Endpoint]:
    """An empty one, for tests that need a cluster in which nobody else wishes for anything."""
    with running_sandbox(tmp_path / "own-sandbox") as started:
        yield started


@contextmanager
def running_sandbox(folder: Path) -> Iterator[Endpoint]:
    users = [SandboxUser(user.name, f"token-{user.name}", user.groups, user.uid) for user in USERS]
    started = Sandbox(folder, users=users)
    started.start()
    try:
        yield Endpoint(started.url, started.ca_pem, Path("kubectl"), started.tokens)
    finally:
        started.stop()
