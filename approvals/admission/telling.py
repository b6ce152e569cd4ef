"""What the clusters' page tells of the policies: whether they are in force there, and what to apply if not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from approvals.admission.policies import AUTHORS, REVIEWS, PolicySet


@dataclass(frozen=True, slots=True)
class PolicyNotice:
    """What a set of policies does for a cluster: `since` is when it was first seen in force, None where `problem` says
    why it is not; both are empty where no worker has looked yet. `manifests` is what to apply."""

    title: str
    without: str
    since: datetime | None
    looked_at: datetime | None
    problem: str
    manifests: str


_WORDS: tuple[tuple[PolicySet, str, str], ...] = (
    (
        AUTHORS,
        "Authors of changes with kubectl and GitOps",
        "Whoever changes a BundleDeployment outside Pratique is an unknown requester.",
    ),
    (REVIEWS, "Reviews with kubectl", "Reviews by kubectl do not count."),
)


def told_of(clusters: Iterable[int]) -> dict[int, list[PolicyNotice]]:
    """By cluster, in the order of the page."""
    wanted = list(clusters)
    found: dict[int, list[PolicyNotice]] = {pk: [] for pk in wanted}
    for policies, title, without in _WORDS:
        rows = {row.cluster_id: row for row in policies.record.objects.filter(cluster__in=wanted)}
        files = [file for file in (policies.file, policies.optional) if file]
        text = "\n---\n".join((Path(settings.BASE_DIR) / file).read_text(encoding="utf-8").strip() for file in files)
        for pk in wanted:
            row = rows.get(pk)
            since, looked_at = (row.since, row.looked_at) if row else (None, None)
            found[pk].append(PolicyNotice(title, without, since, looked_at, row.problem if row else "", text))
    return found
