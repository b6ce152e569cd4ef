"""`pratique-manage admission` as a process: no database, a certificate that is renewed, and clients that send nothing."""

from __future__ import annotations

import os
import socket
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from approvals.management.commands.admission import READ_SECONDS
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.http import Authority, make_authority
from tests.support.servers.process import Options, Server, answers_on, free_port, wait_until

pytestmark = pytest.mark.thorough
THREADS = 16


@dataclass
class Serving:
    folder: Path
    port: int
    authority: Authority

    def connected(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.authority.ca_file))
        return context.wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), timeout=scaled(60)), server_hostname="127.0.0.1"
        )

    def is_well(self) -> bool:
        with self.connected() as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return client.recv(100).startswith(b"HTTP/1.1 200")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("admission")
    authority, port = make_authority(folder), free_port()
    files = ["--cert", authority.chain_file, "--key", authority.key_file]
    command = [sys.executable, ROOT / "manage.py", "admission", "--bind", f"127.0.0.1:{port}", *files]
    nowhere = {"PRATIQUE_DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}
    env = {name: "" for name in os.environ if name.startswith("PYTEST")} | nowhere
    server = Server("admission", command, folder / "log", Options(env=env))
    try:
        server.wait(lambda: answers_on(port), 60)
        yield Serving(folder, port, authority)
    finally:
        server.stop()


def test_a_renewed_certificate_counts_without_a_restart(serving: Serving) -> None:
    assert serving.is_well()
    serving.authority = make_authority(serving.folder)
    assert serving.is_well()


def test_S29_clients_that_send_nothing_hold_no_thread_for_long(serving: Serving) -> None:
    silent = [serving.connected() for _ in range(THREADS)]
    for client in silent:
        client.sendall(b"POST /stamp HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    try:
        wait_until(serving.is_well, "a thread is free again", 3 * READ_SECONDS)
    finally:
        for client in silent:
            client.close()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--cert .*gone.crt: no such file. Expected what a Secret"):
        call_command("admission", cert=str(tmp_path / "gone.crt"), key=str(tmp_path / "gone.key"))
