"""`pratique-manage rights` on a real API server, and on the sandbox: from rows to YAML that kubectl takes."""

from __future__ import annotations

import uuid
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from approvals.access.port import connect
from approvals.catalogs.schedule import assign_authors
from approvals.models import BundleDeployment, Catalog, Cluster, KubernetesIdentity, Request, Revision
from approvals.rights.known_names import registered
from approvals.rights.missing_rights import choose_form, shown_version
from approvals.rights.needs import ImpersonationForm
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.render import load_all
from tests.support.approvals import world
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled

SOURCES = [
    {"kind": "configMap", "configMap": {"name": "bundle"}},
    {"kind": "git", "git": {"repository": "https://x", "auth": {"secret": {"name": "key", "namespace": "keys"}}}},
]


@pytest.fixture(params=[pytest.param("controlplane", marks=pytest.mark.controlplane), "sandbox"])
def cluster(request: pytest.FixtureRequest, db: None) -> Cluster:
    endpoint: Endpoint = request.getfixturevalue(request.param)
    made = Cluster.objects.create(
        name="prod", uid="u", kubeconfig=endpoint.kubeconfig("mallory"), created_at=timezone.now()
    )
    identify(made, "alice", ["platform"])
    identify(made, "rita", ["requesters", "system:masters"])
    gone = identify(made, "gone", ["former"])
    User.objects.filter(pk=gone.pk).update(is_active=False)
    return made


def identify(cluster: Cluster, name: str, groups: list[str]) -> User:
    user = User.objects.create_user(name)
    KubernetesIdentity.objects.create(
        user=user,
        cluster=cluster,
        authenticator="token-review",
        username=name,
        groups=groups,
        groups_seen_at=timezone.now(),
    )
    return user


def wished(cluster: Cluster, namespace: str = "harbour", account: str = "crane", **about: Any) -> Request:
    """A wish for `namespace`/`account` whose requesters passed the check; `about` are columns of its request."""
    spec = {"installNamespace": namespace, "serviceAccountName": account, "sources": SOURCES}
    deployment = world.submit_spec(cluster, world.seen("quay", spec))
    Request.objects.filter(deployment=deployment).update(**{"is_installer_proved": True, **about})
    return deployment.requests.get()


def rights(*words: str) -> tuple[list[Any], str]:
    """The objects that are printed, and what is said beside them."""
    out, err = StringIO(), StringIO()
    call_command("rights", "--cluster", "prod", *words, stdout=out, stderr=err)
    return [one for one in yaml.safe_load_all(out.getvalue()) if one], err.getvalue()


def names_in(objects: list[Any], resource: str) -> list[list[str]]:
    rules = [rule for one in objects for rule in one.get("rules", [])]
    return [rule.get("resourceNames", ["*"]) for rule in rules if resource in rule["resources"]]


def test_the_form_is_the_one_that_the_cluster_serves_and_it_says_why(cluster: Cluster) -> None:
    assert choose_form(connect(cluster)).form is ImpersonationForm.CONSTRAINED
    objects, said = rights()
    assert "prod: the constrained form, because the API server (v1.36) checks the verbs" in said
    assert [one["metadata"]["name"] for one in objects] == ["pratique-web-impersonates"] * 2
    objects, said = rights("--form", "legacy")
    assert "the legacy form, because --form says so" in said
    assert names_in(objects, "users") == [["alice", "rita"]]
    assert names_in(objects, "groups") == [["platform", "requesters"]]
    assert "never impersonated, so not listed: system:masters" in said


