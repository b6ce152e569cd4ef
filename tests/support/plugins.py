"""Packages with plug-ins: one that pip installs, as an operator does, and small ones that a test writes."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

from provisioner.plugins import PluginGroup, plugin_calls
from tests.support.folders import ROOT

SECONDS = 120


@dataclass
class PluginPath:
    """A folder of installed packages, on the path of this process while a test runs. `modules` are all that lie there."""

    folder: Path
    modules: set[str] = field(default_factory=set)

    def add(self, package: str, points: Mapping[PluginGroup, Mapping[str, str]], code: str, version: str = "1") -> None:
        """A package of one module of this name; `points` are the targets by group and name."""
        texts: dict[str, list[str]] = defaultdict(list)
        for group, named in points.items():
            texts[group] += [f"{name} = {target}" for name, target in named.items()]
        lines = [line for group, entries in texts.items() for line in (f"[{group}]", *entries)]
        self.add_written(package, "\n".join(lines) + "\n", code, version)

    def add_written(self, package: str, entry_points: str, code: str, version: str = "1") -> None:
        """The same with this text for its entry points."""
        (self.folder / f"{package}.py").write_text(dedent(code))
        info = self.folder / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(entry_points)
        self.modules.add(package)


@pytest.fixture
def plugin_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginPath]:
    """An empty folder for packages; what was loaded from it is forgotten afterwards."""
    made = PluginPath(tmp_path / "packages")
    made.folder.mkdir()
    monkeypatch.syspath_prepend(str(made.folder))
    yield made
    forget(made.modules)


@pytest.fixture(scope="session")
def tides_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of tests/plugins/tides, built and installed by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("tides")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *options]
    done = subprocess.run(
        [*command, str(ROOT / "tests/plugins/tides")], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def tides(tides_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package `pratique-tides` on the path of this process while a test runs."""
    monkeypatch.syspath_prepend(str(tides_folder))
    yield tides_folder
    forget({"tides"})


def forget(packages: set[str]) -> None:
    """As if this process had not loaded any plug-in yet."""
    for name in [known for known in sys.modules if known.partition(".")[0] in packages]:
        del sys.modules[name]
    plugin_calls._loaded.clear()
    plugin_calls._disabled.clear()
