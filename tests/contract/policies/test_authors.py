"""Who wrote a BundleDeployment, on a real API server and by people with tokens of their own: nobody writes another's name.

The same writes as GitOps controllers make them: server-side apply with their field managers, and replacing. Everything
holds with the policy that stamps (Kubernetes 1.36) and with the webhook in its place.
"""

from __future__ import annotations

import base64
import itertools
import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest
import yaml

from approvals.admission import ANNOTATION, identity_in, stamp_for
from tests.contract.conftest import APPLY, MERGE, PATH, Reply, Request, Server
from tests.contract.policies.conftest import CREATED, FORBIDDEN, INVALID, OK, Prepare, cluster_rights, rule, wish
from tests.support.folders import ROOT
from tests.support.kubernetes import live
from tests.support.kubernetes.endpoint import USERS
from tests.support.servers.http import make_authority
from tests.support.servers.process import Options, answers_on, free_port
from tests.support.servers.process import Server as Process

pytestmark = pytest.mark.controlplane

ADMISSION = ROOT / "deploy/admission"
JSON_PATCH = "application/json-patch+json"
_numbers = itertools.count(1)


def stamp(user: str) -> str:
    """As the API server knows a user."""
    one = next(it for it in USERS if it.name == user)
    return stamp_for([one.name, one.uid, *one.groups, "system:authenticated"])


