"""Who asked, how long ago they were known, and what is asked for without anybody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from approvals import services
from approvals.ledger import pivots
from approvals.models import BundleDeployment, KubernetesIdentity, Request, Review
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

TOKEN_REVIEW = KubernetesIdentity.Authenticator.TOKEN_REVIEW
NAME = "strimzi"
PULL = {"kind": "image", "image": {"ref": "registry.example/x:1", "auth": {"secret": {"name": "pull"}}}}


def by_token(person: User, *, hours: float = 0, **changes: Any) -> None:
    """The person is known by tokens of the cluster, and last showed one so many hours ago."""
    seen = timezone.now() - timedelta(hours=hours)
    facts = {"authenticator": TOKEN_REVIEW, "uid": f"u-{person.username}", "groups_seen_at": seen, **changes}
    person.kubernetes_identities.update(**facts)


def ask(env: World, by: User, **spec: Any) -> Request:
    """A request of this person, as they are known now."""
    known = BundleDeployment.objects.filter(name=NAME).first()
    if known:
        wish = {"by": acting(by), "deployment": known, "spec": world.spec(**spec), "generation": known.generation}
        services.change_deployment(**wish, via="browser")
    else:
        wish = {"by": acting(by), "cluster": env.cluster, "name": NAME, "spec": world.spec(**spec), "labels": {}}
        services.create_deployment(**wish, via="browser")
    return Request.objects.select_related("deployment__cluster").latest("number")


def applied(request: Request) -> Request:
    if request.state == "preparing":
        world.in_review(request)
    Request.objects.filter(pk=request.pk).update(state="applied")
    request.refresh_from_db()
    return request


def unattended(of: Request) -> Request:
    made = pivots.ask_once_more(of=of)
    assert made is not None
    return Request.objects.select_related("deployment__cluster").get(pk=made.pk)


def approve(request: Request, by: User) -> Review:
    return world.review(request, acting(by))
