"""`python -m tests.support.program tests.support.journeys.fleet WHAT ...`: a change set over several clusters, as people
make it, in a process of its own; workers do the rest.

`ask MARK URL NAME=KUBECONFIG ...` registers clusters and makes a request on each, for a deployment in a namespace of this
name; `order` gives them three rings, `approve` approves all, `show` prints what each ring waits for, `silence NAME` says that nobody has reached a cluster for
long, `take-out NAME` has the set go on without its deployment there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from django.contrib.auth.models import User

import approvals.project.celery  # noqa: F401 - importing makes it the default app, whose queue takes the wakes
from approvals import services
from approvals.audit import Actor
from approvals.lifecycle import State
from approvals.models import BundleDeployment, Cluster, Request
from approvals.selectors import sets
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.approvals import rollouts
from tests.support.approvals.world import acting
from tests.support.journeys import deployed_site
from tests.support.journeys.people import NEVER
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled

SET = "spring"
# Whatever is on the last but one cluster never becomes healthy.
FAILING, SILENT = "failing", "silent"
RINGS = [
    {"name": "canary", "clusters": ["canary"]},
    {"name": "some", "clusters": ["east", FAILING, SILENT]},
    {"name": "rest"},
]


def ask(mark: str, url: str, *clusters: str) -> None:
    people: list[User] = []
    for name, _, kubeconfig in (word.partition("=") for word in clusters):
        endpoint = Endpoint.read(Path(kubeconfig), Path("kubectl"))
        deployed_site.prepare(Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60)), mark)
        made = services.register_cluster(
            name=name, kubeconfig=endpoint.kubeconfig("pratique"), by=Actor("test", "shell")
        )
        if people:
            rollouts.known_on(made, *people)
        people = people or [deployed_site.user(person, made) for person in deployed_site.PEOPLE]
        never = {"healthChecks": NEVER, "progressDeadlineMinutes": 1} if name == FAILING else {}
        source = {"kind": "http", "http": {"url": url}}
        spec = {"installNamespace": mark, "serviceAccountName": "installer", "sources": [source], **never}
        about = {"name": mark, "spec": spec, "labels": {sets.LABEL: SET}, "via": "browser"}
        services.create_deployment(by=acting(User.objects.get(username="rita")), cluster=made, **about)


def order() -> None:
    by, clusters = acting(User.objects.get(username="rita")), list(Cluster.objects.all())
    about = {"rings": RINGS, "on_failure": "Stop", "via": "browser"}
    services.make_order(by=by, clusters=clusters, name=SET, members=[], **about)


def approve() -> None:
    for request in Request.objects.filter(state=State.IN_REVIEW).order_by("pk"):
        services.review(
            by=acting(User.objects.get(username="alice")),
            request_id=request.pk,
            decision="Approve",
            subject_digest=request.subject_digest,
            reason="read it",
            channel="browser",
            acknowledges=services.to_acknowledge(request),
        )


def show() -> None:
    found = services.read_order(clusters=list(Cluster.objects.all()), name=SET)
    assert found is not None
    sys.stdout.write("".join(f"{ring.ring.name}: {ring.progress.words}\n" for ring in found.rings))


def silence(name: str) -> None:
    rollouts.silence(Cluster.objects.get(name=name))


def take_out(name: str) -> None:
    services.take_out(
        by=acting(User.objects.get(username="alice")),
        clusters=list(Cluster.objects.all()),
        name=SET,
        cluster=name,
        deployment=BundleDeployment.objects.get(cluster__name=name).name,
        reason="it is looked at tomorrow",
        via="browser",
    )


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    acts = {"ask": ask, "order": order, "approve": approve, "show": show, "silence": silence, "take-out": take_out}
    acts[what](*words)
