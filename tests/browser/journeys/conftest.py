"""The office of the journeys, on the sandbox; and one on a real Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from tests.browser.conftest import Enter
from tests.browser.journeys.office import Office
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry

Offices = Callable[[str], Office]


@pytest.fixture
def office(
    live_server: LiveServer, sandbox_station: Station, registry: Registry, enter: Enter, settings: Any
) -> Offices:
    """`office(word)`: its deployment is the station's own, and carol may approve it beside alice."""

    def opened(word: str) -> Office:
        made = Office(sandbox_station, registry, live_server.url, enter, f"{sandbox_station.namespace}-{word}")
        sandbox_station.let_approve("carol", made.name)
        return made

    return opened


@pytest.fixture
def real_office(live_server: LiveServer, station: Station, registry: Registry, enter: Enter) -> Offices:
    """The same where the question is what a real API server does."""

    def opened(word: str) -> Office:
        made = Office(station, registry, live_server.url, enter, f"{station.namespace}-{word}")
        station.let_approve("carol", made.name)
        return made

    return opened
