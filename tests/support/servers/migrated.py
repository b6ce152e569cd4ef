"""A database with all migrations, made once for these migrations and copied: to make one takes a quarter of a minute."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import django

from tests.support.folders import ROOT
from tests.support.patience import scaled

SQLITE = "sqlite:///"
SECONDS = 300


def make(environment: Mapping[str, str]) -> None:
    """The database of `environment`, as `manage.py migrate` leaves it, which stores nothing that a key is needed for."""
    url = environment["PRATIQUE_DATABASE_URL"]
    if not url.startswith(SQLITE):
        migrate(environment)
        return
    made = kept("sqlite3", lambda scratch: migrate({**environment, "PRATIQUE_DATABASE_URL": f"{SQLITE}{scratch}"}))
    shutil.copyfile(made, url.removeprefix(SQLITE))


def kept(suffix: str, make_file: Callable[[Path], object]) -> Path:
    """The file that `make_file` makes of a database with these migrations, if nobody has made it before."""
    made = _cache() / f"migrated-{_key()}.{suffix}"
    if not made.exists():
        scratch = made.with_name(f".{made.name}.{os.getpid()}")
        make_file(scratch)
        scratch.rename(made)
    return made


def migrate(environment: Mapping[str, str]) -> None:
    """All migrations, in the database of `environment`."""
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    done = subprocess.run(
        command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=False, timeout=scaled(SECONDS)
    )
    assert done.returncode == 0, done.stderr[-2000:]


def _key() -> str:
    """By the migrations of ours and the version of Django, which brings its own."""
    digest = hashlib.sha256(django.__version__.encode())
    for file in sorted((ROOT / "approvals/migrations").glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pratique"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
