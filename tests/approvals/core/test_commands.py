"""What operators type: clusters and who people are on them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from approvals import access
from approvals.models import AuditEntry, Cluster, KubernetesIdentity
from tests.approvals.core.conftest import World

KUBECONFIG = """
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://cluster.example:6443"}}]
users: [{name: a, user: {token: secret}}]
"""


def test_a_cluster_is_registered_and_given_another_kubeconfig(db: None, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    call_command("register_cluster", "prod", "--kubeconfig", str(file))
    call_command("register_cluster", "prod", "--in-cluster")
    assert Cluster.objects.get().kubeconfig == ""
    assert [entry.facts["new"] for entry in AuditEntry.objects.order_by("number")] == [True, False]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        pytest.param("Prod!", KUBECONFIG, "expected at most 63 small letters", id="a bad name"),
        pytest.param("prod", "{}", "no context", id="no kubeconfig"),
        pytest.param("prod", KUBECONFIG.replace("token: secret", "exec: {command: evil}"), "exec", id="S19 a command"),
        pytest.param("prod", KUBECONFIG.replace("token: secret", "tokenFile: /etc/x"), "tokenFile", id="S19 a file"),
    ],
)
def test_S19_what_cannot_be_registered_is_said_and_not_kept(
    db: None, tmp_path: Path, name: str, text: str, words: str
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(CommandError, match=words):
        call_command("register_cluster", name, "--kubeconfig", str(file))
    assert not Cluster.objects.exists()


def test_a_local_user_is_mapped_and_stays_so_however_long_ago_that_was(here: World) -> None:
    call_command("map_identity", "nora", "--cluster", here.cluster.name, "--as", "nora", "--group", "platform")
    nora = User.objects.get(username="nora")
    KubernetesIdentity.objects.filter(user=nora).update(groups_seen_at=timezone.now() - timedelta(days=400))
    identity = access.identity_of(nora, here.cluster)
    assert identity is not None
    assert identity.groups == ("platform",)
    assert not nora.has_usable_password()
    assert access.are_groups_fresh(nora, here.cluster, now=timezone.now())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--cluster", "moon", "--as", "x"], "no cluster moon is registered", id="no such cluster"),
        pytest.param(["--cluster", "prod", "--as", "system:admin"], "system:", id="S01 a name of Kubernetes"),
        pytest.param(["--cluster", "prod", "--as", "x", "--group", "system:masters"], "system:", id="S01 a group"),
    ],
)
def test_S01_who_cannot_be_mapped(here: World, words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("map_identity", "nora", *words)


def test_S13_the_name_of_a_policy_is_nobodys(here: World) -> None:
    KubernetesIdentity.objects.filter(user=here.ada).update(
        username="pratique:policy:1", authenticator=KubernetesIdentity.Authenticator.TOKEN_REVIEW
    )
    assert access.identity_of(here.ada, here.cluster) is None
