"""Operator bundles of OLM on a real API server: installed, upgraded, refused, and taken away."""

from __future__ import annotations

import pytest

from approvals.models import BundleDeployment, Request
from approvals.web.requests.overview import blockers
from provisioner.values import ObjectRef
from tests.support.folders import CORPUS
from tests.support.journeys.contents.cert_manager import serve_cert_manager
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.operator_bundles import GRAFANA, image
from tests.support.servers.registry import Registry

pytestmark = pytest.mark.corpus
TELEMETRY = CORPUS / "bundles/opentelemetry-operator"
WEBHOOKS = CORPUS / "golden/olm-convert-webhook-operator/v0.0.5/bundle"


DEPENDENCIES = b"dependencies: [{type: olm.package, value: {packageName: store, version: '>=1.0.0'}}]"


def ask_for(site: DeployedSite, registry: Registry, version: str, **config: object) -> BundleDeployment:
    source = image(registry, GRAFANA / version, dependencies=DEPENDENCIES)
    return site.submit_spec(f"{site.namespace}-grafana", source, format="registry+v1", config=config)


def roles(site: DeployedSite) -> list[str]:
    return sorted(one["metadata"]["name"] for one in site.get("role", "-n", site.namespace)["items"])


def crd(site: DeployedSite) -> object:
    return site.api.get(
        ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "grafanas.integreatly.org")
    )


def removed(site: DeployedSite, wished: BundleDeployment) -> Request:
    site.look_after(wished)
    site.delete(wished)
    site.work()
    return site.approve(wished)


def test_an_operator_is_installed_upgraded_and_removed(site: DeployedSite, registry: Registry) -> None:
    wished = ask_for(site, registry, "v4.9.0")
    request = site.after_work(wished)
    assert (request.state, request.problem_code) == ("failed", "bad-config")
    assert "config.watchNamespace is missing: this operator cannot watch all namespaces" in request.problem

    ask_for(site, registry, "v4.9.0", watchNamespace=site.namespace)
    site.work()
    request = site.approve(wished)
    assert request.state == "applied", request.problem
    assert [one for one in roles(site) if one.startswith("grafana-operator.v")]
    assert crd(site)
    asked = [(one.rule, one.severity) for one in request.reports.get().findings.filter(rule__startswith="REQ")]
    assert asked == [("REQ-03", "notable")]

    ask_for(site, registry, "v4.10.1", watchNamespace=site.namespace)
    site.work()
    request = site.approve(wished)
    assert request.state == "applied", request.problem
    live = site.live("Deployment", "grafana-operator-controller-manager")
    assert live
    annotations = live["spec"]["template"]["metadata"]["annotations"]
    assert annotations["olm.targetNamespaces"] == site.namespace

    assert removed(site, wished).state == "applied"
    assert (crd(site), [one for one in roles(site) if one.startswith("grafana")]) == (None, [])


@pytest.mark.parametrize(
    ("name", "crds"),
    [
        pytest.param("cloud-native-postgresql/1.1.0", 3, id="cloud-native-postgresql"),
        pytest.param("keycloak-operator/9.0.2", 5, id="keycloak-operator"),
    ],
)
def test_of_crds_that_no_kubernetes_serves_any_more_the_author_is_asked_for_others(
    site: DeployedSite, registry: Registry, name: str, crds: int
) -> None:
    source = image(registry, CORPUS / "bundles" / name)
    config = {"watchNamespace": site.namespace}
    wished = site.prepare(f"{site.namespace}-old", source, format="registry+v1", config=config)
    request = site.latest(wished)
    assert request.state == "in_review", request.problem
    told = blockers(request.reports.get().body)
    old = [one for one in told if "apiextensions.k8s.io/v1beta1" in one.words]
    assert [one.what for one in old] == [f"{crds} CRDs"]
    assert "as of 1.22; it serves this kind in apiextensions.k8s.io/v1" in old[0].words
    assert old[0].remedy.startswith("Take a newer version of the bundle")
    missing = [one for one in told if "install whatever defines" in one.remedy]
    assert [one.words for one in missing if "in cert-manager.io/v1" not in one.words] == []


def webhooks_of(site: DeployedSite, kind: str) -> list[str]:
    """The annotations by which cert-manager writes its CA into the configurations of this installation."""
    found = [one["metadata"].get("annotations", {}) for one in site.get(kind)["items"]]
    asked = (one.get("cert-manager.io/inject-ca-from", "") for one in found)
    return sorted({one for one in asked if one.startswith(f"{site.namespace}/")})


