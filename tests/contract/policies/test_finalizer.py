"""The policy that keeps Pratique's finalizer, on a real API server: what leaves it out, and what is never held up."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from approvals.steps.mirroring.mirror import FIELD_MANAGER
from provisioner.api_groups import FINALIZER
from tests.contract.conftest import APPLY, MERGE, PATH, Reply, Request, Server
from tests.contract.policies.conftest import CREATED, NOT_FOUND, OK, Prepare, cluster_rights, rule, wish
from tests.support.folders import ROOT
from tests.support.kubernetes import live
from tests.support.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

POLICY = ROOT / "deploy/admission/finalizer.yaml"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bundledeployments.core.rukpak.io"
JSON_PATCH = "application/json-patch+json"
NOTHING: dict[str, Any] = {"metadata": {"finalizers": None}}
OTHERS = "example.com/hold"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Kept:
    """Carol may write BundleDeployments; the service and operators, here the admin, may `decide` as well."""

    server: Server
    mark: str

    def made(self, *, is_held: bool = True) -> str:
        name = f"{self.mark}-{next(_numbers)}"
        assert self.server.send(Request("POST", PATH, wish(name))).code == CREATED
        if is_held:
            assert self.service_writes(name, [FINALIZER]).code == OK
        return name

    def service_writes(self, name: str, finalizers: list[str]) -> Reply:
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment"}
        body = {**about, "metadata": {"name": name, "finalizers": finalizers}}
        path = f"{PATH}/{name}?fieldManager={FIELD_MANAGER}&force=true"
        return self.server.send(Request("PATCH", path, body, APPLY))

    def service_releases(self, name: str, user: str = "admin") -> Reply:
        """As Pratique takes off its own entry, and nothing else, whoever owns it."""
        about = self.server.ask("GET", f"{PATH}/{name}").body["metadata"]
        entry = f"/metadata/finalizers/{about['finalizers'].index(FINALIZER)}"
        read = {"/metadata/uid": about["uid"], "/metadata/resourceVersion": about["resourceVersion"], entry: FINALIZER}
        tests = [{"op": "test", "path": path, "value": value} for path, value in read.items()]
        path = f"{PATH}/{name}?fieldManager={FIELD_MANAGER}"
        return self.server.send(Request("PATCH", path, [*tests, {"op": "remove", "path": entry}], JSON_PATCH, user))

    def apply_exported(self, name: str) -> None:
        """Somebody becomes a second owner of the finalizer."""
        kept = {"name": name, "finalizers": [FINALIZER]}
        path = f"{PATH}/{name}?fieldManager=kubectl&force=true"
        assert self.server.send(Request("PATCH", path, {**wish(name), "metadata": kept}, APPLY)).code == OK

    def replace(self, name: str, user: str = "carol", query: str = "") -> Reply:
        """As kubectl does it: of what is there it takes over the version alone."""
        version = self.server.ask("GET", f"{PATH}/{name}").body["metadata"]["resourceVersion"]
        obj = wish(name)
        obj["metadata"]["resourceVersion"] = version
        return self.server.send(Request("PUT", f"{PATH}/{name}{query}", obj, user=user))

    def change(self, name: str, body: Any, user: str = "carol", kind: str = MERGE) -> Reply:
        return self.server.send(Request("PATCH", f"{PATH}/{name}", body, kind, user))

    def delete(self, name: str, user: str = "carol", query: str = "") -> Reply:
        return self.server.send(Request("DELETE", f"{PATH}/{name}{query}", user=user))

    def finalizers(self, name: str) -> list[str] | None:
        """None where it is gone."""
        answer = self.server.ask("GET", f"{PATH}/{name}")
        return None if answer.code == NOT_FOUND else list(answer.body["metadata"].get("finalizers") or [])

    def keeps(self) -> bool:
        name = self.made()
        return self.replace(name, "admin").code == OK and self.finalizers(name) == [FINALIZER]


@pytest.fixture(scope="module")
def kept(prepare: Prepare) -> Iterator[Kept]:
    mark = f"held-{uuid.uuid4().hex[:8]}"
    rights = cluster_rights(mark, [rule("bundledeployments")], "carol")
    server = prepare(mark, ["crds/bundledeployments.yaml", "admission/finalizer.yaml"], rights)
    here = Kept(server, mark)
    server.until_may("carol", "update", "bundledeployments", "core.rukpak.io")
    # A policy takes effect some seconds after it is there.
    live.wait_until(here.keeps)
    yield here
    server.ctl("delete", "-f", str(POLICY))
    # Others share the cluster.
    for obj in server.ask("GET", PATH).body.get("items", []):
        if obj["metadata"]["name"].startswith(mark):
            here.delete(obj["metadata"]["name"], "admin")
            here.change(obj["metadata"]["name"], NOTHING, "admin")


LEFT_OUT = {
    "replace": lambda it, name, user: it.replace(name, user),
    "replace by the name of another manager": lambda it, name, user: it.replace(name, user, "?fieldManager=kubectl"),
    "merge patch": lambda it, name, user: it.change(name, NOTHING, user),
    "json patch": lambda it, name, user: it.change(
        name, [{"op": "remove", "path": "/metadata/finalizers"}], user, JSON_PATCH
    ),
    "merge patch with another finalizer": lambda it, name, user: it.change(
        name, {"metadata": {"finalizers": [OTHERS]}}, user
    ),
}


@pytest.mark.parametrize("user", ["carol", "admin"])
@pytest.mark.parametrize("how", LEFT_OUT)
def test_S15_what_leaves_the_finalizer_out_keeps_it_whoever_writes(kept: Kept, how: str, user: str) -> None:
    name = kept.made()
    answer = LEFT_OUT[how](kept, name, user)
    assert answer.code == OK, answer.message
    others = [OTHERS] if "another finalizer" in how else []
    assert kept.finalizers(name) == [*others, FINALIZER]
    # So a deletion in the same moment waits for its request.
    assert kept.delete(name).code == OK
    assert kept.finalizers(name) is not None


def test_S15_the_name_of_our_field_manager_gives_nobody_our_right(kept: Kept) -> None:
    name = kept.made()
    assert kept.replace(name, "carol", f"?fieldManager={FIELD_MANAGER}").code == OK
    assert kept.finalizers(name) == [FINALIZER]


def test_S15_who_may_not_decide_does_not_let_go_what_is_being_deleted(kept: Kept) -> None:
    name = kept.made()
    kept.delete(name)
    for answer in (kept.change(name, NOTHING), kept.replace(name)):
        assert answer.code == OK, answer.message
    assert kept.finalizers(name) == [FINALIZER]


def test_operators_let_go_what_they_have_deleted_where_pratique_does_not_run(kept: Kept) -> None:
    name = kept.made()
    kept.delete(name, "admin")
    assert kept.change(name, NOTHING, "admin").code == OK
    assert kept.finalizers(name) is None


OWNED = {
    "by the service": lambda it, name: None,
    "by nobody": lambda it, name: it.replace(name),
    "by a second owner": lambda it, name: it.apply_exported(name),
}


@pytest.mark.parametrize("owner", OWNED)
def test_S42_the_service_lets_go_whoever_owns_the_finalizer(kept: Kept, owner: str) -> None:
    before, after = kept.made(), kept.made()
    for name in (before, after):
        OWNED[owner](kept, name)
        assert kept.finalizers(name) == [FINALIZER]
    assert kept.service_releases(before).code == OK
    assert kept.finalizers(before) == []
    kept.change(after, {"metadata": {"finalizers": [OTHERS, FINALIZER]}})
    kept.delete(after)
    assert kept.service_releases(after).code == OK
    assert kept.finalizers(after) == [OTHERS], "no other entry goes with it"
    assert kept.change(after, NOTHING).code == OK
    assert kept.finalizers(after) is None


def test_S15_who_may_not_decide_does_not_let_go_as_the_service_does(kept: Kept) -> None:
    name = kept.made()
    kept.delete(name)
    assert kept.service_releases(name, "carol").code == OK
    assert kept.finalizers(name) == [FINALIZER]


def test_what_was_never_held_goes_at_once_and_gets_no_finalizer(kept: Kept) -> None:
    name = kept.made(is_held=False)
    assert kept.replace(name).code == OK
    assert kept.finalizers(name) == []
    assert kept.delete(name).code == OK
    assert kept.finalizers(name) is None


def test_the_garbage_collector_takes_off_its_own_finalizer_and_leaves_ours(kept: Kept) -> None:
    name = kept.made()
    assert kept.delete(name, query="?propagationPolicy=Foreground").code == OK
    live.wait_until(lambda: kept.finalizers(name) == [FINALIZER])


@pytest.mark.thorough
def test_the_definition_can_be_deleted_though_nobody_of_ours_runs(
    own_controlplane: ControlPlane, kubectl: Path, tmp_path: Path
) -> None:
    """Its objects go first, and what holds them is let go by an operator as before there was a policy."""
    kubeconfig = tmp_path / "kubeconfig"
    own_controlplane.endpoint.write(kubeconfig)
    server = Server(own_controlplane.endpoint, str(kubectl), kubeconfig, "held")
    here = Kept(server, "held")
    for file in (ROOT / "deploy/crds/bundledeployments.yaml", POLICY):
        server.ctl("apply", "--server-side", "-f", str(file))
    server.ctl("wait", "--for=condition=Established", "crd/bundledeployments.core.rukpak.io")
    live.wait_until(here.keeps)
    free = here.made(is_held=False)
    names = [one["metadata"]["name"] for one in server.ask("GET", PATH).body["items"]]
    assert server.send(Request("DELETE", DEFINITION)).code == OK
    live.wait_until(lambda: here.finalizers(free) is None)
    for name in names:
        if here.finalizers(name) is not None:
            assert here.change(name, NOTHING, "admin").code == OK
    live.wait_until(lambda: server.ask("GET", DEFINITION).code == NOT_FOUND)
