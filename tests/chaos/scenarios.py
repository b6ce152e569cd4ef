"""What the workers of a run are at when they are hurt: something that is approved, and nothing of it done yet.

Between them the scenarios do everything to an object that an apply can do:

- FIRST creates.
- UPDATE changes, creates, leaves alone and deletes; it replaces what cannot be changed (an immutable ConfigMap), and
  adopts what somebody else had made.
- ROLLBACK asks for the revision before that: it creates again what was deleted, replaces what was replaced, deletes
  what was made and what was adopted.
- RESTORE meets an object that somebody takes away from it: it fails, and what ran before is put back.
- DELETION deletes all, and lets the BundleDeployment go.
- OPTIONAL was applied without an object whose API was absent. Now it is served, and drift's door creates that object.

Correction of drift has its own test with killed workers (tests/journeys/applied/test_drift_killed.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from approvals import services
from approvals.models import BundleDeployment
from approvals.watch.expected_changes import Appearances
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import ObjectRef
from tests.chaos.draw import Scenario
from tests.support.approvals.world import acting
from tests.support.journeys.deployed_site import DeployedSite, prepare_namespace
from tests.support.kubernetes.endpoint import Endpoint, Refused
from tests.support.kubernetes.live import until_served
from tests.support.patience import wait_for

VERSIONS = ("1", "2", "crowded", "optional", "this", "that")
# Two versions that share one object and have one each of their own (tests/chaos/together.py).
SHARED = "shared"
WIDGETS = "chaos.example.com"
ADOPTED = "lying"


def boat(version: str) -> list[dict[str, Any]]:
    """The objects of a version; "crowded" is "2" with a Deployment that somebody takes, and can be put back from."""
    if version in ("this", "that"):
        return [_config(SHARED, {"of": version}), _config(version, {"of": version})]
    number = "2" if version in ("2", "crowded") else "1"
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "boat"}},
        _config("settings", {"version": number}),
        _config("old" if number == "1" else "new", {"a": "b"}),
        # Nobody puts back what would have to be replaced or to be given back: that takes a review.
        _config("sealed", {"version": "2" if version == "2" else "1"}) | {"immutable": True},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "boat"},
            "spec": {"clusterIP": "None", "selector": {"app": "boat"}, "ports": [{"port": 80}]},
        },
        deployment("boat", number),
    ]
    more = {
        "2": [_config(ADOPTED, {"ours": "yes"})],
        "crowded": [deployment("lookout", number)],
        "optional": [_widget()],
    }
    return [*objects, *more.get(version, [])]


def _config(name: str, content: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": content}


def _widget() -> dict[str, Any]:
    """Of the whole cluster: while its API is absent nobody can tell that it would need the namespace."""
    meta = {"name": "boat", "annotations": {"core.rukpak.io/optional": "true"}}
    return {"apiVersion": f"{WIDGETS}/v1", "kind": "Widget", "metadata": meta, "spec": {"size": 1}}


def deployment(name: str, version: str) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": name, "image": f"registry.example.com/{name}:{version}"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def ask(scenario: Scenario, site: DeployedSite, bundles: str, name: str) -> BundleDeployment:
    """Bring everything to where a request lies before the reviewers, in a namespace of this name.

    What was left out was approved before its API is there, so it is applied already.
    """
    site.namespace = name
    prepare_namespace(site.api, name)
    _withdraw_widgets(site.api)
    options = {"onFailure": "RestorePrevious"} if scenario is Scenario.RESTORE else {}
    asked = site.submit_spec(name, source(bundles, "optional" if scenario is Scenario.OPTIONAL else "1"), **options)
    site.work()
    if scenario is Scenario.FIRST:
        return asked
    _approve(site, asked)
    if scenario is Scenario.OPTIONAL:
        return asked
    if scenario is Scenario.DELETION:
        services.delete_deployment(by=acting(site.people["rita"]), deployment=asked, via="browser")
    elif scenario is Scenario.RESTORE:
        site.submit_spec(name, source(bundles, "crowded"), **options)
    else:
        _exists(site, _config(ADOPTED, {"theirs": "yes"}))
        site.submit_spec(name, source(bundles, "2"), collisionProtection="IfNoController")
    site.work()
    if scenario is Scenario.ROLLBACK:
        _approve(site, asked)
        services.rollback_deployment(by=acting(site.people["rita"]), deployment=asked, revision=1, via="browser")
        site.work()
    return asked


def agree(scenario: Scenario, site: DeployedSite, asked: BundleDeployment) -> int:
    """Approve it, or serve the API of what was left out; the request that is to be carried out now."""
    if scenario is not Scenario.OPTIONAL:
        return site.agree(asked).pk
    _serve_widgets(site.api)
    Appearances(site.cluster).look(0.0)
    return site.latest(asked).pk


def taking(scenario: Scenario, endpoint: Endpoint, namespace: str) -> Callable[[], None]:
    """What somebody else does once the first write is on its way, whoever makes it: only in the restored one."""
    if scenario is not Scenario.RESTORE:
        return lambda: None

    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    return lambda: _create_at_last(endpoint, path, deployment("lookout", "0"))


def _approve(site: DeployedSite, asked: BundleDeployment) -> None:
    assert site.approve(asked).state == "applied", site.latest(asked).problem
    site.look_after(asked)


def _exists(site: DeployedSite, obj: dict[str, Any]) -> None:
    site.api.create({**obj, "metadata": {**obj["metadata"], "namespace": site.namespace}}, field_manager="shop")


def _serve_widgets(api: Api) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{WIDGETS}"},
        "spec": {"group": WIDGETS, "scope": "Cluster", "names": names, "versions": [version]},
    }
    api.apply(definition, field_manager="others")
    until_served(api, WIDGETS, "v1", "Widget")


def _withdraw_widgets(api: Api) -> None:
    if api.delete(ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"widgets.{WIDGETS}")):
        until_served(api, WIDGETS, "v1", "Widget", is_served=False)


def _create_at_last(endpoint: Endpoint, path: str, obj: dict[str, Any]) -> None:
    """The cluster may be away just now, or not know anybody's rights yet: then that somebody tries again as well."""

    def trouble() -> Exception | None:
        try:
            endpoint.ask("POST", path, obj)
        except (Refused, OSError) as exc:
            is_there = isinstance(exc, Refused) and exc.status == 409  # from an earlier worker
            return None if is_there else exc
        return None

    wait_for(trouble, f"POST {path}", is_so=lambda it: it is None)


def source(bundles: str, version: str) -> dict[str, Any]:
    return {"kind": "http", "http": {"url": f"{bundles}/boat-{version}.tar.gz"}}
