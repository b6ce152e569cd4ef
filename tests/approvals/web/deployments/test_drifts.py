"""The drift that the deployment's page shows, and the condition that the cluster shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.models import BundleDeployment
from approvals.selectors import lists as selectors
from approvals.steps.mirroring import conditions
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened

PAGE = "/deployments/prod/lighthouse"


def page(browse: Browse, person: User) -> str:
    return opened(browse(person), PAGE)


def test_without_drift_the_page_says_nothing_of_it(env: World, afternoon: dict[str, Any], browse: Any) -> None:
    assert 'id="drift"' not in page(browse, env.ada)


def test_the_page_names_object_field_manager_and_both_values(
    env: World, afternoon: dict[str, Any], browse: Any
) -> None:
    scene.drifted(afternoon["deployment"], problem="harbour is paused", is_fight=True, strikes=4, rival="flux")
    shown = page(browse, env.ada)
    for words in ("berth-0", "data.depth", "kubectl-edit", "ten fathoms", "two feet", "harbour is paused", "4 times"):
        assert words in shown


def test_S09_who_may_not_get_the_object_sees_who_and_where_but_no_value(
    env: World, afternoon: dict[str, Any], browse: Any
) -> None:
    scene.drifted(afternoon["deployment"])
    env.kubernetes.closed.add("configmaps")
    shown = page(browse, env.ada)
    assert "data.depth" in shown
    assert "kubectl-edit" in shown
    assert "two feet" not in shown
    assert "ten fathoms" not in shown


@pytest.mark.parametrize("is_other_open", [False, True], ids=["nothing else differs", "another object differs"])
def test_S38_whether_a_secret_differs_is_told_only_to_who_may_get_it(
    env: World, afternoon: dict[str, Any], browse: Any, is_other_open: bool
) -> None:
    deployment: BundleDeployment = afternoon["deployment"]
    deployment.inventory.filter(name="berth-1").update(group="", version="v1", kind="Secret")
    if is_other_open:
        scene.drifted(deployment, "berth-0")
    env.kubernetes.closed.add("secrets")
    equal = page(browse, env.ada).count("<li>"), drifted(deployment)
    secret = scene.drifted(deployment, "berth-1", is_fight=True, rival="flux", problem="harbour is paused")
    for state in ("open", "corrected"):
        type(secret).objects.filter(pk=secret.pk).update(state=state)
        shown = page(browse, env.ada)
        assert (shown.count("<li>"), drifted(deployment)) == equal
        assert not [words for words in ("flux", "harbour is paused") if words in shown]
    assert ("Secrets" in equal[1]["message"], "berth-1" in equal[1]["message"]) == (True, False)
    env.kubernetes.closed.clear()
    cache.clear()
    assert "flux" in page(browse, env.ada)


def test_S24_names_that_others_chose_are_text(env: World, afternoon: dict[str, Any], browse: Any) -> None:
    field = {"path": "<b>", "change": "changed", "manager": "<script>alert(1)</script>\u202e", "at": ""}
    scene.drifted(afternoon["deployment"], fields=[{**field, "expected": "", "found": ""}], rival="<i>", is_fight=True)
    shown = page(browse, env.ada)
    assert "<script>alert" not in shown
    assert "\u202e" not in shown


def test_what_was_put_back_is_shown_for_a_day(env: World, afternoon: dict[str, Any], browse: Any) -> None:
    row = scene.drifted(afternoon["deployment"], state="corrected")
    assert "corrected" in page(browse, env.ada)
    type(row).objects.update(changed_at=timezone.now() - timedelta(hours=25))
    assert 'id="drift"' not in page(browse, env.ada)


def test_the_page_costs_the_same_however_much_drifted(
    env: World, afternoon: dict[str, Any], browse: Any, django_assert_num_queries: Any
) -> None:
    scene.drifted(afternoon["deployment"], "berth-0")
    client = browse(env.ada)
    client.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        client.get(PAGE)
    count = len(few)
    for number in range(1, 9):
        scene.drifted(afternoon["deployment"], f"berth-{number}")
    client.get(PAGE)
    with django_assert_num_queries(count):
        client.get(PAGE)


@pytest.mark.parametrize(
    ("problem", "drifts", "expected"),
    [
        ("", [], ("False", "AsApproved")),
        ("", [{"state": "corrected"}], ("False", "AsApproved")),
        ("", [{}], ("True", "Changed")),
        ("", [{"is_fight": True}], ("True", "Fight")),
        ("the API server is down", [{}], ("Unknown", "CouldNotCompare")),
    ],
    ids=["nothing", "put back", "edited", "fight", "could not find out"],
)
def test_the_condition_drifted(
    env: World, afternoon: dict[str, Any], problem: str, drifts: list[dict[str, Any]], expected: tuple[str, str]
) -> None:
    deployment: BundleDeployment = afternoon["deployment"]
    deployment.drift_problem = problem
    for more in drifts:
        scene.drifted(deployment, **more)
    record = drifted(deployment)
    assert (record["type"], record["status"], record["reason"]) == ("Drifted", *expected)
    if expected[0] == "True":
        assert "berth-0 is changed by kubectl-edit" in record["message"]


def drifted(deployment: BundleDeployment) -> dict[str, Any]:
    latest = deployment.requests.order_by("-number").first()
    return conditions.of_drift(deployment, latest, selectors.summary(deployment=deployment)).record(generation=1)


@pytest.mark.parametrize("is_applied", [True, False], ids=["applied", "asked for"])
def test_nothing_differs_since_the_same_time_however_often_it_is_seen(
    env: World, afternoon: dict[str, Any], is_applied: bool
) -> None:
    deployment: BundleDeployment = afternoon["deployment"]
    deployment.active_revision = deployment.active_revision if is_applied else None
    before = drifted(deployment)
    deployment.seen_at += timedelta(minutes=1)
    assert drifted(deployment) == before
