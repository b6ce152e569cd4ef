"""A cluster in each form of impersonation; the service's processes start anew in each test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from approvals.rights.needs import ImpersonationForm
from tests.rights.household import Household, audited
from tests.support.journeys.machine import environment
from tests.support.kubernetes.controlplane import ControlPlane

OFF = "--feature-gates=ConstrainedImpersonation=false"


@dataclass(frozen=True)
class Noted:
    """A control plane whose API server notes in `folder` what our accounts ask."""

    control_plane: ControlPlane
    folder: Path
    form: ImpersonationForm


@pytest.fixture(scope="package", params=[*ImpersonationForm])
def noted(request: pytest.FixtureRequest, binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noted]:
    folder = tmp_path_factory.mktemp("rights")
    options = [*audited(folder), *([OFF] if request.param is ImpersonationForm.LEGACY else [])]
    with ControlPlane(binaries, logs=folder / "logs", options=options) as control_plane:
        yield Noted(control_plane, folder, request.param)


@pytest.fixture
def household(noted: Noted, tmp_path: Path, redis: str) -> Iterator[Household]:
    made = Household(tmp_path, noted.control_plane, environment(tmp_path, redis))
    try:
        made.begin()
        yield made
    finally:
        made.machine.stop()
