"""What a request's bundle needs of other packages: the requests that would come first, and making them as a set.

The plan is made anew for whoever looks, out of the catalogs that they may get (S09) and of what is installed and
served at that moment. It approves nothing: each deployment that is made of it has an ordinary request.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from approvals import access
from approvals.access import Caller
from approvals.catalogs.bundle_choice import recorded_bundles
from approvals.catalogs.comparisons import suggested_names
from approvals.catalogs.dependencies import KnownOnCluster, catalogs_with_editions
from approvals.errors import Changed, InvalidInput
from approvals.lifecycle import OPEN
from approvals.models import BundleDeployment, Cluster, Report, Request
from approvals.services.comparisons import OPERATOR
from approvals.services.deployments import create_deployments
from provisioner.catalogs.dependencies import DependencyPlan, PlannedPackage, plan_dependencies
from provisioner.errors import InvalidRange, PratiqueError
from provisioner.render.registry.needs import ApiNeed, Need, needs_of_requirements
from provisioner.values import ObjectRef, Requirement, RequirementKind
from provisioner.versions import constraint_of, version_of

MOST_NEEDS = 50
MOST_NUMBERED = 100


@dataclass(frozen=True, slots=True)
class PlannedDeployment:
    """A deployment that would be made for a package of the plan, with the namespace and account that it would have."""

    package: PlannedPackage
    name: str
    namespace: str
    account: str
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DependencyOffer:
    """What a bundle needs, and what would be made. `digest` names exactly these deployments; `unasked` says why
    catalogs are left out that the viewer may be allowed to get, "" where none are; `more_needs` are not looked at."""

    plan: DependencyPlan
    deployments: tuple[PlannedDeployment, ...]
    digest: str
    unasked: str = ""
    more_needs: int = 0


def find_dependencies(*, by: Caller, request: Request) -> DependencyOffer | None:
    """The plan for a request that is open, as `by` may know it; None where its bundle needs nothing of others."""
    if request.state not in OPEN or request.purpose != Request.Purpose.DEPLOY or not request.requirements:
        return None
    needs = _list_needs(request)
    if not needs:
        return None
    cluster = request.deployment.cluster
    readable = access.readable_catalogs(by)
    unasked = [answer.words for where, answer in readable.answers if where == cluster and not answer.could_ask]
    known = KnownOnCluster(cluster, catalogs_with_editions(readable.keys, cluster), _Served(cluster).serves)
    chosen = next(iter(recorded_bundles(request)), None)
    plan = plan_dependencies(
        needs[:MOST_NEEDS], known, package=chosen.package if chosen else "", catalog=chosen.catalog if chosen else ""
    )
    deployments = _plan_deployments(cluster, plan.steps)
    text = json.dumps([[one.name, one.spec] for one in deployments], sort_keys=True, separators=(",", ":"))
    return DependencyOffer(
        plan,
        deployments,
        f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        unasked="; ".join(unasked),
        more_needs=max(0, len(needs) - MOST_NEEDS),
    )


def make_dependencies(*, by: Caller, request: Request, digest: str, via: str) -> list[BundleDeployment]:
    """Create all deployments of the plan as `by`, or none of them.

    Raises Changed where the plan is no longer the one of `digest`, InvalidInput where there is nothing to make, and as
    `create_deployments`.
    """
    offer = find_dependencies(by=by, request=request)
    if offer is None or not offer.deployments:
        raise InvalidInput("no request would come first: what can be planned is installed or asked for", field="digest")
    if offer.digest != digest:
        raise Changed("the plan changed since you were shown it: read the new plan, then make the requests")
    specs = {one.name: one.spec for one in offer.deployments}
    return create_deployments(by=by, cluster=request.deployment.cluster, specs=specs, via=via)


def _list_needs(request: Request) -> list[Need]:
    """What the bundle needs beside what it brings itself, which the report knows."""
    asked = [Requirement(**{**record, "kind": RequirementKind(record["kind"])}) for record in request.requirements]
    needs = needs_of_requirements(asked)
    if not any(isinstance(need, ApiNeed) for need in needs):
        return needs
    report = Report.objects.filter(request=request, round=request.round).only("body").first()
    evidence = [
        finding["evidence"]
        for finding in (report.body["findings"] if report else ())
        if finding["rule"] == "REQ-02" and finding.get("variant") == "brought"
    ]
    brought = {(one.get("group"), one.get("version"), one.get("name")) for one in evidence}
    return [need for need in needs if not (isinstance(need, ApiNeed) and _api_of(need) in brought)]


def _api_of(need: ApiNeed) -> tuple[str, str, str]:
    return need.group, need.version, need.kind


class _Served:
    """What the cluster serves; it is asked no more once it was silent."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._is_silent = False

    def serves(self, api: ApiNeed) -> bool | None:
        if self._is_silent:
            return None
        try:
            found = access.kubernetes().plural_of(self._cluster, ObjectRef(*_api_of(api), "", ""))
        except PratiqueError:
            self._is_silent = True
            return None
        return found is not None


def _plan_deployments(cluster: Cluster, steps: Sequence[PlannedPackage]) -> tuple[PlannedDeployment, ...]:
    """Each after those that it needs, for which it waits; under names that no deployment of the cluster has."""
    if not steps:
        return ()
    taken = set(BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True).values_list("name", flat=True))
    made: dict[str, PlannedDeployment] = {}
    for step in steps:
        namespace, account = suggested_names(step.package)
        numbered = (f"{namespace[:46]}-{number}" for number in range(2, MOST_NUMBERED))
        name = next((one for one in (namespace, *numbered) if one not in taken), namespace)
        taken.add(name)
        source = {"name": step.catalog, "package": step.package, "channel": step.channel}
        if versions := _constraint_words(step):
            source["version"] = versions
        spec: dict[str, Any] = {
            "installNamespace": namespace,
            "serviceAccountName": account,
            "format": OPERATOR,
            "sources": [{"kind": "catalog", "catalog": source}],
        }
        if step.after:
            required = [{"name": made[package].name} for package in step.after]
            spec["constraints"] = {"requiredBundleDeployments": required}
        made[step.package] = PlannedDeployment(step, name, namespace, account, spec)
    return tuple(made.values())


def _constraint_words(step: PlannedPackage) -> str:
    """The range of the need in the grammar of a spec, which is not that of bundles; else the version and what is
    higher."""
    try:
        is_same = not step.versions or constraint_of(step.versions).takes(version_of(step.version))
    except InvalidRange:
        is_same = False
    return step.versions if is_same else f">={step.version}"
