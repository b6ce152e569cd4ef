"""Clusters: does each answer, is it watched, what does Pratique lack there, and what may the viewer do?

Nothing is asked of a cluster for this page but whether the viewer may read it: the rest is known from other calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_safe

from approvals import access, admission, refusals, services
from approvals.access import Answers, Permission
from approvals.clock import database_now
from approvals.errors import InvalidInput
from approvals.health_endpoints import startup_checks
from approvals.models import Cluster
from approvals.selectors import lists
from approvals.selectors.change_stops import ChangeStop, stops_of
from approvals.web.access_decorators import check_reader, only_by_form, person, signed_in
from approvals.web.rendering import page


@dataclass(frozen=True, slots=True)
class ShownCluster:
    """`missing` says which rights the web process lacks there, "" for none, None where it has not asked yet.

    `stops` hold all its changes or some of them; `not_stopped` is why one that was asked for now does not.
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
    stops: Sequence[ChangeStop]
    not_stopped: str = ""


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    """The clusters on which the viewer has proved who they are; of those they may not read, only who could let them."""
    return _show_page(http, {})


def _show_page(http: HttpRequest, not_stopped: Mapping[str, str]) -> HttpResponse:
    """`not_stopped` says why by the name of the cluster."""
    caller = person(http)
    access.check_fresh(caller)
    answers = access.read_answers(caller)
    shown = [cluster for cluster, answer in answers if answer.allowed]
    waiting, proofs = lists.waiting_for_own_rights(clusters=shown), admission.told_of(cluster.pk for cluster in shown)
    stops = stops_of(shown)
    names = {proof.cluster_id: proof.identity.username for proof in caller.proofs}
    rows = [
        replace(
            _show_cluster(
                cluster, permission, names.get(cluster.pk, ""), waiting.get(cluster.pk, 0), proofs.get(cluster.pk, [])
            ),
            stops=stops.get(cluster.pk, []),
            not_stopped=not_stopped.get(cluster.name, ""),
        )
        for cluster, permission in answers
    ]
    facts = {"rows": rows, "reason": http.POST.get("reason", "")}
    return page(http, "clusters.html", facts, status=422 if not_stopped else 200)


@only_by_form
@signed_in
def stop(http: HttpRequest, *, cluster: str) -> HttpResponse:
    """Stop all changes of a cluster, or end a stop, as the viewer."""
    found = get_object_or_404(Cluster, name=cluster)
    check_reader(http, found)
    if ended := http.POST.get("end", ""):
        services.end_stop(by=person(http), cluster=found, name=ended, via="browser")
        messages.success(http, f"The stop {ended} has ended. Requests that waited on {cluster} continue.")
        return redirect("clusters")
    try:
        services.stop_changes(by=person(http), cluster=found, reason=http.POST.get("reason", ""), via="browser")
    except InvalidInput as refusal:
        return _show_page(http, {cluster: str(refusal)})
    messages.success(http, f"Changes to {cluster} are stopped. An apply that has started continues.")
    return redirect("clusters")


def _show_cluster(
    cluster: Cluster, permission: Permission, username: str, waiting: int, proofs: list[admission.PolicyNotice]
) -> ShownCluster:
    now = database_now()
    is_watched = cluster.watched_until is not None and cluster.watched_until >= now
    told = startup_checks.notes_about("rights")
    missing = None if told is None else told.get(cluster.name, "")
    answers = access.answers_of(cluster.name)
    problem, ending = refusals.problem_of(cluster, now), refusals.end_of_credentials(cluster, now)
    return ShownCluster(
        cluster, problem, ending, permission, username, is_watched, answers, missing, waiting, proofs, ()
    )
