"""The real API server, asked thousands of times over one connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kubernetes.connection import Server
from tests.support.kubernetes.endpoint import Endpoint


@pytest.fixture(scope="module")
def server(controlplane: Endpoint) -> Iterator[Server]:
    made = Server(controlplane)
    yield made
    made.close()
