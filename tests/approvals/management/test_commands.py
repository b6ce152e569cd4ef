"""What operators type: clusters and who people are on them."""

from __future__ import annotations

import re
import stat
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.utils import timezone

from approvals import access, services
from approvals.access import port
from approvals.audit import Actor
from approvals.encryption.keys import new_key
from approvals.errors import InvalidInput
from approvals.management.commands import demo
from approvals.management.demo.seeds import BERTHS, cluster_objects
from approvals.models import ApiToken, AuditEntry, Cluster, KubernetesIdentity
from approvals.project.manage import Utility
from approvals.watch import loop
from provisioner import rbac
from provisioner.errors import BadSource
from provisioner.rbac import RbacObjects, RbacSubject
from provisioner.values import AccessRequest, ObjectRef
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import FakeKubernetes, acting

KUBECONFIG = """
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://cluster.example:6443"}}]
users: [{name: a, user: {token: secret}}]
"""


@pytest.fixture
def servers(db: None) -> Iterator[FakeKubernetes]:
    """Two addresses of one cluster, and another one."""
    fake = FakeKubernetes(
        servers={"cluster.example": "u-1", "address.example": "u-1", "in-cluster": "u-1", "other.example": "u-2"}
    )
    with access.using(fake):
        yield fake


def register(folder: Path, server: str, *options: str, name: str = "prod") -> Cluster:
    file = folder / "kubeconfig"
    file.write_text(KUBECONFIG.replace("cluster.example", server))
    call_command("register_cluster", name, "--kubeconfig", str(file), *options)
    return Cluster.objects.get(name=name)


def test_a_cluster_is_registered_and_given_another_kubeconfig(servers: FakeKubernetes, tmp_path: Path) -> None:
    assert register(tmp_path, "cluster.example").uid == "u-1"
    cluster = register(tmp_path, "address.example", "--replace")
    assert ("address.example" in cluster.kubeconfig, cluster.uid) == (True, "u-1")
    call_command("register_cluster", "prod", "--in-cluster", "--replace")
    assert Cluster.objects.get().kubeconfig == ""
    assert [entry.facts["new"] for entry in AuditEntry.objects.order_by("number")] == [True, False, False]


def test_a_known_cluster_keeps_its_kubeconfig_unless_replacing_was_asked_for(
    servers: FakeKubernetes, tmp_path: Path
) -> None:
    register(tmp_path, "cluster.example")
    register(tmp_path, "cluster.example")
    words = "cluster prod is already registered with another kubeconfig; to replace it, add --replace"
    with pytest.raises(CommandError, match=words):
        register(tmp_path, "address.example")
    assert "cluster.example" in Cluster.objects.get().kubeconfig
    with pytest.raises(CommandError, match="cluster prode is not registered; registered: prod"):
        register(tmp_path, "address.example", "--replace", name="prode")
    register(tmp_path, "address.example", "--replace")
    assert "address.example" in Cluster.objects.get().kubeconfig
    assert AuditEntry.objects.count() == 2


ANOTHER = "this is a different cluster: its namespace kube-system has uid u-2, and that of prod is u-1"
NOBODY_TELLS = "cannot verify that this is cluster prod.*forbidden.*, by --uid"
TAKEN = "that cluster is already registered as staging"


@dataclass(frozen=True)
class Replaced:
    """`recorded` is the uid of the cluster that is registered as cluster.example, `words` why it is not replaced."""

    recorded: str | None
    server: str
    options: tuple[str, ...] = ()
    words: str = ""
    uid_after: str | None = "u-1"


REPLACED = {
    "the same cluster": Replaced("u-1", "address.example"),
    "another one": Replaced("u-1", "other.example", words=ANOTHER),
    "another one, with the uid of this one": Replaced("u-1", "other.example", ("--uid", "u-1"), ANOTHER),
    "one that does not tell": Replaced("u-1", "silent.example", words=NOBODY_TELLS),
    "one that does not tell, by the operator's word": Replaced("u-1", "silent.example", ("--uid", "u-1")),
    "another one, by the operator's word": Replaced("u-1", "silent.example", ("--uid", "u-2"), ANOTHER),
    "never read: the same cluster": Replaced(None, "address.example"),
    "never read: another one": Replaced(None, "other.example", words=ANOTHER, uid_after=None),
    "never read: a new one does not tell": Replaced(None, "silent.example", words=NOBODY_TELLS, uid_after=None),
}


