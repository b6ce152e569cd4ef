"""A live site with the world of the page tests. The append-only triggers are real, and let go only for the flush."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import playwright.sync_api as pw
import pytest
import urllib3
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from pytest_django.live_server_helper import LiveServer
from pytest_django.plugin import DjangoDbBlocker

from approvals.migrations import _append_only
from approvals.models import BundleDeployment, Report
from approvals.oidc import ClusterRules, Issuer, Issuers, OidcClient, discovery
from approvals.oidc.issuers import Prefixed
from approvals.project.celery import app
from approvals.selectors.sets import LABEL
from tests.support import comparisons
from tests.support.approvals.fixtures import World
from tests.support.approvals.rollouts import ordered
from tests.support.patience import scaled
from tests.support.servers.fixtures import PAGE_TIMEOUT_MILLISECONDS
from tests.support.servers.issuer import CLIENT, RunningIssuer, start_issuer
from tests.support.stored_catalogs import HARBOUR, catalog, stored

pw.expect.set_options(timeout=scaled(60_000))
PASSWORD = "correct horse battery staple"
SignIn = Callable[[User], pw.Page]
Enter = Callable[..., pw.Page]


@pytest.fixture
def triggers_afterwards(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Put the triggers back once the database is flushed."""
    yield
    with django_db_blocker.unblock(), connection.schema_editor() as editor:
        _append_only.create(None, editor)


@pytest.fixture
def transactional_db(triggers_afterwards: None, transactional_db: None) -> Iterator[None]:
    """pytest-django empties the tables after such a test, which the triggers would refuse."""
    yield
    with connection.schema_editor() as editor:
        _append_only.drop(None, editor)


@pytest.fixture(autouse=True)
def queue(redis: str) -> Iterator[None]:
    """The site's queue: without one, whatever commits waits for the connection to fail."""
    before = app.conf.broker_url
    app.conf.broker_url = redis
    yield
    app.conf.broker_url = before


def sign_in_with_password(page: pw.Page, address: str, person: User) -> pw.Page:
    """The page of somebody who signed in with a local password; tests of signing in fill in the form itself."""
    person.set_password(PASSWORD)
    person.save()
    client = Client()
    answer = client.post("/sign-in", {"with": "password", "username": person.username, "password": PASSWORD})
    assert answer.status_code == 302, answer.content
    page.context.add_cookies([{"name": one.key, "value": one.value, "url": address} for one in client.cookies.values()])
    return page


@pytest.fixture
def sign_in(page: pw.Page, live_server: LiveServer) -> SignIn:
    """Sign a person in, with a local password."""
    return partial(sign_in_with_password, page, live_server.url)


@pytest.fixture
def enter(browser: pw.Browser, live_server: LiveServer) -> Iterator[Enter]:
    """Sign each person in, in a browser of their own; what is given beside is of its context."""
    opened: list[pw.BrowserContext] = []

    def signed_in(person: User, **options: Any) -> pw.Page:
        opened.append(browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options}))
        opened[-1].set_default_timeout(scaled(PAGE_TIMEOUT_MILLISECONDS))
        return sign_in_with_password(opened[-1].new_page(), live_server.url, person)

    yield signed_in
    for one in opened:
        one.close()


@contextmanager
def an_issuer(
    address: str, folder: Path, settings: Any, cluster: str, people: dict[str, Any]
) -> Iterator[RunningIssuer]:
    """An issuer that counts on this cluster, which prefixes the names of its `people` with `oidc:`."""
    running = start_issuer(folder, address, people)
    rules = ClusterRules(cluster, Prefixed("sub", "oidc:"), Prefixed("groups", ""))
    known = Issuer("example", "Example", running.url, (rules,), OidcClient(CLIENT))
    changed = {"OIDC_FILE": Issuers((known,)), "PUBLIC_URL": address, "RENEW_MINUTES": 0}
    settings.PRATIQUE = {**settings.PRATIQUE, **changed}
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr(discovery, "TIMEOUT", urllib3.Timeout(scaled(60)))
        patient.setattr(discovery, "ANSWER_SECONDS", scaled(60))
        try:
            yield running
        finally:
            running.stop()


@pytest.fixture
def addresses(live_server: LiveServer, env: World, afternoon: dict[str, Any]) -> dict[str, str]:
    """URLs of every page, by a name."""
    serious = afternoon["serious"].uid
    stored(catalog("quays", of=env.cluster), *HARBOUR)
    comparisons.port(env, "ada")
    comparisons.finish(comparisons.begun(env))
    comparisons.finish(comparisons.begun(env, before=""), is_first=True)
    comparisons.begun(env, "1.2.0", "1.1.0")
    for name in ("serious", "quiet", "deleting"):
        BundleDeployment.objects.filter(requests=afternoon[name]).update(labels={LABEL: "spring"})
        Report.objects.filter(request=afternoon[name]).update(likeness={"digest": name, "needs": []})
    rings = [{"name": "canary", "soakMinutes": 60, "requiresApproval": True}, {"name": "rest"}]
    ordered("spring", rings, (afternoon["quiet"], 0), (afternoon["serious"], 1), (afternoon["deleting"], 1))
    paths = {
        "inbox": "/",
        "sets": "/sets",
        "set": "/sets/spring",
        "set-form": "/new-set?name=spring",
        "all-requests": "/?tab=all",
        "request": f"/requests/{serious}",
        "reviewed-request": f"/requests/{afternoon['quiet'].uid}",
        "deletion": f"/requests/{afternoon['deleting'].uid}",
        "printed-report": f"/requests/{serious}/report.html",
        "change": f"/requests/{serious}/changes/0",
        "change-split": f"/requests/{serious}/changes/0?view=split",
        "changes": f"/requests/{serious}/changes",
        "findings": f"/requests/{serious}/findings",
        "activity": f"/requests/{serious}/activity",
        "rights": f"/requests/{serious}/rights",
        "schemas": f"/requests/{serious}/schemas",
        "deployments": "/deployments",
        "deployment": "/deployments/prod/lighthouse",
        "deployment-form": "/deployments/new",
        "catalogs": "/catalogs",
        "catalog-search": "/catalogs/packages?search=harbour",
        "catalog": "/catalogs/prod/quays",
        "catalog-package": "/catalogs/prod/quays/packages/harbour",
        "deployment-install": "/deployments/new?cluster=prod&catalog=port&package=harbour&version=1.1.0",
        "catalog-changes": "/catalogs/prod/port/packages/harbour/changes?from=1.0.0&to=1.1.0",
        "catalog-first": "/catalogs/prod/port/packages/harbour/changes?to=1.1.0",
        "catalog-lines": "/catalogs/prod/port/packages/harbour/changes/objects/2?from=1.0.0&to=1.1.0",
        "catalog-comparing": "/catalogs/prod/port/packages/harbour/changes?from=1.1.0&to=1.2.0",
        "clusters": "/clusters",
        "policies": "/policies",
        "policy": "/policies/of/routine",
        "policy-form": "/policies/of/routine/edit",
        "audit": "/audit",
        "me": "/me",
    }
    return {name: live_server.url + path for name, path in paths.items()}
