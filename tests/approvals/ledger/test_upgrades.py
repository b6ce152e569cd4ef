"""What a catalog's offer calls for, by the deployment's policy and by what was asked for before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import wake
from approvals.bundle_spec import parse_spec
from approvals.catalogs import bundle_choice, followed_packages
from approvals.errors import LostClaim
from approvals.events.occasions import EventType
from approvals.gate.deciding_objects import policy_of_row
from approvals.gate.facts import Known
from approvals.gate.rights import objection_to
from approvals.ledger import pivots
from approvals.models import BundleDeployment, Catalog, FollowedPackage, OutboxEvent, Policy, Request, Revision
from approvals.selectors import followed_sources
from approvals.steps import source_checks
from approvals.steps.source_checks import LookForUpgrades
from provisioner.errors import BundleNotOffered, Forbidden, SourceUnavailable
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save, words_of
from tests.support.approvals.revisions import revision
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, offer, stored, stored_charts

CHAIN = ("1.0.0", "1.1.0", "1.2.0")


def spec(policy: str = "", **more: Any) -> dict[str, Any]:
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour", **more}}
    return world.spec(format="registry-v1", sources=[source], **({"upgradePolicy": policy} if policy else {}))


def prepared(request: Request) -> Request:
    bundle_choice.bundles_for(request)
    request.refresh_from_db()
    return world.in_review(request)


@pytest.fixture
def port(env: World) -> Catalog:
    row = catalog(of=env.cluster)
    offer(row, "1.0.0")
    return row


@pytest.fixture
def running(env: World, port: Catalog) -> BundleDeployment:
    """1.0.0 was asked for by rita and runs."""
    deployment = world.submit_spec(env.cluster, world.seen("harbour", spec(), uid="harbour"), by=env.rita)
    bundle_choice.bundles_for(deployment.requests.get())
    revision(deployment, 1, "active")
    pivots.answer_upgrades(deployment.pk)
    assert followed_packages.deployments_due(timezone.now()) == []
    return deployment


def followed() -> FollowedPackage:
    return FollowedPackage.objects.get()


def test_a_catalog_that_changes_has_its_followers_asked_and_a_request_made(
    running: BundleDeployment, port: Catalog
) -> None:
    offer(port, *CHAIN)
    assert followed_packages.deployments_due(timezone.now()) == [running.pk]
    made = pivots.answer_upgrades(running.pk)
    assert made is not None
    assert (made.is_unattended, [one["username"] for one in made.requesters]) == (True, ["rita"])
    assert bundle_choice.bundles_for(made)[""].version == "1.1.0"
    made.refresh_from_db()
    assert made.is_for_people
    assert followed().beyond == "no edge leads to 1.2.0 from what runs; it may follow after 1.1.0"


def test_followers_are_asked_where_the_same_content_is_read_in_another_way(
    running: BundleDeployment, port: Catalog
) -> None:
    followed_packages.ask_followers(Catalog(cluster=port.cluster, name="another"))
    assert followed_packages.deployments_due(timezone.now()) == []
    followed_packages.ask_followers(port)
    assert followed_packages.deployments_due(timezone.now()) == [running.pk]


@pytest.mark.parametrize(("policy", "is_made", "is_for_people"), [("Manual", False, False), ("Automatic", True, False)])
def test_the_policy_says_whether_a_request_is_made_and_who_may_approve_it(
    env: World, running: BundleDeployment, port: Catalog, policy: str, *, is_made: bool, is_for_people: bool
) -> None:
    world.submit_spec(env.cluster, world.seen("harbour", spec(policy), uid="harbour", generation=2), by=env.rita)
    assert running.requests.count() == 1
    offer(port, *CHAIN)
    made = pivots.answer_upgrades(running.pk)
    assert (made is not None) is is_made
    assert (followed().available_version, followed().reason) == ("1.1.0", "Requested" if is_made else "Manual")
    pivots.answer_upgrades(running.pk)
    assert OutboxEvent.objects.filter(type=EventType.DEPLOYMENT_UPGRADE_AVAILABLE).count() == 1
    if made:
        bundle_choice.bundles_for(made)
        assert made.is_for_people is is_for_people


def test_what_is_seen_again_has_nobody_asked(env: World, running: BundleDeployment) -> None:
    world.submit_spec(env.cluster, world.seen("harbour", spec(), uid="harbour"), by=env.rita)
    assert followed_packages.deployments_due(timezone.now()) == []


def may_read(*_: object) -> None:
    """The cluster lets those who asked get the catalog."""


def may_not_read(*_: object) -> None:
    raise Forbidden("Kubernetes does not allow rita to get catalogs.core.rukpak.io port")


def test_S09_who_lost_the_right_to_the_catalog_is_shown_nothing_of_it_any_more(
    running: BundleDeployment, port: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_checks, "_ask_reader", may_read)
    offer(port, *CHAIN)
    LookForUpgrades(running.pk).look("w")
    (before,) = followed_sources.offered(deployment=BundleDeployment.objects.get())
    assert (before.version, before.beyond != "") == ("1.1.0", True), before.problem
    monkeypatch.setattr(source_checks, "_ask_reader", may_not_read)
    LookForUpgrades(running.pk).look("w")
    (after,) = followed_sources.offered(deployment=BundleDeployment.objects.get())
    assert "does not allow rita to get" in after.words
    assert [after.version, after.bundle, after.since, after.reason, after.why_not, after.beyond] == [
        "",
        "",
        None,
        "",
        "",
        "",
    ]


def test_S09_who_lost_the_right_to_the_catalog_is_not_told_since_when_its_source_is_down(
    running: BundleDeployment, port: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = timezone.now()
    Catalog.objects.filter(pk=port.pk).update(problem_code="source-unavailable", problem="down", problem_since=since)
    (before,) = followed_sources.offered(deployment=BundleDeployment.objects.get())
    assert before.source_problem_since == since
    monkeypatch.setattr(source_checks, "_ask_reader", may_not_read)
    LookForUpgrades(running.pk).look("w")
    (after,) = followed_sources.offered(deployment=BundleDeployment.objects.get())
    assert (after.source_problem_since, after.source_words) == (None, "")


def test_the_cluster_is_told_where_something_else_is_shown_and_not_at_each_look(
    running: BundleDeployment, port: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_checks, "_ask_reader", may_read)
    woken: list[int] = []
    monkeypatch.setattr(wake, "deployment", woken.append)
    offer(port, *CHAIN)
    LookForUpgrades(running.pk).look("w")
    assert running.pk in woken
    prepared(running.requests.get(number=2))
    woken.clear()
    for _ in range(2):
        LookForUpgrades(running.pk).look("w")
    assert (woken, followed().problem) == ([], "")


def test_a_paused_deployment_is_asked_about_once_it_goes_on(
    env: World, running: BundleDeployment, port: Catalog
) -> None:
    paused = world.seen("harbour", {**spec(), "paused": True}, uid="harbour", generation=2)
    world.submit_spec(env.cluster, paused, by=env.rita)
    offer(port, *CHAIN)
    assert followed_packages.deployments_due(timezone.now()) == []
    world.submit_spec(env.cluster, world.seen("harbour", spec(), uid="harbour", generation=3), by=env.rita)
    assert followed_packages.deployments_due(timezone.now()) == [running.pk]


@pytest.mark.parametrize("state", ["denied", "expired", "failed", "withdrawn"])
def test_what_came_to_nothing_is_not_asked_for_again_until_something_else_is_offered(
    running: BundleDeployment, port: Catalog, state: str
) -> None:
    offer(port, "1.0.0", "1.1.0")
    made = pivots.answer_upgrades(running.pk)
    assert made is not None
    prepared(made)
    Request.objects.filter(pk=made.pk).update(state=state)
    offer(port, *CHAIN)
    assert pivots.answer_upgrades(running.pk) is None
    (offered,) = followed_sources.offered(deployment=BundleDeployment.objects.get())
    assert offered.why_not == f"request 2 was for it ({state}). It is taken when somebody asks for a new request"
    offer(port, "1.0.0", "1.1.0", image="example.com/harbour:other")
    assert pivots.answer_upgrades(running.pk) is not None


def test_a_request_that_nobody_reviews_gives_way_to_what_is_offered_instead(
    running: BundleDeployment, port: Catalog
) -> None:
    offer(port, "1.0.0", "1.1.0")
    first = pivots.answer_upgrades(running.pk)
    assert first is not None
    prepared(first)
    offer(port, "1.0.0", "1.0.5")
    second = pivots.answer_upgrades(running.pk)
    assert second is not None
    bundle_choice.bundles_for(second)
    assert (Request.objects.get(pk=first.pk).state, second.bundles[0]["version"]) == ("superseded", "1.0.5")


def test_a_catalog_that_flaps_makes_so_many_requests_an_hour_and_rests(
    running: BundleDeployment, port: Catalog, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SOURCE_REQUESTS_PER_HOUR": 2}
    for patch in range(3):
        offer(port, "1.0.0", f"1.0.{patch + 1}")
        made = pivots.answer_upgrades(running.pk)
        assert (made is None) is (patch == 2)
        if made:
            prepared(made)
    row, first = followed(), Request.objects.get(number=2)
    assert row.answer_at == first.created_at + timedelta(hours=1)
    assert (row.available_version, row.reason) == ("1.0.3", "Waiting")
    assert "offered too often (PRATIQUE_SOURCE_REQUESTS_PER_HOUR), and it is requested at" in row.why_not
    Request.objects.filter(pk=first.pk).update(created_at=first.created_at - timedelta(hours=1))
    assert pivots.answer_upgrades(running.pk) is not None


def test_what_takes_the_place_of_a_request_for_people_is_for_people(running: BundleDeployment, port: Catalog) -> None:
    offer(port, "1.0.0", "1.1.0")
    first = pivots.answer_upgrades(running.pk)
    assert first is not None
    prepared(first)
    Request.objects.filter(pk=first.pk).update(state="superseded")
    again = pivots.ask_once_more(of=first)
    assert again is not None
    bundle_choice.bundles_for(again)
    assert again.is_for_people


def test_under_manual_the_machine_leaves_the_bundle_as_it_is(
    env: World, running: BundleDeployment, port: Catalog
) -> None:
    world.submit_spec(env.cluster, world.seen("harbour", spec("Manual"), uid="harbour", generation=2), by=env.rita)
    offer(port, *CHAIN)
    again = pivots.ask_once_more(of=running.requests.get())
    assert again is not None
    assert bundle_choice.bundles_for(again)[""].version == "1.0.0"


def test_content_that_changed_under_the_same_version_is_offered_and_said(
    running: BundleDeployment, port: Catalog
) -> None:
    offer(port, "1.0.0", image="example.com/harbour:other")
    made = pivots.answer_upgrades(running.pk)
    assert made is not None
    chosen = bundle_choice.bundles_for(made)[""]
    assert (str(chosen.step), chosen.changed.split(" until")[0]) == ("same", "example.com/harbour:1.0.0")
    assert made.is_for_people


@pytest.mark.parametrize("other", [{"claimed_by": "other"}, {"bundles": [{"bundle": "harbour.v1.2.0"}]}], ids=str)
def test_S26_a_worker_that_stood_still_leaves_what_another_one_chose(
    running: BundleDeployment, port: Catalog, other: dict[str, Any]
) -> None:
    offer(port, *CHAIN)
    made = pivots.answer_upgrades(running.pk)
    assert made is not None
    Request.objects.filter(pk=made.pk).update(**other)
    with pytest.raises(LostClaim):
        bundle_choice.bundles_for(made)
    assert Request.objects.get(pk=made.pk).bundles == other.get("bundles", [])


def test_what_runs_already_is_for_nobody_to_ask_for(running: BundleDeployment) -> None:
    again = pivots.ask_once_more(of=running.requests.get())
    assert again is not None
    bundle_choice.bundles_for(again)
    assert not again.is_for_people


def objection(grant: Policy, request: Request) -> str:
    found = objection_to(policy_of_row(grant), request)
    assert isinstance(found, Known)
    return "" if found.value.is_given else found.value.words


def test_a_policy_that_is_tightened_reaches_what_is_open_and_what_takes_its_place(
    env: World, running: BundleDeployment, port: Catalog
) -> None:
    world.submit_spec(env.cluster, world.seen("harbour", spec("Automatic"), uid="harbour", generation=2), by=env.rita)
    offer(port, "1.0.0", "1.1.0")
    first = pivots.answer_upgrades(running.pk)
    assert first is not None
    prepared(first)
    grant = save(env, expression="true")
    look(first)
    assert "Kubernetes does not allow" in words_of(grant)[1]
    world.submit_spec(env.cluster, world.seen("harbour", spec("Request"), uid="harbour", generation=3), by=env.rita)
    allow(env, grant)
    assert look(first).state == "in_review"
    assert "upgradePolicy is Request now" in words_of(grant)[1]
    assert "upgradePolicy is Request now" in objection(grant, first), "nor does an approval count that it gave before"
    Request.objects.filter(pk=first.pk).update(state="superseded")
    again = pivots.ask_once_more(of=first)
    assert again is not None
    bundle_choice.bundles_for(again)
    assert (first.is_for_people, again.is_for_people) == (False, True)


def test_what_runs_by_its_image_is_known_by_its_digest(running: BundleDeployment, port: Catalog) -> None:
    digest = f"sha256:{'d' * 64}"
    offer(port, "1.0.0", image=f"example.com/harbour@{digest}")
    pin = {"kind": "image", "reference": "example.com/harbour", "digest": digest, "destination": ""}
    Request.objects.filter(pk=Revision.objects.get().request_id).update(bundles=[], pins=[pin])
    chosen = bundle_choice.bundle_for(running, running.bundle_spec.sources[0])
    assert (chosen.before, str(chosen.step)) == ("harbour.v1.0.0", "same")
    Request.objects.update(pins=[])
    chosen = bundle_choice.bundle_for(running, running.bundle_spec.sources[0])
    assert str(chosen.step) == "unknown"


def test_where_no_image_is_named_it_is_said_what_to_do(env: World) -> None:
    row = catalog(of=env.cluster)
    stored(row, package(), {**bundle("1.0.0"), "image": ""}, channel("stable", {"name": "harbour.v1.0.0"}))
    deployment = world.submit_spec(env.cluster, world.seen("harbour", spec(), uid="harbour"), by=env.rita)
    with pytest.raises(BundleNotOffered, match=r"names no image for bundle harbour.v1.0.0.*choose another version"):
        bundle_choice.bundles_for(deployment.requests.get())


def test_a_catalog_that_is_not_read_is_waited_for_and_what_it_lacks_is_final(env: World) -> None:
    row = catalog(of=env.cluster)
    deployment = world.submit_spec(env.cluster, world.seen("harbour", spec(), uid="harbour"), by=env.rita)
    request = deployment.requests.get()
    with pytest.raises(SourceUnavailable, match="Catalog port, which .* names, was not read yet"):
        bundle_choice.bundles_for(request)
    offer(row, "1.0.0")
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbor"}}
    with pytest.raises(BundleNotOffered, match="has no package harbor; names like it are harbour"):
        bundle_choice.bundle_for(deployment, parse_spec({"sources": [source]}).sources[0])
    row.delete()
    with pytest.raises(SourceUnavailable, match="Catalog port does not exist on cluster prod"):
        bundle_choice.bundles_for(request)


def test_a_request_that_failed_for_want_of_an_offer_is_made_again_once_there_is_one(env: World, port: Catalog) -> None:
    wished = world.seen("harbour", spec(version=">=1.1.0"), uid="harbour")
    deployment = world.submit_spec(env.cluster, wished, by=env.rita)
    Request.objects.update(state="failed")
    assert pivots.answer_upgrades(deployment.pk) is None
    assert "has no bundle in >=1.1.0; it has 1.0.0" in followed().problem
    offer(port, "1.0.0", "1.1.0")
    assert pivots.answer_upgrades(deployment.pk) is not None
    Request.objects.filter(number=2).update(state="failed")
    followed_packages.ask_soon(deployment)
    assert pivots.answer_upgrades(deployment.pk) is None


def test_the_remedy_for_a_lower_version_of_a_chart_names_no_edge(env: World, port: Catalog) -> None:
    stored_charts(port, "1.0.0", "2.0.0")
    deployment = world.submit_spec(env.cluster, world.seen("harbour", spec(), uid="harbour"), by=env.rita)
    bundle_choice.bundles_for(deployment.requests.get())
    revision(deployment, 1, "active")
    with pytest.raises(BundleNotOffered, match="SelfCertified takes a lower version") as refused:
        bundle_choice.bundle_with_newer(deployment, parse_spec(spec(version="<2.0.0")).sources[0])
    assert "edge" not in str(refused.value)
    lower = {"version": "<2.0.0", "upgradeConstraintPolicy": "SelfCertified"}
    chosen = bundle_choice.bundle_for(deployment, parse_spec(spec(**lower)).sources[0])
    assert (chosen.version, str(chosen.step), chosen.is_chart) == ("1.0.0", "leaves", True)


def test_what_runs_decides_whether_a_prerelease_of_a_chart_is_offered(env: World, port: Catalog) -> None:
    stored_charts(port, "1.0.0", "2.0.0-rc.1")
    deployment = world.submit_spec(
        env.cluster, world.seen("harbour", spec(version=">=2-0"), uid="harbour"), by=env.rita
    )
    any_version = parse_spec(spec()).sources[0]
    chosen, beyond = bundle_choice.bundle_with_newer(deployment, any_version)
    assert (chosen.version, beyond) == ("1.0.0", "2.0.0-rc.1 is a pre-release: name it in catalog.version to take it")
    bundle_choice.bundles_for(deployment.requests.get())
    revision(deployment, 1, "active")
    stored_charts(port, "1.0.0", "2.0.0-rc.1", "2.0.0-rc.2")
    assert bundle_choice.bundle_for(deployment, any_version).version == "2.0.0-rc.2"


def selecting(**selector: Any) -> dict[str, Any]:
    source = {"kind": "catalog", "catalog": {"selector": selector, "package": "harbour"}}
    return world.spec(format="registry-v1", sources=[source])


def prioritise(row: Catalog, priority: int, **labels: str) -> Catalog:
    row.spec, row.labels = {**row.spec, "priority": priority}, labels
    row.save(update_fields=["spec", "labels"])
    return row


@pytest.fixture
def chosen_by_label(env: World, port: Catalog) -> BundleDeployment:
    """1.0.0 of the only catalog with the label runs; another one has it, too."""
    prioritise(port, 0, tier="stable")
    offer(prioritise(catalog("beta", of=env.cluster), 99, tier="beta"), *CHAIN)
    spec = selecting(matchLabels={"tier": "stable"})
    deployment = world.submit_spec(env.cluster, world.seen("harbour", spec, uid="harbour"), by=env.rita)
    bundle_choice.bundles_for(deployment.requests.get())
    revision(deployment, 1, "active")
    pivots.answer_upgrades(deployment.pk)
    return deployment


def test_a_catalog_of_a_higher_priority_makes_a_request_that_says_where_it_comes_from(
    env: World, chosen_by_label: BundleDeployment
) -> None:
    (first,) = bundle_choice.recorded_bundles(chosen_by_label.requests.get())
    assert (first.catalog, first.is_selected, first.passed_over) == ("port", True, ())
    assert (followed().catalog, followed().is_selected) == ("port", True)
    assert followed_packages.deployments_due(timezone.now()) == []
    offer(prioritise(catalog("vendor", of=env.cluster), 10, tier="stable"), "1.0.0", "1.1.0")
    assert followed_packages.deployments_due(timezone.now()) == [chosen_by_label.pk]
    made = pivots.answer_upgrades(chosen_by_label.pk)
    assert made is not None
    taken = bundle_choice.bundles_for(made)[""]
    assert (taken.catalog, taken.version, taken.before_catalog) == ("vendor", "1.1.0", "port")
    assert (taken.priority, taken.passed_over) == (10, ("port (priority 0)",))
    assert followed().catalog == "vendor"
    assert followed_packages.deployments_due(timezone.now()) == []


@pytest.mark.parametrize(
    ("change", "is_due"),
    [
        pytest.param(lambda port, _: prioritise(port, 5, tier="stable"), True, id="a priority"),
        pytest.param(lambda _, beta: prioritise(beta, 99, tier="stable"), True, id="a label"),
        pytest.param(lambda _, beta: beta.delete(), True, id="one is gone"),
        pytest.param(lambda port, _: offer(port, "1.0.0", "1.1.0"), True, id="content"),
        pytest.param(lambda port, _: port.save(), False, id="nothing"),
    ],
)
def test_who_selects_is_asked_where_a_choice_could_be_another(
    chosen_by_label: BundleDeployment, port: Catalog, change: Any, *, is_due: bool
) -> None:
    change(port, Catalog.objects.get(name="beta"))
    assert followed_packages.deployments_due(timezone.now()) == ([chosen_by_label.pk] if is_due else [])


def test_the_same_content_of_another_selected_catalog_makes_no_request(
    env: World, chosen_by_label: BundleDeployment
) -> None:
    offer(prioritise(catalog("vendor", of=env.cluster), 10, tier="stable"), "1.0.0")
    assert pivots.answer_upgrades(chosen_by_label.pk) is None
    assert followed().available == ""


def test_a_tie_of_catalogs_is_named_and_nothing_taken(env: World, chosen_by_label: BundleDeployment) -> None:
    offer(prioritise(catalog("vendor", of=env.cluster), 0, tier="stable"), *CHAIN)
    assert pivots.answer_upgrades(chosen_by_label.pk) is None
    assert (
        "several catalogs of priority 0 have the package harbour: port, vendor; name one of them" in followed().problem
    )


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ({"matchLabels": {"tier": "gone"}}, "selects no Catalog of cluster prod, which has 3"),
        ({}, "Catalog unread, which spec.sources\\[0\\] selects, was not read yet"),
    ],
)
def test_nothing_is_taken_where_a_selected_catalog_is_not_known(
    env: World, chosen_by_label: BundleDeployment, selector: dict[str, Any], words: str
) -> None:
    catalog("unread", of=env.cluster)
    seen = world.seen("harbour", selecting(**selector), uid="harbour", generation=2)
    source = world.submit_spec(env.cluster, seen, by=env.rita).bundle_spec.sources[0]
    with pytest.raises(SourceUnavailable, match=words):
        bundle_choice.bundle_for(chosen_by_label, source)


def test_S08_who_selects_must_be_allowed_to_get_every_catalog(chosen_by_label: BundleDeployment) -> None:
    (ref,) = chosen_by_label.bundle_spec.catalogs()
    assert (ref.kind, ref.name) == ("Catalog", "")
    named = parse_spec(spec()).catalogs()
    assert [ref.name for ref in named] == ["port"]
