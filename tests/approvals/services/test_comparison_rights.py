"""Who is shown what of a comparison, and that nobody is taken to have a right because nobody could be asked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from approvals import services
from approvals.errors import CouldNotAsk, InvalidInput, NotAllowed
from approvals.models import BundleComparison, BundleDeployment
from approvals.services import AskedComparison, ComparisonQuestion
from provisioner.errors import Unreachable
from provisioner.values import AccessRequest
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import revision
from tests.support.approvals.world import acting, seen, spec, submit_spec
from tests.support.comparisons import asked, begun, finish, port


def test_who_cannot_be_asked_about_the_catalog_is_not_taken_to_read_it(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    port(env, "ada")
    answered = env.kubernetes.ask

    def ask(cluster: Any, identity: Any, request: AccessRequest) -> Any:
        if request.resource == "catalogs":
            raise Unreachable("the API server did not answer")
        return answered(cluster, identity, request)

    monkeypatch.setattr(env.kubernetes, "ask", ask)
    with pytest.raises(CouldNotAsk):
        asked(env)


def test_a_right_that_was_taken_meanwhile_starts_no_comparison(env: World) -> None:
    """Reads may be answered by what was said moments ago, but not what makes a worker fetch something."""
    port(env, "ada")
    question = asked(env)
    env.kubernetes.allowed.discard(("ada", "create", "*"))
    with pytest.raises(NotAllowed):
        services.compare_bundles(by=acting(env.ada), asked=question)


def test_S09_what_a_deployment_runs_is_compared_for_who_may_get_it(env: World) -> None:
    """Whoever chooses the chart reads all of the config that it is rendered with."""
    port(env, "bert")
    deployment = submit_spec(env.cluster, seen("quay", spec(config={"values": {"pin": "4711"}})), env.rita)
    revision(deployment, 1, "active")
    question = ComparisonQuestion("harbour", "1.1.0", deployment="quay")
    env.kubernetes.allow("bert", "get", "bundledeploymentrequests /")

    def begun_by_bert() -> AskedComparison:
        asked = services.resolve_comparison(by=bert, cluster=env.cluster, catalog="port", question=question)
        finish(services.compare_bundles(by=bert, asked=asked))
        return asked

    bert = acting(env.bert)
    with pytest.raises(NotAllowed, match="get bundledeployments"):
        begun_by_bert()
    cache.clear()
    env.kubernetes.allow("bert", "get", "bundledeployments /quay")
    asked = begun_by_bert()
    row = BundleComparison.objects.get()
    assert row.wish["config"] == {"values": {"pin": "4711"}}
    env.kubernetes.allowed.discard(("bert", "get", "bundledeployments /quay"))
    with pytest.raises(NotAllowed):
        services.compare_bundles(by=bert, asked=asked)
    cache.clear()
    for read in (services.read_comparison_result, partial(services.read_comparison_lines, position=0)):
        with pytest.raises(NotAllowed):
            read(by=bert, asked=asked, row=row)


def test_what_takes_another_package_is_not_compared(env: World) -> None:
    port(env, "ada")
    source = {"kind": "catalog", "catalog": {"name": "hub", "package": "kiali"}}
    revision(submit_spec(env.cluster, seen("quay", spec(sources=[source])), env.rita), 1, "active")
    with pytest.raises(InvalidInput, match="quay takes package kiali: choose a version of that package"):
        asked(env, "1.1.0", "", deployment="quay")


def shown_to(env: World, person: User, *, of_deployment: bool) -> dict[str, Any]:
    row, question = begun(env), asked(env)
    if row.result is None:
        finish(row)
        row.refresh_from_db()
    runs = BundleDeployment.objects.first() or submit_spec(env.cluster, seen("quay", spec()), env.rita)
    told = services.read_comparison_result(
        by=acting(person), asked=replace(question, deployment=runs if of_deployment else None), row=row
    )
    assert told is not None
    return told


def test_S09_of_what_runs_only_that_is_shown_which_the_viewer_may_get(env: World) -> None:
    port(env, "ada", "bert")
    env.kubernetes.allow("bert", "get", "bundledeployments /quay")
    env.kubernetes.allow("bert", "get", "bundledeploymentrequests /")
    whole, part = (shown_to(env, one, of_deployment=True) for one in (env.ada, env.bert))
    assert (whole["hidden"], len(whole["images"])) == ([], 1)
    assert part["images"] == []
    assert part["hidden"] == [
        "1 image of objects that you may not get",
        "permissions, because you may not get all roles and bindings",
    ]
    assert part["permissions"]["accounts"] == []
    assert [one["ref"] for one in part["report"]["plan"]["actions"]] == [
        one["ref"] for one in whole["report"]["plan"]["actions"]
    ]
    assert "held" not in part


def test_of_two_bundles_of_a_catalog_everything_is_shown(env: World) -> None:
    port(env, "ada", "bert")
    told = shown_to(env, env.bert, of_deployment=False)
    assert (told["hidden"], len(told["images"])) == ([], 1)
    assert "held" not in told
