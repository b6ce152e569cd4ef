"""List, then watch, one thread a cluster. Every event only copies the object; what follows from it is in the rows.

The objects of bundles are watched beside it, by informers.py.

One process watches a cluster at a time, by a claim on the cluster's row. While a slow watcher does not know yet that it
has lost its claim, two are harmless: what they see is written under the deployment's lock, by generation.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import DataError, OperationalError, close_old_connections

from approvals import instruments, refusals
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.deciding.table import KINDS
from approvals.ledger import authors, claims, pivots
from approvals.models import BundleDeployment, Cluster
from approvals.watch import turns
from approvals.watch.authorship import Authorship
from approvals.watch.informers import Informers
from approvals.watch.lookout import hear
from approvals.watch.own_kinds import SeenCatalogs, SeenDecidingObjects, SeenMirrors, SeenReviews
from approvals.watch.turns import EventsInTurn, Turns, writer_in
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.answers import WatchType
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.client.kubeconfig import end_of_credentials
from provisioner.errors import Expired, PratiqueError, UnknownKind

logger = logging.getLogger(__name__)

VERSION, KIND = "v1alpha2", "BundleDeployment"
NOT_SERVED = f"the cluster serves no {KIND}: pratique-manage cluster_manifests | kubectl apply --server-side -f -"
RUKPAKS_OWN = (
    f"the cluster serves {KIND} in another version than {VERSION}: this is RukPak's own definition, which Pratique's "
    "does not replace. Convert what is there, and delete it, as docs/operating/kubectl.md says under Coming from RukPak"
)
WriterOf = Callable[[Mapping[str, Any]], pivots.SpecWriter | None]
# A watch is renewed this often, from its last bookmark; the full list is taken again when it is too old.
WATCH_SECONDS = 240.0
LONGEST_WAIT_SECONDS = 60.0
EXPIRED_SECONDS = 1.0


@dataclass
class Watches:
    """The clusters that this process watches: a thread each, and the word that stops it; by which kubeconfigs."""

    watcher: str
    threads: dict[int, tuple[threading.Thread, threading.Event]] = field(default_factory=dict)
    kubeconfigs: dict[int, str] = field(default_factory=dict, repr=False)

    def look(self) -> None:
        """Take the clusters that nobody watches, hold on to ours, stop where another watcher has taken over."""
        clusters = list(Cluster.objects.all())
        for pk in self.threads.keys() - {cluster.pk for cluster in clusters}:
            self._stop(pk)
        for cluster in clusters:
            if not claims.hold_watch(cluster.pk, self.watcher):
                self._stop(cluster.pk)
            elif not self._is_watched(cluster):
                self._stop(cluster.pk)
                self._start(cluster)

    def end(self) -> None:
        for pk in list(self.threads):
            self._stop(pk)
        claims.let_go_of_watches(self.watcher)

    def _is_watched(self, cluster: Cluster) -> bool:
        """Not by what it was reached with before, also where that still works: it was taken away for a reason."""
        is_alive = cluster.pk in self.threads and self.threads[cluster.pk][0].is_alive()
        return is_alive and self.kubeconfigs[cluster.pk] == cluster.kubeconfig

    def _start(self, cluster: Cluster) -> None:
        stop = threading.Event()
        self.kubeconfigs[cluster.pk] = cluster.kubeconfig
        thread = threading.Thread(target=watch_cluster, args=(cluster, stop), daemon=True, name=cluster.name)
        self.threads[cluster.pk] = (thread, stop)
        thread.start()

    def _stop(self, pk: int) -> None:
        if pk in self.threads:
            self.threads.pop(pk)[1].set()


def watch_cluster(cluster: Cluster, stop: threading.Event) -> None:
    """See every BundleDeployment of the cluster until `stop` is set; failures are kept with the cluster and retried."""
    informers = threading.Thread(target=Informers(cluster).run, args=(stop,), daemon=True, name=f"{cluster.name} drift")
    informers.start()
    beside = (
        SeenReviews(cluster=cluster),
        SeenMirrors(cluster=cluster),
        SeenCatalogs(cluster=cluster),
        *(SeenDecidingObjects(cluster=cluster, kind=one.kind) for one in KINDS),
    )
    for one in beside:
        one.start()
    try:
        _watch(cluster, stop)
    finally:
        # However it ends: whoever starts it again starts its informers too.
        stop.set()
        for one in beside:
            one.end()


def _watch(cluster: Cluster, stop: threading.Event) -> None:
    wait = 1.0
    authorship = Authorship(cluster)
    while not stop.is_set():
        close_old_connections()
        try:
            cluster.refresh_from_db()  # it may have been given another kubeconfig, because of what was wrong
            api = connect(cluster)
            resource, version = _begin(authorship, api)
            wait = 1.0
            while not stop.is_set():
                version = follow(authorship, api, resource, version, stop)
        except Expired:
            stop.wait(EXPIRED_SECONDS)  # each time it lists everything again
        except OperationalError as exc:
            logger.warning(
                "the database is not responding", extra={"cluster": cluster.name, "error": type(exc).__name__}
            )
            stop.wait(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        except PratiqueError as exc:
            instruments.watch_breaks.labels(cluster.name).inc()
            _note_problem(cluster, str(exc), exc.code)
            stop.wait(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)


def _begin(authorship: Authorship, api: Api) -> tuple[ServedResource, str]:
    """See everything once; returns what to watch, and from which version on."""
    cluster = authorship.cluster
    note_contact(cluster, api)
    turns.skip_what_killed(cluster)
    resource = _resource(api)
    version = take_list(cluster, api, resource, authorship)
    turns.note_all_seen(cluster)
    return resource, version


def note_contact(cluster: Cluster, api: Api) -> None:
    """The cluster answers: keep its uid (once) and version."""
    uid, version = api.uid(), api.version()
    Cluster.objects.filter(pk=cluster.pk, uid__isnull=True).update(uid=uid)
    cluster.refresh_from_db()
    is_same = cluster.uid == uid
    problem = "" if is_same else f"this is a different cluster: its kube-system has uid {uid}, expected {cluster.uid}"
    end, now = end_of_credentials(cluster.kubeconfig, trusted=True) if cluster.kubeconfig else None, database_now()
    Cluster.objects.filter(pk=cluster.pk).update(reached_at=now, version=version, problem=problem, credentials_end=end)
    cluster.credentials_end = end
    if words := refusals.end_of_credentials(cluster, now):
        logger.warning("cluster credentials end", extra={"cluster": cluster.name, "problem": words})
    if not is_same:
        raise PratiqueError(problem)


def take_list(cluster: Cluster, api: Api, resource: ServedResource, authorship: Authorship | None = None) -> str:
    """See all that there is, forget what is gone; returns the resourceVersion to watch from."""
    authorship = authorship or Authorship(cluster)
    began = database_now()
    snapshot = api.snapshot(resource)
    there = {obj["metadata"]["uid"] for obj in snapshot.objects}
    # What a door of ours made since is not in the list, and not gone.
    known = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True, seen_at__lt=began)
    for uid in known.exclude(uid__in=there).values_list("uid", flat=True):
        pivots.forget(cluster=cluster, uid=uid)
    waiting: Turns[dict[str, Any]] = Turns()
    for obj in snapshot.objects:
        waiting.put(writer_in(obj), obj["metadata"]["uid"], obj)
    while waiting:
        obj = waiting.take()
        authorship.note(obj, is_kept=_see(cluster, obj, partial(authorship.writer_of, api, is_event=False)))
    return snapshot.resource_version


def follow(authorship: Authorship, api: Api, resource: ServedResource, version: str, stop: threading.Event) -> str:
    """Watch once, from `version`, with those who wrote in turn; returns the last version seen."""
    cluster = authorship.cluster
    watch = api.watch(resource, resource_version=version, timeout_seconds=WATCH_SECONDS)
    events = EventsInTurn(watch, version)
    with closing(iter(events)) as each:
        for event in each:
            if stop.is_set():
                break
            close_old_connections()
            hear(cluster.name, event)
            if event.type == WatchType.DELETED:
                pivots.forget(cluster=cluster, uid=event.object["metadata"]["uid"])
            elif event.type in (WatchType.ADDED, WatchType.MODIFIED):
                writer_of = partial(authorship.writer_of, api, is_event=True)
                authorship.note(event.object, is_kept=_see(cluster, event.object, writer_of))
    Cluster.objects.filter(pk=cluster.pk).update(reached_at=database_now())
    return events.version


def _see(cluster: Cluster, obj: Mapping[str, Any], writer_of: WriterOf | None = None) -> bool:
    """Copy one object, and say whether it was kept.

    One that the database cannot keep, as for a NUL in a text, must not hide all the others.
    """
    name = obj["metadata"]["name"]
    if turns.is_skipped(cluster, obj):
        _note_problem(cluster, f"BundleDeployment {name} is skipped: {turns.WORDS}", "killed-the-watch")
        return False
    try:
        with turns.noted(cluster, obj):
            authors.await_one(cluster=cluster, name=name)
            pivots.see(cluster=cluster, obj=obj, writer=writer_of(obj) if writer_of else None)
    except (DataError, UnicodeError) as exc:
        # The database's own words may quote what it was given.
        words = f"BundleDeployment {name} is skipped: the database cannot store it ({type(exc).__name__}, as for a NUL)"
        _note_problem(cluster, words, "not-storable")
        return False
    return True


def _resource(api: Api) -> ServedResource:
    resource = api.resource_of(OWN_GROUP, VERSION, KIND)
    if resource is None:
        has_another = api.resource_of(OWN_GROUP, "", KIND) is not None
        api.forget_discovery()
        raise UnknownKind(RUKPAKS_OWN if has_another else NOT_SERVED)
    return resource


def _note_problem(cluster: Cluster, problem: str, code: str) -> None:
    """Keep it for the cluster's page. The log gets the code only: the words may be those of the server (S27)."""
    logger.warning("cluster trouble", extra={"cluster": cluster.name, "code": code})
    Cluster.objects.filter(pk=cluster.pk).update(problem=problem)
