"""Since when the shipped admission policies are in force on a cluster, and what follows for what was written there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from approvals.admission.policies import AUTHORS, EVERY, PolicySet, read
from approvals.clock import database_now
from approvals.locks import for_change
from approvals.models import AuthorAdmission, Cluster
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import UnknownKind

# The policies take effect some seconds after they are written, and clocks differ.
MARGIN = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class PolicyState:
    """The policies as they are now: `since` is when they were first seen so, None where `problem` says why not."""

    since: datetime | None
    problem: str


@dataclass(frozen=True, slots=True)
class InForce:
    """Between which writes the policies are known to have been in force without a change, as resourceVersions.

    What was written after `sure_from` and not after `seen_until` met them; `since` is when they were first seen so.
    """

    sure_from: int
    seen_until: int
    since: datetime


@dataclass(frozen=True, slots=True)
class StampedWrite:
    """When a spec was written: after `after` and not after `by`, as resourceVersions; `created_at` of a new object."""

    after: int
    by: int
    created_at: datetime | None = None


def met(written: StampedWrite, policies: InForce) -> bool:
    """Whether the policies stood for longer than MARGIN when this was written, and still stood afterwards."""
    is_after = written.after >= policies.sure_from
    if written.created_at and written.created_at - policies.since > MARGIN:
        is_after = True
    return is_after and written.by <= policies.seen_until


# What the worker and the watch may list.
DEFINITIONS = ("apiextensions.k8s.io", "CustomResourceDefinition")
DEPLOYMENTS = (OWN_GROUP, "BundleDeployment")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look found; `version` is the cluster's resourceVersion after it, 0 where nobody asked, and `stands_from`
    since when policies that were not seen so before stand."""

    began_at: datetime
    marks: str = ""
    problem: str = ""
    version: int = 0
    stands_from: datetime | None = None


def survey(api: Api, cluster: Cluster) -> None:
    """Look at every set of policies, and keep what is not served. Raises PratiqueError where nobody answers."""
    for policies in EVERY:
        try:
            look(api, cluster, policies)
        except UnknownKind:
            # It serves no such policies, or not our CRD.
            api.forget_discovery()
            now = database_now()
            _keep(cluster, policies, _Seen(now, problem=policies.unserved))


def look(api: Api, cluster: Cluster, policies: PolicySet) -> PolicyState:
    """Read the policies, keep since when they have been so, and say it. Raises PratiqueError where nobody answers."""
    began_at = database_now()
    stored = read(api, policies)
    problem = stored.problem or policies.probe(api, cluster, stored.kinds)
    version = version_now(api, DEFINITIONS) if policies is AUTHORS and not problem else 0
    stands_from = max(database_now(), stored.written_at)
    return _keep(cluster, policies, _Seen(began_at, stored.marks, problem, version, stands_from))


def state_of(cluster: Cluster, policies: PolicySet) -> PolicyState:
    """What the last look kept."""
    row = policies.record.objects.filter(cluster=cluster).first()
    return PolicyState(row.since, row.problem) if row else PolicyState(None, "nobody has looked at the policies yet")


def version_now(api: Api, kind: tuple[str, str]) -> int:
    """The cluster's resourceVersion by a list of this kind, which the process may list.

    It counts all writes of one etcd. Definitions and custom resources are kept by the same server, in the same one.
    """
    group, name = kind
    resource = api.resource_of(group, "", name)
    if resource is None:
        raise UnknownKind(f"the cluster serves no {name}", status=404)
    return number_of(api.excerpt(resource, at_most=1, metadata_only=True).resource_version)


def number_of(version: str) -> int:
    """A resourceVersion, 0 where it is none that could be compared."""
    return int(version) if version.isascii() and version.isdigit() else 0


def still_in_force(api: Api, row: AuthorAdmission) -> int:
    """Until which resourceVersion the policies of authors stand as `row` knows them, 0 where they do not any more."""
    until = version_now(api, DEPLOYMENTS)
    stored = read(api, AUTHORS)
    return 0 if stored.problem or stored.marks != row.facts else until


def in_force(row: AuthorAdmission, seen_until: int) -> InForce | None:
    if row.sure_from is None or row.since is None or not seen_until:
        return None
    return InForce(row.sure_from, seen_until, row.since)


@transaction.atomic
def _keep(cluster: Cluster, policies: PolicySet, seen: _Seen) -> PolicyState:
    record = policies.record
    record.objects.get_or_create(cluster=cluster, defaults={"looked_at": seen.began_at})
    row = for_change(record.objects.filter(cluster=cluster)).get()
    is_same = not seen.problem and bool(row.facts) and row.facts == seen.marks and row.since is not None
    if not is_same:
        row.since = None if seen.problem else seen.stands_from
    if isinstance(row, AuthorAdmission):
        # Writes with a greater resourceVersion came more than MARGIN after the policies were seen; None: not yet.
        if not is_same or row.since is None:
            row.sure_from = None
        elif row.sure_from is None and seen.version and seen.began_at - row.since > MARGIN:
            row.sure_from = seen.version
    row.facts, row.problem, row.looked_at = ("" if seen.problem else seen.marks), seen.problem, seen.began_at
    row.save()
    return PolicyState(row.since, seen.problem)
