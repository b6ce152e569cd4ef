"""Change sets: the BundleDeployments that carry the same label or were chosen for the same order, on all clusters that
somebody may read, and what is asked for them now."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform

from approvals.clock import database_now
from approvals.lifecycle import UNDECIDED
from approvals.models import BundleDeployment, Cluster, Report, Request, Review, RolloutMember
from approvals.selectors.inbox import SEVERITIES
from provisioner.api_groups import OWN_GROUP

LABEL = f"{OWN_GROUP}/set"
# As Kubernetes lets the value of a label be: what else a row holds names no set.
NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
MAX_DEPLOYMENTS = 10_000
MAX_MEMBERS = 1_000
# What was chosen for an order is a set for so long after the order has ended.
SHOWN_AFTERWARDS = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class SetSummary:
    """`members` have a request; `open` of these can be decided now or soon. `worst` is that of the open ones."""

    name: str
    members: int
    open: int
    decided: int
    worst: str


@dataclass(frozen=True, slots=True)
class SetMember:
    """The latest request of one deployment. `digest` is "" where nobody can know what it is like."""

    request: Request
    cluster: Cluster
    worst: str
    digest: str
    needs: tuple[tuple[str, str, str, str], ...]
    has_decided: bool


def summaries(*, clusters: Collection[Cluster]) -> list[SetSummary]:
    """The sets of these clusters by name, those with something to decide first."""
    labelled, chosen = _there(clusters).filter(labels__has_key=LABEL), _chosen().values("deployment")
    pairs = set(labelled.order_by("pk").values_list("set_name", "latest")[:MAX_DEPLOYMENTS])
    latest = dict(_there(clusters).filter(pk__in=chosen).order_by("pk").values_list("pk", "latest")[:MAX_DEPLOYMENTS])
    of_order = _chosen().filter(deployment__in=latest).values_list("rollout__name", "deployment")
    pairs |= {(name, latest[deployment]) for name, deployment in of_order}
    asked = Q(pk__in=labelled.values("latest")) | Q(pk__in=list(filter(None, latest.values())))
    rows = {row[0]: row[1:] for row in Request.objects.filter(asked).values_list("pk", "state", "weight")}
    states: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, key in pairs:
        if key in rows and NAME.fullmatch(name or ""):
            states[name].append(rows[key])
    found = []
    for name, members in states.items():
        weights = [weight for state, weight in members if state in UNDECIDED]
        worst = SEVERITIES[-max(weights)] if any(weights) else ""
        found.append(SetSummary(name, len(members), len(weights), len(members) - len(weights), worst))
    return sorted(found, key=lambda one: (not one.open, one.name))


def members_of(name: str, *, clusters: Collection[Cluster], user: User) -> list[SetMember]:
    """At most MAX_MEMBERS, by cluster and name; `user` is who may have decided on them."""
    if not NAME.fullmatch(name):
        return []
    given = Review.objects.counted().filter(request=OuterRef("pk"), round=OuterRef("round"), user=user)
    belongs = Q(**{f"labels__{LABEL}": name}) | Q(pk__in=_chosen().filter(rollout__name=name).values("deployment"))
    rows = list(
        Request.objects.filter(pk__in=_there(clusters).filter(belongs).values("latest"))
        .select_related("deployment")
        .annotate(has_decided=Exists(given))
        .only(
            "uid", "number", "purpose", "state", "round", "subject_digest", "created_at", "cluster", "deployment__name"
        )
        .order_by("cluster__name", "deployment__name", "pk")[:MAX_MEMBERS]
    )
    reports: Mapping[int, tuple[str, dict[str, Any]]] = {
        key: (worst, likeness)
        for key, worst, likeness in Report.objects.filter(request__in=rows, round=F("request__round")).values_list(
            "request", "worst", "likeness"
        )
    }
    known = {cluster.pk: cluster for cluster in clusters}
    found = []
    for row in rows:
        worst, likeness = reports.get(row.pk, ("", {}))
        needs = tuple((group, version, kind, place) for group, version, kind, place in likeness.get("needs", ()))
        digest = str(likeness.get("digest", ""))
        found.append(SetMember(row, known[row.cluster_id], worst, digest, needs, bool(row.has_decided)))
    return found


def _chosen() -> QuerySet[RolloutMember]:
    ends = Q(rollout__ended_at=None) | Q(rollout__ended_at__gt=database_now() - SHOWN_AFTERWARDS)
    return RolloutMember.objects.filter(ends).order_by()


def _there(clusters: Collection[Cluster]) -> QuerySet[Any]:
    """The deployments of these clusters, with `set_name` by their label, and `latest`, the key of the latest
    request."""
    latest = Request.objects.filter(deployment=OuterRef("pk")).order_by("-number").values("pk")[:1]
    there = BundleDeployment.objects.filter(cluster__in=[cluster.pk for cluster in clusters], gone_at=None)
    return there.order_by().annotate(set_name=KeyTextTransform(LABEL, "labels"), latest=Subquery(latest))
