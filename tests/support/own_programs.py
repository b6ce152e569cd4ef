"""The programs of ours in Go, built once and put on the PATH."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.built import built_own


@pytest.fixture(scope="session")
def kustomize(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with _on_path("kustomize", tmp_path_factory.mktemp("kustomize")) as program:
        yield program


@pytest.fixture(scope="session")
def helm3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with _on_path("helm3", tmp_path_factory.mktemp("helm3")) as program:
        yield program


@contextmanager
def _on_path(folder: str, place: Path) -> Iterator[Path]:
    program = place / f"pratique-{folder}"
    program.symlink_to(built_own(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
        yield program
