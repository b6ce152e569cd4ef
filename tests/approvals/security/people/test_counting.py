"""One person, one vote; one cluster, one identity; one window that is no door (security-rules.md S12, S19, S21)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.apps import apps
from django.test import Client

from approvals import gate, services
from approvals.audit import Actor
from approvals.errors import AlreadyReviewed, InvalidInput
from approvals.models import KubernetesIdentity, Request, Review
from approvals.policy import FACTS
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import PreconditionFailed
from provisioner.values import Identity
from tests.approvals.security.people.decisions import approve, look
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import enter


@pytest.mark.parametrize("channel", ["rest", "chat", "webhook", "browser"])
def test_S12_one_person_is_one_vote_over_all_channels(
    env: World, request_: Request, settings: Any, channel: str
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    approve(env, request_)
    approve(env, request_, channel=channel, reason="once more")
    assert (request_.reviews.count(), request_.reviews.counted().count()) == (2, 1)
    assert look(request_) == "in_review"


def test_S12_a_person_of_another_name_is_still_one_vote(env: World, request_: Request, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    approve(env, request_)
    KubernetesIdentity.objects.filter(user=env.ada).update(username="ada-two")
    env.kubernetes.allow("ada-two", "approve")
    approve(env, request_)
    assert [one.username for one in Review.objects.counted()] == ["ada-two"]
    assert look(request_) == "in_review"


def test_S12_who_is_mapped_and_signs_in_with_a_token_is_one_vote(env: World, request_: Request, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    approve(env, request_)
    env.kubernetes.tokens["t"] = Identity("ada", ("platform",), "u-1")
    with pytest.raises(AlreadyReviewed):
        approve(env, request_, by=world.by_token("prod", "t"))


def test_S12_a_second_account_cannot_be_mapped_to_the_same_name(env: World) -> None:
    with pytest.raises(InvalidInput, match="ada"):
        services.map_identity(user=env.bert, cluster=env.cluster, username="ada", groups=[], by=Actor("test", "shell"))
    assert env.bert.kubernetes_identities.get().username == "bert"


def test_S01_a_mapped_name_does_not_keep_the_uid_of_the_name_before(env: World) -> None:
    env.kubernetes.tokens["t"] = Identity("ada", ("platform",), "u-1")
    world.by_token("prod", "t")
    services.map_identity(user=env.ada, cluster=env.cluster, username="eve", groups=[], by=Actor("test", "shell"))
    identity = env.ada.kubernetes_identities.get()
    assert (identity.username, identity.uid) == ("eve", "")


def test_S13_no_fact_is_what_a_bundle_says_of_itself() -> None:
    assert not FACTS.keys() & {"version", "bundle", "bundle_name", "package", "channel", "annotations"}


def test_S19_another_cluster_behind_the_same_name_is_refused(request_: Request) -> None:
    class Moved:
        def uid(self) -> str:
            return "the uid of another kube-system"

    with pytest.raises(PreconditionFailed, match="is a different cluster"):
        gate.require(request_, gate.reader.meeting(request_, cast("Api", Moved())))


def test_S09_S21_S24_there_is_no_admin_site(env: World, request_: Request) -> None:
    """It showed live values, and findings with raw bidirectional text, to whoever is staff; it could not ask Kubernetes."""
    approve(env, request_)
    env.ada.is_staff = env.ada.is_superuser = True
    env.ada.save()
    client = Client()
    enter(client, env.ada)
    before = Review.objects.values().get()
    for path in ("", "login/", "approvals/report/", "approvals/finding/", "auth/user/", "jsi18n/"):
        assert client.get(f"/admin/{path}").status_code == 404
    for action in ("change", "delete"):
        answer = client.post(f"/admin/approvals/review/{before['id']}/{action}/", {"post": "yes", "decision": "Deny"})
        assert answer.status_code == 404
    answer = client.post(f"/admin/auth/user/{env.rita.pk}/password/", {"password1": "x-12", "password2": "x-12"})
    assert answer.status_code == 404
    assert Review.objects.values().get() == before
    assert not apps.is_installed("django.contrib.admin")
