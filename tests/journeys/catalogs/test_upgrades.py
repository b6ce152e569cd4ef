"""A deployment names a package of a catalog: a bundle is pinned, and upgrades follow the publisher's edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.utils import timezone

from approvals import access, wake
from approvals.errors import InvalidInput
from approvals.ledger import pivots
from approvals.ledger.pivots import SpecWriter
from approvals.models import BundleDeployment, Catalog, FollowedPackage, Request
from approvals.steps import evaluate
from provisioner.api_groups import OWN_GROUP
from provisioner.values import Identity
from tests.support.journeys.catalogs import look, look_at_source, named, offer, publish
from tests.support.journeys.contents.catalogs import HARBOUR, KIALI, documents, source
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.provisioner.catalogs import deprecated
from tests.support.servers.registry import Registry

GRANTED = 'worst_new in ["safe", "notable", "dangerous"]'


@pytest.fixture
def offered(site: DeployedSite, registry: Registry) -> Catalog:
    """A catalog with the first version of an operator."""
    return offer(registry, named(site, registry, f"{site.namespace}-hub"), "1.0.0")


def ask_for(
    site: DeployedSite, row: Catalog, *, of: str = HARBOUR, upgrades: str = "", **asked: str
) -> BundleDeployment:
    return site.submit_spec(f"{site.namespace}-{of}", source(row.name, of, **asked), **_as_operator(upgrades))


def running(site: DeployedSite, row: Catalog, *, of: str = HARBOUR, upgrades: str = "") -> BundleDeployment:
    return site.applied(f"{site.namespace}-{of}", source(row.name, of), **_as_operator(upgrades))


def _as_operator(upgrades: str) -> dict[str, str]:
    return {"format": "registry-v1", **({"upgradePolicy": upgrades} if upgrades else {})}


def versions(deployment: BundleDeployment) -> list[tuple[str, str]]:
    rows = deployment.requests.order_by("number")
    return [(one.bundles[0]["version"] if one.bundles else "", one.state) for one in rows]


def upgrade_condition(site: DeployedSite, deployment: BundleDeployment) -> tuple[str, str, str]:
    found = site.condition(deployment, "UpgradeAvailable")
    return found["status"], found["reason"], found["message"]


def rules(request: Request) -> set[str]:
    return set(request.reports.get(round=request.round).findings.values_list("rule", flat=True))


@pytest.fixture
def applied(site: DeployedSite, offered: Catalog) -> BundleDeployment:
    deployment = running(site, offered)
    look(site)
    return deployment


@pytest.mark.proof
def test_a_package_of_a_catalog_is_pinned_to_one_bundle_by_its_digest(
    site: DeployedSite, registry: Registry, offered: Catalog
) -> None:
    row = offer(registry, offered, "1.0.0", "1.1.0")
    deployment = ask_for(site, offered, channel="stable", version="<1.1.0")
    request = site.after_work(deployment)
    assert (request.state, request.problem) == ("in_review", "")
    (bundle,), (pin,) = request.bundles, request.pins
    assert (bundle["bundle"], bundle["step"]) == ("harbour.v1.0.0", "first")
    assert bundle["image"].endswith(f"@{pin['digest']}")
    (shown,) = site.status(deployment)["bundles"]
    assert shown == {
        "catalog": offered.name,
        "catalogDigest": row.edition.digest,  # type: ignore[union-attr] # it was read, so that it is no None
        "package": HARBOUR,
        "channel": "stable",
        "bundle": "harbour.v1.0.0",
        "version": "1.0.0",
    }
    assert site.approve(deployment).state == "applied"


@pytest.mark.parametrize("state", ["in_review", "approved"])
def test_S04_what_a_publisher_says_after_the_report_makes_a_new_round_where_it_is_worse(
    sandbox_site: DeployedSite, registry: Registry, state: str
) -> None:
    both = ("1.0.0", "1.1.0")
    row = offer(registry, named(sandbox_site, registry, f"{sandbox_site.namespace}-hub"), *both)
    deployment = ask_for(sandbox_site, row, version="1.0.0")
    request = sandbox_site.after_work(deployment)
    sandbox_site.agree(deployment)
    if state == "approved":
        evaluate.run(request, "")
    request.refresh_from_db()
    assert (request.state, "CAT-02" in rules(request)) == (state, False)

    publish(registry, row, [*documents(registry, HARBOUR, both), deprecated("olm.bundle", "harbour.v1.0.0")])
    sandbox_site.work(request)
    assert (request.state, request.round, "CAT-02" in rules(request)) == ("in_review", 2, True)
    voided = request.voided_rounds.get()
    assert (voided.code, "harbour.v1.0.0 is no longer supported" in voided.words) == ("catalog-changed", True)

    publish(registry, row, documents(registry, HARBOUR, both))  # it takes that back, which is no worse
    sandbox_site.work(request)
    assert request.round == 2

    publish(registry, row, documents(registry, HARBOUR, both[1:]))
    sandbox_site.work(request)
    assert (request.round, rules(request) & {"CAT-02", "CAT-05"}) == (3, {"CAT-05"})
    assert sandbox_site.approve(deployment).state == "applied"


@pytest.mark.proof
def test_S08_who_may_not_get_the_catalog_asks_in_vain(site: DeployedSite, offered: Catalog) -> None:
    mallory = Identity("mallory", ("strangers",))
    site.let_use_installer("mallory")
    spec: dict[str, Any] = {
        "installNamespace": site.namespace,
        "serviceAccountName": "installer",
        "format": "registry-v1",
    }
    about = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "BundleDeployment"}
    obj = {**about, "metadata": {"name": f"{site.namespace}-vain"}, "spec": spec}
    spec["sources"] = [source(offered.name, HARBOUR)]
    made = site.api.apply(obj, field_manager="somebody").object
    writer = SpecWriter(mallory, "cluster", None, timezone.now())
    deployment = pivots.see(cluster=site.cluster, obj=made, writer=writer)
    request = site.after_work(deployment)
    assert (request.state, request.bundles) == ("preparing", [])
    assert f"Kubernetes does not allow mallory to get catalogs.core.rukpak.io {offered.name}" in request.problem


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"of": "harbor"}, "has no package harbor; names like it are harbour"),
        ({"channel": "alpha"}, "package harbour has no channel alpha; it has stable"),
        ({"version": ">=2"}, "package harbour has no bundle in >=2; it has 1.0.0"),
    ],
    ids=["package", "channel", "version"],
)
def test_what_a_catalog_does_not_offer_is_said_with_what_it_offers(
    sandbox_site: DeployedSite, registry: Registry, asked: dict[str, str], words: str
) -> None:
    row = offer(registry, named(sandbox_site, registry, f"{sandbox_site.namespace}-hub"), "1.0.0")
    deployment = ask_for(sandbox_site, row, **asked)
    request = sandbox_site.after_work(deployment)
    assert (request.state, request.problem_code) == ("failed", "bundle-not-offered")
    assert words in request.problem


@pytest.mark.proof
def test_two_edges_are_followed_by_a_grant_and_the_third_is_held_by_a_guard(
    site: DeployedSite, registry: Registry, offered: Catalog
) -> None:
    """1.0.0 is approved by a person; 1.1.0 and 1.2.0 follow by themselves; 2.0.0 waits for people."""
    deployment = running(site, offered, upgrades="Automatic")
    policy = site.save_policy("grant", GRANTED)
    site.let_approve(access.policy_identity(policy).username, deployment.name)
    offer(registry, offered, "1.0.0", "1.1.0", "1.2.0")
    for _ in range(3):
        look(site)
    assert versions(deployment) == [("1.0.0", "applied"), ("1.1.0", "applied"), ("1.2.0", "applied")], [
        *site.latest(deployment).evaluations.values_list("words", flat=True)
    ]
    latest = site.latest(deployment)
    assert (latest.is_unattended, latest.is_for_people, latest.bundles[0]["step"]) == (True, False, "follows")
    assert [one["username"] for one in latest.requesters] == ["rita"]
    site.save_policy("guard", 'worst_new == "safe"', name="careful", message="not on a Friday")
    offer(registry, offered, "1.0.0", "1.1.0", "1.2.0", "2.0.0")
    look(site)
    held = site.latest(deployment)
    assert (held.bundles[0]["version"], held.state) == ("2.0.0", "in_review")
    assert upgrade_condition(site, deployment) == (
        "True",
        "Requested",
        f"2.0.0 of harbour is available: request {held.number} is for it (in review)",
    )


@pytest.mark.corpus
@pytest.mark.thorough
def test_an_operator_of_the_corpus_follows_its_edges_by_people(real_site: DeployedSite, registry: Registry) -> None:
    """It replaces roles and its rights could undo approvals, so that no grant may approve it, whatever the policy."""
    row = offer(registry, named(real_site, registry, f"{real_site.namespace}-hub"), "1.32.0", of=KIALI)
    deployment = running(real_site, row, of=KIALI, upgrades="Automatic")
    real_site.save_policy("grant", "true")
    offer(registry, row, "1.32.0", "1.33.0", "1.34.0", of=KIALI)
    for _ in range(2):
        look(real_site)
        (said,) = real_site.latest(deployment).evaluations.filter(policy__kind="grant")
        assert "which only people can" in said.words
        assert real_site.approve(deployment).state == "applied"
    assert versions(deployment) == [("1.32.0", "applied"), ("1.33.0", "applied"), ("1.34.0", "applied")]


def test_a_grant_does_not_approve_what_follows_for_people(
    site: DeployedSite, registry: Registry, offered: Catalog, applied: BundleDeployment
) -> None:
    site.save_policy("grant", "true")
    offer(registry, offered, "1.0.0", "1.1.0")
    look(site)
    request = site.latest(applied)
    assert (request.number, request.state, request.is_for_people) == (2, "in_review", True)
    (said,) = request.evaluations.filter(policy__kind="grant")
    assert "which only people can approve" in said.words
    assert site.approve(applied).state == "applied"


def test_manual_only_shows_it_and_takes_it_when_somebody_asks(
    site: DeployedSite, registry: Registry, offered: Catalog
) -> None:
    deployment = running(site, offered, upgrades="Manual")
    offer(registry, offered, "1.0.0", "1.1.0", "1.2.0")
    look(site)
    assert versions(deployment) == [("1.0.0", "applied")]
    available, reason, words = upgrade_condition(site, deployment)
    assert (available, reason) == ("True", "Manual")
    assert "1.1.0 of harbour is available: upgradePolicy is Manual" in words
    assert "no edge leads to 1.2.0 from what runs" in words
    site.ask_again(deployment)
    site.work()
    assert versions(deployment)[1:] == [("1.1.0", "in_review")]


@pytest.mark.proof
def test_S05_who_wrote_the_upgrade_policy_is_a_requester_of_the_next_request(
    site: DeployedSite, registry: Registry, offered: Catalog, applied: BundleDeployment
) -> None:
    mallory = Identity("mallory", ("requesters",))
    changed = site.rewrite(applied, lambda spec: spec.update(upgradePolicy="Automatic"), mallory)
    look(site)
    assert changed.generation > applied.generation
    assert len(versions(applied)) == 1
    offer(registry, offered, "1.0.0", "1.1.0")
    look(site)
    assert {one["username"] for one in site.latest(applied).requesters} == {"rita", "mallory"}


@pytest.mark.proof
def test_S25_a_request_that_somebody_reviews_is_followed_by_one_successor(
    site: DeployedSite, registry: Registry, offered: Catalog
) -> None:
    deployment = ask_for(site, offered)
    site.work()
    first = site.review(deployment, "RequestChanges", reason="name the owner")
    for more in (["1.1.0"], ["1.1.0", "1.2.0"]):
        offer(registry, offered, "1.0.0", *more)
        look(site)
    assert versions(deployment) == [("1.0.0", "in_review")]
    assert "request 1 is settled first" in upgrade_condition(site, deployment)[2]
    site.withdraw(first, "replaced")
    FollowedPackage.objects.update(answer_at=timezone.now())
    for _ in range(3):
        look(site)
    assert versions(deployment) == [("1.0.0", "withdrawn"), ("1.2.0", "in_review")]


@pytest.mark.thorough
def test_leaving_the_edges_is_refused_unless_the_spec_allows_it_and_then_it_is_found(
    site: DeployedSite, registry: Registry, offered: Catalog, applied: BundleDeployment
) -> None:
    offer(registry, offered, "1.0.0", "1.2.0")
    ask_for(site, offered, version="1.2.0")
    request = site.after_work(applied)
    assert (request.state, request.problem_code) == ("failed", "bundle-not-offered")
    assert "that may follow harbour.v1.0.0 (1.0.0) by the catalog's edges; these may: 1.0.0" in request.problem
    ask_for(site, offered, version="1.2.0", upgradeConstraintPolicy="SelfCertified")
    site.work()
    assert "CAT-01" in rules(site.latest(applied))
    assert site.approve(applied).state == "applied"
    ask_for(site, offered, version="1.0.0", upgradeConstraintPolicy="SelfCertified")
    site.work()
    assert {"CAT-01", "SRC-03"} <= rules(site.latest(applied))


@pytest.mark.thorough
def test_what_runs_goes_back_and_is_not_upgraded_again_by_itself(
    site: DeployedSite, registry: Registry, offered: Catalog, applied: BundleDeployment
) -> None:
    offer(registry, offered, "1.0.0", "1.1.0")
    look(site)
    assert site.approve(applied).state == "applied"
    site.roll_back(applied)
    site.work()
    assert site.approve(applied).state == "applied"
    look(site)
    assert versions(applied) == [("1.0.0", "applied"), ("1.1.0", "applied"), ("1.0.0", "applied")]
    assert "request 2 was for it (applied)" in upgrade_condition(site, applied)[2]


def test_since_when_the_source_of_a_catalog_is_down_is_said_of_those_who_follow_it(
    site: DeployedSite, offered: Catalog, applied: BundleDeployment, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(wake, "deployment", woken.append)
    allowed = settings.PRATIQUE
    settings.PRATIQUE = {**allowed, "ALLOWED_NETWORKS": []}
    for _ in range(2):
        look_at_source(offered)
    assert woken == [applied.pk], "once, and not at each look"
    available, reason, words = upgrade_condition(site, applied)
    assert (available, reason) == ("Unknown", "CouldNotTell")
    assert f"the source of Catalog {offered.name} could not be checked since" in words
    assert "127.0.0.1" not in words
    settings.PRATIQUE = allowed
    look_at_source(offered)
    assert woken == [applied.pk] * 2
    assert upgrade_condition(site, applied)[:2] == ("False", "UpToDate")


@pytest.mark.parametrize(
    ("sources", "more", "words"),
    [
        ([{"kind": "catalog", "image": {"ref": "a/b:c"}}], {}, "kind names exactly the one source"),
        ([source("hub", HARBOUR) | {"image": {"ref": "a/b:c"}}], {}, "kind names exactly the one source"),
        ([source("hub", HARBOUR)], {"format": "plain"}, "write format: registry-v1"),
        ([source("hub", HARBOUR)], {"upgradePolicy": "Often"}, "upgradePolicy"),
        ([{"kind": "image", "image": {"ref": "a/b:c"}}], {"upgradePolicy": "Manual"}, "upgradePolicy is for sources"),
        ([source("hub", HARBOUR) | {"interval": "5m"}], {}, "interval is for sources of kind image, git and http"),
    ],
    ids=["no catalog", "two kinds", "plain", "policy", "policy without catalog", "interval"],
)
def test_what_cannot_be_is_refused_by_the_api_server(
    site: DeployedSite, sources: list[dict[str, Any]], more: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        site.submit_spec(f"{site.namespace}-wrong", *sources, **{"format": "registry-v1", **more})