@pytest.mark.parametrize("case", REPLACED.values(), ids=REPLACED)
def test_S19_only_the_same_cluster_replaces_a_cluster(servers: FakeKubernetes, tmp_path: Path, case: Replaced) -> None:
    """Another one under the name would have its people, policies and requests: kube-system's uid tells them apart."""
    register(tmp_path, "cluster.example")
    Cluster.objects.update(uid=case.recorded)
    if case.words:
        with pytest.raises(CommandError, match=case.words):
            register(tmp_path, case.server, "--replace", *case.options)
    else:
        register(tmp_path, case.server, "--replace", *case.options)
    cluster = Cluster.objects.get()
    assert (case.server in cluster.kubeconfig, cluster.uid) == (not case.words, case.uid_after)


def test_S19_the_name_of_a_removed_cluster_stays_its_own(servers: FakeKubernetes, tmp_path: Path) -> None:
    cluster = register(tmp_path, "cluster.example")
    services.remove_cluster(cluster=cluster, by=Actor("test", "shell"))
    for server, name, words in (
        ("other.example", "prod", ANOTHER),
        ("silent.example", "prod", NOBODY_TELLS),
        ("cluster.example", "again", "that cluster was registered as prod, and removed"),
    ):
        with pytest.raises(CommandError, match=words):
            register(tmp_path, server, name=name)
    assert register(tmp_path, "silent.example", "--replace", "--uid", "u-1").uid == "u-1"


def test_S19_the_uid_of_a_cluster_that_never_answered_is_kept_when_it_is_replaced(
    servers: FakeKubernetes, tmp_path: Path
) -> None:
    assert register(tmp_path, "silent.example").uid is None
    assert register(tmp_path, "other.example", "--replace").uid == "u-2"
    with pytest.raises(CommandError, match="this is a different cluster"):
        register(tmp_path, "cluster.example", "--replace")


def test_S19_a_cluster_has_one_name(servers: FakeKubernetes, tmp_path: Path) -> None:
    register(tmp_path, "cluster.example", name="staging")
    with pytest.raises(CommandError, match=TAKEN):
        register(tmp_path, "address.example")
    register(tmp_path, "silent.example")
    with pytest.raises(CommandError, match=TAKEN):
        register(tmp_path, "address.example", "--replace")
    assert Cluster.objects.get(name="prod").uid is None


