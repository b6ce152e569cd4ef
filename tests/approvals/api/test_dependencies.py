"""The requests that would come first: shown to each viewer by their own rights, and made as a set or not at all."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from approvals import services
from approvals.errors import Changed, InvalidInput, NotAllowed
from approvals.models import BundleDeployment, Catalog, Request
from provisioner.errors import Forbidden
from provisioner.render.registry.needs import CONSTRAINT, PACKAGE
from provisioner.values import ObjectRef
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored

NEEDS_DISK = {"type": PACKAGE, "value": {"packageName": "disk", "versionRange": ">=1.0.0"}}
STORE = (
    package("store", defaultChannel="stable"),
    channel("stable", {"name": "store.v1.2.0"}, of="store"),
    bundle("1.2.0", of="store", properties=(NEEDS_DISK,)),
)
DISK = (
    package("disk", defaultChannel="stable"),
    channel("stable", {"name": "disk.v1.0.0"}, of="disk"),
    bundle("1.0.0", of="disk"),
)
WANTED = {"kind": "package", "name": "store", "group": "", "version": ">=1.0.0 <2.0.0"}


@pytest.fixture
def needing(env: World) -> Request:
    """A request in review whose bundle needs the package store, which catalogs of ada's and rita's offer."""
    row = catalog("port", of=env.cluster)
    stored(row, *STORE, *DISK)
    for name in ("ada", "rita"):
        env.kubernetes.allow(name, "get")
        env.kubernetes.allow(name, "create")
        env.kubernetes.allow(name, "delete")
    request = world.in_review(world.submit_spec(env.cluster, world.seen("quay", world.spec()), env.rita).requests.get())
    Request.objects.filter(pk=request.pk).update(requirements=[WANTED])
    request.refresh_from_db()
    return request


def offer(request: Request, person: User) -> services.DependencyOffer:
    found = services.find_dependencies(by=world.acting(person), request=request)
    assert found is not None
    return found


def make(request: Request, person: User, digest: str) -> list[BundleDeployment]:
    return services.make_dependencies(by=world.acting(person), request=request, digest=digest, via="browser")


def names() -> list[str]:
    return sorted(BundleDeployment.objects.values_list("name", flat=True))


def test_what_is_made_is_the_plan_in_order_and_each_has_a_request_by_its_asker(env: World, needing: Request) -> None:
    found = offer(needing, env.ada)
    assert [(one.name, one.namespace, one.account) for one in found.deployments] == [
        ("disk", "disk", "disk-installer"),
        ("store", "store", "store-installer"),
    ]
    store = found.deployments[1].spec
    assert store["sources"] == [
        {
            "kind": "catalog",
            "catalog": {"name": "port", "package": "store", "channel": "stable", "version": ">=1.0.0 <2.0.0"},
        }
    ]
    assert store["constraints"] == {"requiredBundleDeployments": [{"name": "disk"}]}
    made = make(needing, env.ada, found.digest)
    assert [one.name for one in made] == ["disk", "store"]
    for one in made:
        request = one.requests.get()
        assert (request.state, request.reviews.count()) == ("preparing", 0)
        assert (request.requesters[-1]["username"], request.is_requester_known) == ("ada", True)
    needing.refresh_from_db()
    assert (needing.state, needing.round) == ("in_review", 1)
    # Now they are asked for, and nothing is left to be made.
    again = offer(needing, env.ada)
    assert ([str(need.state) for need in again.plan.needs], again.deployments) == (["asked"], ())
    with pytest.raises(InvalidInput, match="no request would come first"):
        make(needing, env.ada, again.digest)


def test_S09_a_plan_has_nothing_of_catalogs_that_its_viewer_may_not_get(env: World, needing: Request) -> None:
    found = offer(needing, env.bert)
    assert found.deployments == ()
    assert found.plan.needs[0].why.startswith("no catalog that you may read offers package store")


def test_of_several_catalogs_the_one_with_the_highest_priority_is_planned(env: World, needing: Request) -> None:
    other = catalog("vendor", of=env.cluster)
    stored(other, *STORE, *DISK)
    tie = offer(needing, env.ada)
    assert (tie.deployments, "several catalogs of priority 0" in tie.plan.needs[0].why) == ((), True)
    other.spec = {**other.spec, "priority": 5}
    other.save(update_fields=["spec"])
    found = offer(needing, env.ada)
    assert {one.package.catalog for one in found.deployments} == {"vendor"}


def test_looking_ends_after_some_time_and_that_is_said(
    env: World, needing: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("approvals.catalogs.dependencies.MOST_SECONDS", 0)
    found = offer(needing, env.ada)
    assert (found.deployments, found.plan.needs[0].state) == ((), "unknown")
    assert "took more than 0 seconds, so nothing is planned" in found.plan.needs[0].why


def test_a_spec_names_the_version_where_its_grammar_does_not_take_what_is_planned(env: World, needing: Request) -> None:
    stored(
        catalog("early", of=env.cluster),
        package("quick", defaultChannel="stable"),
        channel("stable", {"name": "quick.v2.0.0-rc.1"}, {"name": "quick.v4.0.0"}, of="quick"),
        bundle("2.0.0-rc.1", of="quick"),
        bundle("4.0.0", of="quick"),
    )
    wanted = {"kind": "package", "name": "quick", "group": "", "version": ">=1.0.0 <3.0.0"}
    Request.objects.filter(pk=needing.pk).update(requirements=[wanted])
    needing.refresh_from_db()
    (one,) = offer(needing, env.ada).deployments
    assert one.spec["sources"][0]["catalog"]["version"] == "2.0.0-rc.1"


def test_another_plan_than_the_one_on_the_screen_is_not_made(env: World, needing: Request) -> None:
    digest = offer(needing, env.ada).digest
    world.submit_spec(env.cluster, world.seen("disk", world.spec()), env.rita)  # which takes the name
    assert [one.name for one in offer(needing, env.ada).deployments] == ["disk-2", "store"]
    with pytest.raises(Changed, match="the plan changed"):
        make(needing, env.ada, digest)
    assert names() == ["disk", "quay"]


def test_another_bundle_than_the_one_on_the_screen_is_not_taken_unseen(env: World, needing: Request) -> None:
    found = offer(needing, env.ada)
    newer = (
        package("store", defaultChannel="stable"),
        channel("stable", {"name": "store.v1.3.0"}, of="store"),
        bundle("1.3.0", of="store", properties=(NEEDS_DISK,)),
    )
    stored(Catalog.objects.get(), *newer, *DISK)
    now = offer(needing, env.ada)
    assert [one.spec for one in now.deployments] == [one.spec for one in found.deployments]
    with pytest.raises(Changed, match="the plan changed"):
        make(needing, env.ada, found.digest)
    assert names() == ["quay"]


@pytest.mark.parametrize("is_dry", [True, False], ids=["asked first", "refused all the same"])
def test_of_a_set_that_kubernetes_refuses_a_part_of_nothing_is_made(
    env: World, needing: Request, monkeypatch: pytest.MonkeyPatch, is_dry: bool
) -> None:
    create, deleted = env.kubernetes.create, list[str]()

    def refuse(cluster: Any, obj: dict[str, Any], *, as_person: Any, dry_run: bool = False) -> dict[str, Any]:
        if obj["metadata"]["name"] == "store" and dry_run is is_dry:
            raise Forbidden('bundledeployments "store" is forbidden: quota')
        return create(cluster, obj, as_person=as_person, dry_run=dry_run)

    def delete(cluster: Any, ref: ObjectRef, *, uid: str, as_person: Any) -> None:
        assert uid == env.kubernetes.objects[ref.name]["metadata"]["uid"]
        deleted.append(ref.name)

    monkeypatch.setattr(env.kubernetes, "create", refuse)
    monkeypatch.setattr(env.kubernetes, "delete", delete)
    with pytest.raises(NotAllowed, match="quota"):
        make(needing, env.ada, offer(needing, env.ada).digest)
    assert (names(), deleted) == (["quay"], [] if is_dry else ["disk"])


def test_what_could_not_be_undone_is_named(env: World, needing: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    create = env.kubernetes.create

    def refuse(cluster: Any, obj: dict[str, Any], *, as_person: Any, dry_run: bool = False) -> dict[str, Any]:
        if obj["metadata"]["name"] == "store" and not dry_run:
            raise Forbidden("quota")
        return create(cluster, obj, as_person=as_person, dry_run=dry_run)

    def delete(*_: Any, **__: Any) -> None:
        raise Forbidden("no")

    monkeypatch.setattr(env.kubernetes, "create", refuse)
    monkeypatch.setattr(env.kubernetes, "delete", delete)
    with pytest.raises(Changed, match="still there: disk; delete what you do not want"):
        make(needing, env.ada, offer(needing, env.ada).digest)


def test_a_constraint_and_an_api_of_the_bundle_are_planned_too(env: World, needing: Request) -> None:
    choice = {"any": {"constraints": [{"package": {"packageName": "depot"}}, {"package": {"packageName": "disk"}}]}}
    constraint = {"kind": "constraint", "name": "any", "group": "", "version": "", "constraint": json.dumps(choice)}
    api = {"kind": "api", "name": "Disk", "group": "db.example.com", "version": "v1"}
    older = {"kind": "constraint", "name": "cel", "group": "", "version": "needs a big cluster"}
    Request.objects.filter(pk=needing.pk).update(requirements=[constraint, api, older])
    needing.refresh_from_db()
    found = offer(needing, env.ada)
    assert [one.name for one in found.deployments] == ["disk"]
    states = {need.need: str(need.state) for need in found.plan.needs}
    assert states == {
        "one of (package depot, package disk)": "planned",
        "Disk in db.example.com/v1": "met",
        "needs a big cluster": "unknown",
    }
    assert CONSTRAINT == "olm.constraint"


def test_the_page_shows_the_plan_and_its_button_makes_it(env: World, needing: Request, browse: Browse) -> None:
    client = browse(env.ada)
    text = opened(client, f"/requests/{needing.uid}")
    assert "These requests would come first" in text
    assert text.index("disk 1.0.0") < text.index("store 1.2.0", text.index("These requests"))
    (digest,) = re.findall(r'name="plan_digest"\s+value="([^"]+)"', text)
    address = f"/requests/{needing.uid}/dependencies"
    answer = client.post(address, {"plan_digest": digest}, follow=True)
    assert "Created: disk, store." in text_of(answer)
    assert names() == ["disk", "quay", "store"]
    assert client.post(address, {"plan_digest": digest}).status_code == 422


def test_who_may_not_create_deployments_sees_why_and_no_button(env: World, needing: Request, browse: Browse) -> None:
    env.kubernetes.allowed.discard(("ada", "create", "*"))
    cache.clear()
    text = opened(browse(env.ada), f"/requests/{needing.uid}")
    assert "These requests would come first" in text
    assert "You may not create them" in text
    assert "plan_digest" not in text


def test_rest_tells_the_plan_and_makes_it(env: World, needing: Request, call: Call) -> None:
    address = f"requests/{needing.uid}/dependencies"
    found = json.loads(call(env.ada, "get", address).content)
    assert [(one["name"], one["after"]) for one in found["deployments"]] == [("disk", []), ("store", ["disk"])]
    assert [need["state"] for need in found["needs"]] == ["planned"]
    stale = call(env.ada, "post", address, {"digest": "sha256:old"})
    assert (stale.status_code, problem_of(stale)["code"]) == (409, "changed")
    made = call(env.ada, "post", address, {"digest": found["digest"]})
    assert (made.status_code, [one["name"] for one in json.loads(made.content)["deployments"]]) == (
        201,
        ["disk", "store"],
    )


def test_a_request_without_needs_and_a_settled_one_have_no_plan(env: World, needing: Request) -> None:
    Request.objects.filter(pk=needing.pk).update(state="denied")
    needing.refresh_from_db()
    assert services.find_dependencies(by=world.acting(env.ada), request=needing) is None
    Request.objects.filter(pk=needing.pk).update(state="in_review", requirements=[])
    needing.refresh_from_db()
    assert services.find_dependencies(by=world.acting(env.ada), request=needing) is None
