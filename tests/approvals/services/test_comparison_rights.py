"""Who is shown what of a comparison, and that nobody is taken to have a right because nobody could be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import services
from approvals.errors import CouldNotAsk, NotAllowed
from approvals.models import BundleDeployment
from provisioner.errors import Unreachable
from provisioner.values import AccessRequest
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting, seen, spec, wish
from tests.support.comparisons import asked, begun, finish, port


def test_who_cannot_be_asked_about_the_catalog_is_not_taken_to_read_it(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    port(here, "ada")
    answered = here.kubernetes.ask

    def ask(cluster: Any, identity: Any, request: AccessRequest) -> Any:
        if request.resource == "catalogs":
            raise Unreachable("the API server did not answer")
        return answered(cluster, identity, request)

    monkeypatch.setattr(here.kubernetes, "ask", ask)
    with pytest.raises(CouldNotAsk):
        asked(here)


def test_a_right_that_was_taken_meanwhile_starts_no_comparison(here: World) -> None:
    """Reads may be answered by what was said moments ago, but not what makes a worker fetch something."""
    port(here, "ada")
    question = asked(here)
    here.kubernetes.allowed.discard(("ada", "create", "*"))
    with pytest.raises(NotAllowed):
        services.compare_bundles(by=acting(here.ada), asked=question)


def shown_to(here: World, person: User, *, of_deployment: bool) -> dict[str, Any]:
    row, question = begun(here), asked(here)
    if row.result is None:
        finish(row)
        row.refresh_from_db()
    runs = BundleDeployment.objects.first() or wish(here.cluster, seen("quay", spec()), here.rita)
    told = services.comparison_result(
        by=acting(person), asked=replace(question, deployment=runs if of_deployment else None), row=row
    )
    assert told is not None
    return told


def test_S09_of_what_runs_only_that_is_shown_which_the_viewer_may_get(here: World) -> None:
    port(here, "ada", "bert")
    whole, part = (shown_to(here, one, of_deployment=True) for one in (here.ada, here.bert))
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


def test_of_two_bundles_of_a_catalog_everything_is_shown(here: World) -> None:
    port(here, "ada", "bert")
    told = shown_to(here, here.bert, of_deployment=False)
    assert (told["hidden"], len(told["images"])) == ([], 1)
    assert "held" not in told
