"""A process reaches a cluster with what it alone was given (PRATIQUE_KUBECONFIGS_DIR), not with what is registered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from approvals.access import port
from approvals.models import Cluster
from provisioner.errors import BadSource

TEXT = """
current-context: a
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
clusters: [{{name: a, cluster: {{server: "https://{server}:6443"}}}}]
users: [{{name: a, user: {{token: {token}}}}}]
"""
REGISTERED = TEXT.format(server="registered.example", token="t-registered")


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.PRATIQUE = {**settings.PRATIQUE, "KUBECONFIGS_DIR": str(tmp_path)}
    return tmp_path


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="prod", kubeconfig=REGISTERED, created_at=timezone.now())


def reached(cluster: Cluster) -> str:
    return port.connect(cluster)._transport.host


def test_S31_what_a_process_was_given_goes_before_what_is_registered(folder: Path, cluster: Cluster) -> None:
    assert reached(cluster) == "https://registered.example:6443"
    (folder / "prod").write_text(TEXT.format(server="own.example", token="t-1"))
    assert reached(cluster) == "https://own.example:6443"
    (folder / "prod").unlink()
    assert reached(cluster) == "https://registered.example:6443"


def test_a_renewed_credential_counts_at_once(folder: Path, cluster: Cluster) -> None:
    tokens = []
    for token in ("t-1", "t-2"):
        (folder / "prod").write_text(TEXT.format(server="own.example", token=token))
        tokens.append(port.connect(cluster)._transport._authorization()["Authorization"])
    assert tokens == ["Bearer t-1", "Bearer t-2"]


@pytest.mark.parametrize("text", ["", " \n", "\x00", "current-context: a"])
def test_S31_a_file_that_is_no_kubeconfig_is_not_replaced_by_another_accounts(
    folder: Path, cluster: Cluster, text: str
) -> None:
    (folder / "prod").write_text(text)
    with pytest.raises(BadSource):
        port.connect(cluster)


def test_S19_what_a_process_was_given_reaches_no_further_than_what_is_registered(
    folder: Path, cluster: Cluster
) -> None:
    (folder / "prod").write_text(
        TEXT.format(server="own.example", token="t").replace("token: t", "exec: {command: /bin/true}")
    )
    with pytest.raises(BadSource, match="exec"):
        port.connect(cluster)


def test_the_file_of_another_cluster_is_not_taken(folder: Path, cluster: Cluster) -> None:
    (folder / "other").write_text(TEXT.format(server="own.example", token="t"))
    assert reached(cluster) == "https://registered.example:6443"
