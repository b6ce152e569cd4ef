"""A copy of this checkout without what git ignores, and the wheel and sdist that are built from it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.folders import ROOT
from tests.support.patience import scaled

SECONDS = 120
# What lies about in a checkout in use, and must not be packed.
STRAY = (
    ".env",
    "deploy/.env",
    "deploy/.env.production",
    "approvals/project/.env",
    "approvals/pratique.sqlite3",
    "static/.env",
    ".demo/remembered.json",
    "content/bundle",
    "notes.txt",
)


@dataclass(frozen=True, slots=True)
class Built:
    """`files` are the paths below `source` that belong to the project: posix, sorted."""

    source: Path
    files: list[str]
    wheel: Path
    sdist: Path


def build(folder: Path) -> Built:
    source = folder / "source"
    files = project_files()
    for name in files:
        copy = source / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    for name in STRAY:
        stray = source / name
        stray.parent.mkdir(parents=True, exist_ok=True)
        stray.write_text("not for others")
    hatch(source, folder)
    return Built(source, files, *folder.glob("*.whl"), *folder.glob("*.tar.gz"))


def hatch(source: Path, into: Path, *targets: str) -> None:
    """Build `targets` (default: sdist and wheel) of the project in `source`."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into)]
    for target in targets:
        command += ["--target", target]
    run(command, source)


def run(command: list[str], folder: Path) -> str:
    """Run to a successful end in `folder`; returns what was written to stdout."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=scaled(SECONDS))
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def project_files() -> list[str]:
    """What git tracks or would add; in an unpacked sdist, which has no git, everything but caches."""
    if (ROOT / ".git").exists():
        listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], ROOT).split("\0")
        return sorted(name for name in listed if name and (ROOT / name).is_file())
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not _is_cache(path) and path.name != "PKG-INFO")


def _is_cache(path: Path) -> bool:
    return any(part == "__pycache__" or (part.startswith(".") and part != ".ci") for part in path.parent.parts)


def packed(archive: Path) -> dict[str, bytes]:
    """The files of a wheel or sdist by their path; an sdist's one top folder is left away."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        members = [member for member in sdist.getmembers() if member.isfile()]
        return {one.name.partition("/")[2]: sdist.extractfile(one).read() for one in members}
