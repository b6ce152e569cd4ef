"""After PRATIQUE_KEEP_DAYS the details of a settled request go, and bytes that nothing needs: never what is needed."""

from __future__ import annotations

import os
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from approvals import audit, services, store, tasks
from approvals.encryption.files import content_files
from approvals.errors import InvalidInput
from approvals.models import AuditEntry, BundleDeployment, Content, Report, Request, Review, Revision
from approvals.selectors import lists as selected
from provisioner.errors import DigestMismatch
from tests.support.approvals import world
from tests.support.approvals.databases import manage
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import revision
from tests.support.approvals.world import acting
from tests.support.secrets import keep, secret
from tests.support.stores import BOTH_STORES

pytestmark = pytest.mark.django_db
DAYS = 30


@pytest.fixture(autouse=True)
def keep_days(folder: Path, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "KEEP_DAYS": DAYS}


@pytest.fixture
def port(env: World) -> BundleDeployment:
    """Applied four times, long ago: revision 4 is running. Each has a content of its own."""
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec("1")), env.rita)
    for number in range(1, 5):
        if number > 1:
            obj = world.seen("strimzi", world.spec(str(number)), uid=deployment.uid, generation=number)
            world.submit_spec(env.cluster, obj, env.rita)
        made = revision(deployment, number, "active" if number == 4 else "replaced")
        content = store.put(secret(str(number)), format_name="plain")
        Revision.objects.filter(pk=made.pk).update(content=content)
        Request.objects.filter(pk=made.request_id).update(content=content)
    long_ago(deployment)
    return deployment


def long_ago(deployment: BundleDeployment, days: int = DAYS + 1) -> None:
    then = timezone.now() - timedelta(days=days)
    deployment.requests.update(settled_at=then)
    Content.objects.update(used_at=then)


def cleared(deployment: BundleDeployment) -> list[int]:
    return list(deployment.requests.exclude(cleared_at=None).order_by("number").values_list("number", flat=True))


def stored() -> set[str]:
    return set(Content.objects.filter(removed_at=None, digest__in=digests()).values_list("digest", flat=True))


def digests(*numbers: int) -> set[str]:
    return {secret(str(number)).digest for number in numbers or range(1, 5)}


def exists(digest: str) -> bool:
    return content_files().exists(store.path_of(digest))


@BOTH_STORES
def test_what_runs_and_what_it_may_go_back_to_stay(port: BundleDeployment) -> None:
    tasks.clear()
    assert cleared(port) == [1, 2]
    assert stored() == digests(3, 4)
    assert [exists(secret(str(number)).digest) for number in range(1, 5)] == [False, False, True, True]
    assert set(Report.objects.values_list("request__number", flat=True)) == {3, 4}
    assert AuditEntry.objects.filter(verb="request.cleared").count() == 2
    assert audit.verify_chain().is_whole
    tasks.clear()
    assert AuditEntry.objects.filter(verb="request.cleared").count() == 2


def test_what_a_request_was_rendered_from_goes_with_its_details(port: BundleDeployment) -> None:
    told = {
        "unused_files": {"README.md": 1},
        "requirements": [{"kind": "api"}],
        "chart_values": {"replicas": "3"},
        "helm_3_differs": [],
        "spec_values": ["replicas"],
        "repeated_keys": [{"file": "values.yaml"}],
        "server_words": [{"words": "refused"}],
        "lookups": [{"kind": "Secret"}],
        "patches": [{"entry": "namespace"}],
    }
    nothing = {
        name: None if name in ("chart_values", "helm_3_differs") else type(value)() for name, value in told.items()
    }
    port.requests.update(**told)
    tasks.clear()
    kept = {one.pop("number"): one for one in port.requests.values("number", *told)}
    assert kept == {1: nothing, 2: nothing, 3: told, 4: told}


