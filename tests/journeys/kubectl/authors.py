"""BundleDeployments that are written with kubectl where their authors are known, and what the watch makes of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import yaml
from django.utils import timezone

from approvals import kubectl_reviews
from approvals.models import AuthorAdmission, BundleDeployment, Request
from approvals.watch import loop
from approvals.watch.authorship import Authorship
from provisioner.values import ObjectRef
from tests.support.folders import ROOT
from tests.support.journeys.station import Station
from tests.support.kubernetes.live import WatchedUntil, once_answered, wait_until

POLICIES = [
    obj
    for file in ("author-stamp.yaml", "authors.yaml", "finalizer.yaml")
    for obj in yaml.safe_load_all((ROOT / "deploy/admission" / file).read_text())
]
SECONDS = 1.0


@dataclass
class Seen:
    """A cluster whose authors are known, and its watch, which is carried on each time."""

    station: Station
    name: str
    authorship: Authorship = field(init=False)
    version: str = ""

    def __post_init__(self) -> None:
        self.authorship = Authorship(self.station.cluster)

    def write(self, user: str, rhythm: str = "1", *, annotations: dict[str, str] | None = None, **options: Any) -> None:
        """kubectl apply, as this user."""
        spec = {
            "installNamespace": self.station.namespace,
            "serviceAccountName": "installer",
            "sources": [{"kind": "http", "http": {"url": f"http://127.0.0.1:1/{rhythm}.tar.gz"}}],
            **options,
        }
        meta = {"name": self.name, "annotations": annotations or {}}
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": meta}
        path = self.station.kubeconfig.parent / "wish.yaml"
        path.write_text(yaml.safe_dump({**about, "spec": spec}))
        change(self.station, "apply", "--server-side", "--force-conflicts", "-f", str(path), user=user)

    def list(self) -> None:
        api, resource = self.station.api, self._resource()
        self.version = once_answered(lambda: loop.take_list(self.station.cluster, api, resource, self.authorship))

    def watch(self) -> None:
        """Until it has seen what the object is now: a watch may end before a busy server tells it anything."""
        live: Any = self.station.api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", self.name))
        newest = int(live["metadata"]["resourceVersion"])
        api: Any = WatchedUntil(self.station.api, lambda event: int(event.resource_version) >= newest)

        def has_seen_it() -> bool:
            self.version = loop.follow(self.authorship, api, self._resource(), self.version, threading.Event())
            return int(self.version) >= newest

        wait_until(has_seen_it, "the watch sees it")

    def latest(self) -> Request:
        deployment = BundleDeployment.objects.get(cluster=self.station.cluster, name=self.name)
        return self.station.latest(deployment)

    def asked(self) -> tuple[list[str], bool]:
        request = self.latest()
        return [f"{one['username']} {one['via']}" for one in request.requesters], request.is_requester_known

    def _resource(self) -> Any:
        return self.station.api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeployment")


def look(here: Station) -> AuthorAdmission:
    """As the worker does every 20 seconds, until the API server answers."""
    once_answered(lambda: kubectl_reviews.count(here.cluster.pk))
    return AuthorAdmission.objects.get(cluster=here.cluster)


def put_in_force(here: Station) -> None:
    """See the shipped policies now, and again when more than ten seconds have gone."""
    wait_until(lambda: look(here).problem == "", "the policies are in force")
    let_time_pass(here)
    assert look(here).sure_from


def let_time_pass(here: Station) -> None:
    AuthorAdmission.objects.filter(cluster=here.cluster).update(since=timezone.now() - timedelta(seconds=11))


def change(here: Station, *words: str, user: str = "admin") -> None:
    """kubectl with these words, again while an API server has policies about a kind that it has learned a moment ago: it
    refuses all writes then."""
    wait_until(lambda: _is_taken(here, *words, user=user), "a policy knows the kind that it is about")


def _is_taken(here: Station, *words: str, user: str) -> bool:
    try:
        here.ctl(*words, user=user)
    except AssertionError as exc:
        if "ServiceUnavailable" not in str(exc):
            raise
        return False
    return True
