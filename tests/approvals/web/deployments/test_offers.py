"""What the form offers to pick from, and doors that are offered to nobody who may not use them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened

OFFERS = "/deployments/offers?cluster=prod&install_namespace=shop"


@pytest.fixture
def listing(here: World) -> World:
    here.kubernetes.names = {
        ("Namespace", ""): ["shop", "harbour"],
        ("ServiceAccount", "shop"): ["robot"],
        ("ServiceAccount", "harbour"): ["installer"],
    }
    return here


def test_names_that_the_viewer_may_list_are_offered(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    told = opened(browse(listing.ada), OFFERS)
    place = [told.index(f'value="{name}"') for name in ("harbour", "shop", "robot")]
    assert place == sorted(place)
    assert 'value="installer"' not in told
    assert "could not be listed" not in told


def test_what_the_viewer_may_not_list_is_said_quietly_and_can_be_typed(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list", "ServiceAccount")
    told = opened(browse(listing.ada), OFFERS)
    assert "Namespaces could not be listed with your permissions, so type the name." in told
    assert 'value="robot"' in told
    assert 'value="harbour"' not in told


@pytest.mark.parametrize(
    "namespace",
    ["", "../secrets", "shop/pods", "S", "a" * 64, "shop?x"],
    ids=["none", "up", "slash", "capital", "long", "query"],
)
def test_what_no_namespace_is_named_is_asked_of_nobody(namespace: str, listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    listing.kubernetes.names["ServiceAccount", namespace] = ["robot"]
    client = browse(listing.ada)
    told = client.get("/deployments/offers", {"cluster": "prod", "install_namespace": namespace})
    assert told.status_code == 200
    assert b"robot" not in told.content


def test_a_cluster_that_does_not_answer_keeps_nobody_from_the_form(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    client = browse(listing.ada)
    opened(client, "/deployments/new")
    listing.kubernetes.is_down = True
    told = opened(client, OFFERS)
    assert "Namespaces could not be listed" in told
    assert 'list="namespaces"' in opened(client, "/deployments/new")


def test_more_names_than_a_list_shows_are_said(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    listing.kubernetes.names["Namespace", ""] = [f"n{number:03}" for number in range(501)]
    assert "Only the first 500 namespaces are offered." in opened(browse(listing.ada), OFFERS)


def test_a_new_deployment_is_offered_to_those_who_may_create_one(here: World, browse: Browse) -> None:
    here.kubernetes.allow("bert", "get")
    here.kubernetes.allow("ada", "create")
    assert 'href="/deployments/new"' in opened(browse(here.ada), "/deployments")
    assert 'href="/deployments/new"' not in opened(browse(here.bert), "/deployments")
    told = opened(browse(here.bert), "/deployments/new")
    assert "Kubernetes does not allow bert to create" in told
    assert "RBAC rule that would allow this" in told


def test_changing_a_policy_is_offered_to_those_who_may_approve_what_it_selects(
    here: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    here.kubernetes.allow("bert", "get")
    assert "/policies/of/routine/edit" in opened(browse(here.ada), "/policies/of/routine")
    assert "/policies/of/routine/edit" not in opened(browse(here.bert), "/policies/of/routine")