def test_reviews_and_verdicts_stay(env: World, port: BundleDeployment) -> None:
    first = port.requests.get(number=1)
    Request.objects.filter(pk=first.pk).update(state="in_review", settled_at=None)
    Request.objects.filter(deployment=port, number__gt=1).update(state="applied")
    env.kubernetes.allow("ada", "approve")
    services.review(
        by=acting(env.ada),
        request_id=first.pk,
        decision="Deny",
        reason="not now",
        channel="browser",
        subject_digest=first.subject_digest,
    )
    Request.objects.filter(pk=first.pk).update(state="denied")
    long_ago(port)
    tasks.clear()
    assert 1 in cleared(port)
    assert Review.objects.get(request=first).reason == "not now"


@pytest.mark.parametrize("days", [DAYS - 1, 0])
def test_nothing_goes_before_its_time(port: BundleDeployment, days: int) -> None:
    long_ago(port, days)
    tasks.clear()
    assert (cleared(port), stored()) == ([], digests())


def test_0_days_keep_everything(port: BundleDeployment, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "KEEP_DAYS": 0}
    tasks.clear()
    assert (cleared(port), stored()) == ([], digests())
    with pytest.raises(CommandError, match="PRATIQUE_KEEP_DAYS is 0"):
        call_command("clear_old_requests")


def test_what_an_open_request_puts_back_stays(env: World, port: BundleDeployment) -> None:
    obj = world.seen(
        "strimzi", world.spec("4"), uid=port.uid, generation=4, annotations={"core.rukpak.io/rollback-to": "1/x"}
    )
    world.submit_spec(env.cluster, obj, env.rita)
    assert port.requests.get(number=5).to_revision.number == 1  # type: ignore[union-attr] # it rolls back to one, so that it is no None
    tasks.clear()
    assert cleared(port) == [2]
    assert stored() == digests(1, 3, 4)


def test_a_failed_request_since_the_running_revision_stays(port: BundleDeployment) -> None:
    Revision.objects.filter(number=4).update(state="failed")
    Revision.objects.filter(number=2).update(state="active")
    Revision.objects.filter(number=3).update(state="failed")
    tasks.clear()
    assert cleared(port) == []


def test_of_a_deployment_that_is_gone_everything_goes(port: BundleDeployment) -> None:
    BundleDeployment.objects.filter(pk=port.pk).update(gone_at=timezone.now() - timedelta(days=DAYS + 1))
    tasks.clear()
    assert (cleared(port), stored()) == ([1, 2, 3, 4], set())


def test_what_another_deployment_needs_stays(env: World, port: BundleDeployment) -> None:
    other = world.submit_spec(env.cluster, world.seen("other", world.spec("1")), env.rita)
    shared = Content.objects.get(pk=secret("1").digest)
    Request.objects.filter(deployment=other).update(content=shared)
    tasks.clear()
    assert (cleared(port), stored()) == ([1, 2], digests(1, 3, 4))


def test_nobody_goes_back_to_what_was_removed(env: World, port: BundleDeployment) -> None:
    tasks.clear()
    assert [one.number for one in selected.restorable(deployment=port)] == [3, 4]
    with pytest.raises(InvalidInput, match=r"revision 1 \(its content was removed on .*\).*available: 3, 4"):
        services.rollback_deployment(by=acting(env.rita), deployment=port, revision=1, via="browser")


@BOTH_STORES
def test_removed_bytes_say_so_and_come_back_when_they_are_fetched_again(port: BundleDeployment) -> None:
    tasks.clear()
    row = Content.objects.get(pk=secret("1").digest)
    with pytest.raises(DigestMismatch, match=r"was removed on .*PRATIQUE_KEEP_DAYS"):
        store.get(row)
    again = store.put(secret("1"), format_name="plain")
    assert store.get(again).digest == row.pk
    tasks.clear()
    assert exists(row.pk), "what was stored a moment ago may not have its request yet"


def test_the_page_and_rest_say_that_it_was_removed(env: World, port: BundleDeployment, client: Client) -> None:
    tasks.clear()
    world.enter(client, env.ada)
    request = port.requests.get(number=1)
    page = client.get(f"/requests/{request.uid}")
    assert page.status_code == 200
    assert "The report was removed" in page.content.decode()
    for path in ("findings", "changes", "activity", "report"):
        assert client.get(f"/requests/{request.uid}/{path}").status_code in {200, 404}, path
    assert client.get(f"/deployments/prod/{port.name}").status_code == 200
    assert client.get(f"/api/v1/requests/{request.uid}").json()["cleared_at"] is not None


