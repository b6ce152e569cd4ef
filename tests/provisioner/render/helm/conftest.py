"""Both versions of Helm."""

from __future__ import annotations

import pytest

from provisioner.render.helm import values


@pytest.fixture(params=[4, pytest.param(3, marks=pytest.mark.controlplane)], ids=lambda version: f"Helm {version}")
def each_helm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Which Helm renders what names none: once each."""
    version: int = request.param
    if version == 3:
        request.getfixturevalue("helm3")
    monkeypatch.setattr(values, "DEFAULT_HELM_VERSION", version)
    return version
