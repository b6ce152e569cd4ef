"""The controllers look at what changed, and at everything where they cannot know that. What they do is held to the real ones in tests/contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.sandbox import store as stores
from provisioner.sandbox.controllers import Controllers
from provisioner.sandbox.store import Key, ObjectStore
from tests.support.patience import wait_for

KINDS = {("", "namespaces"), ("", "serviceaccounts"), ("", "configmaps")}
OWNER, OWNED = ("", "configmaps", "shop", "owner"), ("", "configmaps", "shop", "owned")


def put(store: ObjectStore, key: Key, **meta: Any) -> None:
    store.put(key, {"metadata": {"name": key[3], "namespace": key[2], "uid": f"uid-{key[3]}", **meta}})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    monkeypatch.setattr(stores, "HISTORY", 3)
    made = ObjectStore(tmp_path / "cluster.sqlite3")
    put(made, OWNED, ownerReferences=[{"uid": "uid-owner"}])
    yield made
    made.close()


@pytest.fixture
def controllers(store: ObjectStore) -> Iterator[Controllers]:
    made = Controllers(store, KINDS)
    yield made
    made.stop()


def test_what_lost_its_owner_before_the_start_goes(store: ObjectStore, controllers: Controllers) -> None:
    controllers.start()
    wait_for(lambda: store.get(OWNED), "it goes", is_so=lambda found: found is None)


def test_what_lost_its_owner_goes_though_more_has_changed_since_than_is_remembered(
    store: ObjectStore, controllers: Controllers
) -> None:
    put(store, OWNER)
    put(store, ("", "namespaces", "", "shop"))
    controllers.start()
    account = ("", "serviceaccounts", "shop", "default")
    wait_for(lambda: store.get(account), "the account of the namespace")
    assert store.get(OWNED)
    with store.lock:
        store.remove(OWNER)
        for number in range(2 * stores.HISTORY):
            put(store, ("", "configmaps", "other", f"c{number}"))
    wait_for(lambda: store.get(OWNED), "it goes", is_so=lambda found: found is None)


def test_an_object_that_is_made_anew_under_its_name_owns_nothing_of_the_one_before(
    store: ObjectStore, controllers: Controllers
) -> None:
    put(store, OWNER)
    controllers.start()
    put(store, OWNER, uid="another")
    wait_for(lambda: store.get(OWNED), "it goes", is_so=lambda found: found is None)
