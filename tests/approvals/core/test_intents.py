"""A worker that stood still while another one took over writes no intent in the place of its successor's (S20)."""

from __future__ import annotations

from functools import partial

import pytest

from approvals.ledger import claims
from approvals.models import InventoryItem, Request
from approvals.steps import advance
from approvals.steps.inventory import DatabaseInventory
from provisioner.values import ObjectRef
from tests.approvals.core import world
from tests.approvals.core.conftest import World

CONFIG = ObjectRef("", "v1", "ConfigMap", "harbour", "settings")


def inventory(request: Request, worker: str) -> DatabaseInventory:
    return DatabaseInventory(request.deployment, None, partial(claims.check_held, request.pk, worker))


def test_an_intent_needs_the_claim_and_leaves_the_successors_alone(here: World) -> None:
    world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    request = Request.objects.get()
    assert claims.claim(request.pk, "slow")
    Request.objects.update(claimed_until=world.yesterday())
    assert claims.claim(request.pk, "next")
    inventory(request, "next").intend(CONFIG, "nonce-of-next")
    with pytest.raises(claims.LostClaim):
        inventory(request, "slow").intend(CONFIG, "nonce-of-slow")
    assert InventoryItem.objects.get().nonce == "nonce-of-next"


def test_who_lost_the_claim_writes_nothing_about_the_request(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    request = Request.objects.get()

    def stand_still(request: Request, worker: str) -> None:
        Request.objects.update(claimed_by="next")
        raise claims.LostClaim("the claim has passed to another worker")

    monkeypatch.setitem(advance.STEPS, "preparing", stand_still)
    before = Request.objects.values().get()
    advance.advance(request.pk)
    after = Request.objects.values().get()
    assert (after["claimed_by"], after["problem"], after["attempts"]) == ("next", before["problem"], 0)
