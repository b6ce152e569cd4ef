"""A real issuer, on which the cluster of the world counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from approvals.oidc import ClusterRules, Issuer, Issuers, OidcClient, discovery
from approvals.oidc.issuers import COMMAND_LINE_SCOPES, Prefixed
from tests.approvals.oidc.visits import PEOPLE, SITE
from tests.support.approvals.fixtures import World
from tests.support.patience import scaled
from tests.support.servers.issuer import CLIENT, RunningIssuer, start_issuer


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    issuer = start_issuer(tmp_path_factory.mktemp("issuer"), SITE, PEOPLE)
    yield issuer
    issuer.stop()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """An issuer on a slow machine is not silent; tests of silence set their own times."""
    monkeypatch.setattr(discovery, "TIMEOUT", urllib3.Timeout(scaled(60)))
    monkeypatch.setattr(discovery, "ANSWER_SECONDS", scaled(60))


@pytest.fixture
def issuer(running: RunningIssuer, env: World, settings: Any) -> Iterator[RunningIssuer]:
    """It counts on cluster `prod` of the world; there, readers of the fake Kubernetes may read."""
    rules = ClusterRules(env.cluster.name, Prefixed("sub", "oidc:"), Prefixed("groups", "oidc:"))
    line = OidcClient("kubectl-pratique", scopes=COMMAND_LINE_SCOPES)
    known = Issuer("example", "Example", running.url, (rules,), OidcClient(CLIENT), (CLIENT,), command_line=line)
    changed = {"OIDC_FILE": Issuers((known,)), "PUBLIC_URL": SITE, "RENEW_MINUTES": 0}
    settings.PRATIQUE = {**settings.PRATIQUE, **changed}
    env.kubernetes.allow("oidc:u-ada", "get")
    yield running
    running.set_people(PEOPLE)
