"""Install: the form of a new deployment filled in, and the account with the least rights that it takes."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.core.cache import cache
from django.utils import timezone

from approvals.models import BundleComparison, Catalog, KubernetesIdentity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.comparisons import begun, finish, port
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored, stored_charts

QUERY = "cluster=prod&catalog=port&package=harbour&channel=stable&version=%3C1.2.0"
PAGE = f"/deployments/new?{QUERY}"
# The token of a form, a nonce, and how an answer is named in the log.
PASSING = re.compile(r'csrf\w*&?[^>]*>|nonce="[^"]*"|[0-9a-f-]{32,36}')
POSTED = {"cluster": "prod", "catalog": "port", "package": "harbour", "channel": "stable", "version": "<1.2.0"}
PRESSED = {**POSTED, "propose": "start"}


def field(text: str, name: str) -> str:
    (found,) = [one for one in text.split("<input") if f'name="{name}"' in one and f'id="id_{name}"' in one]
    return html.unescape(found.partition('value="')[2].partition('"')[0])


def test_the_form_is_filled_in_before_anything_is_worked_out(env: World, browse: Browse) -> None:
    port(env, "ada")
    text = opened(browse(env.ada), PAGE)
    names = ("name", "catalog", "package", "channel", "version", "install_namespace", "service_account")
    assert [field(text, name) for name in names] == [
        *("harbour", "port", "harbour", "stable", "<1.2.0"),
        *("harbour", "harbour-installer"),
    ]
    assert '<option value="catalog" selected>' in text
    assert "registry-v1" in text
    assert "Propose account and rights" in text
    assert BundleComparison.objects.count() == 0, "looking at the form asks for nothing"


def test_account_and_least_rights_are_proposed_by_a_worker_and_fill_the_form_in(env: World, browse: Browse) -> None:
    port(env, "ada")
    client = browse(env.ada)
    text = text_of(client.post(PAGE, PRESSED))
    assert "Working out account and rights" in text
    assert 'hx-trigger="every 2s' in text
    row = BundleComparison.objects.get()
    assert row.wish["after"].endswith("1" * 64), "the highest version that is asked for"
    finish(row, is_first=True)
    part = opened(client, f"/deployments/new/proposal/again?{QUERY}")
    assert "hx-trigger" not in part
    assert "Fill in the form with this" in part
    assert "kind: &quot;ServiceAccount&quot;" in part
    assert "kind: ClusterRoleBinding" in part
    text = opened(client, PAGE)
    assert field(text, "service_account") == "harbour-installer"
    assert "watchNamespace" in text, "the config that the format needs"
    assert "Fill in the form" not in text, "it is"


def test_proposing_keeps_what_is_typed_and_works_the_rights_out_for_it(env: World, browse: Browse) -> None:
    port(env, "ada")
    client = browse(env.ada)
    typed = {
        "name": "buoy",
        "install_namespace": "quay",
        "service_account": "keeper",
        "labels": "team=port",
        "deadline": "7",
        "kind": "catalog",
        "rest": "format: registry-v1\nrevisionHistoryLimit: 3",
    }
    for pressed in ("start", "look"):
        text = text_of(client.post(PAGE, {**PRESSED, **typed, "propose": pressed}))
        shown = {name: field(text, name) for name in ("name", "install_namespace", "service_account", "deadline")}
        assert shown == {name: typed[name] for name in shown}
        assert all(words in text for words in ("team=port", "revisionHistoryLimit: 3"))
        assert text.count('name="install_namespace"') == text.count('name="service_account"') == 1
        row = BundleComparison.objects.get()
        assert (row.wish["namespace"], row.wish["account"]) == ("quay", "keeper")
        finish(row, is_first=True)
    assert "kind: ClusterRoleBinding" in text
    assert text.index('id="id_version"') < text.index('id="proposal"'), "it stands below the fields that it uses"


def test_what_only_the_name_of_the_package_suggests_was_not_typed(env: World, browse: Browse) -> None:
    port(env, "ada")
    guess = {"install_namespace": "harbour", "service_account": "harbour-installer"}
    browse(env.ada).post(PAGE, {**PRESSED, **guess})
    wish = BundleComparison.objects.get().wish
    assert (wish["namespace"], wish["account"]) == ("", "")
    BundleComparison.objects.all().delete()
    browse(env.ada).post(PAGE, {**PRESSED, **guess, "use_namespace": "port-system"})
    assert BundleComparison.objects.get().wish["namespace"] == "port-system"


def test_who_may_not_create_a_deployment_or_get_the_catalog_is_offered_nothing(env: World, browse: Browse) -> None:
    port(env, "ada")
    finish(begun(env, before=""), is_first=True)
    env.kubernetes.allow("bert", "get")
    for rights in ([], [("bert", "create", "*")]):
        env.kubernetes.allowed |= set(rights)
        env.kubernetes.allowed -= {("bert", "get", "*")} if rights else set()
        cache.clear()
        client = browse(env.bert)
        text = text_of(client.get(PAGE))
        assert "Propose account" not in text
        assert "ServiceAccount&quot;" not in text
        assert client.post(PAGE, PRESSED).status_code in (403, 404)
        assert client.get(f"/deployments/new/proposal/again?{QUERY}").status_code == 404


def test_what_the_catalog_does_not_offer_is_said_above_the_form(env: World, browse: Browse) -> None:
    port(env, "ada")
    text = opened(browse(env.ada), PAGE.replace("stable", "alpha"))
    assert "has no channel alpha" in text
    assert "Propose account" not in text


@pytest.mark.parametrize("is_digested", [True, False], ids=["a digest", "no digest"])
def test_a_chart_by_url_is_filled_in_with_its_format_and_proposed_where_its_digest_is_known(
    env: World, browse: Browse, is_digested: bool
) -> None:
    port(env, "ada")
    stored_charts(Catalog.objects.get(), "1.0.0", is_digested=is_digested)
    text = opened(browse(env.ada), PAGE)
    assert "format: helm" in text
    assert ("Propose account" in text, "has no digest of chart harbour-1.0.0" in text) == (is_digested, not is_digested)


def silent(env: World) -> None:
    env.kubernetes.is_down = True
    cache.clear()


def test_the_form_opens_with_what_its_address_says_where_the_cluster_does_not_answer(
    env: World, browse: Browse
) -> None:
    port(env, "ada")
    finish(begun(env, before=""), is_first=True)
    silent(env)
    text = opened(browse(env.ada), f"{PAGE}&install_namespace=quay")
    said = " ".join(text.split())
    assert "Cluster prod did not answer whether you may get catalog port and create deployments" in said
    assert "the account and its rights are not proposed" in said
    assert "You do not have access to any cluster" not in said
    assert '<option value="prod" selected>' in text
    assert [field(text, name) for name in ("catalog", "package", "version")] == ["port", "harbour", "<1.2.0"]
    assert field(text, "install_namespace") == "quay"
    for secret in ("format: registry-v1", "watchNamespace", "Propose account"):
        assert secret not in text, "what the catalog says, which nobody has allowed the viewer to get"


def test_what_was_typed_stays_where_the_cluster_falls_silent(env: World, browse: Browse) -> None:
    port(env, "ada")
    client = browse(env.ada)
    silent(env)
    form = {
        **POSTED,
        "name": "buoy",
        "kind": "catalog",
        "install_namespace": "quay",
        "service_account": "keeper",
        "rest": "{}",
    }
    answer = client.post(PAGE, form)
    text = text_of(answer)
    assert answer.status_code == 503
    assert "did not answer" in text
    typed = {name: field(text, name) for name in ("name", "install_namespace", "service_account", "version")}
    assert typed == {name: form[name] for name in typed}
    env.kubernetes.is_down = False
    cache.clear()
    assert client.post(PAGE, form).status_code == 302


def test_asking_for_the_rights_leads_back_to_the_form_where_the_cluster_does_not_answer(
    env: World, browse: Browse
) -> None:
    port(env, "ada")
    silent(env)
    posted = {**PRESSED, "install_namespace": "quay", "service_account": "keeper"}
    text = text_of(browse(env.ada).post(PAGE, posted))
    assert "Account and rights are not being worked out" in text
    assert (field(text, "install_namespace"), field(text, "service_account")) == ("quay", "keeper")
    assert BundleComparison.objects.count() == 0


def test_a_page_that_follows_goes_on_where_the_cluster_does_not_answer(env: World, browse: Browse) -> None:
    port(env, "ada")
    begun(env, before="")
    client = browse(env.ada)
    env.kubernetes.is_down = True
    cache.clear()
    assert client.get(f"/deployments/new/proposal/again?{QUERY}").status_code == 503


def test_a_page_that_follows_leads_to_a_new_proof_where_the_old_one_aged(env: World, browse: Browse) -> None:
    port(env, "ada")
    begun(env, before="")
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    KubernetesIdentity.objects.update(authenticator=proved, groups_seen_at=timezone.now() - timedelta(days=3))
    path = f"/deployments/new/proposal/again?{QUERY}"
    answer = browse(env.ada).get(path, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"][:8]) == (204, "/sign-in")


def test_S02_who_is_nobody_on_a_cluster_is_told_the_same_whether_it_exists(env: World, browse: Browse) -> None:
    row = catalog("port", of=world.cluster("moon"))
    stored(row, package(defaultChannel="stable"), bundle("1.0.0"), channel("stable", {"name": "harbour.v1.0.0"}))
    client = browse(env.ada)
    changes = "/catalogs/prod/port/packages/harbour/changes"
    for ask in (
        lambda name: client.get(PAGE.replace("prod", name)),
        lambda name: client.post(PAGE, {**PRESSED, "cluster": name}),
        lambda name: client.get(f"/deployments/new/proposal/again?{QUERY.replace('prod', name)}"),
        lambda name: client.get(changes.replace("prod", name)),
    ):
        there, nowhere = said(ask("moon")), said(ask("void"))
        assert there[0] == nowhere[0]
        assert there[1].replace("moon", "void") == nowhere[1]


def said(answer: Any) -> tuple[int, str]:
    """The status and the words, without what is new each time."""
    return answer.status_code, PASSING.sub("", text_of(answer))


def listing(env: World, *namespaces: str) -> None:
    port(env, "ada")
    finish(begun(env, before=""), is_first=True)
    env.kubernetes.names = {("Namespace", ""): list(namespaces)}
    env.kubernetes.allow("ada", "list", "Namespace")


def applied(text: str) -> list[dict[str, Any]]:
    """The objects of the YAML to apply."""
    code = text.partition("kind: &quot;ServiceAccount&quot;")[0].rpartition('<pre class="code" tabindex="0">')[2]
    rest = text.partition(code)[2].partition("</pre>")[0]
    return list(yaml.safe_load_all(html.unescape(code + rest)))


ADDRESSES = [PAGE, "/catalogs/prod/port/packages/harbour/changes?to=1.1.0"]


@pytest.mark.parametrize("address", ADDRESSES, ids=["the form", "what would change"])
def test_a_namespace_that_is_not_there_is_said_and_the_yaml_makes_it_first(
    address: str, env: World, browse: Browse
) -> None:
    listing(env, "shop")
    text = opened(browse(env.ada), address)
    assert "Namespace harbour does not exist on prod ." in words_of(text)
    made = applied(text)
    assert [one["kind"] for one in made[:2]] == ["Namespace", "ServiceAccount"]
    assert made[0]["metadata"]["name"] == made[1]["metadata"]["namespace"] == "harbour"


@pytest.mark.parametrize("address", ADDRESSES, ids=["the form", "what would change"])
def test_of_a_namespace_that_is_there_nothing_is_said(address: str, env: World, browse: Browse) -> None:
    listing(env, "harbour", "shop")
    text = opened(browse(env.ada), address)
    assert "does not exist" not in text
    assert "kubectl create namespace" not in text
    assert applied(text)[0]["kind"] == "ServiceAccount"


@pytest.mark.parametrize("is_crowded", [False, True], ids=["may not list", "too many"])
def test_where_nobody_can_tell_whether_a_namespace_is_there_the_command_is_named(
    is_crowded: bool, env: World, browse: Browse
) -> None:
    listing(env, *(f"n{at:04}" for at in range(600)))
    if not is_crowded:
        env.kubernetes.allowed -= {("ada", "list", "Namespace")}
    text = opened(browse(env.ada), PAGE)
    assert "it is not known whether harbour exists" in words_of(text)
    assert "kubectl create namespace harbour</pre>" in text
    assert applied(text)[0]["kind"] == "ServiceAccount"


def words_of(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
