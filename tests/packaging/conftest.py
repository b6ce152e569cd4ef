"""The wheel and sdist of this checkout, and environments that they are installed in, made once for a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.packaging.building import Built, build
from tests.packaging.installing import Installed, install


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session", params=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest, built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Without extras, its database migrated."""
    into = tmp_path_factory.mktemp(request.param)
    found = install(built.wheel, into) if request.param == "wheel" else install(built.sdist, into, also=("hatchling",))
    found.run("pratique-manage", "migrate", "--verbosity", "0")
    return found


@pytest.fixture(scope="session")
def installed_with_demo(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """With the extra `demo`, and no settings: the demo makes its own."""
    found = install(built.wheel, tmp_path_factory.mktemp("demo"), "demo")
    kept = {name: value for name, value in found.environment.items() if not name.startswith("PRATIQUE_")}
    return replace(found, environment=kept)
