"""Both versions of Helm, and one process for the charts of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from provisioner.render import keep_engine
from provisioner.render.helm import values


@pytest.fixture(
    scope="module", params=[4, pytest.param(3, marks=pytest.mark.controlplane)], ids=lambda version: f"Helm {version}"
)
def helm_version(request: pytest.FixtureRequest) -> int:
    """Of a file, so that all of its tests with one Helm come before those with the other."""
    version: int = request.param
    if version == 3:
        request.getfixturevalue("helm3")
    return version


@pytest.fixture
def each_helm(helm_version: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Which Helm renders what names none: once each."""
    monkeypatch.setattr(values, "DEFAULT_HELM_VERSION", helm_version)
    return helm_version


@pytest.fixture(scope="module")
def kept_engine() -> Iterator[None]:
    """As in production, one process renders chart after chart: to start it takes thirty times as long as to render one."""
    with keep_engine():
        yield
