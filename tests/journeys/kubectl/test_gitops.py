"""GitOps controllers on a real API server, with their field managers and habits: no fight, no loop, no lost status."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from approvals import services
from approvals.controllers import read_controllers
from approvals.models import BundleDeployment
from provisioner.values import Identity
from tests.journeys.kubectl.authors import Seen, change
from tests.support.journeys.catalogs import look, named, offer
from tests.support.journeys.contents import bundles
from tests.support.journeys.contents.catalogs import HARBOUR, source
from tests.support.journeys.deployed_site import SEEDER, binding, user_subject
from tests.support.servers.registry import Registry

pytestmark = pytest.mark.controlplane

# A fight is a write each round. The API server sorts managers by the second of their last write, and an apply that
# changes nothing but this order is stored: once for each of the two that write in the same second as another.
ROUNDS, AT_REST = 5, 3


@dataclass(frozen=True)
class Tool:
    """How a controller writes: its field manager, and how it tracks what is its own."""

    manager: str
    tracking: dict[str, dict[str, str]]


ARGO_CD = Tool(
    "argocd-controller",
    {"annotations": {"argocd.argoproj.io/tracking-id": "shop:core.rukpak.io/BundleDeployment:/app"}},
)
FLUX = Tool(
    "kustomize-controller",
    {"labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
)


@dataclass
class Repository:
    """What somebody has pushed, and the controller that brings it to the cluster again and again."""

    seen: Seen
    tool: Tool
    sources: list[Any]
    options: dict[str, str] = field(default_factory=dict)

    @property
    def account(self) -> str:
        return f"system:serviceaccount:{self.seen.site.namespace}-gitops:controller"

    def sync(self) -> None:
        self._send("apply", "--server-side", "--force-conflicts", f"--field-manager={self.tool.manager}")

    def replace(self) -> None:
        """As with Argo CD's Replace=true: all of the object is that of the repository."""
        self._send("replace")

    def prune(self) -> None:
        change(self.seen.site, "delete", "bd", self.seen.name, "--wait=false", "--as", self.account)

    def live(self) -> Any:
        return self.seen.site.get("bundledeployment", self.seen.name)

    def row(self) -> BundleDeployment:
        return BundleDeployment.objects.get(cluster=self.seen.site.cluster, name=self.seen.name)

    def look_after(self) -> None:
        self.seen.site.look_after(self.row())

    def _send(self, *how: str) -> None:
        spec = {
            "installNamespace": self.seen.site.namespace,
            "serviceAccountName": "installer",
            "sources": self.sources,
            **self.options,
        }
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment"}
        obj = {**about, "metadata": {"name": self.seen.name, **self.tool.tracking}, "spec": spec}
        path = self.seen.site.kubeconfig.parent / "pushed.json"
        path.write_text(json.dumps(obj))
        change(self.seen.site, *how, "-f", str(path), "--as", self.account)


@pytest.fixture(params=[ARGO_CD, pytest.param(FLUX, marks=pytest.mark.thorough)], ids=lambda tool: tool.manager)
def repository(request: pytest.FixtureRequest, seen: Seen, registry: Registry, settings: Any) -> Repository:
    site = seen.site
    listed = {
        # Whoever approves may impersonate the accounts of the namespace where it is installed, and so is no author (S43).
        "account": f"{site.namespace}-gitops/controller",
        "cluster": site.cluster.name,
        "deployments": {"matchNames": [seen.name]},
        "installers": [f"{site.namespace}/installer"],
    }
    settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": read_controllers({"controllers": [listed]})}
    made = Repository(seen, request.param, [bundles.image(registry, seen.name, bundles.app("app", "1"), "1")])
    name = f"{site.namespace}-controller"
    site.api.apply(binding(name, "cluster-admin", user_subject(made.account)), field_manager=SEEDER)
    site.until_may(Identity(made.account), "create", "bundledeployments", "core.rukpak.io")
    site.let_approve("alice", seen.name)
    return made


def conditions(live: Any) -> dict[str, str]:
    return {one["type"]: one["reason"] for one in live["status"]["conditions"]}


def test_what_is_brought_again_and_again_is_one_request_and_no_write(repository: Repository) -> None:
    seen = repository.seen
    repository.sync()
    seen.watch()
    assert seen.asked() == ([f"{repository.account} gitops"], True)
    seen.site.work()
    repository.look_after()
    waiting = repository.live()
    assert conditions(waiting)["Ready"] == "WaitingForApproval"
    versions = set()
    for _ in range(ROUNDS):
        repository.sync()
        repository.look_after()
        again = repository.live()
        versions.add(again["metadata"]["resourceVersion"])
    assert len(versions) <= AT_REST, "both write what is there already"
    assert conditions(again) == conditions(waiting)
    assert again["metadata"]["finalizers"]

    request = seen.site.approve(repository.row())
    assert request.state == "applied", request.problem
    repository.look_after()
    repository.sync()
    seen.watch()
    assert conditions(repository.live())["Applied"] == "RevisionActive"
    assert repository.row().requests.count() == 1