def test_the_command_says_first_what_it_would_do(port: BundleDeployment) -> None:
    said = StringIO()
    call_command("clear_old_requests", "--dry-run", stdout=said)
    assert cleared(port) == []
    call_command("clear_old_requests", stdout=said)
    first, second = said.getvalue().splitlines()
    assert first == "2 requests would lose their details"
    assert second.startswith("2 requests lost their details; 3 stored contents (")


@BOTH_STORES
@pytest.mark.parametrize("days", [DAYS, 0])
def test_what_no_row_names_goes_after_its_time_of_grace(folder: Path, settings: Any, days: int) -> None:
    """Whether or not old requests are kept: no request needs it. What has another form of name is somebody else's."""
    settings.PRATIQUE = {**settings.PRATIQUE, "KEEP_DAYS": days}
    kept, removed = keep("kept"), keep("removed")
    Content.objects.filter(pk=removed.pk).update(removed_at=timezone.now())
    left, foreign, young = f"sha256/aa/{'a' * 64}", "sha256/of-somebody-else", f"sha256/bb/{'b' * 64}"
    for name in (left, foreign, young):
        content_files().replace(name, [b"encrypted"])
    for name in (left, foreign, store.path_of(kept.digest), store.path_of(removed.digest)):
        os.utime(folder / name, (0, 0))
    tasks.clear()
    assert {one.name for one in content_files().stored()} == {store.path_of(kept.digest), foreign, young}
    assert not Content.objects.filter(pk__contains="a" * 64).exists()


RACE = """
import threading
from datetime import timedelta
from django.db import connections, transaction
from django.utils import timezone
from approvals import retention, store
from approvals.models import Content
from tests.support.patience import scaled
from tests.support.secrets import keep, secret
row = store.put(secret("1"), format_name="plain")
Content.objects.update(used_at=timezone.now() - timedelta(days=9))
told = []
def remove():
    told.append(retention._remove(row.pk, timezone.now()))
    connections.close_all()
other = threading.Thread(target=remove)
with transaction.atomic():
    store.put(secret("1"), format_name="plain")
    other.start()
    other.join(1)  # a slow machine may only hide that it ended
    told.append(other.is_alive())
other.join(scaled(60))
print(told, store.get(row).digest == row.pk)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
def test_what_is_being_stored_again_is_not_removed(migrated_database_url: str) -> None:
    assert manage(migrated_database_url, "shell", "-v", "0", "-c", RACE).strip() == "[True, 0] True"


COLLECTING = """
import threading
from datetime import timedelta
from django.db import connections
from django.utils import timezone
from approvals import retention, store
from approvals.encryption.files import PrivateFiles, StoredFile, content_files
from approvals.errors import StoreUnavailable
from approvals.models import Content
from tests.support.patience import scaled
from tests.support.secrets import secret
content = secret("left by a worker that was killed")
name = store.path_of(content.digest)
content_files().replace(name, [b"its bytes"])
reached, go, told, delete = threading.Event(), threading.Event(), [], PrivateFiles.delete
def held(self, name):
    reached.set()
    assert go.wait(scaled(60))
    delete(self, name)
PrivateFiles.delete = held
def collect():
    now = timezone.now()
    told.append(retention.collect_unnamed(StoredFile(name, now - timedelta(days=9), 9), now))
    connections.close_all()
def put():
    try:
        store.put(content, format_name="plain")
    except StoreUnavailable as exc:
        told.append(str(exc)[-35:])
    connections.close_all()
one, other = threading.Thread(target=collect), threading.Thread(target=put)
one.start()
assert reached.wait(scaled(60))
other.start()
other.join(scaled(60))
go.set()
one.join(scaled(60))
store.put(content, format_name="plain")
print(told, store.get(Content.objects.get(pk=content.digest)).digest == content.digest)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
def test_what_is_stored_while_it_is_collected_without_a_row_is_there_afterwards(migrated_database_url: str) -> None:
    said = manage(migrated_database_url, "shell", "-v", "0", "-c", COLLECTING).strip()
    assert said == "[' UTC; it is stored again after that', True] True"
