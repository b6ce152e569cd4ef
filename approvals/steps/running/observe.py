"""How the running revision is, asked of the cluster and kept with the deployment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from approvals import audit
from approvals.access.port import connect
from approvals.audit import MACHINE
from approvals.bundle_spec import BundleSpec
from approvals.clock import database_now
from approvals.ledger import made_values
from approvals.ledger.moves import locked
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, InventoryItem, Revision
from approvals.steps import restore
from provisioner import pipeline
from provisioner.errors import BadHealthCheck
from provisioner.health_checks import HealthCheck, unused
from provisioner.sentences import and_more
from provisioner.values import WORST_FIRST, Health, HealthState, ObjectRef

# What a watch may miss is seen by then.
LONGEST_UNREAD = timedelta(minutes=10)
# So many of the worst objects are named in the words about the whole.
NAMED = 3
STATE_WORDS = {
    HealthState.FAILED: "failed",
    HealthState.NOT_FOUND: "not found",
    HealthState.UNKNOWN: "unknown",
    HealthState.TERMINATING: "being deleted",
    HealthState.IN_PROGRESS: "in progress",
}


def is_due(deployment: BundleDeployment, now: datetime) -> bool:
    """Whether the health may be another than when it was read last: what is watched, well and still costs no calls."""
    watched_until, observed_at = deployment.cluster.watched_until, deployment.observed_at
    is_watched = watched_until is not None and watched_until > now
    is_recent = observed_at is not None and now - observed_at < LONGEST_UNREAD
    is_still = deployment.health == HealthState.CURRENT and deployment.events_observed == deployment.event_count
    return not (is_watched and is_recent and is_still)


def observe(deployment: BundleDeployment) -> None:
    """Read every object of the inventory once, as the installer, and keep its health.

    Which account reads, which checks are asked and how long a revision may take is what was approved with the revision
    that runs, whatever the spec says now. A change of the whole has an audit row.
    """
    rows, began = list(deployment.inventory.exclude(uid="")), database_now()
    if not rows:
        return
    # The revision that runs; where none does yet, the newest that was tried.
    revisions = deployment.revisions.select_related("request").order_by("-number")
    revision = revisions.filter(pk=deployment.active_revision_id or 0).first() or revisions.first()
    spec = (revision.request if revision else deployment).bundle_spec
    checks: tuple[HealthCheck, ...] = ()
    problems = []
    try:
        checks = spec.health_checks()
    except BadHealthCheck as exc:  # a spec older than this rule
        problems.append(str(exc))
    api = connect(deployment.cluster).acting_as(spec.installer)
    found = dict(pipeline.observe(api, [ObjectRef.from_parts(row) for row in rows], checks=checks))
    said = made_values.without_values(
        deployment.pk, [[health.message, health.server_words] for health in found.values()]
    )
    for (ref, health), (message, words) in zip(list(found.items()), said, strict=True):
        found[ref] = replace(health, message=message, server_words=words)
    changed = []
    for row in rows:
        health = found.get(ObjectRef.from_parts(row), Health(HealthState.UNKNOWN, "was not evaluated"))
        found_now = (health.state, health.message, health.server_words)
        if (row.health, row.health_message, row.health_words) != found_now:
            row.health, row.health_message, row.health_words = found_now
            changed.append(row)
    _note(changed)
    problems += [f"the health check of {check} matches no objects" for check in unused(checks, found)]
    _keep(deployment.pk, revision, summary(found, problems))
    same = BundleDeployment.objects.filter(pk=deployment.pk, active_revision=deployment.active_revision_id)
    same.update(events_observed=deployment.event_count, observed_at=began)


@transaction.atomic(durable=True)
def _note(rows: Sequence[InventoryItem]) -> None:
    """An apply may be at the same objects."""
    hold(InventoryItem.objects.filter(pk__in=[row.pk for row in rows]))
    InventoryItem.objects.bulk_update(rows, ["health", "health_message", "health_words"], batch_size=500)


def summary(found: Mapping[ObjectRef, Health], problems: Sequence[str] = ()) -> Health:
    """The worst object's health, with counts and the words of the worst few, a line each.

    `problems` are checks that could not be asked: nobody can call the whole healthy then.
    """
    ill = [(ref, health) for ref, health in found.items() if health.state != HealthState.CURRENT]
    ill.sort(key=lambda item: (WORST_FIRST.index(item[1].state), str(item[0])))
    counts = Counter(health.state for _, health in ill)
    counted = ", ".join(f"{counts[state]} {words}" for state, words in STATE_WORDS.items() if counts[state])
    lines = [f"{len(found) - len(ill)} of {len(found)} objects are ready" + (f" ({counted})" if counted else "")]
    lines += [f"{ref}: {health.message or STATE_WORDS[health.state]}" for ref, health in ill[:NAMED]]
    lines += filter(None, [and_more(len(ill) - NAMED)])
    states = [health.state for _, health in ill[:1]] + [HealthState.UNKNOWN] * bool(problems)
    return Health(min(states, key=WORST_FIRST.index, default=HealthState.CURRENT), "\n".join([*lines, *problems]))


def missed_deadline(*, applied_at: datetime, healthy_at: datetime | None, now: datetime, minutes: int) -> bool:
    """Whether a revision that was never healthy has had its time; one that was healthy once has kept its deadline."""
    return healthy_at is None and now - applied_at > timedelta(minutes=minutes)


def overdue(revision: Revision) -> str:
    """Why a revision counts as one that did not become healthy in time; "" where it does not."""
    if revision.overdue_at is None:
        return ""
    minutes = _minutes(revision.request.bundle_spec)
    return (
        f"{restore.OVERDUE}: revision {revision.number} was not healthy within {minutes} minutes after it was applied"
    )


def _minutes(spec: BundleSpec) -> int:
    default = int(settings.PRATIQUE["PROGRESS_DEADLINE_MINUTES"])
    try:
        return spec.deadline_minutes(default=default)
    except BadHealthCheck:
        return default


@transaction.atomic(durable=True)
def _keep(deployment_id: int, observed: Revision | None, health: Health) -> None:
    """Nothing is kept where another revision has become the running one since: this was not about it."""
    row = for_change(BundleDeployment.objects.filter(pk=deployment_id)).select_related("cluster").get()
    if row.active_revision_id and (observed is None or observed.pk != row.active_revision_id):
        return
    words = health.message
    if observed and row.active_revision_id:
        words = "\n".join(filter(None, (_note_progress(row, observed, health), words)))
    _set_health(row, health.state, words)


@transaction.atomic(durable=True)
def note_unknown(deployment_id: int, problem: str) -> None:
    """Nobody answered, so nobody knows how the revision is that runs, however it was when last seen (promise 4)."""
    row = for_change(BundleDeployment.objects.filter(pk=deployment_id)).select_related("cluster").get()
    if row.active_revision_id:
        _set_health(row, HealthState.UNKNOWN, f"could not be checked: {problem}")


def _set_health(row: BundleDeployment, state: HealthState, words: str) -> None:
    """With an audit row where the state is another one. Needs the deployment's lock."""
    was = row.health
    row.health, row.health_message = state, words
    if was != state:
        row.healthy_since = database_now() if state == HealthState.CURRENT else None
    row.save(update_fields=["health", "health_message", "healthy_since"])
    if was != state:
        audit.record(
            verb="deployment.health",
            actor=MACHINE,
            deployment=row,
            facts={"from": was, "to": state, "why": words, "at": database_now().isoformat()},
        )


