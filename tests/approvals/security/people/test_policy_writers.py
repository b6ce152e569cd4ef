"""As whom a grant approves, and whether its writers could save it today: what its page and form say."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client

from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, save
from tests.support.approvals.world import acting, enter


def test_the_page_of_a_grant_says_as_whom_it_approves_and_what_it_lacks(env: World) -> None:
    each = save(env)
    client = Client()
    enter(client, env.ada)
    page = client.get("/policies/of/routine").content.decode()
    assert f"pratique:policy:{each.pk}" in page
    assert f"does not allow pratique:policy:{each.pk} to approve" in page.replace("Does not", "does not")
    assert "It cannot approve anything now" in page
    env.kubernetes.allow("bert", "approve")
    save(env, by=acting(env.bert))
    save(env)
    page = " ".join(client.get("/policies/of/routine").content.decode().split())
    assert "ada, bert <p>It cannot approve requests from these people.</p>" in page
    allow(env, each)
    cache.clear()
    page = client.get("/policies/of/routine").content.decode()
    assert "It cannot approve anything now" not in page
    assert "The policy stays in force" not in page
    assert client.get("/api/v1/policies/routine").json()["approves_as"] == f"pratique:policy:{each.pk}"


@pytest.mark.parametrize("leaves", ["loses the right", "is nobody there"])
def test_the_page_says_that_its_last_editor_could_not_save_it_today(env: World, leaves: str) -> None:
    save(env, names=["strimzi"], by=acting(env.ada))
    if leaves == "loses the right":
        env.kubernetes.allowed.discard(("ada", "approve", "*"))
        words = "ada is no longer allowed to approve BundleDeployment strimzi on cluster prod"
    else:
        env.ada.kubernetes_identities.all().delete()
        words = "ada no longer has an identity on cluster prod"
    cache.clear()
    env.kubernetes.allow("bert", "get")
    client = Client()
    enter(client, env.bert)
    page = client.get("/policies/of/routine").content.decode().casefold()
    assert words.casefold() in page
    assert "the policy stays in force" in page


def test_the_form_says_what_its_writer_lacks(env: World) -> None:
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("bert", "approve", "his")
    client = Client()
    enter(client, env.bert)
    form = {
        "name": "routine",
        "cluster": "prod",
        "kind": "grant",
        "mode": "enforce",
        "names": "his\nstrimzi",
        "expression": "true",
        "is_active": "on",
    }
    answer = client.post("/policies/new", form)
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "a policy can approve only what its author can" in page.casefold()
    assert "BundleDeployment strimzi of cluster prod" in page
    assert "pratique-approve-strimzi" in page, "the rule that would allow it"
