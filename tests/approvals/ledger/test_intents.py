"""A worker that stood still while another one took over writes no intent in the place of its successor's (S20)."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest

from approvals.ledger import claims
from approvals.models import InventoryItem, Request
from approvals.steps import advance
from approvals.steps.records.inventory import DatabaseInventory
from provisioner.cluster.inventory import MemoryInventory
from provisioner.values import InventoryItem as InventoryRecord
from provisioner.values import ObjectRef
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

NAMES = ["a", "b", "100%s", 'it\'s "d"']
CONFIG = ObjectRef("", "v1", "ConfigMap", "harbour", "settings")


def inventory(request: Request, worker: str) -> DatabaseInventory:
    return DatabaseInventory(request.deployment, None, partial(claims.check_held, request.pk, worker))


def test_an_intent_needs_the_claim_and_leaves_the_successors_alone(env: World) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = Request.objects.get()
    assert claims.claim(request.pk, "slow")
    Request.objects.update(claimed_until=world.yesterday())
    assert claims.claim(request.pk, "next")
    inventory(request, "next").intend(CONFIG, "nonce-of-next")
    with pytest.raises(claims.LostClaim):
        inventory(request, "slow").intend(CONFIG, "nonce-of-slow")
    assert InventoryItem.objects.get().nonce == "nonce-of-next"


def test_who_lost_the_claim_writes_nothing_about_the_request(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = Request.objects.get()

    def stand_still(request: Request, worker: str) -> None:
        Request.objects.update(claimed_by="next")
        raise claims.LostClaim("the claim has passed to another worker")

    monkeypatch.setattr(advance.STEPS["preparing"], "run", stand_still)
    before = Request.objects.values().get()
    advance.advance(request.pk)
    after = Request.objects.values().get()
    assert (after["claimed_by"], after["problem"], after["attempts"]) == ("next", before["problem"], 0)


@pytest.fixture
def held(env: World) -> DatabaseInventory:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = Request.objects.get()
    assert claims.claim(request.pk, "worker")
    return inventory(request, "worker")


def test_an_intent_with_the_same_nonce_keeps_the_uid_and_one_with_another_forgets_it(held: DatabaseInventory) -> None:
    held.intend(CONFIG, "first")
    held.confirm(CONFIG, "first", "uid-1")
    held.intend(CONFIG, "first")
    assert held.items()[CONFIG.identity] == InventoryRecord(CONFIG, "first", "uid-1")
    held.intend(CONFIG, "first")
    assert held.items()[CONFIG.identity] == InventoryRecord(CONFIG, "first", "uid-1")
    held.intend(CONFIG, "second")
    assert held.items()[CONFIG.identity] == InventoryRecord(CONFIG, "second", "")
    held.confirm(CONFIG, "first", "uid-1")
    assert held.items()[CONFIG.identity].uid == ""


def test_a_confirmation_that_comes_late_leaves_what_the_successor_made(env: World) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = Request.objects.get()
    assert claims.claim(request.pk, "slow")
    slow = inventory(request, "slow")
    slow.items()
    slow.intend(CONFIG, "first")
    Request.objects.update(claimed_until=world.yesterday())
    assert claims.claim(request.pk, "next")
    successor = inventory(request, "next")
    successor.items()
    successor.confirm(CONFIG, "first", "uid-1")
    successor.intend(CONFIG, "second")
    successor.confirm(CONFIG, "second", "uid-2")
    slow.confirm(CONFIG, "first", "uid-1")
    row = InventoryItem.objects.get()
    assert (row.nonce, row.uid) == ("second", "uid-2")


def test_an_intent_in_another_version_of_the_kind_is_the_same_object(held: DatabaseInventory) -> None:
    held.intend(CONFIG, "first")
    held.confirm(CONFIG, "first", "uid-1")
    assert held.items()
    later = replace(CONFIG, version="v2")
    held.intend(later, "first")
    assert list(held.items().values()) == [InventoryRecord(later, "first", "uid-1")]


def test_what_is_known_is_read_again_by_who_comes_next(held: DatabaseInventory) -> None:
    """What one inventory has read does not outlive the words of another one."""
    held.intend(CONFIG, "first")
    held.confirm(CONFIG, "first", "uid-1")
    assert held.items()
    InventoryItem.objects.update(nonce="theirs", uid="uid-2")
    held.confirm_many([(CONFIG, "first", "uid-1")])
    assert held.items()[CONFIG.identity] == InventoryRecord(CONFIG, "theirs", "uid-2")


def test_the_record_is_what_the_library_keeps_in_memory(env: World) -> None:
    """Whatever is intended, confirmed and forgotten in whatever order, read again in between or not."""
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    deployment = Request.objects.get().deployment

    def opened() -> DatabaseInventory:
        return DatabaseInventory(deployment, None, lambda: None)

    for seed in range(60):
        chance, known, kept = random.Random(seed), MemoryInventory(), opened()
        InventoryItem.objects.all().delete()
        for _ in range(25):
            step = chance.choice(["intend", "intend", "confirm", "confirm", "forget", "read", "open"])
            kept = opened() if step == "open" else kept
            if step == "read":
                kept.items()
            else:
                take(step, chance, known, kept)
            assert opened().items() == known.items(), seed


def take(step: str, chance: random.Random, known: MemoryInventory, kept: DatabaseInventory) -> None:
    """One step of both; what has another nonce is no news to the record, and confirmed there only."""
    refs = [replace(CONFIG, name=name, version=chance.choice(["v1", "v2"])) for name in chance.sample(NAMES, 2)]
    uid = chance.choice(["", "uid-1", "uid-2"])
    if step == "intend":
        intents = [(ref, chance.choice("xy")) for ref in refs]
        known.intend_many(intents)
        kept.intend_many(intents)
    elif step == "forget":
        known.forget(refs[0], uid)
        kept.forget(refs[0], uid)
    elif step == "confirm":
        items = [item for ref in refs if (item := known.items().get(ref.identity))]
        known.confirm_many([(item.ref, item.nonce, uid) for item in items])
        kept.confirm_many([*((item.ref, item.nonce, uid) for item in items), *((ref, "z", "uid-3") for ref in refs)])
