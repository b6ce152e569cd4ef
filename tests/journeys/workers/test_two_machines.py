"""Workers on machines that share no folder: a database, a queue, and one bucket of a real S3 server."""

from __future__ import annotations

import base64
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from approvals.encryption.keys import new_key
from tests.support.folders import ROOT
from tests.support.journeys import people
from tests.support.journeys.machine import CLAIM_SECONDS, Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled, wait_for
from tests.support.servers.downloads import archive, served
from tests.support.servers.postgresql import Postgres
from tests.support.servers.s3 import S3Server, Wire, settings_of, wait_until_held

NAMESPACE = "travels"
SECONDS = 120.0


class Machines:
    """`named` are started with a home, a temporary and a working folder of their own, and what all have in common."""

    def __init__(self, folder: Path, common: dict[str, str]):
        self.folder, self.common = folder, common
        self.named: dict[str, Machine] = {}

    def start(self, name: str, **more: str) -> Machine:
        home = self.folder / name
        (home / "work").mkdir(parents=True)
        made = Machine(home, {**self.common, "HOME": str(home), "PYTHONPATH": str(ROOT), **more})
        made.working_folder = home / "work"
        self.named[name] = made
        return made

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.common["PRATIQUE_DATABASE_URL"]) as connection:
            return connection.execute(query.encode()).fetchall()

    def state(self) -> tuple[str, str]:
        ((state, problem),) = self.rows("SELECT state, problem FROM approvals_request")
        return str(state), str(problem)

    def until(self, state: str, machine: Machine) -> None:
        wait_for(self.state, f"the request is {state}", SECONDS, is_so=lambda seen: seen[0] == state, log=machine.log)

    def lose(self, name: str) -> None:
        """The machine dies, and its disk with it."""
        machine = self.named.pop(name)
        machine.stop()
        shutil.rmtree(machine.folder)


@pytest.fixture
def machines(tmp_path: Path, redis: str, postgres: Postgres, s3: S3Server) -> Iterator[Machines]:
    common = {
        "PRATIQUE_SECRET_KEY": "x" * 50,
        "PRATIQUE_LOCAL_ACCOUNTS": "true",
        "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        "PRATIQUE_DATABASE_URL": postgres.migrated_database(),
        "PRATIQUE_REDIS_URL": redis,
        "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PRATIQUE_PLAIN_HTTP_HOSTS": "127.0.0.1",
        "PRATIQUE_MUTABLE_HTTP": "true",
        "PRATIQUE_CLAIM_SECONDS": str(round(scaled(CLAIM_SECONDS))),
    }
    made = Machines(tmp_path, common)
    yield made
    for machine in made.named.values():
        machine.stop()


@pytest.mark.thorough
def test_what_one_machine_prepared_another_applies_after_the_first_died_in_the_middle_of_an_upload(
    machines: Machines, s3: S3Server, own_sandbox: Endpoint, tmp_path: Path
) -> None:
    value, kubeconfig = secrets.token_hex(200_000), tmp_path / "kubeconfig.people"
    own_sandbox.write(kubeconfig)
    location = s3.bucket()
    file = archive([people.a_secret(NAMESPACE, value)], people.TRAVELLING, tmp_path, tmp_path / "served")
    third_machine = machines.start("people", **settings_of(location))
    wire = Wire(s3.url, hold_up=100_000)
    with served(tmp_path / "served") as address:
        first = machines.start("first", **settings_of(replace(location, endpoint=wire.url)))
        worker = first.worker()
        said = third_machine.have_people("ask", kubeconfig, NAMESPACE, f"{address}/{file}")
        wait_until_held(wire)
        first.kill(worker)
        assert not list(s3.files_of(location).rglob("*")), "half an upload is no content"
        machines.lose("first")
        wire.close()

        second = machines.start("second", **settings_of(location))
        second.worker()
        machines.until("in_review", second)
    machines.lose("second")
    assert value.encode() not in s3.everything()
    assert base64.b64encode(value.encode()) not in s3.everything()

    third = machines.start("third", **settings_of(location))
    third_machine.have_people("approve", said.split()[-1])
    third.worker()
    machines.until("applied", third)
    live = own_sandbox.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{people.TRAVELLING}")
    assert base64.b64decode(live["data"]["password"]).decode() == value
    assert not list(third.working_folder.iterdir()), "no content store in a folder"
    # The first machine left a row of a content that has no file: each preparation has a salt of its own.
    ((digest,),) = machines.rows("SELECT content_id FROM approvals_request")
    assert [path.name for path in s3.files_of(location).rglob("*") if path.is_file()] == [
        str(digest).removeprefix("sha256:")
    ]
