"""What would change from one bundle of a catalog to another, worked out by a worker as reports are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from django.utils import timezone

from approvals import services, tasks
from approvals.catalogs.editions import find_catalog, find_package
from approvals.catalogs.schedule import observe_catalog
from approvals.errors import InvalidInput
from approvals.models import BundleComparison, BundleDeployment, Catalog
from approvals.services import AskedComparison, ComparisonQuestion
from approvals.steps.catalogs.comparison import CompareBundles
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.working import do
from provisioner import pipeline
from provisioner.api_groups import OWN_GROUP
from provisioner.errors import WorkerDied
from tests.support.approvals.world import acting
from tests.support.journeys.catalogs import read, written
from tests.support.journeys.contents.catalogs import HARBOUR, KIALI, documents, source
from tests.support.journeys.contents.charts import chart, repository
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.servers.http import FileServer
from tests.support.servers.registry import Registry


def offered(site: DeployedSite, registry: Registry, listed: list[dict[str, Any]]) -> Catalog:
    """A Catalog in the cluster with these documents, which was read."""
    name = f"{site.namespace}-hub"
    text = "\n".join(json.dumps(one) for one in listed)
    registry.push(f"{registry.host}/{name}:latest", {"catalog.json": text.encode()})
    origin = {"kind": "image", "image": {"ref": f"{registry.host}/{name}:latest"}}
    about = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "Catalog", "metadata": {"name": name}}
    obj = site.api.apply({**about, "spec": {"source": origin}}, field_manager="somebody").object
    row = observe_catalog(cluster=site.cluster, obj=obj, writer=None)
    assert row is not None
    do(RefreshCatalog(row.pk))
    found = find_catalog(site.cluster, name)
    assert found is not None
    assert found.edition is not None, found.problem
    return found


def ask(site: DeployedSite, row: Catalog, of: str, after: str, **more: str) -> AskedComparison:
    question = ComparisonQuestion(of, after, **more)
    return services.resolve_comparison(
        by=acting(site.people["rita"]), cluster=site.cluster, catalog=row.name, question=question
    )


def compared(site: DeployedSite, asked: AskedComparison) -> Mapping[str, Any]:
    """The result, as a worker makes it."""
    row = services.compare_bundles(by=acting(site.people["rita"]), asked=asked)
    tasks.compare_bundles(row.pk)
    row.refresh_from_db()
    assert (row.state, row.problem) == ("done", "")
    found = services.read_comparison_result(by=acting(site.people["rita"]), asked=asked, row=row)
    assert found is not None
    return found


def planned(result: Mapping[str, Any]) -> dict[str, str]:
    return {f"{one['ref']['kind']}/{one['ref']['name']}": one["action"] for one in result["report"]["plan"]["actions"]}


@pytest.mark.proof
def test_what_would_change_is_told_without_a_request_and_without_touching_the_cluster(
    site: DeployedSite, registry: Registry
) -> None:
    row = offered(site, registry, documents(registry, HARBOUR, ["1.0.0", "1.1.0"]))
    result = compared(site, ask(site, row, HARBOUR, "1.1.0", before="1.0.0"))
    assert planned(result)["Deployment/harbour"] == "update"
    (image,) = result["images"]
    assert image["before"] != image["after"]
    assert image["ref"]["name"] == HARBOUR
    (at,) = (at for at, one in enumerate(result["report"]["plan"]["actions"]) if one["ref"] == image["ref"])
    assert sum(result["changed"][str(at)]) >= 2
    lines = BundleComparison.objects.get().lines[str(at)]["lines"]
    assert {one[0] for one in lines if "image: " in one[1]} == {"-", "+"}
    assert (result["install_namespace"], result["service_account"]) == (HARBOUR, "harbour-installer")
    assert result["installer"] is None
    assert all(one["before"] is None and one["after"] is None for one in result["report"]["plan"]["actions"])
    assert not BundleDeployment.objects.exists()


@pytest.mark.proof
def test_installing_proposes_an_account_whose_least_rights_suffice(site: DeployedSite, registry: Registry) -> None:
    """The roles are applied as they are proposed, and the account installs the bundle with them."""
    row = offered(site, registry, documents(registry, HARBOUR, ["1.0.0"]))
    result = compared(site, ask(site, row, HARBOUR, "1.0.0", namespace=site.namespace, account="least"))
    installer = result["installer"]
    assert installer["is_complete"]
    assert installer["obstacles"] == []
    for obj in yaml.safe_load_all(installer["yaml"]):
        site.api.apply(obj, field_manager="admin")
    name = f"{site.namespace}-least"
    for who in ("rita", "pratique"):
        site.let_use_installer(who, "least")
    deployment = site.prepare(name, source(row.name, HARBOUR), format="registry-v1", serviceAccountName="least")
    request = site.latest(deployment)
    assert (request.state, request.problem) == ("in_review", "")
    assert site.approve(deployment).state == "applied"


def charts(site: DeployedSite, url: str, settings: Any) -> Catalog:
    """The catalog of a Helm repository, whose index has no checksum."""
    settings.PRATIQUE = {**settings.PRATIQUE, "MUTABLE_HTTP": True}
    source = {"kind": "http", "http": {"url": url}}
    return read(written(site, f"{site.namespace}-charts", format="helm", source=source))


def test_S09_what_installing_takes_does_not_tell_which_namespaces_there_are(
    sandbox_site: DeployedSite, http_server: FileServer, settings: Any
) -> None:
    """Anybody may see it who may get the Catalog, and what goes where is the publisher's to say."""
    found = []
    row = charts(sandbox_site, repository(http_server, "0.9.0"), settings)
    for elsewhere in ("kube-public", "nowhere"):
        repository(http_server, "1.0.0", elsewhere=elsewhere)
        result = compared(sandbox_site, ask(sandbox_site, read(row), HARBOUR, "1.0.0"))
        found.append(json.dumps(result["installer"]).replace(elsewhere, "there"))
    assert found[0] == found[1]
    assert "nowhere" not in str(result["installer"]["obstacles"])


