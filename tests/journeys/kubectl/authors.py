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
from tests.support.journeys.deployed_site import DeployedSite
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

    site: DeployedSite
    name: str
    authorship: Authorship = field(init=False)
    version: str = ""

    def __post_init__(self) -> None:
        self.authorship = Authorship(self.site.cluster)

    def write(self, user: str, rhythm: str = "1", *, annotations: dict[str, str] | None = None, **options: Any) -> None:
        """kubectl apply, as this user."""
        spec = {
            "installNamespace": self.site.namespace,
            "serviceAccountName": "installer",
            "sources": [{"kind": "http", "http": {"url": f"http://127.0.0.1:1/{rhythm}.tar.gz"}}],
            **options,
        }
        meta = {"name": self.name, "annotations": annotations or {}}
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": meta}
        path = self.site.kubeconfig.parent / "wish.yaml"
        path.write_text(yaml.safe_dump({**about, "spec": spec}))
        change(self.site, "apply", "--server-side", "--force-conflicts", "-f", str(path), user=user)

    def list(self) -> None:
        api, resource = self.site.api, self._resource()
        self.version = once_answered(lambda: loop.take_list(self.site.cluster, api, resource, self.authorship))

    def watch(self) -> None:
        """Until it has seen what the object is now: a watch may end before a busy server tells it anything."""
        live: Any = self.site.api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", self.name))
        newest = int(live["metadata"]["resourceVersion"])
        api: Any = WatchedUntil(self.site.api, lambda event: int(event.resource_version) >= newest)

        def has_seen_it() -> bool:
            self.version = loop.follow(self.authorship, api, self._resource(), self.version, threading.Event())
            return int(self.version) >= newest

        wait_until(has_seen_it, "the watch sees it")

    def latest(self) -> Request:
        deployment = BundleDeployment.objects.get(cluster=self.site.cluster, name=self.name)
        return self.site.latest(deployment)

    def asked(self) -> tuple[list[str], bool]:
        request = self.latest()
        return [f"{one['username']} {one['via']}" for one in request.requesters], request.is_requester_known

    def _resource(self) -> Any:
        return self.site.api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeployment")


def look(site: DeployedSite) -> AuthorAdmission:
    """As the worker does every 20 seconds, until the API server answers."""
    once_answered(lambda: kubectl_reviews.count(site.cluster.pk))
    return AuthorAdmission.objects.get(cluster=site.cluster)


def put_in_force(site: DeployedSite) -> None:
    """See the shipped policies now, and again when more than ten seconds have gone."""
    wait_until(lambda: look(site).problem == "", "the policies are in force")
    let_time_pass(site)
    assert look(site).sure_from


def let_time_pass(site: DeployedSite) -> None:
    AuthorAdmission.objects.filter(cluster=site.cluster).update(since=timezone.now() - timedelta(seconds=11))


def change(site: DeployedSite, *words: str, user: str = "admin") -> None:
    """kubectl with these words, again while an API server has policies about a kind that it has learned a moment ago: it
    refuses all writes then."""
    wait_until(lambda: _is_taken(site, *words, user=user), "a policy knows the kind that it is about")


def _is_taken(site: DeployedSite, *words: str, user: str) -> bool:
    try:
        site.ctl(*words, user=user)
    except AssertionError as exc:
        if "ServiceUnavailable" not in str(exc):
            raise
        return False
    return True
