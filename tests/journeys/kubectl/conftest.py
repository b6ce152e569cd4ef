"""A cluster of these tests alone: the admission policies that they apply hold for all who write to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.watch import loop
from tests.journeys.kubectl.authors import POLICIES, SECONDS, Seen, put_in_force
from tests.support.journeys.deployed_site import SEEDER, DeployedSite, binding, user_subject
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.kubernetes.endpoint import Endpoint


@pytest.fixture(scope="package")
def controlplane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """It ends with the tests of this folder, as it takes processor time also while nobody asks it."""
    with ControlPlane(binaries, logs=tmp_path_factory.mktemp("policies")) as control_plane:
        yield control_plane.endpoint


@pytest.fixture
def seen(real_site: DeployedSite, monkeypatch: pytest.MonkeyPatch) -> Seen:
    monkeypatch.setattr(loop, "WATCH_SECONDS", SECONDS)
    # The watch has a thread and a connection of its own; here, it is the test's.
    monkeypatch.setattr(loop, "close_old_connections", lambda: None)
    for user in ("carol", "rita"):
        name = f"{real_site.namespace}-{user}-writes"
        real_site.api.apply(binding(name, "pratique-requester", user_subject(user)), field_manager=SEEDER)
    # The policies are tried with one that is there.
    other = Seen(real_site, f"{real_site.namespace}-other")
    for obj in POLICIES:
        real_site.api.apply(obj, field_manager=SEEDER, force=True)
    other.write("admin")
    other.list()
    put_in_force(real_site)
    here = Seen(real_site, f"{real_site.namespace}-app")
    here.list()
    return here