@pytest.mark.proof
def test_charts_of_a_helm_repository_are_compared_by_their_checksums(
    site: DeployedSite, http_server: FileServer, settings: Any
) -> None:
    row = charts(site, repository(http_server, "1.0.0", "1.1.0"), settings)
    result = compared(site, ask(site, row, HARBOUR, "1.1.0", before="1.0.0"))
    assert planned(result) == {"ConfigMap/harbour": "update"}
    package = find_package(row, HARBOUR)
    assert package is not None
    pins = {version: package.bundles[f"harbour-{version}"].checksum for version in ("1.0.0", "1.1.0")}
    assert result["pins"] == {"before": [pins["1.0.0"]], "after": [pins["1.1.0"]]}
    first = compared(site, ask(site, row, HARBOUR, "1.1.0"))
    assert planned(first) == {"ConfigMap/harbour": "create"}
    assert "configmaps" in first["installer"]["yaml"]


def test_a_chart_that_is_another_than_its_index_says_is_not_compared(
    sandbox_site: DeployedSite, http_server: FileServer, settings: Any
) -> None:
    row = charts(sandbox_site, repository(http_server, "1.0.0"), settings)
    http_server.serve("/charts/harbour-1.0.0.tgz", chart("6.6.6"))
    asked = ask(sandbox_site, row, HARBOUR, "1.0.0")
    made = services.compare_bundles(by=acting(sandbox_site.people["rita"]), asked=asked)
    tasks.compare_bundles(made.pk)
    made.refresh_from_db()
    assert (made.state, made.problem_code) == ("failed", "digest-mismatch")


def test_a_chart_without_a_digest_is_not_compared_and_says_what_to_do(
    sandbox_site: DeployedSite, http_server: FileServer, settings: Any
) -> None:
    row = charts(sandbox_site, repository(http_server, "1.0.0", is_digested=False), settings)
    with pytest.raises(InvalidInput, match="has no digest of chart harbour-1.0.0.*source of kind http"):
        ask(sandbox_site, row, HARBOUR, "1.0.0")


@pytest.mark.corpus
@pytest.mark.thorough
def test_an_operator_of_the_corpus_tells_rights_definitions_and_images(
    real_site: DeployedSite, registry: Registry
) -> None:
    row = offered(real_site, registry, documents(registry, KIALI, ["1.32.0", "1.34.0"]))
    result = compared(real_site, ask(real_site, row, KIALI, "1.34.0", before="1.32.0"))
    assert result["images"]
    assert "Deployment/kiali-operator" in planned(result)
    first = compared(real_site, ask(real_site, row, KIALI, "1.34.0"))
    assert set(planned(first).values()) == {"create"}
    assert any(name.startswith("CustomResourceDefinition/") for name in planned(first))
    assert first["permissions"]["accounts"]
    assert 'kind: "ServiceAccount"' in first["installer"]["yaml"]


def test_a_bundle_beside_what_a_deployment_runs_is_told_as_far_as_one_may_get_the_objects(
    site: DeployedSite, registry: Registry
) -> None:
    row = offered(site, registry, documents(registry, HARBOUR, ["1.0.0", "1.1.0"]))
    deployment = site.applied(
        f"{site.namespace}-runs", source(row.name, HARBOUR, version="1.0.0"), format="registry-v1"
    )
    result = compared(site, ask(site, row, HARBOUR, "1.1.0", deployment=deployment.name))
    assert planned(result)["Deployment/harbour"] == "update"
    assert result["images"] == []
    assert result["hidden"] == [
        "1 image of objects that you may not get",
        "permissions, because you may not get all roles and bindings",
    ]
    assert result["install_namespace"] == site.namespace


