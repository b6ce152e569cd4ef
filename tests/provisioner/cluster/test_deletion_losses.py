"""What is new in something that is deleted, on a real API server: objects by hand, and those that a controller made."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from provisioner.cluster import deletion_losses as room
from provisioner.cluster.client import transport
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.deletion_losses import Holder, Late, Shown, find_dependents, find_latecomers
from provisioner.cluster.evidence import Bounds, Query, Sample, Unread, read_samples
from provisioner.errors import AnswerTooLarge, TryLater
from provisioner.sandbox import writes
from provisioner.values import GroupKind, Identity, ObjectRef
from tests.support.kubernetes.live import edit, until_served, wait_until
from tests.support.provisioner.cluster_scene import Scene
from tests.support.servers.process import free_port

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

    def __init__(self, api: ClusterClient, next_second: Callable[[], None]):
        self.api, self.name = api, f"late-{uuid.uuid4().hex[:8]}"
        self.live = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        self.lease, self.secret = self.make("Lease", "leader"), self.make("Secret", "known")
        self.foreign = self.make("ClusterRole", self.name)
        next_second()
        self.map = self.make("ConfigMap", "known")
        self.shown = {kind: self._shown(kind) for kind in (MAP, SECRET)}
        next_second()

    def make(self, kind: str, name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.api.create(of_kind(kind, name, self.name, owner))

    def _shown(self, kind: GroupKind) -> Shown:
        query = Query(kind.group, "", kind.kind, self.name, metadata_only=True, is_counted=True)
        there = read_samples([self.api], [query])[query]
        assert there.total is not None
        return Shown(there.total, there.last)

    def late(self, *going: str) -> dict[str, int]:
        uids = {self.live["metadata"]["uid"], *going}
        holder = Holder(ObjectRef("", "v1", "Namespace", "", self.name), self.shown, uids)
        found = {kind.kind: late.count for kind, late in find_latecomers([self.api], holder).items()}
        return {kind: count for kind, count in found.items() if count}


@pytest.fixture
def next_second(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """API servers say to the second when something was created: the sandbox's clock goes on, a real one is waited for."""
    if request.node.callspec.params["api_server"] != "sandbox":
        return lambda: time.sleep(1.1)
    seconds = [0]
    began = datetime.now(UTC)
    monkeypatch.setattr(writes, "now", lambda: f"{began + timedelta(seconds=seconds[0]):%Y-%m-%dT%H:%M:%SZ}")
    return lambda: seconds.append(seconds.pop() + 1)


@pytest.fixture
def space(kubernetes_api: ClusterClient, next_second: Callable[[], None]) -> Iterator[Space]:
    made = Space(kubernetes_api, next_second)
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
    few = read_samples([space.api], [asked], bounds=Bounds(objects=2, page=2))[asked]
    assert (len(few.objects), few.total) == (2, 6)
    assert few.last is not None and last is not None and few.last > last
    after = Query("", "", "Secret", space.name, metadata_only=True, is_counted=True, after=last)
    later = read_samples([space.api], [after], bounds=Bounds(page=2))[after]
    assert {one["metadata"]["name"] for one in later.objects} == {f"a-{number}" for number in range(5)}
    assert later.total == 6
    for bounds in (Bounds(counted=4), Bounds(seconds=-1.0)):
        found = read_samples([space.api], [after], bounds=bounds)[after]
        assert (found.last, found.total) == (None, 6), "nobody looked through all"


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
        (found,) = find_latecomers([self.api], holder, others).values()
        return found

    def counted(
        self, kind: str = "Boat", version: str = "", *, readers: Sequence[ClusterClient] | None = None
    ) -> Sample:
        query = Query(self.group, version, kind, metadata_only=True, is_counted=True)
        return read_samples(readers or [self.api], [query])[query]


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


def made(scene: Scene, obj: dict[str, Any]) -> tuple[ObjectRef, str]:
    live = scene.cluster.create(obj)
    return ObjectRef.of(live), str(live["metadata"]["uid"])


def hung(scene: Scene, name: str, owner: tuple[ObjectRef, str]) -> dict[str, Any]:
    ref, uid = owner
    obj = scene.config_map(name, a="1")
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": uid}
    ]
    return obj


def test_what_names_it_as_its_owner_goes_along(scene: Scene) -> None:
    service, other = made(scene, scene.service()), made(scene, scene.service("other"))
    scene.cluster.create(hung(scene, "along", service))
    scene.cluster.create(hung(scene, "of-the-other", other))
    scene.cluster.create(scene.config_map("nobodys"))
    place = scene.namespace
    assert find_dependents([scene.cluster], [service]) == [
        f"ConfigMap {place}/along goes along with Service {place}/web"
    ]


def test_what_goes_itself_is_no_surprise(scene: Scene) -> None:
    service = made(scene, scene.service())
    config = made(scene, hung(scene, "along", service))
    assert find_dependents([scene.cluster], [service, config]) == []


def test_what_nobody_may_look_at_is_said(scene: Scene) -> None:
    service = made(scene, scene.service())
    nobody = scene.cluster.acting_as(Identity.of_service_account(scene.namespace, "nobody"))
    found = find_dependents([nobody], [service])
    assert [one.partition(":")[0] for one in found] == [
        f"whether a {kind} of {scene.namespace} goes along" for kind in ("ConfigMap", "PersistentVolumeClaim", "Secret")
    ]
    assert "cannot list" in found[0]


def test_who_may_look_at_it_is_asked_next(scene: Scene) -> None:
    service = made(scene, scene.service())
    nobody = scene.cluster.acting_as(Identity.of_service_account(scene.namespace, "nobody"))
    assert find_dependents([nobody, scene.cluster], [service]) == []
