"""The form of a deployment, and what its page asks of it: what is wrong stays on the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache

from approvals import services
from approvals.bundle_spec import KINDS
from approvals.errors import InvalidInput
from approvals.models import BundleDeployment
from provisioner.errors import BadConfig, Forbidden
from provisioner.render import check_config
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

DEPLOYMENT = {
    "cluster": "prod",
    "name": "barge",
    "labels": "team=harbour\n\ntier = one",
    "install_namespace": "harbour",
    "service_account": "installer",
    "kind": "image",
    "image": "registry.example.com/barge:1.2.0",
    "git_ref": "tag",
}


def test_a_deployment_is_made_as_the_person(env: World, browse: Browse) -> None:
    response = browse(env.ada).post("/deployments/new", DEPLOYMENT)
    assert response["Location"] == "/deployments/prod/barge"
    made = env.kubernetes.objects["barge"]
    assert made["spec"] == {
        "installNamespace": "harbour",
        "serviceAccountName": "installer",
        "sources": [{"kind": "image", "image": {"ref": "registry.example.com/barge:1.2.0"}}],
    }
    assert BundleDeployment.objects.get().requests.get().requesters[0]["username"] == "ada"


@pytest.mark.parametrize(
    ("form", "source"),
    [
        pytest.param(
            {"kind": "git", "repository": "https://git.example/x", "git_ref": "branch", "git_name": "main"},
            {"kind": "git", "git": {"repository": "https://git.example/x", "ref": {"branch": "main"}}},
            id="git",
        ),
        pytest.param(
            {"kind": "http", "url": "https://a.example/x.tgz", "checksum": "sha256:1"},
            {"kind": "http", "http": {"url": "https://a.example/x.tgz", "checksum": "sha256:1"}},
            id="http",
        ),
        pytest.param(
            {"kind": "catalog", "catalog_selector": "every catalog", "package": "kiali"},
            {"kind": "catalog", "catalog": {"selector": {"matchLabels": {}}, "package": "kiali"}},
            id="of every catalog",
        ),
        pytest.param(
            {"kind": "catalog", "catalog": "hub", "package": "kiali", "version": ">=1.2 <2"},
            {"kind": "catalog", "catalog": {"name": "hub", "package": "kiali", "version": ">=1.2 <2"}},
            id="catalog",
        ),
        pytest.param(
            {"kind": "catalog", "catalog": "hub", "package": "kiali", "secret": "pull", "secret_host": "r.example"},
            {
                "kind": "catalog",
                "catalog": {
                    "name": "hub",
                    "package": "kiali",
                    "auth": {"secret": {"name": "pull"}, "host": "r.example"},
                },
            },
            id="a private package",
        ),
        pytest.param(
            {"image": "r.example/x:1", "secret": "team/pull"},
            {
                "kind": "image",
                "image": {"ref": "r.example/x:1", "auth": {"secret": {"name": "pull", "namespace": "team"}}},
            },
            id="private image",
        ),
        pytest.param(
            {"kind": "configMap", "config_map": "bundle"},
            {"kind": "configMap", "configMap": {"name": "bundle"}},
            id="ConfigMap",
        ),
    ],
)
def test_each_kind_of_source_has_its_fields(
    form: dict[str, str], source: dict[str, Any], env: World, browse: Browse
) -> None:
    assert browse(env.ada).post("/deployments/new", {**DEPLOYMENT, **form}).status_code == 302
    assert env.kubernetes.objects["barge"]["spec"]["sources"] == [source]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param({"name": "Not A Name"}, "expected at most 52", id="a bad name"),
        pytest.param({"image": ""}, "required for this kind of source", id="no image"),
        pytest.param({"kind": "git"}, "required for this kind of source", id="no repository"),
        pytest.param({"labels": "team"}, "has no =", id="a label without value"),
        pytest.param({"cluster": "moon"}, "Select a valid choice", id="a cluster that is not theirs"),
        pytest.param({"kind": "local"}, "Select a valid choice", id="another kind"),
        pytest.param({"kind": "configMap"}, "required for this kind of source", id="no ConfigMap"),
        pytest.param({"secret": "a/b/c"}, "is not NAMESPACE/NAME", id="a bad reference"),
        pytest.param(
            {"kind": "catalog", "catalog": "hub", "package": "kiali", "secret_host": "r.example"},
            "There is no Secret that this host could get",
            id="a host without a Secret",
        ),
        pytest.param(
            {"kind": "configMap", "config_map": "bundle", "secret": "pull"}, "needs no Secret", id="a Secret too many"
        ),
    ],
)
def test_a_deployment_that_cannot_be_is_shown_again_with_what_is_wrong(
    form: dict[str, str], words: str, env: World, browse: Browse
) -> None:
    response = browse(env.ada).post("/deployments/new", {**DEPLOYMENT, **form})
    assert response.status_code == 422
    assert words in text_of(response)
    assert not env.kubernetes.objects


@pytest.mark.parametrize("is_allowed", [False, True])
def test_an_archive_needs_a_checksum_unless_the_operator_allows_none(
    is_allowed: bool, env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.PRATIQUE, "MUTABLE_HTTP", is_allowed)
    form = {**DEPLOYMENT, "name": "barge", "kind": "http", "url": "https://a.example/x.tgz", "checksum": ""}
    response = browse(env.ada).post("/deployments/new", form)
    assert response.status_code == (302 if is_allowed else 422)
    assert ("required for this kind of source" in text_of(response)) is not is_allowed


def test_changing_a_deployment_keeps_what_the_form_does_not_show(env: World, browse: Browse) -> None:
    spec = world.spec(
        drift="Correct",
        sources=[
            {"kind": "image", "destination": "a", "image": {"ref": "r/x:1", "auth": {"secret": {"name": "pull"}}}},
            {"kind": "http", "http": {"url": "https://example.com/y.tgz"}},
        ],
    )
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    client = browse(env.ada)
    page = text_of(client.get("/deployments/prod/barge/edit"))
    assert ('value="r/x:1"' in page, "1 more source" in page) == (True, True)
    form = {**DEPLOYMENT, "image": "r/x:2", "secret": "pull", "generation": live["metadata"]["generation"]}
    assert client.post("/deployments/prod/barge/edit", form).status_code == 302
    changed = env.kubernetes.objects["barge"]["spec"]
    assert changed["drift"] == "Correct"
    assert changed["sources"][0] == {
        "kind": "image",
        "destination": "a",
        "image": {"ref": "r/x:2", "auth": {"secret": {"name": "pull"}}},
    }
    assert changed["sources"][1] == spec["sources"][1]


@pytest.mark.parametrize(
    "kind",
    ["tide-gauge", "parameters", "destination"],
    ids=["a plug-in", "a kind named like a mapping of a source", "a kind named like a text of a source"],
)
def test_the_source_of_a_plugin_stays_as_it_is_until_another_kind_is_chosen(
    kind: str, env: World, browse: Browse
) -> None:
    gauge = {"kind": kind, "parameters": {"url": "https://example.com/t"}, "destination": "below"}
    spec = world.spec(drift="Correct", sources=[gauge])
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    client = browse(env.ada)
    assert client.get("/deployments/prod/barge").status_code == 200
    assert f'<option value="{kind}" selected>' in text_of(client.get("/deployments/prod/barge/edit"))
    form = {**DEPLOYMENT, "kind": kind, "image": "", "drift": "Report", "generation": live["metadata"]["generation"]}
    assert client.post("/deployments/prod/barge/edit", form).status_code == 302
    changed = env.kubernetes.objects["barge"]["spec"]
    assert (changed["drift"], changed["sources"]) == ("Report", [gauge])
    form = {**DEPLOYMENT, "image": "r/x:2", "generation": live["metadata"]["generation"] + 1}
    assert client.post("/deployments/prod/barge/edit", form).status_code == 302
    chosen = {"kind": "image", "image": {"ref": "r/x:2"}, "destination": "below"}
    assert env.kubernetes.objects["barge"]["spec"]["sources"] == [chosen]


@pytest.mark.parametrize(
    ("image", "words"),
    [("r/x:1", "so no request was created"), ("r/x:2", "Its request is being prepared")],
    ids=["the same", "another"],
)
def test_the_page_says_whether_there_was_anything_to_change(image: str, words: str, env: World, browse: Browse) -> None:
    spec = world.spec(sources=[{"kind": "image", "image": {"ref": "r/x:1"}}])
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    client = browse(env.ada)
    page = client.get("/deployments/prod/barge/edit")
    form = {name: value for name, value in page.context["form"].initial.items() if value is not None}
    after = client.post("/deployments/prod/barge/edit", {**form, "image": image}, follow=True)
    assert words in text_of(after)


def test_every_part_of_a_spec_can_be_changed_in_the_form(env: World, browse: Browse) -> None:
    before: dict[str, Any] = {
        "constraints": {"kubernetesVersionRange": ">=1.30"},
        "progressDeadlineMinutes": 5,
        "paused": True,
    }
    spec = world.spec(drift="Correct", **before)
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    client = browse(env.ada)
    page = text_of(client.get("/deployments/prod/barge/edit"))
    assert ("kubernetesVersionRange: &#x27;&gt;=1.30&#x27;" in page, 'value="5"' in page) == (True, True)
    assert '<option value="Correct" selected>' in page
    form = {
        **DEPLOYMENT,
        "drift": "Report",
        "on_failure": "RestorePrevious",
        "collisions": "IfNoController",
        "deletion": "Orphan",
        "deadline": "",
        "constraints": "requiredAPIs: [{group: example.com, version: v1, kind: Buoy}]",
        "health_checks": "- {apiVersion: v1, kind: Buoy, condition: {type: Afloat}}",
        "config": "recursive: on\n",
        "rest": "",
        "generation": live["metadata"]["generation"],
    }
    assert client.post("/deployments/prod/barge/edit", form).status_code == 302
    changed = env.kubernetes.objects["barge"]["spec"]
    del changed["sources"], changed["installNamespace"], changed["serviceAccountName"]
    assert changed == {
        "paused": True,
        "drift": "Report",
        "onFailure": "RestorePrevious",
        "collisionProtection": "IfNoController",
        "deletionPolicy": "Orphan",
        "constraints": {"requiredAPIs": [{"group": "example.com", "version": "v1", "kind": "Buoy"}]},
        "healthChecks": [{"apiVersion": "v1", "kind": "Buoy", "condition": {"type": "Afloat"}}],
        "config": {"recursive": True},
    }


def test_a_form_that_is_saved_as_it_is_makes_no_number_or_truth_of_a_text(env: World, browse: Browse) -> None:
    texts = ["1e3", "0o17", "08", "y", "N", "1E+3", "yes", "2001-01-01", "1:30", "~", "\x85", " a "]
    spec = world.spec(
        config={"odd": {text: text for text in texts}}, sources=[{"kind": "image", "image": {"ref": "r/x:1"}}]
    )
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    client = browse(env.ada)
    form = client.get("/deployments/prod/barge/edit").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    form = {name: value for name, value in shown.items() if value is not None}
    assert client.post("/deployments/prod/barge/edit", {**form, "image": "r/x:2"}).status_code == 302
    changed = env.kubernetes.objects["barge"]["spec"]
    assert (changed["sources"][0]["image"], changed["config"]) == ({"ref": "r/x:2"}, spec["config"])


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {"tier": "stable"}}], ids=["every catalog", "labels"])
def test_a_selector_stays_as_it_is_written_until_its_words_change(
    selector: dict[str, Any], env: World, browse: Browse
) -> None:
    source = {"kind": "catalog", "catalog": {"selector": selector, "package": "harbour"}}
    spec = world.spec(format="registry-v1", sources=[source])
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    client = browse(env.ada)
    form = client.get("/deployments/prod/barge/edit").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    given = {name: value for name, value in shown.items() if value is not None}
    assert client.post("/deployments/prod/barge/edit", given).status_code == 302
    assert env.kubernetes.objects["barge"]["spec"]["sources"] == [source]
    given["generation"] = env.kubernetes.objects["barge"]["metadata"]["generation"]
    given["catalog_selector"] = "tier!=beta"
    assert client.post("/deployments/prod/barge/edit", given).status_code == 302
    changed = env.kubernetes.objects["barge"]["spec"]["sources"][0]["catalog"]["selector"]
    assert changed == {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["beta"]}]}


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        pytest.param("sources: []", "sources has its own field in this form", id="a field of the form"),
        pytest.param("paused: true", "paused cannot be set here: pause and resume on the deployment", id="paused"),
        pytest.param("- a", "expected a mapping", id="a list"),
        pytest.param("a: 1\n---\nb: 1", "expected a mapping", id="two documents"),
        pytest.param("a: [", "Other spec fields", id="no YAML"),
        pytest.param("a: 1\na: 2", "Other spec fields", id="a key twice"),
        pytest.param("a: &x [1]\nb: " + "[*x, *x]" * 9, "Other spec fields", id="anchors that are no YAML"),
        pytest.param(
            "\n".join(f"k{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]" for n in range(6)),
            "Other spec fields",
            id="aliases that grow",
        ),
    ],
)
def test_the_rest_of_a_spec_that_is_no_map_of_other_fields_is_refused_in_words(
    rest: str, words: str, env: World, browse: Browse
) -> None:
    response = browse(env.ada).post("/deployments/new", {**DEPLOYMENT, "rest": rest})
    assert response.status_code == 422
    assert words in text_of(response)
    assert not env.kubernetes.objects


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        pytest.param("health_checks", "kind: Buoy", "expected a list of mappings, such as [{apiVersion:", id="no list"),
        pytest.param("health_checks", "[a]", "expected a list of mappings", id="no maps in it"),
        pytest.param("constraints", "[{a: 1}]", "expected a mapping, such as {kubernetesVersionRange:", id="no map"),
        pytest.param("rest", "healthChecks: []", "healthChecks has its own field in this form", id="said elsewhere"),
        pytest.param("rest", "config: {}", "config has its own field in this form", id="config elsewhere"),
    ],
)
def test_a_part_of_a_spec_that_is_of_another_shape_is_refused_in_sight(
    field: str, text: str, words: str, env: World, browse: Browse
) -> None:
    response = browse(env.ada).post("/deployments/new", {**DEPLOYMENT, field: text})
    assert (response.status_code, words in text_of(response)) == (422, True)
    assert "<details open>" in text_of(response)
    assert not env.kubernetes.objects


def test_what_was_cleared_in_the_form_is_cleared_in_the_spec(env: World, browse: Browse) -> None:
    spec = world.spec(constraints={"cel": []}, healthChecks=[{"kind": "Buoy"}], progressDeadlineMinutes=5)
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    world.submit_spec(env.cluster, live, env.rita)
    given = {**DEPLOYMENT, "constraints": "", "health_checks": "", "generation": live["metadata"]["generation"]}
    assert browse(env.ada).post("/deployments/prod/barge/edit", given).status_code == 302
    changed = env.kubernetes.objects["barge"]["spec"]
    assert (changed.get("constraints"), changed.get("healthChecks")) == (None, None)
    assert changed["progressDeadlineMinutes"] == 5


def test_the_form_says_what_a_source_of_each_kind_needs(env: World, browse: Browse) -> None:
    page = text_of(browse(env.ada).get("/deployments/new"))
    assert [words in page for words in ("<legend>Git repository</legend>", "<legend>Private source</legend>")] == [
        True,
        True,
    ]
    label = page[page.index('<label for="id_image">') :]
    assert "(optional)" not in label[: label.index("</label>")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_of_other_kinds_than_the_chosen_one_are_hidden(kind: str) -> None:
    styles = (settings.BASE_DIR / "static/css/forms.css").read_text()
    chosen = f'form:has(#id_kind option[value="{kind}"]:checked)'
    assert f"{chosen} .source:not(.source-{kind}, :has(.wrong))" in styles


def test_a_deployment_that_moved_meanwhile_is_not_overwritten(env: World, browse: Browse) -> None:
    live = env.kubernetes.create(
        env.cluster, {"metadata": {"name": "barge"}, "spec": world.spec()}, as_person=Identity("x")
    )
    world.submit_spec(env.cluster, live, env.rita)
    response = browse(env.ada).post("/deployments/prod/barge/edit", {**DEPLOYMENT, "generation": "7"})
    assert response.status_code == 409
    assert 'href="/deployments/prod/barge"' in text_of(response)
    assert env.kubernetes.objects["barge"]["spec"] == world.spec()


def test_who_may_not_change_a_deployment_is_told_before_they_type(env: World, request_: Any, browse: Browse) -> None:
    path, words = "/deployments/prod/strimzi/edit", "Kubernetes does not allow ada to update"
    assert words in text_of(browse(env.ada).get(path))
    env.kubernetes.allow("ada", "update")
    cache.clear()
    assert words not in text_of(browse(env.ada).get(path))


def test_pausing_needs_a_reason_and_deleting_the_name(env: World, browse: Browse) -> None:
    live = env.kubernetes.create(
        env.cluster, {"metadata": {"name": "barge"}, "spec": world.spec()}, as_person=Identity("x")
    )
    world.submit_spec(env.cluster, live, env.rita)
    for verb in ("update", "delete"):
        env.kubernetes.allow("ada", verb)
    client = browse(env.ada)
    assert client.post("/deployments/prod/barge/pause", {"pause": "yes"}).status_code == 422
    assert client.post("/deployments/prod/barge/pause", {"pause": "yes", "reason": "storm"}).status_code == 302
    assert BundleDeployment.objects.get().is_paused
    assert "Paused by ada: storm." in client.get("/deployments/prod/barge").content.decode()
    assert client.post("/deployments/prod/barge/pause", {"pause": "no"}).status_code == 302
    assert not BundleDeployment.objects.get().is_paused
    assert client.post("/deployments/prod/barge/delete", {"typed": "barg"}).status_code == 422
    assert BundleDeployment.objects.get().deletion_requested_at is None
    assert client.post("/deployments/prod/barge/delete", {"typed": "barge"}).status_code == 302
    assert BundleDeployment.objects.get().deletion_requested_at


def test_a_deployment_says_what_it_asks_for(env: World, browse: Browse) -> None:
    spec = world.spec(drift="Report", collisionProtection="IfNoController", constraints={"cel": [{"expression": "a"}]})
    live = world.seen("barge", spec)
    live["metadata"]["labels"] = {"team": "harbour", "tier": ""}
    world.submit_spec(env.cluster, live, env.rita)
    page = text_of(browse(env.ada).get("/deployments/prod/barge"))
    for words in (
        "the difference is only reported",
        "unless it has a controller",
        "expression a",
        "team=harbour, tier=",
    ):
        assert words in page


@pytest.mark.parametrize(
    ("chosen", "status", "written"),
    [("Orphan", 302, "Orphan"), ("Delete", 302, None), ("", 302, None), ("Keep", 422, None)],
)
def test_who_asks_for_deletion_says_what_becomes_of_the_objects(
    env: World, browse: Browse, chosen: str, status: int, written: str | None
) -> None:
    live = env.kubernetes.create(
        env.cluster, {"metadata": {"name": "barge"}, "spec": world.spec()}, as_person=Identity("x")
    )
    world.submit_spec(env.cluster, live, env.rita)
    for verb in ("update", "delete"):
        env.kubernetes.allow("ada", verb)
    answer = browse(env.ada).post("/deployments/prod/barge/delete", {"typed": "barge", "policy": chosen})
    assert answer.status_code == status
    assert env.kubernetes.objects["barge"]["spec"].get("deletionPolicy") == written
    assert bool(BundleDeployment.objects.get().deletion_requested_at) is (status == 302)


# The API server's own words, of 1.36: the legacy verb, and either half of constrained impersonation.
NOT_AS_ADA = {
    "legacy": 'users "ada" is forbidden: User "system:serviceaccount:pratique:web" cannot impersonate resource "users"'
    ' in API group "" at the cluster scope',
    "constrained": 'users.authentication.k8s.io "ada" is forbidden: User "system:serviceaccount:pratique:web" cannot'
    ' impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope',
    "the other half": 'bundledeployments.core.rukpak.io is forbidden: User "system:serviceaccount:pratique:web" cannot'
    ' impersonate-on:user-info:create resource "bundledeployments" in API group "core.rukpak.io" at the cluster scope',
}


@pytest.mark.parametrize("server_words", NOT_AS_ADA.values(), ids=NOT_AS_ADA)
@pytest.mark.parametrize("door", ["page", "REST"])
def test_S31_where_we_may_not_act_as_the_person_the_operators_command_is_named(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch, server_words: str, door: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Forbidden("creating BundleDeployment barge is refused", server_words=server_words)

    monkeypatch.setattr(env.kubernetes, "create", refuse)
    client = browse(env.ada)
    if door == "page":
        answer = client.post("/deployments/new", DEPLOYMENT)
        said = text_of(answer)
    else:
        wish = {"cluster": "prod", "name": "barge", "spec": world.spec(), "labels": {}}
        answer = client.post("/api/v1/deployments", wish, content_type="application/json")
        assert answer.json()["code"] == "missing-right"
        said = answer.json()["detail"]
    assert answer.status_code == 503
    assert "Pratique is not allowed to impersonate ada on cluster prod, so nothing was written" in said
    assert "pratique-manage rights --cluster prod | kubectl apply -f -" in said
    assert "system:serviceaccount" not in said


def test_a_person_who_may_not_write_reads_the_servers_own_words(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = 'bundledeployments.core.rukpak.io is forbidden: User "ada" cannot create resource "bundledeployments"'

    def refuse(*_: object, **__: object) -> None:
        raise Forbidden("creating BundleDeployment barge is refused", server_words=words)

    monkeypatch.setattr(env.kubernetes, "create", refuse)
    answer = browse(env.ada).post("/deployments/new", DEPLOYMENT)
    assert answer.status_code == 403
    assert "cannot create resource" in text_of(answer)
    assert "pratique-manage" not in text_of(answer)


def test_every_error_stands_by_its_field_and_the_first_has_the_focus(env: World, browse: Browse) -> None:
    wrong = {"service_account": "", "image": "", "secret": "a/b/c", "deadline": "0", "constraints": "{typed: kept"}
    shown = text_of(browse(env.ada).post("/deployments/new", {**DEPLOYMENT, **wrong}))
    for name in wrong:
        assert f'<a href="#id_{name}">' in shown
        assert shown.count(f'id="id_{name}_error"') == 1
    assert re.findall(r'name="(\w+)"[^>]*\bautofocus\b', shown) == ["service_account"]
    assert ("{typed: kept" in shown, 'value="a/b/c"' in shown, "team=harbour" in shown) == (True, True, True)


def test_an_error_of_a_field_that_is_not_on_the_screen_is_said(env: World, browse: Browse, request_: Any) -> None:
    answer = browse(env.ada).post("/deployments/prod/strimzi/edit", {**DEPLOYMENT, "generation": "-1"})
    assert answer.status_code == 422
    assert "greater than or equal to 0" in text_of(answer)


def test_a_form_that_nobody_has_sent_moves_no_focus(env: World, browse: Browse) -> None:
    assert "autofocus" not in text_of(browse(env.ada).get("/deployments/new"))


@pytest.mark.parametrize(
    ("interval", "is_taken"), [("10m", True), ("1h30m", True), ("Never", True), ("off", False), ("", True)]
)
def test_the_form_writes_how_often_a_source_is_checked(
    interval: str, is_taken: bool, env: World, browse: Browse
) -> None:
    client = browse(env.ada)
    assert 'name="interval"' in text_of(client.get("/deployments/new"))
    response = client.post("/deployments/new", {**DEPLOYMENT, "name": "barge", "interval": interval})
    assert response.status_code == (302 if is_taken else 422)
    if is_taken:
        assert env.kubernetes.objects["barge"]["spec"]["sources"][0].get("interval", "") == interval
    else:
        assert "Enter a time such as 10m or 1h30m, or Never." in text_of(response)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        pytest.param(
            {"rest": "format: helm", "config": "valuesFrm: []"},
            "spec.config has valuesFrm (did you mean valuesFrom?); a chart takes values",
            id="unknown",
        ),
        pytest.param(
            {"rest": "format: registry-v1", "config": "deploymentConfig: {resources: {limts: {}}}"},
            "spec.config.deploymentConfig.resources has &#x27;limts&#x27;, which is no field there; did you mean limits?",
            id="by the schema",
        ),
        pytest.param(
            {"rest": "format: registry-v1", "config": "deploymentConfig: {env: 1}"},
            "config.deploymentConfig.env",
            id="another type",
        ),
        pytest.param({"config": "patches: [{ptch: a}]"}, "(did you mean patch?)", id="a patch"),
        pytest.param({"kind": "catalog", "package": "p"}, "Name a Catalog or select by labels.", id="no catalog"),
    ],
)
def test_a_config_that_no_content_could_have_is_refused_in_its_field(
    form: dict[str, str], words: str, env: World, browse: Browse
) -> None:
    answer = browse(env.ada).post("/deployments/new", {**DEPLOYMENT, **form})
    assert (answer.status_code, words in text_of(answer)) == (422, True)
    assert not env.kubernetes.objects


def test_what_the_command_and_rest_say_of_a_config_is_what_the_form_says(env: World) -> None:
    with pytest.raises(BadConfig) as said:
        check_config("helm", {"valuesFrm": []})
    spec = world.spec(format="helm", config={"valuesFrm": []})
    with pytest.raises(InvalidInput, match="did you mean valuesFrom") as refusal:
        services.create_deployment(
            by=world.acting(env.ada), cluster=env.cluster, name="barge", spec=spec, labels={}, via="rest"
        )
    assert str(refusal.value) == f"spec.{said.value}"


def helm_deployment(env: World) -> BundleDeployment:
    spec = world.spec(format="helm", config={"values": {"replicaCount": 3}})
    live = env.kubernetes.create(env.cluster, {"metadata": {"name": "barge"}, "spec": spec}, as_person=Identity("x"))
    deployment = world.submit_spec(env.cluster, live, env.rita)
    chart = {"replicaCount": "3", "image.tag": '"1.2"', "db.password": '"***"', "node\\.os": '"linux"'}
    deployment.requests.update(chart_values=chart)
    return deployment


@pytest.mark.parametrize(
    ("config", "key", "answer"),
    [
        pytest.param(
            "", "values.image.tag", ["values:\n  image:\n    tag: ", "values.image.tag was added."], id="chart"
        ),
        pytest.param("values: {a: 1}", "values.node\\.os", ["node.os: linux", "a: 1"], id="a name with a dot"),
        pytest.param("", "values.db.password", ["password: &quot;&quot;"], id="no secret is put in"),
        pytest.param(
            "", "values.replicaCuont", ["replicaCuont:", "did you mean values.replicaCount?"], id="unknown value"
        ),
        pytest.param("", "valuesFrm", ["has no config key valuesFrm; did you mean valuesFrom?"], id="unknown key"),
        pytest.param("values: {a: 1}", "values.a.b", ["values.a is no mapping"], id="in the way"),
        pytest.param("releaseName: x", "releaseName", ["releaseName is there already."], id="twice"),
        pytest.param("a: [", "values", ["Nothing was added: Config", "a: ["], id="no YAML"),
        pytest.param("", " ", ["Type or pick the path of a key first."], id="nothing"),
    ],
)
def test_a_key_is_put_into_the_config_that_is_typed(
    config: str, key: str, answer: list[str], env: World, browse: Browse
) -> None:
    helm_deployment(env)
    given = {**DEPLOYMENT, "rest": "format: helm", "config": config, "config_key": key}
    page = text_of(browse(env.ada).post("/deployments/prod/barge/config-key", given))
    assert [words for words in answer if words not in page] == []
    assert '<option value="values.image.tag">' in page


def test_S09_values_of_a_chart_are_offered_only_to_who_may_get_the_deployment(env: World, browse: Browse) -> None:
    helm_deployment(env)
    given = {**DEPLOYMENT, "rest": "format: helm"}
    env.kubernetes.closed.add("bundledeployments")
    page = text_of(browse(env.ada).post("/deployments/prod/barge/config-key", given))
    assert '<option value="valuesFrom">' in page
    assert "image.tag" not in page


def test_a_new_deployment_is_offered_the_keys_of_its_format(env: World, browse: Browse) -> None:
    given = {**DEPLOYMENT, "rest": "format: registry-v1", "config_key": "deploymentConfig.resources.limits"}
    page = text_of(browse(env.ada).post("/deployments/config-key", given))
    assert "deploymentConfig:\n  resources:\n    limits: {}" in page
    assert '<option value="deploymentConfig.tolerations">' in page