def test_S19_only_the_chosen_context_of_a_kubeconfig_is_kept(servers: FakeKubernetes, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    other = ", {name: b, context: {cluster: a, user: b}}]"
    text = KUBECONFIG.replace("user: a}}]", f"user: a}}}}{other}")
    file.write_text(text.replace("token: secret}}]", "token: secret}}, {name: b, user: {token: another}}]"))
    call_command("register_cluster", "prod", "--kubeconfig", str(file), "--context", "b")
    kept = Cluster.objects.get().kubeconfig
    assert "another" in kept
    assert "secret" not in kept


@pytest.mark.parametrize("door", ["the service itself", "a step"])
def test_S19_no_door_takes_a_kubeconfig_that_skips_the_check(db: None, settings: Any, door: str) -> None:
    bad = KUBECONFIG.replace('6443"', '6443", insecure-skip-tls-verify: true')
    settings.PRATIQUE = {**settings.PRATIQUE, "TRUSTED_KUBECONFIGS": ["prod"]}
    if door == "the service itself":
        with pytest.raises(InvalidInput, match="insecure-skip-tls-verify"):
            services.register_cluster(name="prod", kubeconfig=bad, by=Actor("test", "shell"))
        assert not Cluster.objects.exists()
    else:  # one from before, which the database holds already
        stored = Cluster.objects.create(name="prod", kubeconfig=bad, created_at=timezone.now())
        with pytest.raises(BadSource, match="insecure-skip-tls-verify"):
            port.connect(stored)


def test_S19_a_stored_kubeconfig_that_is_no_longer_accepted_is_said_on_its_cluster(db: None) -> None:
    bad = KUBECONFIG.replace("token: secret", "token: secret, as: root")
    stored = Cluster.objects.create(name="prod", kubeconfig=bad, created_at=timezone.now())
    stop = threading.Event()
    stop.wait = lambda *_: stop.set()
    loop._watch(stored, stop)
    stored.refresh_from_db()
    assert "has as; Pratique would ignore it" in stored.problem


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        pytest.param("Prod!", KUBECONFIG, "expected at most 63 lowercase letters", id="a bad name"),
        pytest.param("prod", "{}", "no context", id="no kubeconfig"),
        pytest.param("prod", KUBECONFIG.replace("token: secret", "exec: {command: evil}"), "exec", id="S19 a command"),
        pytest.param("prod", KUBECONFIG.replace("token: secret", "tokenFile: /etc/x"), "tokenFile", id="S19 a file"),
        pytest.param("prod", KUBECONFIG.replace("https", "http"), "plain text", id="S19 no TLS"),
        pytest.param("prod", KUBECONFIG.replace("token: secret", "token: t, as: root"), "has as;", id="S19 as root"),
        pytest.param(
            "prod", KUBECONFIG.replace('6443"', '6443", insecure-skip-tls-verify: true'), "insecure", id="S19 no check"
        ),
        pytest.param(
            "prod",
            KUBECONFIG.replace("user: a}}]", "user: a}}, {name: b, context: {cluster: a, user: a}}]"),
            r"2 contexts \(a, b\): choose one",
            id="S19 several contexts",
        ),
        pytest.param("prod", " ", "the file is empty", id="S19 nothing, which would be the own cluster"),
        pytest.param("prod", "#" * 2_000_000, "expected at most", id="S19 a huge file"),
        pytest.param("prod", "a: b\na: c", "stands twice", id="S19 a key twice"),
    ],
)
def test_S19_what_cannot_be_registered_is_said_and_not_kept(
    db: None, tmp_path: Path, name: str, text: str, words: str
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(CommandError, match=words):
        call_command("register_cluster", name, "--kubeconfig", str(file))
    assert not Cluster.objects.exists()


def test_a_local_user_is_mapped_and_stays_so_however_long_ago_that_was(env: World) -> None:
    wish = ("map_identity", "nora", "--cluster", env.cluster.name, "--as", "nora", "--group", "platform")
    call_command(*wish, "--create")
    call_command(*wish, "--create")
    call_command(*wish)
    nora = User.objects.get(username="nora")
    KubernetesIdentity.objects.filter(user=nora).update(groups_seen_at=timezone.now() - timedelta(days=400))
    identity = access.identity_of(acting(nora), env.cluster)
    assert identity is not None
    assert identity.groups == ("platform",)
    assert not nora.has_usable_password()
    assert access.still_known_of(nora, env.cluster, now=timezone.now()) == identity


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--cluster", "moon", "--as", "x"], "cluster moon is not registered", id="no such cluster"),
        pytest.param(["--cluster", "prod", "--as", "system:admin"], "system:", id="S01 a name of Kubernetes"),
        pytest.param(["--cluster", "prod", "--as", "x", "--group", "system:masters"], "system:", id="S01 a group"),
    ],
)
def test_S01_who_cannot_be_mapped(env: World, words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("map_identity", "nora", "--create", *words)
    assert not User.objects.filter(username="nora").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["map_identity", "adda", "--cluster", "prod", "--as", "x"], "account adda does not exist; check", id="map"
        ),
        pytest.param(
            ["forget_identity", "adda", "--cluster", "prod"], "account adda does not exist; pratique", id="forget"
        ),
        pytest.param(
            ["forget_identity", "ada", "--cluster", "prud"],
            "cluster prud is not registered; registered: prod",
            id="its cluster",
        ),
        pytest.param(["rights", "--cluster", "prud"], "cluster prud is not registered; registered: prod", id="rights"),
    ],
)
def test_a_slip_in_a_name_is_told_and_makes_nothing(env: World, words: list[str], message: str) -> None:
    before = User.objects.count(), KubernetesIdentity.objects.count(), Cluster.objects.count()
    with pytest.raises(CommandError, match=message):
        call_command(*words)
    assert (User.objects.count(), KubernetesIdentity.objects.count(), Cluster.objects.count()) == before


def test_S13_the_name_of_a_policy_is_nobodys(env: World) -> None:
    KubernetesIdentity.objects.filter(user=env.ada).update(
        username="pratique:policy:1", authenticator=KubernetesIdentity.Authenticator.TOKEN_REVIEW
    )
    assert access.identity_of(acting(env.ada), env.cluster) is None
    assert access.last_known_of(env.ada, env.cluster) is None