def test_roles_name_what_is_registered_and_what_will_be(cluster: Cluster) -> None:
    wished(cluster)
    objects, _ = rights("--installer", "later/robot", "--user", "zoe", "--group", "guests", "--named")
    by_place = {
        one["metadata"].get("namespace", ""): one
        for one in objects
        if one["metadata"]["name"].startswith("pratique-worker")
    }
    assert set(by_place) == {"", "harbour", "keys", "later"}
    assert ["alice", "rita", "zoe"] in names_in(objects, "users")
    assert ["guests", "platform", "requesters"] in names_in(objects, "groups")
    assert names_in(objects, "secrets") == [["key"]]
    assert names_in(objects, "configmaps") == [["bundle"]]
    assert names_in(objects, "serviceaccounts") == [["crane"], ["robot"]] * 2


def test_S31_a_wish_alone_gives_no_right_to_the_control_planes_accounts_and_secrets(cluster: Cluster) -> None:
    """Whoever may write a wish names its account, and an administrator applies what is printed."""
    git = {"repository": "https://x", "auth": {"secret": {"name": "root", "namespace": "pratique"}}}
    spec = {"installNamespace": "kube-system", "serviceAccountName": "namespace-controller"}
    world.submit_spec(cluster, world.seen("quay", {**spec, "sources": [{"kind": "git", "git": git}]}))
    Request.objects.update(is_installer_proved=True)
    objects, said = rights("--named")
    assert names_in(objects, "serviceaccounts") == []
    assert names_in(objects, "secrets") == []
    assert "accounts: Secret pratique/root, kube-system/namespace-controller." in said
    objects, said = rights("--installer", "kube-system/namespace-controller")
    assert ["namespace-controller"] in names_in(objects, "serviceaccounts")
    assert "accounts: Secret pratique/root." in said


# In the legacy form whoever may read a Secret is named, and not the Secret.
NAMED = {
    ImpersonationForm.CONSTRAINED: ["crane", "kim", "night", "bundle", "key"],
    ImpersonationForm.LEGACY: ["crane", "kim", "night"],
}
UNPROVED = "ConfigMap harbour/bundle, Secret keys/key, harbour/crane."


def asked_by(*names: str) -> list[dict[str, Any]]:
    return [{"username": name, "groups": ["night"], "uid": "", "via": "browser"} for name in names]


@pytest.mark.parametrize(
    ("about", "is_named"),
    [
        pytest.param({"is_installer_proved": False}, False, id="nobody was asked yet"),
        pytest.param({"is_installer_proved": True}, True, id="its requesters passed"),
        pytest.param({"is_installer_proved": True, "state": "failed"}, False, id="they passed, and it failed since"),
        pytest.param({"is_installer_proved": False, "state": "failed"}, False, id="they did not pass"),
        pytest.param({"is_installer_proved": False, "state": "denied"}, False, id="denied"),
        pytest.param({"is_installer_proved": False, "service_account_uid": "u-1"}, True, id="prepared before"),
    ],
)
def test_S31_what_somebody_merely_wrote_in_a_wish_gives_no_right(
    cluster: Cluster, about: dict[str, Any], is_named: bool
) -> None:
    """An administrator pipes what is printed into kubectl."""
    more = {"subject_digest": "sha256:x"} if about.get("state") == "denied" else {}
    wished(cluster, requesters=asked_by("kim"), is_requester_known=True, **about, **more)
    for form in ImpersonationForm:
        objects, said = rights("--form", form, "--named")
        found = {name for names in map(sum_of, objects) for name in names}
        assert [name in found for name in NAMED[form]] == [is_named] * len(NAMED[form])
        assert (f"is allowed to use these has requested them: {UNPROVED}" in said) is not is_named
    assert ("harbour", "crane") in {*registered(cluster, connect(cluster)).installers} or not is_named


