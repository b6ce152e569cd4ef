"""The watches of managed objects: what is seen, what is not worth a look, and what it costs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.ledger import drifts
from approvals.models import BundleDeployment, Cluster, InventoryItem
from approvals.steps.running.correct import correct
from approvals.watch import informers, lookout, loop
from approvals.watch.informers import Informer, Informers
from approvals.watch.lookout import Name
from approvals.watch.scopes import Scope, scopes_of
from provisioner.errors import Expired, Forbidden
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.running import Running
from tests.support.kubernetes.live import WatchedUntil, until_current, wait_until
from tests.support.patience import scaled
from tests.support.servers.registry import Registry

CONFIG_MAPS = Scope("", "ConfigMap")


@pytest.fixture(autouse=True)
def _short_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "WATCH_SECONDS", 1.0)


def informer_of(it: Running, scope: Scope = CONFIG_MAPS) -> Informer:
    """An informer that the test itself moves on, in its own thread, as the cluster's admin sees it."""
    made = Informer(scope, cluster=it.site.cluster)
    made.book.refresh(scopes_of(it.site.cluster, ())[scope])
    return made


def listed(informer: Informer, it: Running) -> Informer:
    resource = informer.scope.resource(it.site.api)
    informer.version = informer.take_list(it.site.api, resource)
    return informer


def follow(informer: Informer, it: Running) -> None:
    informer.follow(it.site.api, informer.scope.resource(it.site.api))


def follow_until(is_so: Callable[[], bool], informer: Informer, it: Running) -> None:
    """A watch of a second may end before a busy server tells it anything. What `is_so` takes away is asked for once."""
    answers: list[bool] = []

    def has_come(_: object = None) -> bool:
        answers.append(is_so())
        return answers[-1]

    api: Any = WatchedUntil(it.site.api, has_come)

    def watch_once() -> bool:
        informer.follow(api, informer.scope.resource(api))
        return any(answers) or has_come()

    wait_until(watch_once, "what the watch is to see")


def has_seen(informer: Informer, it: Running) -> bool:
    """Whether the watch has come to what the object is now."""
    return int(informer.version) >= int(it.live(informer.scope.kind)["metadata"]["resourceVersion"])


def due(it: Running) -> list[str]:
    found = drifts.due(timezone.now()).filter(deployment=it.deployment)
    return sorted(found.values_list("kind", flat=True))


def test_a_list_of_what_was_compared_already_wakes_nobody(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    listed(informer_of(it), it)
    assert due(it) == []


def test_what_changed_or_went_while_nobody_watched_is_found_by_the_list(site: DeployedSite, registry: Registry) -> None:
    it, other = Running(site, registry), Running(site, registry)
    it.edit(lambda live: live["data"].update(version="2"))
    site.api.delete(other.ref())
    listed(informer_of(it), it)
    assert (due(it), due(other)) == (["ConfigMap"], ["ConfigMap"])


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("edited", marks=pytest.mark.proof),
        pytest.param("deleted", marks=pytest.mark.proof),
        pytest.param("labelled", marks=pytest.mark.thorough),
        pytest.param("made again", marks=pytest.mark.thorough),
    ],
)
def test_the_watch_sees_what_others_do_and_a_worker_knows_what_it_did_itself(
    site: DeployedSite, registry: Registry, what: str
) -> None:
    it = Running(site, registry)
    informer = listed(informer_of(it), it)
    if what == "edited":
        it.edit(lambda live: live["data"].update(version="2"))
    elif what == "labelled":
        it.edit(lambda live: live["metadata"].update(labels={"a": "b"}))
    else:
        site.api.delete(it.ref())
    if what == "made again":
        meta = {"name": it.name, "namespace": site.namespace}
        site.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    follow_until(lambda: due(it) == ["ConfigMap"], informer, it)
    correct(it.deployment.pk)
    assert due(it) == []
    follow_until(lambda: has_seen(informer, it), informer, it)
    assert due(it) == [], "what the worker wrote is no news"


