"""What the form of a deployment asks about upgrades from a catalog, and what of it stands in the spec."""

from __future__ import annotations

import re
from typing import Any

import pytest

from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.comparisons import port

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
    kind: str, policy: str, written: str | None, here: World, browse: Browse
) -> None:
    form = {**FORM, "kind": kind, "upgrade_policy": policy, "rest": "format: registry-v1"}
    assert browse(here.ada).post("/deployments/new", form).status_code == 302
    assert here.kubernetes.objects["barge"]["spec"].get("upgradePolicy") == written


def test_the_form_that_install_fills_in_explains_each_policy_and_what_a_constraint_of_versions_does(
    here: World, browse: Browse
) -> None:
    port(here, "ada")
    text = text_of(browse(here.ada).get("/deployments/new?cluster=prod&catalog=port&package=harbour"))
    assert chosen(text) == "Request"
    for words in (
        "Request: a newer version makes a request that people decide on",
        "Manual: a newer version is only shown, and taken when somebody asks for it",
        "Automatic: a newer version makes a request that grants may approve, too",
        "A constraint such as &gt;=1.2.0 &lt;2.0.0: nothing else is taken",
        "is pinned: nothing newer is offered",
    ):
        assert words in text, words


def edited(here: World, browse: Browse, spec: dict[str, Any], **changed: str) -> dict[str, Any]:
    """The spec once its form was saved as it is shown, but for what is changed."""
    live = here.kubernetes.create(here.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.wish(here.cluster, live, here.rita)
    client = browse(here.ada)
    form = client.get("/deployments/prod/barge/edit").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in shown.items() if value is not None}
    assert client.post("/deployments/prod/barge/edit", {**sent, **changed}).status_code == 302
    return dict(here.kubernetes.objects["barge"]["spec"])


@pytest.mark.parametrize("said", [{}, {"upgradePolicy": "Automatic"}, {"upgradePolicy": "Request"}])
def test_a_form_that_is_saved_as_it_is_leaves_the_policy_as_it_is(
    said: dict[str, str], here: World, browse: Browse
) -> None:
    spec = world.spec(format="registry-v1", sources=[FROM_CATALOG], **said)
    assert edited(here, browse, spec).get("upgradePolicy") == said.get("upgradePolicy")


def test_a_policy_is_changed_in_the_form(here: World, browse: Browse) -> None:
    spec = world.spec(format="registry-v1", sources=[FROM_CATALOG], upgradePolicy="Automatic")
    assert edited(here, browse, spec, upgrade_policy="Request")["upgradePolicy"] == "Request"


@pytest.mark.parametrize("others", [[], [{**FROM_CATALOG, "destination": "b"}]], ids=["none", "another source"])
def test_the_policy_goes_with_the_last_source_that_takes_from_a_catalog(
    others: list[dict[str, Any]], here: World, browse: Browse
) -> None:
    spec = world.spec(format="registry-v1", sources=[FROM_CATALOG, *others], upgradePolicy="Manual")
    after = edited(here, browse, spec, kind="image", image="r/x:1")
    assert after["sources"] == [IMAGE, *others]
    assert after.get("upgradePolicy") == ("Manual" if others else None)


def test_the_policy_is_refused_where_it_would_be_said_twice(here: World, browse: Browse) -> None:
    answer = browse(here.ada).post("/deployments/new", {**FORM, "kind": "catalog", "rest": "upgradePolicy: Manual"})
    assert answer.status_code == 422
    assert "upgradePolicy has its own field in this form" in text_of(answer)