def test_S24_lists_for_operators_show_what_hides_and_no_secrets(env: World) -> None:
    env.cluster.problem = "gone \u202e\nfine"
    env.cluster.kubeconfig = KUBECONFIG
    env.cluster.save()
    KubernetesIdentity.objects.filter(user=env.ada).update(groups=["plat\u200bform"])
    now = timezone.now()
    ApiToken.objects.create(user=env.ada, name="ci", digest="d1gest", created_at=now, expires_at=now)
    told = StringIO()
    call_command("list_clusters", stdout=told)
    call_command("list_identities", stdout=told)
    words = told.getvalue()
    assert "prod" in words
    assert "ada is ada" in words
    assert "has the API token 'ci'" in words
    assert len(words.splitlines()) == 1 + 3 + 1
    assert not any(hidden in words for hidden in ("\u202e", "\u200b", "secret", "d1gest"))


def test_the_demos_own_command_has_its_settings_and_is_read_by_nobody_else(tmp_path: Path) -> None:
    program = tmp_path / "folder" / "pratique-manage"
    given = {"PRATIQUE_SECRET_KEY": "a 'quoted' $key", "PRATIQUE_ENCRYPTION_KEYS": new_key(), "DEMO_PASSWORD": "no"}
    demo.write_program(program, given)
    assert stat.S_IMODE(program.stat().st_mode) == 0o700
    assert "DEMO_PASSWORD" not in program.read_text()
    telling = f"import os; print([os.environ[it] for it in {[*given][:2]}])"
    text = program.read_text().replace("-m approvals.project.manage", f'-c "{telling}"')
    done = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([*given.values()][:2])


def test_commands_of_operators_load_no_page() -> None:
    """Django's checks load every page: half of the seconds that a command took."""
    ours = {name for name, app in get_commands().items() if app == "approvals"} - {"demo", "demo_seed", "watch"}
    checked = {name for name in ours if load_command_class("approvals", name).requires_system_checks}
    assert checked == set()


def test_help_lists_the_commands_of_this_service_with_a_sentence_each() -> None:
    text = Utility(["pratique-manage"]).main_help_text()
    ours = [name for name, app in get_commands().items() if app == "approvals"]
    listed = re.findall(r"^  ([a-z_]+) +(\S.*\.)$", text.partition("From Django:")[0], re.MULTILINE)
    assert sorted(ours) == [name for name, _ in listed]
    assert "account_unsetmultipleprimaryemails" not in text
    assert "migrate" in text.partition("From Django:")[2]


APPROVERS, OTHERS = RbacSubject("Group", "platform"), RbacSubject("Group", "developers")


def may(subject: RbacSubject, verb: str, group: str, resource: str) -> bool:
    rules = rbac.effective_rules(subject.identity, RbacObjects.of(cluster_objects()))
    return rbac.allows_in(rules, AccessRequest(verb, group, resource))


@pytest.mark.parametrize("verb", ["get", "list"])
def test_the_approver_of_the_demo_may_read_its_berths(verb: str) -> None:
    assert {ObjectRef.of(one).kind for one in BERTHS} == {"Berth"}
    assert may(APPROVERS, verb, "harbour.example.com", "berths")
    assert not may(OTHERS, verb, "harbour.example.com", "berths")


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiregistration.k8s.io", "apiservices"),
        ("storage.k8s.io", "storageclasses"),
        ("", "nodes"),
    ],
)
def test_the_approver_of_the_demo_may_read_what_stands_around_a_change(group: str, resource: str) -> None:
    assert may(APPROVERS, "get", group, resource)
    assert not may(OTHERS, "get", group, resource)


def test_nobody_of_the_demo_is_given_secrets_by_it() -> None:
    assert not may(APPROVERS, "get", "", "secrets")


def test_operators_label_clusters(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    world.cluster("east")
    call_command("label_cluster", "east", "ring=canary", "region=eu")
    call_command("label_cluster", "east", "region-", "env=")
    assert Cluster.objects.get().labels == {"ring": "canary", "env": ""}
    assert "east: env=, ring=canary" in capsys.readouterr().out
    assert AuditEntry.objects.filter(verb="cluster.labelled").count() == 2
    for wrong in ("ring", "=x", "a b=c", "ring=a\0", "x" * 300 + "=y", "-"):
        with pytest.raises(CommandError, match="expected KEY=VALUE or KEY-"):
            call_command("label_cluster", "east", wrong)
    with pytest.raises(CommandError, match="at most 20"):
        call_command("label_cluster", "east", *(f"k{number}=v" for number in range(20)))
