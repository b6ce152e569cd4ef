"""What is new in something that is deleted, on a real API server: objects by hand, and those that a controller made."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.cluster import latecomers as room
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.evidence import Bounds, Query, samples
from provisioner.cluster.latecomers import Holder, Shown, latecomers
from provisioner.values import GroupKind, ObjectRef

MAP, SECRET, JOB = GroupKind("", "ConfigMap"), GroupKind("", "Secret"), GroupKind("batch", "Job")
SPACE = GroupKind("", "Namespace")


def of_kind(kind: str, name: str, namespace: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    api_version = {"Lease": "coordination.k8s.io/v1", "ClusterRole": "rbac.authorization.k8s.io/v1"}.get(kind, "v1")
    meta: dict[str, Any] = {"name": name} | ({"namespace": namespace} if kind != "ClusterRole" else {})
    if owner is not None:
        named = {key: owner["metadata"][key] for key in ("name", "uid")}
        meta["ownerReferences"] = [
            {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named, "controller": True}
        ]
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


class Space:
    """A namespace with a ConfigMap, a Secret and a Lease in it, which was shown to somebody, and a role outside."""

    def __init__(self, api: ClusterClient):
        self.api, self.name = api, f"late-{uuid.uuid4().hex[:8]}"
        self.live = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        self.lease, self.secret = self.make("Lease", "leader"), self.make("Secret", "known")
        self.foreign = self.make("ClusterRole", self.name)
        time.sleep(1.1)  # the API server says to the second when something was created
        self.map = self.make("ConfigMap", "known")
        self.shown = {kind: self._shown(kind) for kind in (MAP, SECRET)}
        time.sleep(1.1)

    def make(self, kind: str, name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.api.create(of_kind(kind, name, self.name, owner))

    def _shown(self, kind: GroupKind) -> Shown:
        query = Query(kind.group, "", kind.kind, self.name, metadata_only=True, is_counted=True)
        there = samples([self.api], [query])[query]
        assert there.total is not None
        return Shown(there.total, there.last)

    def late(self, *going: str) -> dict[str, int]:
        uids = {self.live["metadata"]["uid"], *going}
        holder = Holder(ObjectRef("", "v1", "Namespace", "", self.name), self.shown, uids)
        found = {kind.kind: late.count for kind, late in latecomers([self.api], holder).items()}
        return {kind: count for kind, count in found.items() if count}


@pytest.fixture
def space(kubernetes_api: ClusterClient) -> Iterator[Space]:
    made = Space(kubernetes_api)
    yield made
    kubernetes_api.delete(ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRole", "", made.name))
    kubernetes_api.delete(ObjectRef("", "v1", "Namespace", "", made.name))


def test_S15_nothing_is_late_that_was_shown(space: Space) -> None:
    assert space.late() == {}


@pytest.mark.proof
def test_S15_one_for_another_is_late(space: Space) -> None:
    space.api.delete(ObjectRef("", "v1", "Secret", space.name, "known"))
    space.make("Secret", "instead")
    assert space.late() == {"Secret": 1}


def test_S15_what_a_controller_made_is_late_unless_its_owner_goes_and_was_there(space: Space) -> None:
    space.make("Secret", "of-a-shown-one", space.map)
    space.make("Secret", "of-one-that-is-not-counted", space.lease)
    below = space.make("Lease", "below", space.lease)
    space.make("Secret", "of-one-that-was-made-of-it", below)
    assert space.late() == {}
    space.make("Secret", "of-one-that-stays", space.foreign)
    assert space.late() == {"Secret": 1}
    assert space.late(space.foreign["metadata"]["uid"]) == {}, "unless that is deleted as well"


def test_S15_what_was_made_of_a_late_one_is_late_as_well(space: Space) -> None:
    late = space.make("ConfigMap", "late")
    space.make("Secret", "of-a-late-one", late)
    new = space.make("Lease", "new")
    space.make("Secret", "of-a-new-one", new)
    assert space.late() == {"ConfigMap": 1, "Secret": 2}


@pytest.mark.parametrize(
    "changes",
    [{"uid": ""}, {"name": "gone"}, {"name": "a/../b"}, {"kind": "Nothing"}, {"apiVersion": "a.example.com/v1"}],
    ids=str,
)
def test_S15_an_owner_that_is_none_exempts_nothing(space: Space, changes: dict[str, str]) -> None:
    made = of_kind("Secret", "forged", space.name, space.lease)
    # "" stands for the uid of another object that is there.
    forged = {key: value or str(space.foreign["metadata"]["uid"]) for key, value in changes.items()}
    made["metadata"]["ownerReferences"][0] |= forged
    made["metadata"]["finalizers"] = ["example.com/kept"]  # else the garbage collector takes it away
    space.api.create(made)
    try:
        assert space.late() == {"Secret": 1}
    finally:
        live = space.api.get(ObjectRef.of(made))
        assert live is not None
        space.api.replace({**live, "metadata": {**live["metadata"], "finalizers": [], "resourceVersion": ""}})


def test_S15_two_that_own_each_other_are_late(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    one = space.make("ConfigMap", "one")
    other = space.make("ConfigMap", "other", one)
    space.api.replace({**one, "metadata": {**one["metadata"], **_owned_by(other)}})
    assert space.late() == {"ConfigMap": 2}
    monkeypatch.setattr(room, "MAX_OWNERS", 0)
    space.make("Secret", "of-a-shown-one", space.map)
    assert space.late() == {"ConfigMap": 2, "Secret": 1}, "more owners than are looked up"


def _owned_by(owner: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = of_kind("ConfigMap", "any", "any", owner)["metadata"]
    return {"ownerReferences": found["ownerReferences"]}


def test_a_list_that_is_counted_tells_how_many_there_are_and_when_the_last_came(space: Space) -> None:
    asked = Query("", "", "Secret", space.name, metadata_only=True, is_counted=True)
    for number in range(5):
        space.make("Secret", f"a-{number}")  # before the one that is known, as the server lists them
    last = space.shown[SECRET].last
    few = samples([space.api], [asked], bounds=Bounds(objects=2, page=2))[asked]
    assert (len(few.objects), few.total) == (2, 6)
    assert few.last is not None and last is not None and few.last > last
    after = Query("", "", "Secret", space.name, metadata_only=True, is_counted=True, after=last)
    later = samples([space.api], [after], bounds=Bounds(page=2))[after]
    assert {one["metadata"]["name"] for one in later.objects} == {f"a-{number}" for number in range(5)}
    assert later.total == 6
    for bounds in (Bounds(counted=4), Bounds(seconds=-1.0)):
        found = samples([space.api], [after], bounds=bounds)[after]
        assert (found.last, found.total) == (None, 6), "nobody looked through all"