def test_a_bundle_suggests_its_namespace_and_the_account_goes_there(
    sandbox_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[Any] = []
    fetch = pipeline.fetch_sources
    monkeypatch.setattr(pipeline, "fetch_sources", lambda *args, **named: fetched.append(args) or fetch(*args, **named))
    listed = documents(registry, HARBOUR, ["1.0.0"])
    csv, files = operator(annotations={"operatorframework.io/suggested-namespace": "docks"}, mode="OwnNamespace")
    digest = registry.push(f"{registry.host}/suggesting:1", files)
    listed[-1] = {**listed[-1], "image": f"{registry.host}/suggesting@{digest}", "name": csv}
    row = offered(
        sandbox_site,
        registry,
        [package(HARBOUR, defaultChannel="stable"), channel("stable", {"name": csv}), listed[-1]],
    )
    result = compared(sandbox_site, ask(sandbox_site, row, HARBOUR, "1.0.0"))
    assert (result["install_namespace"], result["suggested_namespace"]) == ("docks", "docks")
    assert result["config"] == {"watchNamespace": "docks"}, "it cannot watch all namespaces"
    assert {one["ref"]["namespace"] for one in result["report"]["plan"]["actions"]} == {"docks"}
    assert len(fetched) == 1, "however often it is rendered"


def operator(*, annotations: Mapping[str, str], mode: str) -> tuple[str, dict[str, bytes]]:
    name = "harbour.v1.0.0"
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "annotations": dict(annotations)},
        "spec": {
            "version": "1.0.0",
            "installModes": [{"type": mode, "supported": True}],
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "a", "spec": spec}]}},
        },
    }
    prefix = "operators.operatorframework.io.bundle"
    about = {f"{prefix}.mediatype.v1": "registry+v1", f"{prefix}.package.v1": HARBOUR}
    return name, {
        "manifests/a.clusterserviceversion.yaml": yaml.safe_dump(csv).encode(),
        "metadata/annotations.yaml": yaml.safe_dump({"annotations": about}).encode(),
    }


@pytest.mark.parametrize(
    ("image", "code", "words"),
    [
        ("hostile", "bundle-too-large", ""),
        ("nothing", "source-unavailable", "nothing"),
        ("http://169.254.169.254/latest", "bad-source", ""),
    ],
    ids=["a bundle that is nested without end", "an image that is not there", "an address of a cloud"],
)
def test_a_hostile_bundle_ends_its_comparison_in_words_and_nothing_else(
    sandbox_site: DeployedSite, registry: Registry, image: str, code: str, words: str
) -> None:
    _, files = operator(annotations={}, mode="AllNamespaces")
    bomb = b"a: &a [x, x]\nb: " + b"[" * 3000 + b"*a" + b"]" * 3000
    digest = registry.push(f"{registry.host}/hostile:1", {**files, "manifests/bomb.yaml": bomb})
    refs = {"hostile": f"{registry.host}/hostile@{digest}", "nothing": f"{registry.host}/nothing:1"}
    evil = {**bundle("1.0.0"), "image": refs.get(image, image)}
    row = offered(
        sandbox_site, registry, [package(defaultChannel="stable"), channel("stable", {"name": evil["name"]}), evil]
    )
    asked = ask(sandbox_site, row, HARBOUR, "1.0.0")
    made = services.compare_bundles(by=acting(sandbox_site.people["rita"]), asked=asked)
    for _ in range(5):
        BundleComparison.objects.filter(pk=made.pk).update(look_again_at=None)
        tasks.compare_bundles(made.pk)
    made.refresh_from_db()
    assert (made.state, made.problem_code, made.position) == ("failed", code, None)
    assert words.lower() in made.problem.lower()
    assert services.read_comparison_result(by=acting(sandbox_site.people["rita"]), asked=asked, row=made) is None


def test_a_comparison_whose_worker_died_too_often_is_given_up_in_words(
    sandbox_site: DeployedSite, registry: Registry
) -> None:
    row = offered(sandbox_site, registry, documents(registry, HARBOUR, ["1.0.0"]))
    made = services.compare_bundles(
        by=acting(sandbox_site.people["rita"]), asked=ask(sandbox_site, row, HARBOUR, "1.0.0")
    )
    work = CompareBundles(made.pk)
    work.rows.update(claimed_by="dead", claimed_until=timezone.now(), worker_deaths=2)
    tasks.compare_bundles(made.pk)
    made.refresh_from_db()
    assert (made.state, made.problem_code) == ("failed", WorkerDied.code)
    assert "the worker died 3 times while comparing two bundles of a catalog" in made.problem
