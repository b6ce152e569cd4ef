"""What was read by rules of before is read again, and whoever follows it is asked what is next."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.utils import timezone

from approvals import tasks, wake
from approvals.catalogs import followed_packages
from approvals.models import CatalogEdition, FollowedPackage
from approvals.steps.catalogs import refresh
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.working import do
from provisioner.catalogs.fetch import FetchedCatalog
from provisioner.catalogs.file_based import CatalogFile
from provisioner.catalogs.values import READING
from provisioner.source import Polled
from provisioner.values import Pin
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.stored_catalogs import HARBOUR, catalog, stored

DIGEST = "sha256:one"


@contextmanager
def fetched(*_: Any, **__: Any) -> Iterator[FetchedCatalog]:
    text = "\n".join(map(json.dumps, HARBOUR)).encode()
    pin = Pin("image", "example.com/catalog", DIGEST)
    yield FetchedCatalog(pin, (CatalogFile("catalog.json", lambda: io.BytesIO(text)),))


@pytest.mark.parametrize("is_of_before", [True, False], ids=["rules of before", "rules of today"])
def test_followers_are_asked_again_where_a_look_reads_the_same_content_by_other_rules(
    env: World, monkeypatch: pytest.MonkeyPatch, *, is_of_before: bool
) -> None:
    monkeypatch.setattr(refresh, "fetch_catalog", fetched)
    monkeypatch.setattr(refresh, "poll", lambda *_, **__: Polled(DIGEST))
    monkeypatch.setattr(refresh, "_show_status", lambda _: None)
    row = catalog(of=env.cluster, look_at=timezone.now())
    stored(row, *HARBOUR, digest=DIGEST)
    CatalogEdition.objects.update(reading=READING - is_of_before)
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}}
    wished = world.seen("quay", world.spec(format="registry-v1", sources=[source]))
    deployment = world.submit_spec(env.cluster, wished, env.rita)
    request = world.in_review(deployment.requests.get())
    FollowedPackage.objects.update(answer_at=None, digest=DIGEST)
    assert followed_packages.deployments_due(timezone.now()) == []
    woken: list[int] = []
    monkeypatch.setattr(wake, "request", woken.append)
    do(RefreshCatalog(row.pk))
    assert woken == ([request.pk] if is_of_before else [])
    row.refresh_from_db()
    assert (row.problem, row.looked_at is not None) == ("", True)
    assert row.edition is not None
    assert row.edition.reading == READING
    assert followed_packages.deployments_due(timezone.now()) == ([deployment.pk] if is_of_before else [])


@pytest.mark.parametrize("is_of_before", [True, False], ids=["rules of before", "rules of today"])
def test_the_sweep_has_a_pinned_catalog_read_that_was_read_by_rules_of_before(
    env: World, monkeypatch: pytest.MonkeyPatch, *, is_of_before: bool
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(wake, "catalog", woken.append)
    row = catalog(of=env.cluster)
    stored(row, *HARBOUR)
    CatalogEdition.objects.update(reading=READING - is_of_before)
    tasks.sweep()
    assert woken == ([row.pk] if is_of_before else [])
