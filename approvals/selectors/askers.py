"""Requests that a person asked for."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from approvals.models import Request, RequestAsker


@dataclass(frozen=True, slots=True)
class Askers:
    """(key of a cluster, user name there) of one person: the same name on another cluster may be somebody else."""

    names: tuple[tuple[int, str], ...] = ()

    def narrow(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        """One subquery, so that the database begins with the few requests of a name and not with all there are."""
        clusters: dict[str, list[int]] = {}
        for cluster, username in self.names:
            clusters.setdefault(username, []).append(cluster)
        wanted = Q()
        for username, keys in clusters.items():
            wanted |= Q(username=username, request__cluster__in=keys)
        return rows.filter(pk__in=RequestAsker.objects.filter(wanted).values("request")) if wanted else rows.none()