@pytest.mark.thorough
def test_webhooks_ask_cert_manager_for_their_certificate(real_site: DeployedSite, registry: Registry) -> None:
    serve_cert_manager(real_site)
    source = image(registry, WEBHOOKS)
    wished = real_site.prepare(f"{real_site.namespace}-webhooks", source, format="registry-v1")
    request = real_site.approve(wished)
    assert request.state == "applied", (request.problem, real_site.said(request))
    (certificate,) = real_site.get("certificates.cert-manager.io", "-n", real_site.namespace)["items"]
    (issuer,) = real_site.get("issuers.cert-manager.io", "-n", real_site.namespace)["items"]
    assert certificate["spec"]["issuerRef"]["name"] == issuer["metadata"]["name"]
    trusted = [f"{real_site.namespace}/{certificate['metadata']['name']}"]
    assert webhooks_of(real_site, "validatingwebhookconfigurations") == trusted
    assert webhooks_of(real_site, "mutatingwebhookconfigurations") == trusted
    assert webhooks_of(real_site, "customresourcedefinitions") == trusted
    live = real_site.get("deployment", "-n", real_site.namespace)["items"][0]["spec"]["template"]["spec"]
    assert certificate["spec"]["secretName"] in [one.get("secret", {}).get("secretName") for one in live["volumes"]]

    real_site.prepare(
        f"{real_site.namespace}-webhooks",
        source,
        format="registry-v1",
        config={"deploymentConfig": {"env": [{"name": "LEVEL", "value": "debug"}]}},
    )
    request = real_site.approve(wished)
    assert request.state == "applied", (request.problem, real_site.said(request))
    (deployment,) = real_site.get("deployment", "-n", real_site.namespace)["items"]
    env = [one for each in deployment["spec"]["template"]["spec"]["containers"] for one in each.get("env", [])]
    assert {"name": "LEVEL", "value": "debug"} in env

    assert removed(real_site, wished).state == "applied"
    assert webhooks_of(real_site, "validatingwebhookconfigurations") == []
    assert real_site.get("issuers.cert-manager.io", "-n", real_site.namespace)["items"] == []


def annotated(site: DeployedSite, kind: str, label: str) -> list[str]:
    """The names of objects of a kind without a namespace that ask for the CA of this installation."""
    found = site.get(kind)["items"]
    return sorted(
        one["metadata"]["name"]
        for one in found
        if one["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from", "") == label
    )


@pytest.mark.thorough
def test_an_operator_with_webhooks_goes_to_its_next_version_and_the_report_says_what_it_asks_for(
    real_site: DeployedSite, registry: Registry
) -> None:
    def go_to(version: str) -> Request:
        wished = real_site.prepare(name, image(registry, TELEMETRY / version), format="registry-v1")
        request = real_site.approve(wished)
        assert request.state == "applied", (request.problem, real_site.said(request))
        return request

    def bindings() -> list[str]:
        found = [one["metadata"]["name"] for one in real_site.get("clusterrolebindings")["items"]]
        return [one for one in found if one.startswith("opentelemetry-")]

    serve_cert_manager(real_site)
    name = f"{real_site.namespace}-telemetry"
    deployment = "opentelemetry-operator-controller-manager"
    trusted = f"{real_site.namespace}/{deployment}-service-cert"
    first = go_to("v0.87.0")
    (certificate,) = real_site.get("certificates.cert-manager.io", "-n", real_site.namespace)["items"]
    bound = bindings()
    before = annotated(real_site, "mutatingwebhookconfigurations", trusted)
    assert before == ["minstrumentation.kb.io", "mopentelemetrycollector.kb.io", "mpod.kb.io"]

    second = go_to("v0.88.0")
    after = annotated(real_site, "mutatingwebhookconfigurations", trusted)
    assert after == sorted([*before, "mopampbridge.kb.io"])
    (kept,) = real_site.get("certificates.cert-manager.io", "-n", real_site.namespace)["items"]
    assert kept["metadata"]["uid"] == certificate["metadata"]["uid"]
    assert real_site.get("crd", "opampbridges.opentelemetry.io")["metadata"]["name"] == "opampbridges.opentelemetry.io"
    now_bound = set(bindings())
    assert (bool(now_bound - set(bound)), bool(set(bound) - now_bound)) == (True, True), (
        "roles are named by their rules"
    )
    live = real_site.get("deployment", deployment, "-n", real_site.namespace)
    assert any("0.88.0" in one["image"] for one in live["spec"]["template"]["spec"]["containers"])
    said = [one["message"] for one in second.reports.get(round=second.round).body["findings"] if one["isNew"]]
    assert any("mopampbridge.kb.io" in one for one in said), said
    assert any(f"{deployment}` gains" in one and "opampbridges" in one for one in said), said

    real_site.roll_back(second.deployment, first.revision.number)
    real_site.work()
    back = real_site.approve(second.deployment)
    assert back.state == "applied", (back.problem, real_site.said(back))
    assert annotated(real_site, "mutatingwebhookconfigurations", trusted) == before
    assert removed(real_site, second.deployment).state == "applied"
    assert annotated(real_site, "mutatingwebhookconfigurations", trusted) == []
