"""A real PostgreSQL in a temporary folder."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support.patience import scaled
from tests.support.servers import migrated
from tests.support.servers.process import Options, Server, ServiceFailed, free_port, private_folder, unprivileged


def find_programs() -> Path | None:
    """The folder of `initdb` and `postgres`: that of PATH, else the newest that Debian installed."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(installed, key=lambda folder: float(folder.parent.name), default=None)


class Postgres:
    """A server of its own; `url` is a superuser's DATABASE_URL of the database `postgres`."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = private_folder("postgres")
        user = unprivileged()
        if user:
            shutil.chown(self._folder, user)
        try:
            self._initialise(programs, user)
            self._port = free_port()
            self.url = f"postgres://postgres@127.0.0.1:{self._port}/postgres"
            self._server = Server(
                "postgres",
                [programs / "postgres", "-D", self._folder / "data", "-p", str(self._port),
                 "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self._folder}",
                 # The data need not outlive a crash of the machine.
                 "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"],
                self._folder / "postgres.log",
                Options(user=user, stop_signal=signal.SIGINT),  # "fast": does not wait for clients
            )  # fmt: skip
            self._server.wait(self._answers)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._numbers = itertools.count(1)
        self._template: str | None = None

    def fresh_database(self, template: str = "template1") -> str:
        """Create a database of a new name, empty or as the template is; returns its DATABASE_URL."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
        return self.url.removesuffix("/postgres") + f"/{name}"

    def migrated_database(self) -> str:
        """A database of a new name with all migrations: a copy of the one that the first call makes of a kept dump."""
        if self._template is None:
            template = self.fresh_database()
            dump = migrated.kept("sql", self._dump_migrated)
            self._run("psql", "--quiet", "--set=ON_ERROR_STOP=1", f"--file={dump}", template)
            self._template = template.rpartition("/")[2]
        return self.fresh_database(template=self._template)

    def _dump_migrated(self, file: Path) -> None:
        url = self.fresh_database()
        environment = {"PRATIQUE_DATABASE_URL": url, "PRATIQUE_SECRET_KEY": "only-for-tests-" * 4}
        migrated.migrate({**os.environ, **environment})
        self._run("pg_dump", f"--file={file}", url)

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run([self._programs / program, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServiceFailed(f"{program}: {done.stderr}")

    def stop(self) -> None:
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _initialise(self, programs: Path, user: str | None) -> None:
        done = subprocess.run(
            [programs / "initdb", "-D", self._folder / "data", "--username=postgres", "--auth=trust",
             "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"],
            user=user, group="nogroup" if user else None, extra_groups=[] if user else None, cwd=self._folder,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise ServiceFailed(f"initdb: {done.stderr}")

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=int(scaled(30))).close()
        except psycopg.OperationalError:
            return False
        return True
