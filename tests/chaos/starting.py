"""Starts what runs in a process of its own, with a database and a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from approvals.encryption.keys import new_key
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.postgresql import Postgres

SECONDS = int(os.environ.get("PRATIQUE_CHAOS_SECONDS", "2400"))


@dataclass(frozen=True)
class Starter:
    postgres: Postgres
    bundles: str
    tmp_path: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def lines(self, module: str, name: str, *words: object) -> list[str]:
        """What `python -m tests.support.program MODULE` prints, given a folder, the bundles and `words`."""
        folder = self.tmp_path / name
        folder.mkdir()
        environment = self._environment(folder)
        run = partial(
            subprocess.run,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=scaled(SECONDS),
        )
        every = ["--folder", folder, "--bundles", self.bundles, *words]
        done = run([sys.executable, "-m", "tests.support.program", module, *map(str, every)])
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout.splitlines()

    def _environment(self, folder: Path) -> dict[str, str]:
        return {
            **os.environ,
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_LOCAL_ACCOUNTS": "true",
            "PRATIQUE_ENCRYPTION_KEYS": new_key(),
            "PRATIQUE_DATABASE_URL": self.postgres.migrated_database(),
            "PRATIQUE_CONTENT_DIR": str(folder / "content"),
            # What killed processes leave goes with the folder.
            "TMPDIR": str(folder),
            "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
            "PRATIQUE_PLAIN_HTTP_HOSTS": "127.0.0.1",
            "PRATIQUE_MUTABLE_HTTP": "true",
            # Nobody listens: the runner takes out what the sweep puts in.
            "PRATIQUE_REDIS_URL": "memory://",
            "PRATIQUE_LOG_FORMAT": "json",
            **self.settings,
        }
