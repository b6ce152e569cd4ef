"""The policy that guards mirrored requests on a real API server: who may edit one, and who may only delete."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.contract.conftest import APPLY, MERGE, Reply, Request, Server
from tests.contract.policies.conftest import CREATED, FORBIDDEN, INVALID, OK, Prepare, cluster_rights, rule
from tests.support.folders import ROOT
from tests.support.kubernetes import live

pytestmark = pytest.mark.controlplane

PATH = "/apis/core.rukpak.io/v1alpha2/bundledeploymentrequests"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
MIGRATOR = "system:serviceaccount:kube-system:storage-version-migrator-controller"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Door:
    """Carol may write requests by RBAC, and does not hold `decide`; the service, here the admin, does."""

    server: Server
    mark: str

    def body(self, **spec: Any) -> dict[str, Any]:
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeploymentRequest"}
        said = {"bundleDeploymentRef": {"name": self.mark, "uid": "u", "generation": 1}, "purpose": "deploy", **spec}
        return {**about, "metadata": {"name": f"{self.mark}-{next(_numbers)}"}, "spec": said}

    def create(self, user: str = "admin", **spec: Any) -> Reply:
        return self.server.send(Request("POST", f"{PATH}?fieldValidation=Strict", self.body(**spec), user=user))

    def made(self) -> str:
        obj = self.body()
        assert self.server.send(Request("POST", PATH, obj)).code == CREATED
        return str(obj["metadata"]["name"])

    def change(self, name: str, body: Any, user: str = "carol", below: str = "", **headers: str) -> Reply:
        return self.server.send(Request("PATCH", f"{PATH}/{name}{below}", body, MERGE, user, headers=headers))

    def delete(self, name: str, user: str = "carol", **headers: str) -> Reply:
        return self.server.send(Request("DELETE", f"{PATH}/{name}", user=user, headers=headers))


@pytest.fixture(scope="module")
def shared(prepare: Prepare) -> Iterator[Door]:
    mark = f"mirrored-{uuid.uuid4().hex[:8]}"
    resources = ("bundledeploymentrequests", "bundledeploymentrequests/status")
    rules = [rule(*resources, verbs=("create", "get", "patch", "update", "delete"))]
    rights = cluster_rights(mark, rules, "carol", COLLECTOR, MIGRATOR)
    server = prepare(mark, ["crds/bundledeploymentrequests.yaml", "admission/mirrors.yaml"], rights)
    server.until_may("carol", "patch", "bundledeploymentrequests", "core.rukpak.io")
    door = Door(server, mark)
    # A policy takes effect some seconds after it is there.
    live.wait_until(lambda: door.create("carol").code == FORBIDDEN)
    yield door
    # Others share the cluster.
    server.ctl("delete", "-f", str(ROOT / "deploy/admission/mirrors.yaml"))


APPROVED = {
    "type": "Approved",
    "status": "True",
    "reason": "Reviewed",
    "message": "",
    "lastTransitionTime": "2026-11-24T00:00:00Z",
}
EDITS = {
    "a condition": ({"status": {"conditions": [APPROVED]}}, "/status"),
    "another state": ({"status": {"state": "applied"}}, "/status"),
    "a label": ({"metadata": {"labels": {"core.rukpak.io/bundle-deployment": "another"}}}, ""),
    "an annotation": ({"metadata": {"annotations": {"a": "b"}}}, ""),
    "a finalizer": ({"metadata": {"finalizers": ["example.com/mine"]}}, ""),
    "another owner": ({"metadata": {"ownerReferences": []}}, ""),
}


@pytest.mark.parametrize(("body", "below"), EDITS.values(), ids=EDITS)
def test_S23_who_may_not_decide_edits_nothing_though_rbac_lets_them(shared: Door, body: Any, below: str) -> None:
    answer = shared.change(shared.made(), body, below=below)
    if body == {"metadata": {"ownerReferences": []}}:
        # Nothing changes by it: it has no owner. It is refused all the same.
        assert answer.code == FORBIDDEN
    assert (answer.code, "only Pratique writes" in answer.message) == (FORBIDDEN, True), answer.message


def test_who_may_not_decide_neither_creates_nor_deletes(shared: Door) -> None:
    name = shared.made()
    for answer in (shared.create("carol"), shared.delete(name)):
        assert (answer.code, "only Pratique writes" in answer.message) == (FORBIDDEN, True), answer.message


def test_the_garbage_collector_deletes_and_takes_owners_away_and_no_more(shared: Door) -> None:
    name, acting = shared.made(), {"Impersonate-User": COLLECTOR}
    # One that is there, or the real garbage collector comes first.
    uid = shared.server.ask("GET", "/api/v1/namespaces/kube-system").body["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "kube-system", "uid": uid}
    assert shared.change(name, {"metadata": {"ownerReferences": [owner]}}, "admin").code == OK
    answer = shared.change(name, {"status": {"conditions": [APPROVED]}}, "admin", "/status", **acting)
    assert answer.code == FORBIDDEN, answer.message
    assert shared.change(name, {"metadata": {"ownerReferences": None}}, "admin", **acting).code == OK
    assert shared.delete(name, "admin", **acting).code == OK


def test_a_storage_version_migrator_writes_back_what_it_read_and_no_more(shared: Door) -> None:
    name, acting = shared.made(), {"Impersonate-User": MIGRATOR}
    about = shared.server.ask("GET", f"{PATH}/{name}").body["metadata"]
    known = {"name": name, "uid": about["uid"], "resourceVersion": about["resourceVersion"]}
    same = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeploymentRequest", "metadata": known}
    address = f"{PATH}/{name}?fieldManager=storage-version-migrator-controller"
    answer = shared.server.send(Request("PATCH", address, same, APPLY, "admin", headers=acting))
    assert answer.code == OK, answer.message
    answer = shared.change(name, {"status": {"conditions": [APPROVED]}}, "admin", "/status", **acting)
    assert answer.code == FORBIDDEN, answer.message


def test_who_may_decide_writes_it_and_nobody_changes_its_spec(shared: Door) -> None:
    name = shared.made()
    said = {"contentDigest": "sha256:1", "pins": ["image:sha256:2"], "expiresAt": "2026-12-01T00:00:00Z"}
    answer = shared.change(name, {"status": {**said, "conditions": [APPROVED]}}, "admin", "/status")
    assert (answer.code, answer.body["status"]["pins"]) == (OK, said["pins"]), answer.message
    changed = shared.change(name, {"spec": {"purpose": "delete"}}, "admin")
    assert (changed.code, "spec is immutable" in changed.message) == (INVALID, True)
    early = shared.create("admin", contentDigest="sha256:1")
    assert early.code == 400, "what is found out later stands in the status"
