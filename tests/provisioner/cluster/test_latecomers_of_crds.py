"""What is new of a kind that is deleted, where the kind itself stands in the way of looking, on real API servers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from provisioner.cluster.client import transport
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.evidence import Query, Sample, Unread, samples
from provisioner.cluster.latecomers import Holder, Late, Shown, latecomers
from provisioner.errors import AnswerTooLarge, TryLater
from provisioner.values import GroupKind, Identity, ObjectRef
from tests.support.kubernetes.live import edit, until_served, wait_until
from tests.support.servers.process import free_port

CRD = "CustomResourceDefinition"


class Boats:
    """A namespace, and kinds of a group of its own."""

    def __init__(self, api: ClusterClient):
        self.api, self.name = api, f"boats-{uuid.uuid4().hex[:8]}"
        self.group = f"{self.name}.example.com"
        self.refs: list[ObjectRef] = []
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})

    def define(
        self, kind: str = "Boat", *, versions: tuple[str, ...] = ("v1",), stored: str = "v1", **spec: Any
    ) -> None:
        plural, schema = f"{kind.lower()}s", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        served = [
            {"name": one, "served": True, "storage": one == stored, "schema": {"openAPIV3Schema": schema}}
            for one in versions
        ]
        names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
        self.refs.append(ObjectRef("apiextensions.k8s.io", "v1", CRD, "", f"{plural}.{self.group}"))
        meta = {"name": self.refs[-1].name}
        body = {"group": self.group, "scope": "Namespaced", "names": names, "versions": served, **spec}
        self.api.create({"apiVersion": "apiextensions.k8s.io/v1", "kind": CRD, "metadata": meta, "spec": body})
        until_served(self.api, self.group, stored, kind)

    def make(self, name: str, kind: str = "Boat", *, version: str = "v1", owner: Any = None, **meta: Any) -> Any:
        meta |= {"name": name, "namespace": self.name}
        if owner is not None:
            named = {key: owner["metadata"][key] for key in ("name", "uid")}
            whole = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True, **named}
            meta["ownerReferences"] = [whole]
        return self.api.create({"apiVersion": f"{self.group}/{version}", "kind": kind, "metadata": meta})

    def holder(self, count: int | None, last: str = "", kind: str = "Boat", version: str = "") -> Holder:
        found = next(one for one in self.refs if one.name.startswith(f"{kind.lower()}s."))
        return Holder(found, {GroupKind(self.group, kind): Shown(count, last, version)})

    def late(self, holder: Holder, *others: Holder) -> Late:
        (found,) = latecomers([self.api], holder, others).values()
        return found

    def counted(
        self, kind: str = "Boat", version: str = "", *, readers: Sequence[ClusterClient] | None = None
    ) -> Sample:
        query = Query(self.group, version, kind, metadata_only=True, is_counted=True)
        return samples(readers or [self.api], [query])[query]


@pytest.fixture
def boats(kubernetes_api: ClusterClient) -> Iterator[Boats]:
    made = Boats(kubernetes_api)
    yield made
    for ref in [*made.refs, ObjectRef("", "v1", "Namespace", "", made.name)]:
        kubernetes_api.delete(ref)


@pytest.fixture
def real_boats(real_api: ClusterClient) -> Iterator[Boats]:
    made = Boats(real_api)
    yield made
    for ref in [*made.refs, ObjectRef("", "v1", "Namespace", "", made.name)]:
        real_api.delete(ref)


def nobody_converts() -> dict[str, Any]:
    webhook = {"clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"}, "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


@pytest.mark.thorough
def test_S15_objects_are_listed_as_they_are_stored_where_nobody_converts_them(real_boats: Boats) -> None:
    """The preferred version is v2, so that each object would have to be converted."""
    boats = real_boats
    boats.define(versions=("v2", "v1"), stored="v1", conversion=nobody_converts())
    boats.make("a")
    assert boats.late(boats.holder(0, version="v1")) == Late(1, 1)
    assert boats.counted(version="v1").total == 1
    blocked = boats.late(boats.holder(0))
    assert (blocked.count, blocked.problem) == (0, "the conversion webhook of Boat does not work")
    assert "conversion webhook for" in blocked.server_words
    assert boats.counted().why is Unread.CONVERSION
    assert boats.late(boats.holder(None)) == Late(0), "as it was shown: nobody can count them"


def test_S15_a_version_that_is_served_no_more_is_no_empty_list(boats: Boats) -> None:
    boats.define(versions=("v2", "v1"), stored="v2")
    boats.make("a", version="v2")

    def is_v1_served(live: Any, *, served: bool) -> None:
        live["spec"]["versions"][1]["served"] = served

    edit(boats.api, boats.refs[0], lambda live: is_v1_served(live, served=False), manager="kubectl-edit")
    until_served(boats.api, boats.group, "v1", "Boat", is_served=False)
    assert boats.late(boats.holder(0, version="v1")) == Late(1, 1)


def test_promise_4_objects_of_a_kind_that_no_version_serves_are_not_counted_as_none(boats: Boats) -> None:
    boats.define()
    boats.make("a")

    def serve(live: Any, *, is_served: bool) -> None:
        live["spec"]["versions"][0]["served"] = is_served

    known = boats.api.served()
    edit(boats.api, boats.refs[0], lambda live: serve(live, is_served=False), manager="kubectl-edit")
    until_served(boats.api, boats.group, "v1", "Boat", is_served=False)
    boats.api.discovery.learn(known, 0.0)
    nobody = boats.api.acting_as(Identity.of_service_account(boats.name, "nobody"))
    for found in (boats.counted(readers=[nobody, boats.api]), boats.counted()):
        assert (found.total, found.last) == (None, None)
        assert "serves no version of Boat" in found.problem, "by an old discovery it is served, and nobody may list it"
    with pytest.raises(TryLater, match="serves no version of Boat"):
        boats.late(boats.holder(0))
    edit(boats.api, boats.refs[0], lambda live: serve(live, is_served=True), manager="kubectl-edit")
    until_served(boats.api, boats.group, "v1", "Boat")
    assert boats.late(boats.holder(None)) == Late(1, 1), "and now they can be"


def test_pages_that_are_too_large_are_asked_for_in_halves(boats: Boats, monkeypatch: pytest.MonkeyPatch) -> None:
    boats.define()
    for number in range(12):
        boats.make(f"a-{number}", annotations={"filler": "x" * 10_000})
    with monkeypatch.context() as patch:
        patch.setattr(transport, "MAX_RESPONSE_BYTES", 40_000)
        found = boats.counted()
        assert (found.total, len(found.objects), found.problem) == (12, 12, "")
        assert boats.late(boats.holder(0)) == Late(12, 12)
        resource = boats.api.resource_of(boats.group, "v1", "Boat")
        assert resource is not None
        assert len(boats.api.snapshot(resource).objects) == 12
        assert len(list(boats.api.list(resource, page=5, metadata_only=True))) == 12


def test_S15_what_is_too_large_one_by_one_is_too_many_to_see(boats: Boats, monkeypatch: pytest.MonkeyPatch) -> None:
    boats.define()
    for name in ("a", "b"):
        boats.make(name, annotations={"filler": "x" * 10_000})
    boats.api.served()
    resource = boats.api.resource_of(boats.group, "v1", "Boat")
    assert resource is not None
    with monkeypatch.context() as patch:
        patch.setattr(transport, "MAX_RESPONSE_BYTES", 5_000)
        with pytest.raises(AnswerTooLarge):
            list(boats.api.list(resource))
        assert boats.counted().why is Unread.TOO_LARGE
        assert boats.late(boats.holder(0)) == Late(None)
        assert boats.late(boats.holder(None)) == Late(None)


def test_S15_what_was_made_of_an_object_of_another_kind_that_goes_is_not_late(boats: Boats) -> None:
    boats.define()
    boats.define("Sail")
    old = boats.make("old")
    made = boats.make("of-old", "Sail", owner=old)
    both = boats.holder(0, kind="Sail"), boats.holder(1, old["metadata"]["creationTimestamp"])
    assert boats.late(both[0]).count == 1, "nothing else goes"
    assert boats.late(*both).count == 0
    boats.make("of-that", "Sail", owner=made)
    assert boats.late(*both).count == 0
    unknown = boats.holder(1, "2000-01-01T00:00:00Z")
    assert boats.late(both[0], unknown).count == 2, "what is new itself vouches for nothing"


def test_S15_what_the_same_plan_writes_was_shown(boats: Boats) -> None:
    boats.define()
    boats.make("planned")
    boats.make("late")
    shown, ref = boats.holder(0), (boats.group, "Boat", boats.name, "planned")
    assert boats.late(Holder(shown.ref, shown.shown, written={ref})).count == 1


@pytest.fixture
def dead_api(real_boats: Boats) -> Iterator[str]:
    """A group that nobody stands behind; its name."""
    group = f"dead.{real_boats.group}"
    service = {"name": "nobody", "namespace": real_boats.name}
    served = {"group": group, "version": "v1", "service": service, "insecureSkipTLSVerify": True}
    spec = {**served, "groupPriorityMinimum": 10, "versionPriority": 10}
    made = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.{group}"}}
    real_boats.api.create({**made, "spec": spec})

    def is_unknown() -> bool:
        real_boats.api.forget_discovery()
        return real_boats.api.served().is_unknown(group, "v1")

    wait_until(is_unknown, "the API service counts as unknown")
    yield group
    real_boats.api.delete(ObjectRef.of(made))


def test_S15_an_owner_whose_api_does_not_answer_stops_nothing(real_boats: Boats, dead_api: str) -> None:
    boats = real_boats
    boats.define()
    forged = {"apiVersion": f"{dead_api}/v1", "kind": "Ghost", "metadata": {"name": "g", "uid": "made-up"}}
    boats.make("forged", owner=forged, finalizers=["example.com/kept"])
    boats.make("late")
    try:
        assert boats.late(boats.holder(0)) == Late(2, 2, unasked=1)
    finally:
        ref = ObjectRef(boats.group, "v1", "Boat", boats.name, "forged")
        edit(boats.api, ref, lambda live: live["metadata"].update(finalizers=[]), manager="kubectl-edit")
