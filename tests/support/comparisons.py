"""A catalog whose bundles can be compared, and comparisons as if a worker had made them."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals import services
from approvals.catalogs import comparisons
from approvals.models import BundleComparison
from approvals.rate_limits import counters
from approvals.services import AskedComparison, ComparisonQuestion
from approvals.steps.catalogs.comparison_record import ComparedBundles, changed_lines, comparison_record
from provisioner import pipeline
from provisioner.rbac import RbacSubject
from provisioner.review.preflight.answer import preflight
from provisioner.review.preflight.needs import PreflightFacts
from provisioner.values import Content, Manifest
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored

VERSIONS = ("1.0.0", "1.1.0", "1.2.0")
HARM = "\u202e<img src=x onerror=alert(1)>"
RBAC = "rbac.authorization.k8s.io/v1"


def port(env: World, *names: str) -> None:
    """A catalog of which these people may create deployments; ada may get it."""
    entries = [{"name": f"harbour.v{one}"} for one in VERSIONS]
    row = catalog("port", of=env.cluster)
    stored(row, package(defaultChannel="stable"), *map(pinned, VERSIONS), channel("stable", *entries))
    for name in names:
        env.kubernetes.allow(name, "get", "port")
        env.kubernetes.allow(name, "create")
    counters.memory.clear()


def pinned(version: str) -> dict[str, Any]:
    return {**bundle(version), "image": f"example.com/harbour@sha256:{version[2] * 64}"}


def asked(env: World, after: str = "1.1.0", before: str = "1.0.0", **more: str) -> AskedComparison:
    question = ComparisonQuestion("harbour", after, before=before, **more)
    return services.resolve_comparison(by=acting(env.ada), cluster=env.cluster, catalog="port", question=question)


def begun(env: World, after: str = "1.1.0", before: str = "1.0.0", **more: str) -> BundleComparison:
    return services.compare_bundles(by=acting(env.ada), asked=asked(env, after, before, **more))


def finish(row: BundleComparison, *, is_first: bool = False) -> None:
    found = compared(is_first=is_first)
    with transaction.atomic():
        comparisons.finish_comparison(row, comparison_record(found), found.changed.lines, timezone.now())


def fail(row: BundleComparison, words: str = f"manifests/a.yaml: no YAML {HARM}") -> None:
    with transaction.atomic():
        comparisons.fail_comparison(row, code="invalid-manifest", words=words, now=timezone.now())


def result(*, is_first: bool = False) -> dict[str, Any]:
    return comparison_record(compared(is_first=is_first))


def compared(*, is_first: bool = False) -> ComparedBundles:
    """As a worker makes it, of contents with hostile words, a new right to Secrets, and another image."""
    before = None if is_first else _content("1", [_config_map()])
    after = _content("2", [_role(), _binding()])
    account = RbacSubject("ServiceAccount", after.service_account, after.install_namespace)
    installer = preflight(PreflightFacts(account, after.manifests, roles=())) if is_first else None
    report = pipeline.look_offline(after, before)
    return ComparedBundles(
        before,
        after,
        {"watchNamespace": "harbour"} if is_first else {},
        report,
        pipeline.permissions(None, after, before),
        installer,
        changed_lines(report.plan.actions, begin=lambda: None),
    )


def _content(tag: str, more: list[dict[str, Any]]) -> Content:
    manifests = tuple(Manifest(one) for one in [_deployment(tag), *more])
    return Content(manifests, "harbour", "harbour-installer", (), f"sha256:{tag * 64}")


def _about(name: str, namespace: str = "") -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def _deployment(tag: str) -> dict[str, Any]:
    pod = {"serviceAccountName": "keeper", "containers": [{"name": "main", "image": f"example.com/{'h' * 90}:{tag}"}]}
    template = {"metadata": {"labels": {"app": "harbour"}, "annotations": {"note": HARM}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "harbour"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _about("harbour", "harbour"), "spec": spec}


def _config_map() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _about("o" * 120, "harbour"), "data": {"note": HARM}}


def _role() -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}
    return {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": _about("harbour"), "rules": [rule]}


def _binding() -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": "keeper", "namespace": "harbour"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "harbour"}
    about = {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": _about("harbour")}
    return {**about, "subjects": [subject], "roleRef": ref}
