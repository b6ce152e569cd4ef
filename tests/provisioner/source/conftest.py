"""Servers for the sources beside those of tests/support/servers: hostile ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.servers.hostile import Speaker
from tests.support.servers.http import FileServer


@pytest.fixture
def web(http_server: FileServer) -> Iterator[FileServer]:
    """The file server, serving nothing yet."""
    http_server.forget()
    yield http_server
    http_server.forget()


@pytest.fixture
def speaker() -> Iterator[Callable[[Callable[..., None]], str]]:
    """`speaker(talk)` starts a server that calls `talk(socket)` for each connection; returns its host and port."""
    started: list[Speaker] = []

    def start(talk: Callable[..., None]) -> str:
        started.append(Speaker(talk))
        return started[-1].host

    yield start
    for one in started:
        one.stop()