@dataclass(frozen=True)
class Writing:
    """An API server with our CRD and policies; alice, bob and carol may write BundleDeployments."""

    server: Server
    mark: str
    # What has the API server stamp.
    stamping: tuple[dict[str, Any], ...]

    def stop_stamping(self) -> None:
        for obj in self.stamping:
            self.server.ctl("delete", obj["kind"].lower(), obj["metadata"]["name"], "--ignore-not-found")

    def start_stamping(self) -> None:
        self.server.ctl("apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(self.stamping))

    def stamped(self) -> str:
        """What one that alice would create has."""
        return _stamped(self.create(self.submit_spec(), query="?dryRun=All"))

    def submit_spec(
        self, *, rhythm: str = "1", annotations: dict[str, str] | None = None, name: str = ""
    ) -> dict[str, Any]:
        about = {} if annotations is None else {"annotations": annotations}
        return wish(name or f"{self.mark}-{next(_numbers)}", rhythm, **about)

    def create(self, obj: dict[str, Any], user: str = "alice", query: str = "", **headers: str) -> Reply:
        return self.server.send(Request("POST", f"{PATH}{query}", obj, user=user, headers=headers))

    def created(self, user: str = "alice", **more: Any) -> dict[str, Any]:
        made = self.create(self.submit_spec(**more), user)
        assert made.code == CREATED, made.message
        return dict(made.body)

    def patch(self, obj: dict[str, Any], body: Any, user: str, *, below: str = "", kind: str = MERGE) -> Reply:
        return self.server.send(Request("PATCH", f"{PATH}/{obj['metadata']['name']}{below}", body, kind, user))

    def replace(self, obj: dict[str, Any], user: str, below: str = "") -> Reply:
        return self.server.send(Request("PUT", f"{PATH}/{obj['metadata']['name']}{below}", obj, user=user))

    def apply(self, obj: dict[str, Any], user: str, manager: str, *, force: bool = True) -> Reply:
        name = obj["metadata"]["name"]
        query = f"?fieldManager={manager}&force={str(force).lower()}"
        return self.server.send(Request("PATCH", f"{PATH}/{name}{query}", obj, APPLY, user))

    def stamp_now(self, obj: dict[str, Any]) -> str:
        live_now = self.server.ask("GET", f"{PATH}/{obj['metadata']['name']}").body
        return str((live_now["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


class Stamper(StrEnum):
    """What writes the author down."""

    POLICY = "policy"
    WEBHOOK = "webhook"


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """`pratique-manage admission` as a process without a database; what a configuration needs to find it."""
    folder = tmp_path_factory.mktemp("webhook")
    authority, port = make_authority(folder), free_port()
    files = ["--cert", authority.chain_file, "--key", authority.key_file]
    command = [sys.executable, ROOT / "manage.py", "admission", "--bind", f"127.0.0.1:{port}", *files]
    # What the tests' own process has set would be inherited.
    nothing = {name: "" for name in os.environ if name.startswith("PYTEST")}
    server = Process("webhook", command, folder / "log", Options(env=nothing))
    try:
        server.wait(lambda: answers_on(port))
        bundle = base64.b64encode(authority.ca_pem.encode()).decode()
        yield {"url": f"https://127.0.0.1:{port}/stamp", "caBundle": bundle}
    finally:
        server.stop()


def stamping_by(stamper: Stamper, answering: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """The shipped objects; of the webhook's the configuration, with an address of this machine."""
    if stamper is Stamper.POLICY:
        return tuple(yaml.safe_load_all((ADMISSION / "author-stamp.yaml").read_text()))
    shipped = yaml.safe_load_all((ADMISSION / "author-webhook.yaml").read_text())
    made = next(one for one in shipped if one["kind"] == "MutatingWebhookConfiguration")
    (hook,) = made["webhooks"]
    return ({**made, "webhooks": [{**hook, "clientConfig": answering}]},)


@pytest.fixture(scope="module", params=list(Stamper), ids=str)
def writing(request: pytest.FixtureRequest, answering: dict[str, Any], prepare: Prepare) -> Iterator[Writing]:
    mark = f"written-{uuid.uuid4().hex[:8]}"
    # Not `approve`: who has that says so.
    kinds = ("bundledeployments", "bundledeployments/status", "catalogs", "approvalpolicies")
    rules = [rule(*kinds, verbs=("get", "list", "create", "update", "patch", "delete"))]
    crds = ["crds/bundledeployments.yaml", "crds/catalogs.yaml", "crds/approvalpolicies.yaml"]
    files = [*crds, "admission/authors.yaml"]
    server = prepare(mark, files, cluster_rights(mark, rules, "alice", "bob", "carol"))
    here = Writing(server, mark, stamping_by(request.param, answering))
    # Journeys of the same run leave theirs, and then nothing forged would come as far as the validating policy.
    for stamper in Stamper:
        Writing(server, mark, stamping_by(stamper, answering)).stop_stamping()
    for user in ("alice", "bob", "carol"):
        here.server.until_may(user, "create", "bundledeployments", "core.rukpak.io")
    # A policy takes effect some seconds after it is there.
    forged = here.submit_spec(annotations={ANNOTATION: stamp("bob")})
    live.wait_until(lambda: here.create(forged, query="?dryRun=All").code == FORBIDDEN)
    here.start_stamping()
    live.wait_until(lambda: here.stamped() == stamp("alice"))
    yield here
    here.stop_stamping()
    live.wait_until(lambda: here.stamped() == "")
    for obj in here.server.ask("GET", PATH).body["items"]:
        if obj["metadata"]["name"].startswith(mark):
            here.server.ask("DELETE", f"{PATH}/{obj['metadata']['name']}")


def _stamped(reply: Reply) -> str:
    return str((reply.body["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def test_who_creates_one_is_written_down_with_uid_and_each_group(writing: Writing) -> None:
    made = writing.created("alice")
    assert made["metadata"]["annotations"][ANNOTATION] == stamp("alice")
    who = identity_in(stamp("alice"))
    assert who is not None
    assert (who.username, who.uid, who.groups) == ("alice", "uid-alice", ("platform", "system:authenticated"))


def _grant(writing: Writing, *names: str, **spec: Any) -> dict[str, Any]:
    about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "ApprovalPolicy"}
    said = {"effect": "Grant", "validations": [{"expression": "false"}], "validationActions": ["Audit"], **spec}
    said["matchConstraints"] = {"names": [*names]}
    return {**about, "metadata": {"name": f"{writing.mark}-{next(_numbers)}"}, "spec": said}


def test_S46_who_writes_a_grant_is_stamped_and_must_be_allowed_to_approve_what_it_selects(writing: Writing) -> None:
    server, policies = writing.server, PATH.replace("bundledeployments", "approvalpolicies")
    own = f"{writing.mark}-own"
    rights = cluster_rights(f"{writing.mark}-approves", [rule("bundledeployments", verbs=("approve",))], "carol")
    rights += cluster_rights(
        f"{writing.mark}-one", [rule("bundledeployments", verbs=("approve",), resourceNames=[own])], "bob"
    )
    server.ctl("apply", "-f", "-", given=yaml.safe_dump_all(rights))
    server.until_may("carol", "approve", "bundledeployments", "core.rukpak.io")

    def write(user: str, obj: dict[str, Any], method: str = "POST", place: str = "") -> Reply:
        return server.send(Request(method, f"{policies}{place}", obj, user=user))

    try:
        for user, names, code in (
            ("alice", (), FORBIDDEN),
            ("alice", (own,), FORBIDDEN),
            ("bob", (), FORBIDDEN),
            ("bob", ("*",), FORBIDDEN),
            ("bob", (own, "other"), FORBIDDEN),
            ("bob", (own,), CREATED),
            ("carol", (), CREATED),
        ):
            made = write(user, _grant(writing, *names))
            assert (made.code, user, names) == (code, user, names), made.message
            assert code == CREATED or "can approve only what its author can" in made.message
        assert _stamped(made) == stamp("carol")
        place = f"/{made.body['metadata']['name']}"
        guard = write("alice", _grant(writing, effect="Guard"))
        assert guard.code == CREATED, guard.message
        # Nor by way of a guard, and nobody widens what another person may approve. What is no spec may be written.
        turned = {**guard.body, "spec": _grant(writing)["spec"]}
        assert write("alice", turned, "PUT", f"/{guard.body['metadata']['name']}").code == FORBIDDEN
        wider = {**made.body, "spec": {**made.body["spec"], "validationActions": ["Approve"]}}
        assert write("alice", wider, "PUT", place).code == FORBIDDEN
        labelled = {**made.body, "metadata": {**made.body["metadata"], "labels": {"team": "a"}}}
        assert write("alice", labelled, "PUT", place).code == OK
    finally:
        server.ctl("delete", "-f", "-", given=yaml.safe_dump_all(rights))
        server.ctl("delete", "approvalpolicies", "--all")


def test_other_annotations_stay(writing: Writing) -> None:
    made = writing.created("alice", annotations={"team": "a"})
    assert made["metadata"]["annotations"] == {"team": "a", ANNOTATION: stamp("alice")}


@pytest.mark.parametrize(
    "forged", [stamp("bob"), stamp_for(["alice"]), "", "bob"], ids=["bob", "no groups", "empty", "?"]
)
def test_S05_whoever_creates_one_cannot_name_somebody_else(writing: Writing, forged: str) -> None:
    made = writing.created("alice", annotations={ANNOTATION: forged})
    assert made["metadata"]["annotations"][ANNOTATION] == stamp("alice")


def _changed(obj: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """The object as somebody would send it with another spec, and an annotation of their own."""
    kept = {**obj["metadata"].get("annotations", {}), **annotations}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}, "spec": {**obj["spec"], "paused": True}}


SPEC_WRITES = {
    "merge patch": lambda it, obj: it.patch(obj, {"spec": {"paused": True}}, "bob"),
    "json patch": lambda it, obj: it.patch(
        obj, [{"op": "add", "path": "/spec/paused", "value": True}], "bob", kind=JSON_PATCH
    ),
    "replace": lambda it, obj: it.replace(_changed(obj), "bob"),
    "apply": lambda it, obj: it.apply(
        _changed(it.submit_spec(name=obj["metadata"]["name"])), "bob", "kustomize-controller"
    ),
    "forging patch": lambda it, obj: it.patch(
        obj, {"metadata": {"annotations": {ANNOTATION: stamp("carol")}}, "spec": {"paused": True}}, "bob"
    ),
    "forging replace": lambda it, obj: it.replace(_changed(obj, **{ANNOTATION: stamp("carol")}), "bob"),
    "giving up annotations": lambda it, obj: _given_up(it, obj, paused=True),
    "removing patch": lambda it, obj: it.patch(
        obj, {"metadata": {"annotations": None}, "spec": {"paused": True}}, "bob"
    ),
}


@pytest.mark.parametrize("how", SPEC_WRITES)
def test_S05_whoever_changes_the_spec_is_written_down_however_they_do_it(writing: Writing, how: str) -> None:
    obj = writing.created("alice")
    reply = SPEC_WRITES[how](writing, obj)
    assert reply.code == OK, reply.message
    assert writing.stamp_now(obj) == stamp("bob")


NO_SPEC = {
    "merge patch": lambda it, obj: it.patch(obj, {"spec": None}, "bob"),
    "replace": lambda it, obj: it.replace({part: obj[part] for part in ("apiVersion", "kind", "metadata")}, "bob"),
}


@pytest.mark.parametrize("how", NO_SPEC)
def test_a_write_that_drops_the_spec_is_refused_in_words_of_the_schema(writing: Writing, how: str) -> None:
    """The policies come before the schema: theirs would be that an expression could not be evaluated."""
    reply = NO_SPEC[how](writing, writing.created("alice"))
    assert reply.code == INVALID
    assert "spec: Required value" in reply.message
    assert "expression" not in reply.message


def _without(obj: dict[str, Any], **labels: str) -> dict[str, Any]:
    """As a GitOps tool has it in its repository: no annotation of ours."""
    return {**obj, "metadata": {**obj["metadata"], "annotations": {}, "labels": labels}}


def _given_up(it: Writing, obj: dict[str, Any], **spec: Any) -> Reply:
    """Server-side apply of what somebody exported, and then without its annotations: what is left of them is null."""
    name = obj["metadata"]["name"]
    exported = it.submit_spec(name=name, annotations={ANNOTATION: it.stamp_now(obj)})
    assert it.apply(exported, "alice", "exporter").code == OK
    wish = it.submit_spec(name=name, annotations={})
    return it.apply({**wish, "spec": {**wish["spec"], **spec}}, "bob", "exporter")


OTHER_WRITES = {
    "giving up annotations": _given_up,
    "labels": lambda it, obj: it.patch(obj, {"metadata": {"labels": {"team": "b"}}}, "bob"),
    "another annotation": lambda it, obj: it.patch(obj, {"metadata": {"annotations": {"a": "b"}}}, "bob"),
    "finalizers": lambda it, obj: it.patch(obj, {"metadata": {"finalizers": ["example.com/a"]}}, "bob"),
    "forging": lambda it, obj: it.patch(obj, {"metadata": {"annotations": {ANNOTATION: stamp("carol")}}}, "bob"),
    "oneself": lambda it, obj: it.patch(obj, {"metadata": {"annotations": {ANNOTATION: stamp("bob")}}}, "bob"),
    "removing": lambda it, obj: it.patch(obj, {"metadata": {"annotations": {ANNOTATION: None}}}, "bob"),
    "removing all": lambda it, obj: it.patch(obj, {"metadata": {"annotations": None}}, "bob"),
    "replacing without it": lambda it, obj: it.replace(_without(obj, team="b"), "bob"),
    "applying the same": lambda it, obj: it.apply(
        it.submit_spec(name=obj["metadata"]["name"], annotations={"argocd.argoproj.io/tracking-id": "x"}),
        "bob",
        "argocd-controller",
    ),
    "status": lambda it, obj: it.patch(
        obj, {"metadata": {"annotations": {ANNOTATION: stamp("bob")}}, "status": {}}, "bob", below="/status"
    ),
}


@pytest.mark.parametrize("how", OTHER_WRITES)
def test_S05_a_write_that_leaves_the_spec_alone_leaves_its_author(writing: Writing, how: str) -> None:
    obj = writing.created("alice")
    reply = OTHER_WRITES[how](writing, obj)
    assert reply.code == OK, reply.message
    assert writing.stamp_now(obj) == stamp("alice")
    writing.patch(obj, {"metadata": {"finalizers": None}}, "bob")


def test_an_apply_that_comes_again_and_again_is_no_fight(writing: Writing) -> None:
    wish = writing.submit_spec()
    first = writing.apply(wish, "alice", "argocd-controller", force=False)
    again = [writing.apply(wish, "alice", "argocd-controller", force=False) for _ in range(3)]
    assert [reply.code for reply in (first, *again)] == [CREATED, OK, OK, OK]
    versions = {reply.body["metadata"]["resourceVersion"] for reply in again}
    assert versions == {again[0].body["metadata"]["resourceVersion"]}
    assert writing.stamp_now(wish) == stamp("alice")


def test_S05_who_is_impersonated_is_the_author_and_groups_keep_their_commas(writing: Writing) -> None:
    name = "zoë, of ops".encode().decode("latin-1")  # as headers carry UTF-8
    headers = {"Impersonate-User": name, "Impersonate-Uid": "z-1", "Impersonate-Group": "system:masters"}
    made = writing.create(writing.submit_spec(), "admin", **headers)
    assert made.code == CREATED, made.message
    who = identity_in(_stamped(made))
    assert who is not None
    assert (who.username, who.uid, who.groups) == ("zoë, of ops", "z-1", ("system:masters", "system:authenticated"))


def test_a_deletion_by_another_person_leaves_the_author_and_is_never_held_up(writing: Writing) -> None:
    obj = writing.created("alice")
    writing.patch(obj, {"metadata": {"finalizers": ["example.com/hold"]}}, "alice")
    gone = writing.server.send(Request("DELETE", f"{PATH}/{obj['metadata']['name']}", user="bob"))
    assert gone.code == OK, gone.message
    assert gone.body["metadata"]["generation"] == obj["metadata"]["generation"] + 1
    assert writing.stamp_now(obj) == stamp("alice")
    assert writing.patch(obj, {"metadata": {"finalizers": None}}, "bob").code == OK
    assert writing.server.ask("GET", f"{PATH}/{obj['metadata']['name']}").code == 404


@pytest.fixture
def unstamped(writing: Writing) -> Iterator[Writing]:
    """Where nothing stamps, the validating policy is alone."""
    writing.stop_stamping()
    live.wait_until(lambda: writing.stamped() == "")
    yield writing
    writing.start_stamping()
    live.wait_until(lambda: writing.stamped() == stamp("alice"))


def test_S05_the_validating_policy_alone_refuses_another_name(unstamped: Writing) -> None:
    refused = unstamped.create(unstamped.submit_spec(annotations={ANNOTATION: stamp("bob")}))
    assert refused.code == FORBIDDEN
    assert f"the annotation {ANNOTATION} names who wrote the spec" in refused.message
    own = unstamped.submit_spec(annotations={ANNOTATION: stamp("alice")})
    assert unstamped.create(own, query="?dryRun=All").code == CREATED
    made = unstamped.created("alice", annotations={ANNOTATION: stamp("alice")})
    assert unstamped.patch(made, {"spec": {"paused": True}}, "bob").code == FORBIDDEN


def test_the_author_of_a_catalog_is_stamped_and_not_forged(writing: Writing) -> None:
    path = PATH.replace("bundledeployments", "catalogs")
    source = {"kind": "image", "image": {"ref": "example.com/catalog:latest"}}
    about: dict[str, Any] = {"name": f"{writing.mark}-catalog"}
    obj = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "Catalog", "metadata": about, "spec": {"source": source}}

    def create(obj: dict[str, Any]) -> Reply:
        return writing.server.send(Request("POST", f"{path}?dryRun=All", obj, user="alice"))

    assert _stamped(create(obj)) == stamp("alice")
    forged = create({**obj, "metadata": {**about, "annotations": {ANNOTATION: stamp("bob")}}})
    # Where something stamps, it writes the author back.
    assert forged.code == FORBIDDEN or _stamped(forged) == stamp("alice")
