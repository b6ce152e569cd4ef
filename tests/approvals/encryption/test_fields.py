"""S30: whoever has the database, but not the keys, has no value of an encrypted column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from approvals import services
from approvals.access import port
from approvals.audit import Actor
from approvals.encryption.fields import Encrypted
from approvals.errors import InvalidInput, KeyMissing, Undecipherable
from approvals.health_endpoints import checks
from approvals.models import Cluster
from approvals.services import Replacing
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import enter
from tests.support.secrets import KUBECONFIG, NEW, OLD, TOKEN, raw, reported, with_keys

BY = Actor("test", "shell")


@pytest.fixture
def cluster(db: None) -> Cluster:
    return services.register_cluster(name="prod", kubeconfig=KUBECONFIG, by=BY)


def test_S30_a_kubeconfig_moved_to_another_cluster_is_refused(cluster: Cluster) -> None:
    other = services.register_cluster(name="staging", kubeconfig=KUBECONFIG.replace(TOKEN, "other"), by=BY)
    (of_prod, _) = raw(Cluster, "kubeconfig")
    Cluster.objects.filter(pk=other.pk).update(kubeconfig=Encrypted(of_prod))
    with pytest.raises(Undecipherable, match="kubeconfig of cluster staging"):
        port.connect(Cluster.objects.get(name="staging"))


def test_S30_a_plain_kubeconfig_in_the_database_is_refused(cluster: Cluster) -> None:
    Cluster.objects.update(kubeconfig=Encrypted(KUBECONFIG.encode()))
    with pytest.raises(Undecipherable, match="is not encrypted"):
        port.connect(Cluster.objects.get())
    Cluster.objects.update(kubeconfig=Encrypted(b""))  # "" in plain would be the cluster that Pratique runs in
    with pytest.raises(Undecipherable, match="is not encrypted"):
        port.connect(Cluster.objects.get())


def test_S30_a_column_is_never_written_or_looked_up_in_plain(cluster: Cluster) -> None:
    with pytest.raises(TypeError, match="save the row"):
        Cluster.objects.update(kubeconfig=KUBECONFIG)
    with pytest.raises(TypeError, match="save the row"):
        Cluster.objects.filter(kubeconfig=KUBECONFIG).exists()


def test_an_encrypted_column_reads_writes_defers_and_keeps_what_nobody_looked_at(cluster: Cluster) -> None:
    before = raw(Cluster, "kubeconfig")
    row = Cluster.objects.get()
    row.version = "v1.36.3"
    row.save()
    assert raw(Cluster, "kubeconfig") == before
    assert TOKEN in Cluster.objects.defer("kubeconfig").get().kubeconfig
    row.kubeconfig = row.kubeconfig.replace(TOKEN, "another")
    row.save(update_fields=["kubeconfig"])
    row.refresh_from_db()
    assert "another" in row.kubeconfig
    assert raw(Cluster, "kubeconfig") != before
    assert Cluster.objects.create(name="own", created_at=timezone.now()).kubeconfig == ""
    assert Cluster.objects.get(name="own").kubeconfig == ""


def test_S30_a_dump_of_the_rows_holds_nothing_plain(cluster: Cluster, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    call_command("dumpdata", "approvals.cluster", output=str(dump))
    assert TOKEN not in dump.read_text()
    assert "prod" in dump.read_text()


def said_by_probe() -> dict[str, str]:
    """What the operator's own listener answers, asked anew."""
    checks._kept.forget()
    found: dict[str, str] = json.loads(checks.readyz({}).body)["checks"]
    return found


def test_S30_without_the_key_pages_say_so_and_nothing_is_lost(env: World, settings: Any, client: Client) -> None:
    with_keys(settings, OLD)
    request = reported(env)
    env.cluster.kubeconfig = KUBECONFIG
    env.cluster.save()
    with_keys(settings, NEW)
    enter(client, env.ada)
    client.raise_request_exception = False
    page = client.get(f"/requests/{request.uid}")
    told = client.get(f"/api/v1/requests/{request.uid}/report")
    assert (page.status_code, told.status_code) == (503, 503)
    assert b"An encryption key is missing" in page.content
    assert told.json()["code"] == "key-missing"
    assert client.get("/clusters").status_code == 200
    assert client.get("/readyz").status_code == 503
    assert said_by_probe()["keys"] == "a key that encrypted stored data is missing: see PRATIQUE_ENCRYPTION_KEYS"
    with_keys(settings, NEW, OLD)
    assert client.get(f"/requests/{request.uid}").status_code == 200
    assert said_by_probe()["keys"] == "ok"


def test_S30_without_the_key_the_page_of_a_deployment_offers_to_ask_again(
    env: World, settings: Any, client: Client
) -> None:
    with_keys(settings, OLD)
    request = reported(env)
    for verb in ("get", "update"):
        env.kubernetes.allow("rita", verb)
    enter(client, env.rita)
    page = f"/deployments/{env.cluster.name}/{request.deployment.name}"
    shown = client.get(page).content
    assert (b"Request again" in shown, b"Look again" in shown) == (False, True)
    with_keys(settings, NEW)
    assert b"Request again" in client.get(page).content


def test_a_kubeconfig_whose_key_is_lost_can_be_replaced(env: World, settings: Any) -> None:
    """The way on after a lost key: nothing of the old kubeconfig is needed, for the uid says which cluster it is."""
    with_keys(settings, OLD)
    env.cluster.kubeconfig, env.cluster.uid = KUBECONFIG, "1-2-3"
    env.cluster.save()
    with_keys(settings, NEW)
    other = KUBECONFIG.replace(TOKEN, "another")
    with pytest.raises(KeyMissing):
        services.register_cluster(name=env.cluster.name, kubeconfig=other, by=BY)
    with pytest.raises(InvalidInput, match="a different cluster"):
        services.register_cluster(name=env.cluster.name, kubeconfig=other, by=BY, replacing=Replacing(uid="4-5-6"))
    services.register_cluster(name=env.cluster.name, kubeconfig=other, by=BY, replacing=Replacing(uid="1-2-3"))
    assert "another" in Cluster.objects.get(pk=env.cluster.pk).kubeconfig


def test_without_its_uid_nobody_can_say_that_a_cluster_whose_key_is_lost_is_the_same(env: World, settings: Any) -> None:
    with_keys(settings, OLD)
    env.cluster.kubeconfig, env.cluster.uid = KUBECONFIG, None
    env.cluster.save()
    with_keys(settings, NEW)
    with pytest.raises(KeyMissing):
        services.register_cluster(name=env.cluster.name, kubeconfig=KUBECONFIG, by=BY, replacing=Replacing(uid="1-2-3"))
