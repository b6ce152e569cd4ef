"""A request that waits for something in the cluster goes on once that is there, without anybody asking again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from approvals.errors import Awaits
from approvals.models import Request
from approvals.watch.expected_changes import Changes, ExpectedChanges
from approvals.watch.lookout import Name
from provisioner.values import AccessRequest, ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SEEDER, SERVICE, DeployedSite
from tests.support.journeys.installer import grant, take_away
from tests.support.kubernetes.live import until_may, wait_until
from tests.support.servers.registry import Registry

# Of the clock that the watch is told: so far apart that it looks each time.
MOMENTS = itertools.count(step=60.0)


@pytest.fixture
def expected_changes(site: DeployedSite) -> Iterator[ExpectedChanges]:
    """What the watch does each second, moved on by the test."""
    made = ExpectedChanges(site.cluster)
    yield made
    made.end()


def account(site: DeployedSite) -> ObjectRef:
    return site.ref("ServiceAccount", "installer")


def put(site: DeployedSite, obj: dict[str, Any]) -> None:
    site.api.apply(obj, field_manager=SEEDER)


def state(request: Request) -> tuple[str, str, str]:
    request.refresh_from_db()
    return (request.state, request.problem_code, request.awaits)


def rests(request: Request) -> None:
    """Nobody looks at it for an hour, unless the watch says so; that it was looked at before is long ago."""
    cache.delete(f"awaited:{request.pk}")
    Request.objects.filter(pk=request.pk).update(look_again_at=timezone.now() + timedelta(hours=1))


def is_due(request: Request) -> bool:
    request.refresh_from_db()
    return request.look_again_at is None or request.look_again_at <= timezone.now() + timedelta(seconds=1)


def begins(expected_changes: ExpectedChanges, request: Request) -> None:
    """The watches stand, and have had the request looked at once, for what came before them."""
    hears(expected_changes, request, lambda: None)


def hears(expected_changes: ExpectedChanges, request: Request, change: Callable[[], object]) -> None:
    rests(request)
    change()

    def is_heard() -> bool:
        expected_changes.look(next(MOMENTS))
        return is_due(request)

    wait_until(is_heard, "what the request waits for is seen")


@pytest.mark.proof
def test_a_missing_account_is_waited_for(
    site: DeployedSite, registry: Registry, expected_changes: ExpectedChanges
) -> None:
    site.api.delete(account(site))
    deployment = site.prepare("late", bundles.image(registry, "late", bundles.app("late", "1")))
    request = site.latest(deployment)
    assert state(request) == ("preparing", "missing-account", Awaits.ACCOUNT)
    assert "continues automatically when it is created" in request.problem
    site.look_after(deployment)
    shown = site.get("bd", "late")["status"]["conditions"]
    (condition,) = (one for one in shown if one["type"] == "UpToDate")
    assert (condition["status"], condition["reason"]) == ("False", "MissingAccount")
    assert request.problem in condition["message"]
    begins(expected_changes, request)
    site.work()
    assert state(request) == ("preparing", "missing-account", Awaits.ACCOUNT)

    hears(expected_changes, request, lambda: put(site, _account_object(site)))
    site.work()
    assert state(request) == ("in_review", "", "")

    def has_ended() -> bool:
        expected_changes.look(next(MOMENTS))
        return expected_changes.running == {}

    wait_until(has_ended, "no watch is left")


def test_another_account_wakes_nobody(
    site: DeployedSite, registry: Registry, expected_changes: ExpectedChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.api.delete(account(site))
    request = site.latest(site.submit_spec("alone", bundles.image(registry, "alone", bundles.app("alone", "1"))))
    site.work()
    begins(expected_changes, request)
    rests(request)
    other = _account_object(site)
    other["metadata"]["name"] = "somebody"
    note, noted = Changes.note, list[Name | None]()

    def heard(changes: Changes, awaits: Awaits, name: Name | None) -> None:
        note(changes, awaits, name)
        noted.append(name)

    monkeypatch.setattr(Changes, "note", heard)
    put(site, other)
    wait_until(lambda: (site.namespace, "somebody") in noted, "the other account is seen")
    expected_changes.look(next(MOMENTS))
    assert expected_changes.changes.noted == {}
    assert not is_due(request)


def test_rights_that_the_installer_lacks_are_waited_for(
    site: DeployedSite, registry: Registry, expected_changes: ExpectedChanges
) -> None:
    take_away(site)
    deployment = site.prepare("needy", bundles.image(registry, "needy", bundles.app("needy", "1")))
    request = site.approve(deployment)
    assert state(request) == ("approved", "missing-rights", Awaits.RIGHTS)
    begins(expected_changes, request)
    hears(expected_changes, request, lambda: grant(site, request.problem.partition("\n")[2]))
    site.work()
    assert state(request) == ("applied", "", "")


def test_rights_that_pratique_lacks_are_waited_for(
    site: DeployedSite, registry: Registry, expected_changes: ExpectedChanges
) -> None:
    binding = site.api.get(
        ObjectRef("rbac.authorization.k8s.io", "v1", "RoleBinding", site.namespace, "act-as-installer")
    )
    assert binding
    question = AccessRequest("impersonate", resource="serviceaccounts", namespace=site.namespace, name="installer")
    site.api.delete(ObjectRef.of(binding))
    until_may(site.api, SERVICE, question, is_allowed=False)
    deployment = site.prepare("unable", bundles.image(registry, "unable", bundles.app("unable", "1")))
    request = site.latest(deployment)
    assert state(request) == ("preparing", "missing-right", Awaits.RIGHTS)
    begins(expected_changes, request)
    anew = {key: binding[key] for key in ("apiVersion", "kind", "roleRef", "subjects")}
    hears(
        expected_changes,
        request,
        lambda: put(site, {**anew, "metadata": {"name": "act-as-installer", "namespace": site.namespace}}),
    )
    until_may(site.api, SERVICE, question)
    site.work()
    assert state(request) == ("in_review", "", "")


def test_a_source_that_is_not_there_is_asked_for_again(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-early"
    missing = {"kind": "image", "image": {"ref": f"{registry.host}/{name}:2"}}
    bundles.image(registry, name, bundles.app(name, "1"), "1")
    deployment = site.prepare(name, missing)
    request = site.latest(deployment)
    assert state(request) == ("preparing", "source-unavailable", "")
    assert "changes the spec" in request.remedy
    assert request.look_again_at
    bundles.image(registry, name, bundles.app(name, "2"), "2")
    site.work()
    assert state(request)[0] == "in_review", request.problem


def _account_object(site: DeployedSite) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "installer", "namespace": site.namespace},
    }


def test_what_is_waited_for_is_heard_also_after_a_bug_in_the_thread_that_watches(
    site: DeployedSite, registry: Registry, expected_changes: ExpectedChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.api.delete(account(site))
    request = site.latest(site.submit_spec("bug", bundles.image(registry, "bug", bundles.app("bug", "1"))))
    site.work()
    begins(expected_changes, request)
    note, bugs = Changes.note, iter([ZeroDivisionError("a bug")])

    def stumble(changes: Changes, awaits: Awaits, name: Name | None) -> None:
        for bug in bugs:
            raise bug
        note(changes, awaits, name)

    monkeypatch.setattr(Changes, "note", stumble)
    hears(expected_changes, request, lambda: put(site, _account_object(site)))
    assert next(bugs, None) is None
    site.work()
    assert state(request) == ("in_review", "", "")
