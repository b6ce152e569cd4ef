"""Clusters: does each answer, is it watched, what does Pratique lack there, and what may the viewer do?

Nothing is asked of a cluster for this page but whether the viewer may read it: the rest is known from other calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access, admission, refusals
from approvals.access import Answers, Permission
from approvals.clock import database_now
from approvals.health_endpoints import startup_checks
from approvals.models import Cluster
from approvals.selectors import lists
from approvals.web.access_decorators import person, signed_in
from approvals.web.rendering import page


@dataclass(frozen=True, slots=True)
class ShownCluster:
    """`missing` says which rights the web process lacks there, "" for none, None where it has not asked yet.

    `waiting` is how many open requests wait for a right of Pratique's own, `proofs` what admission policies prove.
    """

    cluster: Cluster
    problem: str
    ending: str
    permission: Permission
    username: str
    is_watched: bool
    answers: Answers
    missing: str | None
    waiting: int
    proofs: list[admission.PolicyNotice]


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    """The clusters on which the viewer has proved who they are; of those they may not read, only who could let them."""
    caller = person(http)
    access.check_fresh(caller)
    answers = access.read_answers(caller)
    shown = [cluster for cluster, answer in answers if answer.allowed]
    waiting, proofs = lists.waiting_for_own_rights(clusters=shown), admission.told_of(cluster.pk for cluster in shown)
    names = {proof.cluster_id: proof.identity.username for proof in caller.proofs}
    rows = [
        _show_cluster(
            cluster, permission, names.get(cluster.pk, ""), waiting.get(cluster.pk, 0), proofs.get(cluster.pk, [])
        )
        for cluster, permission in answers
    ]
    return page(http, "clusters.html", {"rows": rows})


def _show_cluster(
    cluster: Cluster, permission: Permission, username: str, waiting: int, proofs: list[admission.PolicyNotice]
) -> ShownCluster:
    now = database_now()
    is_watched = cluster.watched_until is not None and cluster.watched_until >= now
    told = startup_checks.notes_about("rights")
    missing = None if told is None else told.get(cluster.name, "")
    answers = access.answers_of(cluster.name)
    problem, ending = refusals.problem_of(cluster, now), refusals.end_of_credentials(cluster, now)
    return ShownCluster(cluster, problem, ending, permission, username, is_watched, answers, missing, waiting, proofs)
