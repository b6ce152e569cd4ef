"""What the form of a deployment offers and asks, and where what a catalog offers to a deployment leads."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from approvals.catalogs import bundle_choice
from approvals.ledger import pivots
from approvals.models import BundleDeployment, FollowedPackage
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessAnswer, Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.approvals.revisions import revision
from tests.support.comparisons import port
from tests.support.stored_catalogs import catalog, offer

FROM_CATALOG = {"kind": "catalog", "catalog": {"name": "hub", "package": "kiali"}}
IMAGE = {"kind": "image", "image": {"ref": "r/x:1"}}
FORM = {
    "cluster": "prod",
    "name": "barge",
    "install_namespace": "harbour",
    "service_account": "installer",
    "git_ref": "tag",
    "catalog": "hub",
    "package": "kiali",
    "image": "r/x:1",
}


def chosen(text: str) -> str:
    """The policy that the form shows."""
    options = text.partition('name="upgrade_policy"')[2].partition("</select>")[0]
    (found,) = re.findall(r'value="([^"]*)" selected', options)
    return str(found)


@pytest.mark.parametrize(
    ("kind", "policy", "written"),
    [
        ("catalog", "Manual", "Manual"),
        ("catalog", "Automatic", "Automatic"),
        ("catalog", "Request", None),
        ("catalog", "", None),
        ("image", "Manual", None),
    ],
    ids=["manual", "automatic", "the default", "not said", "of no catalog"],
)
def test_a_new_deployment_says_what_follows_a_newer_version_where_it_takes_from_a_catalog(
    kind: str, policy: str, written: str | None, env: World, browse: Browse
) -> None:
    form = {**FORM, "kind": kind, "upgrade_policy": policy, "rest": "format: registry-v1"}
    assert browse(env.ada).post("/deployments/new", form).status_code == 302
    assert env.kubernetes.objects["barge"]["spec"].get("upgradePolicy") == written


def test_the_form_that_install_fills_in_explains_each_policy_and_what_a_constraint_of_versions_does(
    env: World, browse: Browse
) -> None:
    port(env, "ada")
    text = text_of(browse(env.ada).get("/deployments/new?cluster=prod&catalog=port&package=harbour"))
    assert chosen(text) == "Request"
    for words in (
        "Request: a newer version makes a request that people decide on",
        "Manual: a newer version is only shown, and taken when somebody asks for it",
        "Automatic: a newer version makes a request that grants may approve, too",
        "A constraint such as &gt;=1.2.0 &lt;2.0.0: nothing else is taken",
        "is pinned: nothing newer is offered",
    ):
        assert words in text, words


def edited(env: World, browse: Browse, spec: dict[str, Any], **changed: str) -> dict[str, Any]:
    """The spec once its form was saved as it is shown, but for what is changed."""
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    client = browse(env.ada)
    form = client.get("/deployments/prod/barge/edit").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in shown.items() if value is not None}
    assert client.post("/deployments/prod/barge/edit", {**sent, **changed}).status_code == 302
    return dict(env.kubernetes.objects["barge"]["spec"])


@pytest.mark.parametrize("said", [{}, {"upgradePolicy": "Automatic"}, {"upgradePolicy": "Request"}])
def test_a_form_that_is_saved_as_it_is_leaves_the_policy_as_it_is(
    said: dict[str, str], env: World, browse: Browse
) -> None:
    spec = world.spec(format="registry-v1", sources=[FROM_CATALOG], **said)
    assert edited(env, browse, spec).get("upgradePolicy") == said.get("upgradePolicy")


def test_a_policy_is_changed_in_the_form(env: World, browse: Browse) -> None:
    spec = world.spec(format="registry-v1", sources=[FROM_CATALOG], upgradePolicy="Automatic")
    assert edited(env, browse, spec, upgrade_policy="Request")["upgradePolicy"] == "Request"


@pytest.mark.parametrize("others", [[], [{**FROM_CATALOG, "destination": "b"}]], ids=["none", "another source"])
def test_the_policy_goes_with_the_last_source_that_takes_from_a_catalog(
    others: list[dict[str, Any]], env: World, browse: Browse
) -> None:
    spec = world.spec(format="registry-v1", sources=[FROM_CATALOG, *others], upgradePolicy="Manual")
    after = edited(env, browse, spec, kind="image", image="r/x:1")
    assert after["sources"] == [IMAGE, *others]
    assert after.get("upgradePolicy") == ("Manual" if others else None)


def test_the_policy_is_refused_where_it_would_be_said_twice(env: World, browse: Browse) -> None:
    answer = browse(env.ada).post("/deployments/new", {**FORM, "kind": "catalog", "rest": "upgradePolicy: Manual"})
    assert answer.status_code == 422
    assert "upgradePolicy has its own field in this form" in text_of(answer)


OFFERS = "/deployments/offers?cluster=prod&install_namespace=shop"


@pytest.fixture
def listing(env: World) -> World:
    env.kubernetes.names = {
        ("Namespace", ""): ["shop", "harbour"],
        ("ServiceAccount", "shop"): ["robot"],
        ("ServiceAccount", "harbour"): ["installer"],
    }
    return env


def test_names_that_the_viewer_may_list_are_offered(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    told = opened(browse(listing.ada), OFFERS)
    place = [told.index(f'value="{name}"') for name in ("harbour", "shop", "robot")]
    assert place == sorted(place)
    assert 'value="installer"' not in told
    assert "could not be listed" not in told


def test_what_the_viewer_may_not_list_is_said_quietly_and_can_be_typed(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list", "ServiceAccount")
    told = opened(browse(listing.ada), OFFERS)
    assert "Namespaces could not be listed with your permissions, so type the name." in told
    assert 'value="robot"' in told
    assert 'value="harbour"' not in told


@pytest.mark.parametrize(
    "namespace",
    ["", "../secrets", "shop/pods", "S", "a" * 64, "shop?x"],
    ids=["none", "up", "slash", "capital", "long", "query"],
)
def test_what_no_namespace_is_named_is_asked_of_nobody(namespace: str, listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    listing.kubernetes.names["ServiceAccount", namespace] = ["robot"]
    client = browse(listing.ada)
    told = client.get("/deployments/offers", {"cluster": "prod", "install_namespace": namespace})
    assert told.status_code == 200
    assert b"robot" not in told.content


def test_a_cluster_that_does_not_answer_keeps_nobody_from_the_form(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    client = browse(listing.ada)
    opened(client, "/deployments/new")
    listing.kubernetes.is_down = True
    told = opened(client, OFFERS)
    assert "Namespaces could not be listed" in told
    assert 'list="namespaces"' in opened(client, "/deployments/new")


def test_more_names_than_a_list_shows_are_said(listing: World, browse: Browse) -> None:
    listing.kubernetes.allow("ada", "list")
    listing.kubernetes.names["Namespace", ""] = [f"n{number:03}" for number in range(501)]
    assert "Only the first 500 namespaces are offered." in opened(browse(listing.ada), OFFERS)


def test_a_new_deployment_is_offered_to_those_who_may_create_one(env: World, browse: Browse) -> None:
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("ada", "create")
    assert 'href="/deployments/new"' in opened(browse(env.ada), "/deployments")
    assert 'href="/deployments/new"' not in opened(browse(env.bert), "/deployments")
    told = opened(browse(env.bert), "/deployments/new")
    assert "Kubernetes does not allow bert to create" in told
    assert "RBAC rule that would allow this" in told


def test_changing_a_policy_is_offered_to_those_who_may_approve_what_it_selects(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.allow("bert", "get")
    assert "/policies/of/routine/edit" in opened(browse(env.ada), "/policies/of/routine")
    assert "/policies/of/routine/edit" not in opened(browse(env.bert), "/policies/of/routine")


PAGE = "/deployments/prod/lighthouse"
PACKAGE = "/catalogs/prod/port/packages/harbour"
AVAILABLE_FROM_CATALOG = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}}


SELECTED = {"kind": "catalog", "catalog": {"selector": {}, "package": "harbour"}}


def offered(
    env: World,
    *versions: str,
    more: tuple[dict[str, Any], ...] = (),
    source: dict[str, Any] = AVAILABLE_FROM_CATALOG,
) -> BundleDeployment:
    """lighthouse, which runs 1.0.0 and is offered the last of these versions."""
    port = catalog(of=env.cluster)
    offer(port, "1.0.0")
    spec = world.spec(format="registry-v1", sources=[source, *more], upgradePolicy="Manual")
    made = world.submit_spec(env.cluster, world.seen("lighthouse", spec), by=env.rita)
    bundle_choice.bundles_for(made.requests.get())
    revision(made, 1, "active")
    offer(port, "1.0.0", *versions)
    pivots.answer_upgrades(made.pk)
    return made


def available(text: str) -> list[str]:
    """The links beside what is offered."""
    place = text.partition("<dt>Catalog</dt>")[2].partition("</dd>")[0]
    return [unescape(one) for one in re.findall(r'href="([^"]+)"', place)]


@pytest.mark.parametrize("source", [AVAILABLE_FROM_CATALOG, SELECTED], ids=["named", "selected"])
def test_what_is_available_leads_to_the_package_and_to_what_it_would_change(
    source: dict[str, Any], env: World, browse: Browse
) -> None:
    offered(env, "1.1.0", source=source)
    env.kubernetes.allow("ada", "create")
    client = browse(env.ada)
    found = available(opened(client, PAGE))
    assert found == [PACKAGE, f"{PACKAGE}/changes?to=harbour.v1.1.0&deployment=lighthouse"]
    text = opened(client, found[1])
    assert re.search(r'id="deployment"\s+name="deployment"\s+class="mono"\s+value="lighthouse"', text)
    assert re.search(r'id="to"\s+name="to"\s+class="mono"\s+list="bundles"\s+value="harbour.v1.1.0"', text)
    assert 'role="alert"' not in text


def test_until_a_selected_catalog_is_taken_from_none_is_named(env: World, browse: Browse) -> None:
    offered(env, source=SELECTED)
    FollowedPackage.objects.update(catalog="")
    assert "of the selected catalogs" in opened(browse(env.ada), PAGE)


def test_the_rule_that_would_let_somebody_see_what_is_offered_can_be_copied(env: World, browse: Browse) -> None:
    offered(env, "1.1.0")
    rule = "kind: Role\nrules: []"
    words = f"rita may not get it; this would allow it:\n{rule}\n\nA cluster administrator grants it."
    FollowedPackage.objects.update(problem=words, problem_since=timezone.now())
    text = opened(browse(env.ada), PAGE)
    assert f'<pre class="code" tabindex="0">{rule}</pre>' in text
    assert "rita may not get it; this would allow it:</p>" in text
    assert "<p>A cluster administrator grants it.</p>" in text


def test_who_may_create_no_deployment_is_led_to_the_package_alone(env: World, browse: Browse) -> None:
    offered(env, "1.1.0")
    assert available(opened(browse(env.ada), PAGE)) == [PACKAGE]


def test_S09_who_may_not_get_the_deployment_is_not_led_to_what_would_change(env: World, browse: Browse) -> None:
    offered(env, "1.1.0")
    env.kubernetes.allowed.discard(("ada", "get", "*"))
    for name in ("port", "bundledeploymentrequests /"):
        env.kubernetes.allow("ada", "get", name)
    env.kubernetes.allow("ada", "create")
    client = browse(env.ada)
    assert available(opened(client, PAGE)) == [PACKAGE]
    refused = client.get(f"{PACKAGE}/changes?to=harbour.v1.1.0&deployment=lighthouse")
    assert refused.status_code == 403
    assert "get bundledeployments" in text_of(refused)


def test_S02_who_may_not_get_the_catalog_is_led_nowhere(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(env, "1.1.0")
    env.kubernetes.allow("ada", "create")
    ask = env.kubernetes.ask

    def narrow(cluster: Any, identity: Any, asked: Any) -> AccessAnswer:
        is_catalog = (asked.group, asked.resource) == (OWN_GROUP, "catalogs")
        return AccessAnswer(False, "no rule") if is_catalog else ask(cluster, identity, asked)

    monkeypatch.setattr(env.kubernetes, "ask", narrow)
    cache.clear()
    text = opened(browse(env.ada), PAGE)
    assert "is available since" in text
    assert available(text) == []


def test_where_nothing_is_offered_there_is_nothing_to_compare(env: World, browse: Browse) -> None:
    offered(env)
    env.kubernetes.allow("ada", "create")
    assert available(opened(browse(env.ada), PAGE)) == [PACKAGE]


def test_what_only_a_request_can_compare_is_no_link(env: World, browse: Browse) -> None:
    beside = {"kind": "configMap", "configMap": {"name": "local"}, "destination": "d"}
    offered(env, "1.1.0", more=(beside,))
    env.kubernetes.allow("ada", "create")
    text = opened(browse(env.ada), PAGE)
    assert "is available since" in text
    assert available(text) == [PACKAGE]
