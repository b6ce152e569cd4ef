"""What catalogs offer to a deployment, and why it is not taken: each cause in words, with what to do next."""

from __future__ import annotations

import html
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import playwright.sync_api as pw
import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags
from pytest_django.live_server_helper import LiveServer

from approvals.catalogs import bundle_choice, followed_packages
from approvals.ledger import pivots
from approvals.models import BundleDeployment, Catalog, Request
from approvals.selectors import followed_sources
from approvals.steps.mirroring.conditions import of_upgrades
from tests.browser.complaints import complaints, listen, wider_than
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import revision
from tests.support.stored_catalogs import catalog, offer

Cause = Callable[[World, BundleDeployment, Catalog], None]

NO_MORE = "who asked may no longer read it: Kubernetes does not allow rita to get catalogs.core.rukpak.io port. Give them the right"


def spec(policy: str = "Request", **asked: Any) -> dict[str, Any]:
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour", **asked}}
    return world.spec(format="registry-v1", sources=[source], upgradePolicy=policy)


def again(env: World, **spec_: Any) -> BundleDeployment:
    return world.submit_spec(env.cluster, world.seen("harbour", spec_, uid="harbour", generation=2), by=env.rita)


def manual(env: World, running: BundleDeployment, port: Catalog) -> None:
    again(env, **spec("Manual"))
    offer(port, "1.0.0", "1.1.0")


def paused(env: World, running: BundleDeployment, port: Catalog) -> None:
    manual(env, running, port)
    pivots.answer_upgrades(running.pk)
    paused = {**spec("Manual"), "paused": True}
    world.submit_spec(env.cluster, world.seen("harbour", paused, uid="harbour", generation=3), by=env.rita)


def reviewed(env: World, running: BundleDeployment, port: Catalog) -> None:
    offer(port, "1.0.0", "1.1.0")
    made = pivots.answer_upgrades(running.pk)
    assert made is not None
    bundle_choice.bundles_for(made)
    made.refresh_from_db()
    Request.objects.filter(pk=world.in_review(made).pk).update(state="approved")
    offer(port, "1.0.0", "1.1.0", image="example.com/harbour@sha256:" + "1" * 64)


def constrained(env: World, running: BundleDeployment, port: Catalog) -> None:
    again(env, **spec("Manual", version="<1.1.0"))
    offer(port, "1.0.0", "1.1.0")


def edge_missing(env: World, running: BundleDeployment, port: Catalog) -> None:
    again(env, **spec("Manual"))
    offer(port, "1.0.0", "1.1.0", "1.2.0")


def deprecated(env: World, running: BundleDeployment, port: Catalog) -> None:
    offer(port, "1.0.0", "1.1.0", deprecates="1.1.0")


def forbidden(env: World, running: BundleDeployment, port: Catalog) -> None:
    followed_packages.put_off_answer(running.pk, 300, NO_MORE)


def source_down(env: World, running: BundleDeployment, port: Catalog) -> None:
    since = timezone.now() - timedelta(hours=3)
    told = "https://internal.example.com/catalog: no answer"
    Catalog.objects.filter(pk=port.pk).update(problem=told, problem_code="unreachable", problem_since=since)


def denied(env: World, running: BundleDeployment, port: Catalog) -> None:
    offer(port, "1.0.0", "1.1.0")
    made = pivots.answer_upgrades(running.pk)
    assert made is not None
    bundle_choice.bundles_for(made)
    made.refresh_from_db()
    Request.objects.filter(pk=world.in_review(made).pk).update(state="denied")


CAUSES: dict[str, tuple[Cause, list[str]]] = {
    "Manual": (manual, ["1.1.0", "upgradePolicy is Manual: it is taken when somebody asks for a new request"]),
    "paused": (paused, ["1.1.0", "the deployment is paused: catalogs are checked again once it is resumed"]),
    "held by a request": (reviewed, ["1.1.0", "request 2 is settled first: decide or withdraw it"]),
    "a constraint of the version": (constrained, ["1.1.0 is not in <1.1.0: change catalog.version to take it"]),
    "no edge": (edge_missing, ["no edge leads to 1.2.0 from what runs; it may follow after 1.1.0"]),
    "deprecated": (deprecated, ["1.1.0 is deprecated: name it in catalog.version to take it"]),
    "may not be read any more": (forbidden, ["Cannot check for newer versions", "Give them the right"]),
    "the source is down": (source_down, ["he source of Catalog port could not be checked since", "say why"]),
    "denied": (denied, ["request 2 was for it (denied). It is taken when somebody asks for a new request"]),
}


# Where one line of words stands, and where there are links and an alert: the others have no other form.
DRAWN = ("Manual", "the source is down")


def running_behind(env: World, cause: Cause) -> None:
    """A deployment that does not take what its catalog offers."""
    port = catalog(of=env.cluster)
    offer(port, "1.0.0")
    running = world.submit_spec(env.cluster, world.seen("harbour", spec(), uid="harbour"), by=env.rita)
    bundle_choice.bundles_for(running.requests.get())
    revision(running, 1, "active")
    pivots.answer_upgrades(running.pk)
    cause(env, running, port)
    if cause not in (paused, forbidden):
        pivots.answer_upgrades(running.pk)
    env.kubernetes.allow("ada", "get")


@pytest.mark.parametrize(("cause", "words"), CAUSES.values(), ids=CAUSES)
def test_page_and_condition_say_why_what_a_catalog_offers_is_not_taken(
    cause: Cause, words: list[str], env: World
) -> None:
    running_behind(env, cause)
    client = Client()
    world.enter(client, env.ada)
    page = client.get("/deployments/prod/harbour").content.decode()
    shown = " ".join(html.unescape(strip_tags(page)).split()).partition("package harbour of port")[2]
    (condition,) = of_upgrades(followed_sources.offered(deployment=BundleDeployment.objects.get()))
    for text in words:
        assert text in shown
    for text in words[1:] if cause is forbidden else words:
        assert text in condition.message
    assert "internal.example.com" not in page


@pytest.mark.parametrize(
    ("cause", "words"),
    [pytest.param(*one, id=name, marks=() if name in DRAWN else pytest.mark.thorough) for name, one in CAUSES.items()],
)
def test_why_what_a_catalog_offers_is_not_taken_can_be_read_by_everybody(
    cause: Cause, words: list[str], env: World, live_server: LiveServer, sign_in: Any, transactional_db: None
) -> None:
    running_behind(env, cause)
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/deployments/prod/harbour")
    shown = page.locator("dd", has_text="package harbour of port")
    for text in words:
        pw.expect(shown).to_contain_text(text)
    assert complaints(page) + wider_than(page, 390, 1280) == []
    assert heard == []
