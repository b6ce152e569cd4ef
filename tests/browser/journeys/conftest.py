"""The office of the journeys, on the sandbox; and one on a real Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from provisioner.api_groups import RBAC_GROUP
from provisioner.values import Identity
from tests.browser.conftest import Enter
from tests.browser.journeys.office import Office
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.provisioner.roles import bound, cluster_role, group, rule
from tests.support.servers.registry import Registry

Offices = Callable[[str], Office]


@pytest.fixture
def office(
    live_server: LiveServer, sandbox_site: DeployedSite, registry: Registry, enter: Enter, settings: Any
) -> Offices:
    """`office(word)`: its deployment is the station's own, and carol may approve it beside alice."""

    def opened(word: str) -> Office:
        made = Office(sandbox_site, registry, live_server.url, enter, f"{sandbox_site.namespace}-{word}")
        sandbox_site.let_approve("carol", made.name)
        return made

    return opened


@pytest.fixture
def real_office(live_server: LiveServer, real_site: DeployedSite, registry: Registry, enter: Enter) -> Offices:
    """The same where the question is what a real API server does; alice may see its CRDs, roles and bindings."""
    groups = ("apiextensions.k8s.io", RBAC_GROUP)
    look = cluster_role("journey-look", *(rule("get list", "*", group=one) for one in groups))
    for obj in (look, bound("journey-look", group("platform"))):
        real_site.api.apply(obj, field_manager="journey")
    real_site.until_may(Identity("alice", ("platform",)), "list", "clusterrolebindings", RBAC_GROUP)

    def opened(word: str) -> Office:
        made = Office(real_site, registry, live_server.url, enter, f"{real_site.namespace}-{word}")
        real_site.let_approve("carol", made.name)
        return made

    return opened