@pytest.mark.thorough
def test_what_somebody_edits_is_healed_and_asked_for_by_both(repository: Repository) -> None:
    seen = repository.seen
    repository.sync()
    seen.watch()
    seen.site.work()
    assert seen.site.approve(repository.row()).state == "applied"
    other = '{"spec":{"serviceAccountName":"other"}}'
    change(seen.site, "patch", "bd", seen.name, "--type=merge", "-p", other, user="rita")
    repository.sync()
    seen.watch()
    names = [one["username"] for one in seen.latest().requesters]
    assert names == ["rita", repository.account]
    assert repository.live()["spec"]["serviceAccountName"] == "installer"
    before = repository.row().requests.count()
    for _ in range(2):
        repository.sync()
        seen.site.work()
        repository.look_after()
    assert repository.row().requests.count() == before, "what is healed asks once"


@pytest.mark.thorough
def test_what_a_catalog_offers_is_asked_for_once_and_no_round_takes_it_back(
    repository: Repository, registry: Registry
) -> None:
    """The repository names the package alone: the version that runs is the catalog's matter and people's."""
    seen = repository.seen
    site = seen.site
    row = offer(registry, named(site, registry, f"{site.namespace}-hub"), "1.0.0")
    repository.sources, repository.options = [source(row.name, HARBOUR)], {"format": "registry-v1"}
    repository.sync()
    seen.watch()
    site.work()
    assert site.approve(repository.row()).state == "applied"
    offer(registry, row, "1.0.0", "1.1.0")
    look(site)
    waiting = seen.latest()
    assert (waiting.number, waiting.state, waiting.bundles[0]["version"]) == (2, "in_review", "1.1.0")
    assert seen.asked() == ([f"{repository.account} gitops"], True)
    brought(repository)
    assert seen.latest() == waiting
    assert site.approve(repository.row()).state == "applied"
    brought(repository)
    assert repository.row().requests.count() == 2, "the round brought no older version"
    live = repository.live()
    assert [one["version"] for one in live["status"]["bundles"]] == ["1.1.0"]
    assert conditions(live)["UpgradeAvailable"] == "UpToDate"


def brought(repository: Repository) -> None:
    """Some rounds of the controller, of the watch, of the looks at what is offered, and of the status; at rest after all."""
    versions = set()
    for _ in range(ROUNDS):
        repository.sync()
        repository.seen.watch()
        look(repository.seen.site)
        repository.look_after()
        versions.add(repository.live()["metadata"]["resourceVersion"])
    assert len(versions) <= AT_REST, "both write what is there already"


@pytest.mark.thorough
@pytest.mark.parametrize("repository", [ARGO_CD], ids=lambda tool: tool.manager, indirect=True)
def test_a_replaced_object_keeps_author_status_and_finalizer(repository: Repository) -> None:
    seen = repository.seen
    repository.sync()
    seen.watch()
    seen.site.work()
    repository.look_after()
    before = repository.live()
    repository.replace()
    assert repository.live()["metadata"]["finalizers"] == before["metadata"]["finalizers"], "in the same write"
    seen.watch()
    repository.look_after()
    after = repository.live()
    assert conditions(after) == conditions(before)
    assert after["metadata"]["finalizers"] == before["metadata"]["finalizers"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert repository.row().requests.count() == 1


def test_S15_what_is_pruned_waits_for_approval_and_says_so(repository: Repository) -> None:
    seen = repository.seen
    repository.sync()
    seen.watch()
    seen.site.work()
    assert seen.site.approve(repository.row()).state == "applied"
    repository.look_after()
    repository.prune()
    seen.watch()
    seen.site.work()
    repository.look_after()
    live = repository.live()
    assert live["metadata"]["deletionTimestamp"]
    assert conditions(live)["Ready"] == "WaitingForApproval"
    request = seen.site.agree(repository.row())
    assert (request.purpose, services.to_acknowledge(request) != []) == ("delete", True)
    seen.site.work()
    # Nobody knows who deleted it, and alice may act as the installer, which may delete anything (S43).
    request.refresh_from_db()
    assert "an approver may have requested it" in request.problem
    seen.site.let_approve("carol", seen.name)
    seen.site.agree(repository.row(), "carol")
    seen.site.work()
    repository.look_after()
    assert seen.site.ctl("get", "bd", seen.name, "--ignore-not-found") == ""
