"""Virtual environments that hold Pratique as installed, beside exactly the packages that its metadata asks for.

The packages are links to those of the environment that runs the tests: nothing is downloaded. Pratique itself is
installed by pip. Its programs run in a folder of their own, with an environment of their own.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from approvals.encryption.keys import new_key
from tests.packaging.building import packed, run

SECRET = "for-tests-only-0123456789-0123456789-0123456789-0123456789"


@dataclass(frozen=True, slots=True)
class Installed:
    """`environment` is all that the programs see; `folder` is where they run."""

    bin: Path
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str) -> list[str]:
        """The words of one of the programs installed, e.g. `pratique`, to be run anywhere."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        program = self.bin / words[0]
        # The scripts of other packages are not linked: `gunicorn` and `celery` run as modules.
        start = [str(program)] if program.exists() else [str(self.bin / "python"), "-m", words[0]]
        return ["env", "--ignore-environment", *settings, *start, *words[1:]]

    def run(self, *words: str) -> str:
        return run(self.command(*words), self.folder)


def install(archive: Path, into: Path, *extras: str, also: tuple[str, ...] = ()) -> Installed:
    """Install a wheel or sdist into a new virtual environment; `also` names packages that its build needs."""
    run([sys.executable, "-m", "venv", "--without-pip", str(into / "venv")], into)
    python = into / "venv" / "bin" / "python"
    site = Path(run([str(python), "-c", "import site; print(site.getsitepackages()[0])"], into).strip())
    link({name for wanted in (*requirements(archive, extras), *also) for name in needed(Requirement(wanted))}, site)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet", "install"]
    run([*pip, "--no-index", "--no-deps", "--no-build-isolation", "--no-compile", str(archive)], into)
    folder = into / "folder"
    folder.mkdir()
    environment = {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "PRATIQUE_SECRET_KEY": SECRET,
        "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        "PRATIQUE_DATABASE_URL": f"sqlite:///{folder / 'pratique.sqlite3'}",
    }
    return Installed(python.parent, folder, environment)


def requirements(archive: Path, extras: tuple[str, ...]) -> list[str]:
    """What a wheel's or sdist's own metadata asks for."""
    names = packed(archive)
    found = next(names[name] for name in names if re.fullmatch(r"PKG-INFO|[^/]+\.dist-info/METADATA", name))
    asked = [Requirement(text) for text in message_from_bytes(found).get_all("Requires-Dist", [])]
    return [f"{one.name}[{','.join(one.extras)}]" for one in asked if _applies(one, extras)]


def needed(asked: Requirement, seen: set[str] | None = None) -> set[str]:
    """The canonical names of a package and of all that it needs, as installed here."""
    seen = set() if seen is None else seen
    key = f"{_canonical(asked.name)}[{','.join(sorted(asked.extras))}]"
    if key not in seen:
        seen.add(key)
        for text in metadata.requires(asked.name) or []:
            if _applies(further := Requirement(text), tuple(asked.extras)):
                needed(further, seen)
    return {one.partition("[")[0] for one in seen}


def _applies(asked: Requirement, extras: tuple[str, ...]) -> bool:
    return asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in ("", *extras))


def link(names: set[str], site: Path) -> None:
    """Link the files of these packages into `site`: whole folders, where no other package shares them."""
    owners: dict[str, set[str]] = defaultdict(set)
    files: dict[str, list[Path]] = {}
    for found in metadata.distributions():
        name = _canonical(found.metadata["Name"])
        files[name] = list(_files(found))
        for file in files[name]:
            owners[file.parts[0]].add(name)
    origin = Path(metadata.distribution("hatchling").locate_file(""))
    for name in sorted(names):
        whole = {file.parts[0] for file in files[name] if len(owners[file.parts[0]]) == 1}
        for top in whole:
            (site / top).symlink_to(origin / top)
        for file in files[name]:
            if file.parts[0] not in whole:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                (site / file).symlink_to(origin / file)


def _files(found: metadata.Distribution) -> Iterator[Path]:
    """Those below site-packages: no scripts; what Python compiled itself is left to it."""
    for file in found.files or []:
        if file.parts[0] != ".." and "__pycache__" not in file.parts:
            yield Path(file)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