def _note_progress(row: BundleDeployment, observed: Revision, health: Health) -> str:
    """Note on the running revision that it is healthy, or that its time is over; the words of the latter, with what is
    done about it (`spec.onFailure`).
    """
    if health.state != HealthState.CURRENT:
        # What is done about it is a move of its request, whose lock comes before these (approvals.locks).
        locked(observed.request_id)
    revision = for_change(Revision.objects.filter(pk=observed.pk)).select_related("request__from_revision").get()
    now = database_now()
    if health.state == HealthState.CURRENT:
        if revision.healthy_at is None or revision.overdue_at is not None:
            revision.healthy_at, revision.overdue_at = revision.healthy_at or now, None
            revision.save(update_fields=["healthy_at", "overdue_at"])
        return ""
    applied_at, minutes = revision.finished_at or revision.started_at, _minutes(revision.request.bundle_spec)
    is_late = missed_deadline(applied_at=applied_at, healthy_at=revision.healthy_at, now=now, minutes=minutes)
    if is_late and revision.overdue_at is None:
        revision.overdue_at = now
        revision.save(update_fields=["overdue_at"])
        facts = {"revision": revision.number, "minutes": minutes, "why": health.message, "at": now.isoformat()}
        audit.record(verb="revision.overdue", actor=MACHINE, deployment=row, facts=facts)
    if revision.overdue_at is None:
        return ""
    words = overdue(revision)
    # No word of the objects is lost with the health of what is restored.
    told = restore.settle_overdue(revision, row, "; ".join([words, *health.message.splitlines()]))
    return f"{words}\n{told}"