@pytest.mark.parametrize("form", ImpersonationForm)
@pytest.mark.parametrize("is_proved", [False, True])
def test_S31_what_a_catalog_names_is_read_as_who_wrote_it_once_they_passed_the_check(
    cluster: Cluster, form: ImpersonationForm, is_proved: bool
) -> None:
    auth = {"secret": {"name": "pull", "namespace": "keys"}}
    spec = {"source": {"kind": "image", "image": {"ref": "example.com/catalog", "auth": auth}}}
    Catalog.objects.create(
        cluster=cluster,
        uid="u-1",
        name="port",
        generation=1,
        resource_version="1",
        spec=spec,
        authors=assign_authors([], spec, {"username": "kim", "groups": ["night"]}),
        is_writer_proved=is_proved,
        seen_at=timezone.now(),
    )
    objects, said = rights("--form", form, "--process", "worker")
    found = {name for names in map(sum_of, objects) for name in names}
    expected = {"kim", "night"} | ({"pull"} if form is ImpersonationForm.CONSTRAINED else set())
    assert expected & found == (expected if is_proved else set())
    assert ("Secret keys/pull" in said) is not is_proved


def sum_of(obj: Any) -> list[str]:
    return [name for rule in obj.get("rules", []) for name in rule.get("resourceNames", [])]


def test_S31_what_runs_keeps_its_rights_whatever_is_wished_for_since(cluster: Cluster) -> None:
    request = wished(cluster, is_installer_proved=False)
    revision = Revision.objects.create(
        deployment=request.deployment,
        request=request,
        number=1,
        content=world.in_review(request).content,
        state="active",
        started_at=timezone.now(),
    )
    BundleDeployment.objects.update(active_revision=revision)
    Request.objects.update(state="applied", service_account_uid="")
    BundleDeployment.objects.update(spec={"installNamespace": "kube", "serviceAccountName": "root", "sources": []})
    objects, said = rights()
    assert names_in(objects, "serviceaccounts") == [["crane"]] * 2
    assert "requested them: kube/root." in said


def test_S31_the_operator_names_the_account_of_a_wish_whose_requester_nobody_knows(cluster: Cluster) -> None:
    wished(cluster, is_installer_proved=False)
    objects, said = rights("--installer", "harbour/crane")
    assert ["crane"] in names_in(objects, "serviceaccounts")
    assert "requested them: ConfigMap harbour/bundle, Secret keys/key." in said


ROBOT = "system:serviceaccount:ci:robot"


@pytest.mark.parametrize("form", ImpersonationForm)
def test_S31_the_worker_reads_for_an_account_and_cannot_be_it(cluster: Cluster, form: ImpersonationForm) -> None:
    """With the verbs that installers need, being the account would be all that the account may."""
    wished(cluster, requesters=asked_by(ROBOT), is_requester_known=True)
    objects, _ = rights("--form", form, "--process", "worker")
    assert names_in(objects, "serviceaccounts") == [["crane"]]
    rules = [rule for one in objects for rule in one.get("rules", []) if rule["resources"] == ["secrets"]]
    assert {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["key"]} in rules


def test_S31_one_account_for_all_processes_says_which_halves_it_joins(
    cluster: Cluster, settings: Any, request: pytest.FixtureRequest
) -> None:
    identify(cluster, ROBOT, [])
    wished(cluster)
    _, said = rights("--account", "ops/pratique")
    assert (
        "with one account for all processes, acting as ci/robot also grants what the account may do as an installing account"
        in said
    )
    assert "one account for all" in rights()[1], "all processes come by the registered kubeconfig"
    assert "one account for all" not in rights("--account", "ops/pratique", "--installer", "ci/robot")[1]
    install(cluster, request, settings)
    assert "one account for all" not in rights()[1], "each process has an account of its own"


def test_whoever_asked_for_an_open_request_is_named_with_the_groups_of_then(cluster: Cluster) -> None:
    wished(cluster)
    asked = [{"username": "kim", "groups": ["night"], "uid": "", "via": "browser"}]
    Request.objects.update(requesters=asked)
    known = registered(cluster, connect(cluster))
    assert (known.readers, "night" in known.groups) == ({"kim"}, True)
    Request.objects.update(state="failed")
    assert registered(cluster, connect(cluster)).readers == frozenset()


