"""The program that runs kustomize, on the PATH."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.built import built_kustomize


@pytest.fixture(scope="session")
def kustomize(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    program = tmp_path_factory.mktemp("kustomize") / "pratique-kustomize"
    program.symlink_to(built_kustomize())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        yield program
