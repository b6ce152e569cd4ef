"""What a report said of data is so when something is deleted, on either API server: else nothing is, and people are
shown what goes by now."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import yaml

from approvals import services
from approvals.models import BundleDeployment, InventoryItem, Report, Request
from approvals.steps import apply as step
from provisioner.errors import ClusterError
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import is_unreachable, until_served, wait_until
from tests.support.servers.process import free_port
from tests.support.servers.registry import Registry

KEPT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}}
CRD = "CustomResourceDefinition"


class Port:
    """One deployment, and what somebody does to the cluster while it is reviewed, or once applying has begun."""

    def __init__(self, site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch):
        self.site, self.registry, self.monkeypatch = site, registry, monkeypatch
        self.name = f"{site.namespace}-port"
        self.volume = f"{site.namespace}-volume"

    def submit_spec(self, *objects: dict[str, Any], **options: Any) -> Request:
        files = bundles.manifests(*objects)
        deployment = self.site.prepare(self.name, bundles.image(self.registry, self.name, files), **options)
        return self.site.latest(deployment)

    def run(self, *objects: dict[str, Any]) -> BundleDeployment:
        deployment = self.submit_spec(*objects).deployment
        request = self.site.approve(deployment)
        assert request.state == "applied", request.problem
        return deployment

    def ref(self, kind: str, name: str, api: str = "v1") -> ObjectRef:
        group, _, version = api.rpartition("/")
        return ObjectRef(group, version, kind, self.site.namespace, name)

    def meanwhile(self, happens: Any) -> Request:
        """What is approved is worked on, and `happens` before that."""
        deployment = BundleDeployment.objects.get(name=self.name)
        self.site.agree(deployment)
        happens()
        self.site.work()
        return self.site.latest(deployment)

    def midway(self, happens: Any) -> Request:
        """The same, once applying has begun."""
        started = step._start

        def start(*words: Any) -> Any:
            row = started(*words)
            happens()
            return row

        with self.monkeypatch.context() as patch:
            patch.setattr(step, "_start", start)
            return self.site.approve(BundleDeployment.objects.get(name=self.name))

    def database(self, **policy: str) -> dict[str, Any]:
        """A StatefulSet of no pods, whose claims are made by hand."""
        labels = {"app": "db"}
        container = {"name": "main", "image": "registry.example.com/db:1"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        claim = {"metadata": {"name": "data"}, "spec": self.claim("any")["spec"]}
        spec = {
            "replicas": 0,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": template,
            "volumeClaimTemplates": [claim],
        }
        spec |= {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}

    def claim(self, name: str, volume: str = "") -> dict[str, Any]:
        spec: dict[str, Any] = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        }
        spec |= {"volumeName": volume} if volume else {}
        meta = {"name": name, "namespace": self.site.namespace}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}

    def make_volume(self, claim: str, namespace: str = "", *, suffix: str = "", policy: str = "Retain") -> str:
        place = namespace or self.site.namespace
        reference = {"kind": "PersistentVolumeClaim", "name": claim, "namespace": place}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": policy,
            "hostPath": {"path": f"/tmp/{self.volume}"},
            "claimRef": {"apiVersion": "v1", **reference},
        }
        name = f"{self.volume}{suffix}"
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        self.site.api.create(body)
        return name

    def remake_claim(self, name: str, volume: str) -> None:
        """The same name, on another volume."""
        ref = self.ref("PersistentVolumeClaim", name)
        live = self.site.api.get(ref)
        assert live is not None
        self.site.api.delete(ref, uid=live["metadata"]["uid"])
        wait_until(lambda: self._is_let_go(ref), f"{ref} is gone")
        self.site.api.create(self.claim(name, volume))

    def _is_let_go(self, ref: ObjectRef) -> bool:
        """Whether the claim is gone. What protects claims in use is at work on one server only, and may be faster."""
        found = self.site.api.get(ref)
        if found is not None:
            with contextlib.suppress(ClusterError):
                self.site.api.replace(
                    {**found, "metadata": {**found["metadata"], "finalizers": []}}, field_manager="kubectl-edit"
                )
        return found is None

    def lose_volume(self) -> None:
        ref = ObjectRef("", "v1", "PersistentVolume", "", self.volume)
        self.site.edit(ref, lambda live: live["spec"].update(persistentVolumeReclaimPolicy="Delete"))

    def lose_claims(self) -> None:
        policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
        change = {"persistentVolumeClaimRetentionPolicy": policy}
        self.site.edit(self.ref("StatefulSet", "db", "apps/v1"), lambda live: live["spec"].update(change))

    def said(self, request: Request) -> str:
        return "\n".join(request.reports.get(round=request.round).findings.values_list("message", flat=True))


@pytest.fixture
def port(site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Port:
    return Port(site, registry, monkeypatch)


def is_new_round(request: Request, code: str) -> str:
    """The words of why it is reviewed again."""
    assert (request.state, request.round) == ("in_review", 2), request.problem
    voided = request.voided_rounds.get()
    assert voided.code == code
    return str(voided.words)


def test_S15_claims_that_were_to_stay_do_not_go_with_a_stateful_set(port: Port) -> None:
    deployment = port.run(KEPT, port.database())
    port.site.api.create(port.claim("data-db-0"))
    assert "1 claim stays by its own retention policy" in port.said(port.submit_spec(KEPT))
    request = port.meanwhile(port.lose_claims)
    words = is_new_round(request, "loses-data")
    assert "with StatefulSet.apps" in words
    assert "its PersistentVolumeClaims would be deleted" in words
    assert request.voided_rounds.get().objects_differing[0]["now"].endswith("its PersistentVolumeClaims go with it")
    assert "its claims go with it: 1 PersistentVolumeClaim with 1Gi" in port.said(request)
    assert port.site.api.get(port.ref("StatefulSet", "db", "apps/v1"))
    assert port.site.approve(deployment).state == "applied"


@pytest.mark.thorough
def test_S15_nor_where_that_changes_once_applying_has_begun(port: Port) -> None:
    port.run(KEPT, port.database())
    port.submit_spec(KEPT)
    request = port.midway(port.lose_claims)
    assert request.state == "failed"
    assert "its PersistentVolumeClaims would be deleted" in request.problem
    assert port.site.api.get(port.ref("StatefulSet", "db", "apps/v1"))


def test_S15_claims_that_came_since_do_not_go_with_a_stateful_set_that_takes_them(port: Port) -> None:
    deployment = port.run(KEPT, port.database(whenDeleted="Delete"))
    port.site.api.create(port.claim("data-db-0"))
    assert "its claims go with it: 1 PersistentVolumeClaim" in port.said(port.submit_spec(KEPT))
    request = port.meanwhile(lambda: port.site.api.create(port.claim("data-db-1")))
    assert "1 PersistentVolumeClaim created since then" in is_new_round(request, "goes-along-unseen")
    assert port.site.approve(deployment).state == "applied"


@pytest.mark.thorough
def test_S15_a_claim_made_again_on_a_volume_that_does_not_stay_is_no_known_one(port: Port) -> None:
    port.make_volume("data-db-0")
    other = port.make_volume("data-db-0", suffix="-new", policy="Delete")
    port.run(KEPT, port.database(whenDeleted="Delete"))
    port.site.api.create(port.claim("data-db-0", port.volume))
    port.submit_spec(KEPT)
    request = port.meanwhile(lambda: port.remake_claim("data-db-0", other))
    assert f"PersistentVolume {other} would be deleted with" in is_new_round(request, "loses-data")
    assert port.site.api.get(port.ref("StatefulSet", "db", "apps/v1"))


@pytest.mark.proof
def test_S15_a_volume_that_was_to_stay_does_not_go_with_its_claim(port: Port) -> None:
    port.make_volume("data")
    port.run(KEPT, port.claim("data", port.volume))
    assert f"on the volume {port.volume}, which stays" in port.said(port.submit_spec(KEPT))
    request = port.meanwhile(port.lose_volume)
    assert f"PersistentVolume {port.volume} would be deleted with" in is_new_round(request, "loses-data")
    assert "which is deleted with it (Delete)" in port.said(request)
    assert port.site.api.get(port.ref("PersistentVolumeClaim", "data"))


@pytest.mark.thorough
def test_S15_nor_where_that_volume_changes_once_applying_has_begun(port: Port) -> None:
    port.make_volume("data")
    port.run(KEPT, port.claim("data", port.volume))
    port.submit_spec(KEPT)
    request = port.midway(port.lose_volume)
    assert (request.state, request.problem_code) == ("failed", "loses-data"), request.problem
    ends = "applying stopped at phase 1 of 1: delete storage: nothing was changed, and revision 1 still counts"
    assert ends in request.problem, "what stands is said, not only why"
    assert "ask-again" in request.remedy
    assert port.site.api.get(port.ref("PersistentVolumeClaim", "data"))


@pytest.mark.thorough
def test_S15_a_claim_that_had_no_volume_yet_is_looked_at_again(port: Port) -> None:
    port.run(KEPT, port.claim("data"))
    assert "it has no volume yet" in port.said(port.submit_spec(KEPT))

    def bind() -> None:
        port.make_volume("data")
        port.lose_volume()
        port.site.edit(
            port.ref("PersistentVolumeClaim", "data"), lambda live: live["spec"].update(volumeName=port.volume)
        )

    assert f"PersistentVolume {port.volume} would be deleted" in is_new_round(port.meanwhile(bind), "loses-data")


def test_S15_a_volume_that_was_to_stay_does_not_go_with_a_namespace(port: Port) -> None:
    name = space(port)["metadata"]["name"]
    deployment = port.run(KEPT, space(port))
    port.make_volume("data", name)
    claim = port.claim("data", port.volume)
    port.site.api.create({**claim, "metadata": {"name": "data", "namespace": name}})
    assert "all of which stays on its volumes" in port.said(port.submit_spec(KEPT))
    words = is_new_round(port.meanwhile(port.lose_volume), "loses-data")
    assert f"PersistentVolume {port.volume} would be deleted with PersistentVolumeClaim {name}/data" in words
    assert "1Gi on 1 volume goes for good" in port.said(port.site.latest(deployment))
    assert port.site.approve(deployment).state == "applied"


def space(port: Port) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{port.name}-hold"}}


def test_S25_what_comes_into_a_namespace_once_applying_has_begun_does_not_go_with_it(port: Port) -> None:
    port.run(KEPT, space(port))
    port.submit_spec(KEPT)
    name = space(port)["metadata"]["name"]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late", "namespace": name}}
    request = port.midway(lambda: port.site.api.create(secret))
    assert (request.state, request.problem_code) == ("failed", "goes-along-unseen"), request.problem
    assert "1 Secret object created since then" in request.problem
    assert port.site.api.get(ObjectRef("", "v1", "Secret", name, "late"))


def forget_dates(request: Request) -> None:
    """The report as an earlier version made it."""
    report = Report.objects.get(request=request, round=request.round)
    for finding in report.body["findings"]:
        for key in ("newest", "listedIn"):
            finding["evidence"].pop(key, None)
    report.save(update_fields=["body"])


@pytest.fixture
def old_report(port: Port) -> Request:
    port.run(KEPT, space(port))
    meta = {"name": "there", "namespace": space(port)["metadata"]["name"]}
    port.site.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    return port.submit_spec(KEPT)


def test_a_report_of_an_earlier_version_is_made_again(port: Port, old_report: Request) -> None:
    words = is_new_round(port.meanwhile(lambda: forget_dates(old_report)), "untold")
    assert "because an earlier version of Pratique made the report" in words


@pytest.mark.thorough
def test_a_report_of_an_earlier_version_ends_nothing_midway(port: Port, old_report: Request) -> None:
    request = port.midway(lambda: forget_dates(old_report))
    assert request.state == "applied", request.problem


def boats(port: Port, *versions: str, stored: str = "v1", **spec: Any) -> dict[str, Any]:
    return bundles.definition(f"{port.name}.example.com", "Boat", *versions, stored=stored, **spec)


def make_boat(port: Port, name: str, version: str = "v1") -> None:
    group = f"{port.name}.example.com"
    until_served(port.site.api, group, version, "Boat")
    meta = {"name": name, "namespace": port.site.namespace}
    port.site.api.create({"apiVersion": f"{group}/{version}", "kind": "Boat", "metadata": meta})


@pytest.mark.thorough
def test_S15_what_an_object_of_another_crd_that_goes_made_is_not_new(port: Port) -> None:
    boat, group = boats(port, "v1"), f"{port.name}.example.com"
    names = {"plural": "sails", "singular": "sail", "kind": "Sail", "listKind": "SailList"}
    sail = {**boat, "metadata": {"name": f"sails.{group}"}, "spec": {**boat["spec"], "names": names}}
    deployment = port.run(KEPT, boat, sail)
    make_boat(port, "a")
    until_served(port.site.api, group, "v1", "Sail")
    owner = port.site.api.get(ObjectRef(group, "v1", "Boat", port.site.namespace, "a"))
    assert owner is not None
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference = {"apiVersion": f"{group}/v1", "kind": "Boat", "controller": True, **named}
    meta = {"name": "of-a", "namespace": port.site.namespace, "ownerReferences": [reference]}
    port.submit_spec(KEPT)
    made = {"apiVersion": f"{group}/v1", "kind": "Sail", "metadata": meta}
    request = port.meanwhile(lambda: port.site.api.create(made))
    assert request.state == "applied", (request.state, request.voided_rounds.values_list("words"))
    assert deployment.requests.count() == 2


def test_promise_4_a_crd_that_serves_no_version_is_not_said_to_be_empty(port: Port) -> None:
    crd = boats(port, "v1")
    deployment = port.run(KEPT, crd)
    make_boat(port, "a")
    crd["spec"]["versions"][0]["served"] = False
    port.run(KEPT, crd)
    until_served(port.site.api, crd["spec"]["group"], "v1", "Boat", is_served=False)
    request = port.submit_spec(KEPT)
    found = request.reports.get().findings.get(rule="CRD-08")
    assert found.severity == "breaking"
    assert "not counted: Boat, because the cluster serves no version of Boat" in found.message
    assert port.site.approve(deployment).state == "applied", "as reviewers were told"


def dead() -> dict[str, Any]:
    client = {"url": f"https://127.0.0.1:{free_port()}/"}
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


@pytest.fixture
def real_port(real_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Port:
    return Port(real_site, registry, monkeypatch)


def test_S15_a_crd_whose_conversion_is_gone_is_counted_as_it_is_stored_and_deleted(real_port: Port) -> None:
    """Its preferred version is v2, so that each object would have to be converted to be listed in that."""
    port = real_port
    deployment = port.run(KEPT, boats(port, "v2", "v1", conversion=dead()))
    make_boat(port, "a")
    assert "1 Boat object" in port.said(port.submit_spec(KEPT))
    request = port.meanwhile(lambda: make_boat(port, "late"))
    assert "1 Boat object created since then" in is_new_round(request, "goes-along-unseen")
    request = port.site.approve(deployment)
    assert request.state == "applied", request.problem


@pytest.mark.thorough
def test_S15_where_objects_have_to_be_converted_the_wait_says_what_does_not_work(real_port: Port) -> None:
    port = real_port
    crd = boats(port, "v2", "v1")
    deployment = port.run(KEPT, crd)
    make_boat(port, "old")
    port.run(KEPT, boats(port, "v2", "v1", stored="v2"))
    make_boat(port, "new", "v2")
    assert "2 Boat objects" in port.said(port.submit_spec(KEPT))
    ref = ObjectRef("apiextensions.k8s.io", "v1", CRD, "", crd["metadata"]["name"])

    def is_refused() -> bool:
        boat = ObjectRef(crd["spec"]["group"], "v2", "Boat", port.site.namespace, "old")
        return is_unreachable(lambda: port.site.api.get(boat))

    def break_conversion() -> None:
        port.site.edit(ref, lambda live: live["spec"].update(conversion=dead()))
        wait_until(is_refused, "the conversion is broken")

    request = port.meanwhile(break_conversion)
    assert (request.state, request.problem_code) == ("approved", "conversion-fails"), request.problem
    assert "the conversion webhook of Boat does not work" in request.problem
    assert "makes its conversion webhook work again" in request.remedy
    assert any("conversion webhook for" in one["words"] for one in request.server_words)
    patch = request.problem.partition("-p '")[2].partition("'")[0]
    port.site.ctl("patch", "crd", ref.name, "--type=merge", "-p", patch)
    wait_until(lambda: not is_refused(), "nobody converts")
    port.site.work()
    assert port.site.latest(deployment).state == "applied", port.site.latest(deployment).problem


@pytest.mark.proof
@pytest.mark.parametrize("is_removal", [False, True], ids=["dropped by a version", "with its deployment"])
def test_S39_a_claim_that_is_to_be_kept_stays_and_is_nobodys(port: Port, *, is_removal: bool) -> None:
    claim = port.claim("data")
    claim["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    claim["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    deployment = port.run(KEPT, claim)
    uid = port.site.api.get(port.ref("PersistentVolumeClaim", "data"))["metadata"]["uid"]
    if is_removal:
        port.site.look_after(deployment)
        port.site.delete(deployment)
        request = port.site.after_work(deployment)
    else:
        request = port.submit_spec(KEPT)
    (told,) = request.reports.get().findings.filter(rule="DEL-04")
    assert "stays as it is, because it says helm.sh/resource-policy: keep" in told.message
    assert request.reports.get().actions["orphan"] == 1
    assert port.site.approve(deployment).state == "applied"
    live = port.site.api.get(port.ref("PersistentVolumeClaim", "data"))
    assert (live["metadata"]["uid"], live["metadata"].get("deletionTimestamp")) == (uid, None)
    assert not deployment.inventory.filter(name="data").exists()
    if not is_removal:
        again = port.submit_spec(KEPT, claim)
        assert again.reports.get().findings.filter(rule="OWN-02").exists()
        again = port.submit_spec(KEPT, claim, collisionProtection="IfNoController")
        assert again.reports.get().actions["adopt"] == 1, "Helm's label, which we wrote, keeps it from nobody"
        assert port.site.approve(deployment).state == "applied"


def test_a_namespace_a_crd_and_a_claim_are_named_with_what_goes_with_them(
    site: DeployedSite, registry: Registry
) -> None:
    hold = f"{site.namespace}-hold"
    group = f"{site.namespace}.example.com"
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
    kept = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": hold}},
        bundles.definition(group, "Skiff"),
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "net"}, "spec": size},
    ]
    files = bundles.app("fleet", "1") | {"manifests/50.yaml": yaml.safe_dump_all(kept).encode()}
    deployment = site.applied("fleet", bundles.image(registry, "fleet", files, "1"))
    site.api.forget_discovery()  # asked again by itself only after a while
    for name in ("one", "two"):
        site.api.create(
            {"apiVersion": f"{group}/v1", "kind": "Skiff", "metadata": {"name": name, "namespace": site.namespace}}
        )
        site.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": hold}})
    site.prepare("fleet", bundles.image(registry, "fleet", bundles.app("fleet", "2"), "2"))

    told = {one.name: one.words for one in services.acknowledgements(site.latest(deployment))}
    assert "2 Skiff objects at present" in told[f"delete CustomResourceDefinition.apiextensions.k8s.io skiffs.{group}"]
    assert "2 Secrets" in told[f"delete Namespace {hold}"]
    claim = told[f"delete PersistentVolumeClaim {site.namespace}/net"]
    assert "3Gi" in claim or "it has no volume yet" in claim


def test_a_namespace_of_kubernetes_is_never_pruned_even_where_that_is_acknowledged(
    site: DeployedSite, registry: Registry
) -> None:
    deployment = site.applied("anchor", bundles.image(registry, "anchor", bundles.app("anchor", "1"), "1"))
    ref = ObjectRef("", "v1", "Namespace", "", "kube-node-lease")
    live = site.api.get(ref)
    assert live is not None
    InventoryItem.objects.create(
        deployment=deployment, version="v1", kind="Namespace", name=ref.name, nonce="n", uid=live["metadata"]["uid"]
    )
    site.prepare("anchor", bundles.image(registry, "anchor", bundles.app("anchor", "2"), "2"))
    assert "delete Namespace kube-node-lease" in services.to_acknowledge(site.latest(deployment))
    request = site.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "objects-refused")
    assert "kube-node-lease belongs to Kubernetes itself" in request.problem
    still = site.api.get(ref)
    assert still is not None
    assert "deletionTimestamp" not in still["metadata"]