def test_one_account_for_all_processes_is_the_operators_choice(cluster: Cluster) -> None:
    objects, _ = rights("--account", "ops/pratique", "--process", "web")
    assert [one["subjects"] for one in objects if "subjects" in one] == [
        [{"kind": "ServiceAccount", "name": "pratique", "namespace": "ops"}]
    ]


def subjects_in(objects: list[Any]) -> list[dict[str, str]]:
    return [subject for one in objects for subject in one.get("subjects", [])]


def install(cluster: Cluster, request: pytest.FixtureRequest, settings: Any) -> str:
    """What deploy/ has of accounts and roles, under names of this test alone; the namespace of the accounts.

    The command asks as who may ask about others, as web and worker may.
    """
    endpoint: Endpoint = request.getfixturevalue(request.node.callspec.params["cluster"])
    api, namespace = (
        Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60)),
        f"own-{uuid.uuid4().hex[:8]}",
    )
    about = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    for role in yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text()):
        name, process = f"{namespace}-{role['metadata']['name']}", role["metadata"]["name"].removeprefix("pratique-")
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        who = [{"kind": "ServiceAccount", "name": process, "namespace": namespace}]
        api.create({**role, "metadata": {"name": name}})
        api.create({**about, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": ref, "subjects": who})
    settings.PRATIQUE = {**settings.PRATIQUE, "NAMESPACE": namespace}
    cluster.kubeconfig = endpoint.kubeconfig("admin")
    cluster.save()
    return namespace


def test_S31_the_rights_are_the_same_wherever_the_command_runs(
    cluster: Cluster, settings: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What one process alone was given says nothing of the others: the register and the cluster do."""
    endpoint: Endpoint = request.getfixturevalue(request.node.callspec.params["cluster"])
    (tmp_path / "prod").write_text(endpoint.kubeconfig("admin"))
    elsewhere = {"KUBECONFIGS_DIR": str(tmp_path)}
    before, _ = rights()
    settings.PRATIQUE = {**settings.PRATIQUE, **elsewhere}
    assert rights()[0] == before
    assert subjects_in(before)[0]["name"] == "mallory"
    with pytest.raises(CommandError, match="the account of web lacks permissions"):
        call_command("rights", "--cluster", "prod", "--check", stdout=StringIO())
    cluster.kubeconfig = without_user(cluster.kubeconfig)
    cluster.save()
    assert subjects_in(rights()[0]) == [{"kind": "ServiceAccount", "name": "web", "namespace": "pratique"}]


def without_user(kubeconfig: str) -> str:
    config = yaml.safe_load(kubeconfig)
    users = [{**one, "user": {}} for one in config["users"]]
    return yaml.safe_dump({**config, "users": users})


def test_S31_the_rights_are_for_who_the_registered_kubeconfig_is(
    cluster: Cluster, settings: Any, request: pytest.FixtureRequest
) -> None:
    """All processes come as that one: roles for the accounts of others would mend nothing."""
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
    objects, said = rights()
    assert subjects_in(objects) == [user]
    assert "prod: for user mallory, because the registered kubeconfig is theirs" in said
    objects, said = rights("--account", "ops/pratique")
    assert {one["name"] for one in subjects_in(objects)} == {"pratique"}
    assert "the registered kubeconfig" not in said
    # Where the accounts of deploy/ hold their roles, each process comes as one of them.
    namespace = install(cluster, request, settings)
    objects, said = rights()
    assert subjects_in(objects) == [{"kind": "ServiceAccount", "name": "web", "namespace": namespace}]
    assert "the registered kubeconfig" not in said


def test_S31_an_account_whose_token_is_registered_gets_the_rights_of_all_processes(
    cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    endpoint: Endpoint = request.getfixturevalue(request.node.callspec.params["cluster"])
    api, name = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60)), f"robot-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}})
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    config = yaml.safe_load(cluster.kubeconfig)
    config["users"][0]["user"] = {"token": api.post(path, {"spec": {}}, subject=name)["status"]["token"]}
    cluster.kubeconfig = yaml.safe_dump(config)
    cluster.save()
    wished(cluster)
    objects, said = rights("--form", "legacy", "--installer", "later/robot")
    account = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    assert subjects_in(objects) == [account] * len([one for one in objects if one["kind"].endswith("Binding")])
    assert f"prod: for ServiceAccount default/{name}, because" in said
    with pytest.raises(CommandError, match="the account of worker lacks permissions"):
        call_command("rights", "--cluster", "prod", "--check", stdout=StringIO())


def test_what_is_printed_is_the_same_each_time(cluster: Cluster) -> None:
    wished(cluster)
    texts = set()
    for _ in range(3):
        out = StringIO()
        call_command("rights", "--cluster", "prod", "--named", stdout=out, stderr=StringIO())
        texts.add(out.getvalue())
    (text,) = texts
    assert "&id" not in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--cluster", "nowhere"], "cluster nowhere is not registered; registered: prod"),
        (["--cluster", "prod", "--installer", "crane"], "expected NAMESPACE/NAME"),
        (["--cluster", "prod", "--form", "both"], "invalid choice"),
    ],
)
def test_what_cannot_be_printed_is_said_in_words(cluster: Cluster, words: list[str], expected: str) -> None:
    with pytest.raises(CommandError, match=expected):
        call_command("rights", *words, stdout=StringIO(), stderr=StringIO())


def test_a_name_is_never_more_than_a_name_in_what_is_applied(cluster: Cluster) -> None:
    identify(cluster, "eve\n---\nkind: ClusterRoleBinding", ["a: b", "*"])
    objects, _ = rights("--form", "legacy", "--process", "web")
    assert [one["kind"] for one in objects] == ["ClusterRole", "ClusterRoleBinding"]
    assert ["alice", "eve\n---\nkind: ClusterRoleBinding", "rita"] in names_in(objects, "users")
    assert shown_version("v1.36.3\n---\nkind: ClusterRoleBinding") == "v1.36"
    assert shown_version("\n---\nx") == "of an unknown version"


def test_S31_a_name_that_looks_like_a_number_or_a_truth_is_read_by_kubectl_as_a_name(cluster: Cluster) -> None:
    """Else the right would be for somebody else, or for nobody."""
    for name in ("1e3", "0o17", "yes", "2001-01-01"):
        identify(cluster, name, [f"{name}0"])
    out = StringIO()
    call_command("rights", "--cluster", "prod", "--form", "legacy", stdout=out, stderr=StringIO())
    for name in ("1e3", "0o17", "yes", "2001-01-01", "1e30", "0o170"):
        assert f'- "{name}"\n' in out.getvalue()
    (first, *_) = load_all(out.getvalue(), name="printed")
    assert names_in([first], "users") == [["0o17", "1e3", "2001-01-01", "alice", "rita", "yes"]]


@pytest.mark.parametrize(("more", "process"), [((), "web"), (("--process", "watch"), "watch")])
def test_what_an_account_lacks_is_said_with_the_command_that_prints_it(
    cluster: Cluster, request: pytest.FixtureRequest, more: tuple[str, ...], process: str
) -> None:
    endpoint: Endpoint = request.getfixturevalue(request.node.callspec.params["cluster"])
    cluster.kubeconfig = endpoint.kubeconfig("admin")
    cluster.save()
    nobody = ("--account", "nowhere/nobody")
    with pytest.raises(CommandError) as refusal:
        call_command("rights", "--cluster", "prod", "--check", *nobody, *more, stdout=StringIO())
    words = str(refusal.value).splitlines()
    assert words[0].startswith(f"the account of {process} lacks permissions: ")
    assert f"bind the role pratique-{process} (deploy/rbac.yaml), and run: pratique-manage rights" in words[0]
    assert len(words) == (1 if more else 3)
