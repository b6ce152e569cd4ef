"""A cluster of these tests alone: the admission policies that they apply hold for all who write to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.fixtures import controlplane_in


@pytest.fixture(scope="session")
def controlplane(kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Endpoint:
    """One for each worker of the run that comes by here."""
    return controlplane_in(tmp_path_factory.getbasetemp() / "controlplane-with-policies", kubectl)