def test_a_status_that_is_written_is_no_news_and_has_the_health_read(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    until_current(site.api, it.ref("Deployment"))
    informer = listed(informer_of(it, Scope("apps", "Deployment")), it)
    assert informer.book.take_stirred() == {it.deployment.pk}, "what happened before the list is not known"
    follow_until(lambda: informer.book.take_stirred() == set(), informer, it)
    live = it.live("Deployment")
    status = {"observedGeneration": 1, "replicas": 1, "conditions": []}
    meta = {"name": it.name, "namespace": site.namespace}
    about = {"apiVersion": live["apiVersion"], "kind": "Deployment", "metadata": meta}
    site.api.apply({**about, "status": status}, field_manager="kubelet", subresource="status", force=True)
    follow_until(lambda: informer.book.take_stirred() == {it.deployment.pk}, informer, it)
    assert due(it) == []


@pytest.mark.thorough
def test_the_health_of_what_is_watched_well_and_still_is_not_read(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    wait_until(lambda: site.look_after(it.deployment).health == "Current")
    read = it.deployment.observed_at
    assert read
    assert (unwatched := site.look_after(it.deployment).observed_at) > read, "nobody would tell"
    Cluster.objects.filter(pk=site.cluster.pk).update(watched_until=timezone.now() + timedelta(hours=1))
    assert site.look_after(it.deployment).observed_at == unwatched
    drifts.stir({it.deployment.pk})
    assert (again := site.look_after(it.deployment).observed_at) > unwatched
    assert site.look_after(it.deployment).observed_at == again
    BundleDeployment.objects.filter(pk=it.deployment.pk).update(observed_at=timezone.now() - timedelta(hours=1))
    assert site.look_after(it.deployment).observed_at > again, "a watch may miss something"
    site.api.delete(it.ref("Deployment"))
    listed(informer_of(it, Scope("apps", "Deployment")), it)
    drifts.stir({it.deployment.pk})
    assert site.look_after(it.deployment).health == "NotFound"
    first = it.deployment.observed_at
    assert site.look_after(it.deployment).observed_at > first, "what is ill is looked at each time"


@pytest.mark.thorough
def test_a_watch_carries_on_from_its_last_version_without_a_list(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    informer = listed(informer_of(it), it)
    before = informer.version
    it.edit(lambda live: live["data"].update(version="2"))
    follow_until(lambda: has_seen(informer, it), informer, it)
    follow(informer, it)
    assert int(informer.version) > int(before)
    assert informer.lists == 1


def test_an_object_that_was_never_seen_before_it_was_deleted_is_told(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    InventoryItem.objects.filter(deployment=it.deployment).update(fingerprint="")
    informer = informer_of(it)
    informer.tell([((site.namespace, it.name), informers.GONE)])
    assert due(it) == ["ConfigMap"]


def test_objects_of_others_are_not_remembered(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    informer = listed(informer_of(it), it)
    assert set(informer.book.objects) == {(site.namespace, it.name)}


def test_after_a_410_the_list_is_taken_again(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Running(site, registry)
    informer = informer_of(it)
    answers = iter(["too old", "the end"])

    def follow(*_: Any) -> None:
        if next(answers) == "too old":
            raise Expired("too old resource version", status=410)
        informer.stop.set()

    monkeypatch.setattr(lookout, "MOST_JITTER_SECONDS", 0.01)
    monkeypatch.setattr(informer, "follow", follow)
    informer.scope = Scope("", "ConfigMap", site.namespace, (site.namespace, "installer"))
    informer.run()
    assert informer.lists == 2


def test_after_a_bug_the_watch_goes_on_and_what_it_had_not_told_is_told(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Running(site, registry)
    informer = informer_of(it)
    informer.scope = Scope("", "ConfigMap", site.namespace, (site.namespace, "installer"))
    tell, bugs = informer.tell, iter([ZeroDivisionError("a bug")])

    def stumble(seen: Iterable[tuple[Name, str]]) -> None:
        for bug in bugs:
            raise bug
        tell(seen)
        if due(it):
            informer.stop.set()

    it.edit(lambda live: live["data"].update(version="2"))
    monkeypatch.setattr(lookout, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(informer, "tell", stumble)
    informer.run()
    assert (due(it), informer.lists) == (["ConfigMap"], 2)


class Still(Informer):
    """An informer that does not start by itself."""

    def start(self) -> None:
        self.started = True

    @property
    def is_alive(self) -> bool:
        return not self.is_refused


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informers, "Informer", Still)


@pytest.mark.thorough
def test_one_watch_a_kind_of_the_active_inventories_and_none_for_what_is_gone(
    site: DeployedSite, registry: Registry, still: None
) -> None:
    all_of_it = Informers(site.cluster)
    all_of_it.look(0.0)
    assert all_of_it.running == {}
    it, other = Running(site, registry), Running(site, registry)
    all_of_it.look(1.0)
    assert set(all_of_it.running) == {CONFIG_MAPS, Scope("apps", "Deployment"), Scope("", "ServiceAccount")}
    assert len(all_of_it.running[CONFIG_MAPS].book.objects) == 2
    for deployment in (it.deployment, other.deployment):
        BundleDeployment.objects.filter(pk=deployment.pk).update(gone_at=timezone.now())
    all_of_it.look(2.0)
    assert all_of_it.running == {}


def test_what_we_may_not_watch_is_watched_as_the_installer_and_else_compared_every_minute(
    site: DeployedSite, registry: Registry, still: None
) -> None:
    it = Running(site, registry)
    all_of_it = Informers(site.cluster)
    all_of_it.look(0.0)
    all_of_it.running[CONFIG_MAPS].is_refused = True
    all_of_it.look(1.0)
    own = Scope("", "ConfigMap", site.namespace, (site.namespace, "installer"))
    assert own in all_of_it.running
    assert CONFIG_MAPS not in all_of_it.running
    all_of_it.running[own].is_refused = True
    all_of_it.look(2.0)
    assert due(it) == ["ConfigMap"]


def test_the_installer_may_watch_what_the_service_may_not(site: DeployedSite, registry: Registry) -> None:
    it = Running(site, registry)
    service = loop.connect(site.cluster)
    wide = informer_of(it)
    with pytest.raises(Forbidden):
        wide.take_list(service, wide.scope.resource(service))
    own = Scope("", "ConfigMap", site.namespace, (site.namespace, "installer"))
    narrow = Informer(own, wide.book, cluster=site.cluster)
    assert narrow.take_list(own.seen_by(service), own.resource(service))


def test_a_thread_that_is_told_to_end_ends_though_it_waits_for_events(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "WATCH_SECONDS", 3600.0)
    it = Running(site, registry)
    informer = listed(informer_of(it), it)
    monkeypatch.setattr(informer, "tell", lambda _: None)
    thread = threading.Thread(target=follow, args=(informer, it), daemon=True)
    thread.start()
    thread.join(1.0)  # It waits for an hour: too short a time would only miss that it does not.
    assert thread.is_alive()
    informer.end()
    thread.join(scaled(60))
    assert not thread.is_alive()


def test_never_compared_objects_are_due(site: DeployedSite, registry: Registry, still: None) -> None:
    it = Running(site, registry)
    InventoryItem.objects.filter(deployment=it.deployment, kind="ConfigMap").update(fingerprint="")
    Informers(site.cluster).look(0.0)
    assert due(it) == ["ConfigMap"]
