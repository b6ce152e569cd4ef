"""Which references that may move a deployment follows, and when each is looked at next.

One row for a reference, however many deployments name it (models.floating).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from approvals.ledger.digests import digest_of
from approvals.ledger.locks import for_change, hold
from approvals.models import BundleDeployment, FloatingReference, ReferenceFollower, SourceHost
from approvals.policy.following import next_look
from approvals.source_refs import interval_seconds, listed_sources, named, remote_source, secret_of
from provisioner.errors import BadSource
from provisioner.source import (
    EgressPolicy,
    GitSource,
    HttpSource,
    ImageSource,
    RemoteSource,
    is_floating,
    place_of_remote,
    shown_reference,
)

MINUTE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class WantedReference:
    """A source of a spec that is to be followed: which reference, and how often."""

    position: int
    key: str
    kind: str
    host: str
    name: str
    interval_seconds: int | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look saw that began at `began`: for the followers `told`, by key; `refused` says why others are not."""

    digest: str
    etag: str
    began: datetime
    told: tuple[int, ...]
    refused: Mapping[int, str]


def follow(deployment: BundleDeployment) -> None:
    """Keep which references a locked deployment follows, as its spec has it; what it does not name any more is let go.

    A deployment that is paused or goes away follows nothing for now: what it knows of its references stays.
    """
    wanted = {one.position: one for one in _wanted(deployment)}
    rows = {row.position: row for row in deployment.followed_references.select_related("reference")}
    for position, row in rows.items():
        if position not in wanted or wanted[position].key != row.reference.key:
            row.delete()
            schedule(row.reference)
    for position, one in wanted.items():
        before = rows.get(position)
        if before is None or before.reference.key != one.key:
            _begin(deployment, one)
        elif before.interval_seconds != one.interval_seconds:
            before.interval_seconds = one.interval_seconds
            before.save(update_fields=["interval_seconds"])
            schedule(before.reference)


def resume(deployment: BundleDeployment) -> None:
    """The deployment was paused, or resumed: its references are looked at again when they are due."""
    for row in deployment.followed_references.select_related("reference"):
        schedule(row.reference)


def let_go(deployment: BundleDeployment) -> None:
    """The deployment is gone: what nobody else follows is not looked at any more."""
    for row in deployment.followed_references.select_related("reference"):
        row.delete()
        schedule(row.reference)


def schedule(reference: FloatingReference) -> None:
    """Set when to look next: by the shortest interval of those who follow it now, never where nobody does."""
    if not reference.followers.exists():
        FloatingReference.objects.filter(pk=reference.pk).delete()
        return
    seconds = interval(reference)
    since = reference.tried_at or timezone.now()
    look_at = next_look(since, interval=seconds, failures=reference.failures) if seconds else None
    FloatingReference.objects.filter(pk=reference.pk).update(look_at=look_at)


def interval(reference: FloatingReference) -> int:
    """Seconds between two looks at it, 0 where nobody wants any."""
    asked = [one.effective_seconds for one in following(reference)]
    return min((one for one in asked if one), default=0)


def following(reference: FloatingReference) -> QuerySet[ReferenceFollower]:
    """Those for whom it is looked at: not the paused ones, and not those that go away."""
    return reference.followers.filter(
        deployment__is_paused=False, deployment__gone_at__isnull=True, deployment__deletion_requested_at__isnull=True
    ).select_related("deployment__cluster")


def due(now: datetime) -> QuerySet[FloatingReference]:
    """What is to be looked at, the longest overdue first."""
    return FloatingReference.objects.filter(look_at__lte=now).order_by("look_at", "pk")


@transaction.atomic
def take_turn(host: str) -> float:
    """Count one look at this host; how many seconds to wait where it was looked at too often within the last minute."""
    most, now = settings.PRATIQUE["SOURCE_POLLS_PER_HOST"], time.time()
    SourceHost.objects.get_or_create(host=host)
    row = for_change(SourceHost.objects.filter(host=host)).get()
    within = [at for at in row.polls if now - MINUTE_SECONDS < at <= now]
    if len(within) >= most:
        return within[len(within) - most] + MINUTE_SECONDS - now if most else MINUTE_SECONDS
    row.polls = [*within, now]
    row.save(update_fields=["polls"])
    return 0.0


def note_seen(reference: FloatingReference, saw: Seen) -> list[int]:
    """Keep what a look saw, and whom to ask what follows; the deployments that are asked. In a transaction."""
    row = for_change(FloatingReference.objects.filter(pk=reference.pk)).get()
    row.seen, row.etag, row.looked_at, row.tried_at = saw.digest, saw.etag, saw.began, saw.began
    row.failures, row.problem_code, row.problem, row.problem_since = 0, "", "", None
    row.look_at = _after(row, saw.began)
    row.save()
    hold(row.followers.all())
    row.followers.filter(pk__in=saw.told).update(answer_at=saw.began, problem="", problem_since=None)
    for pk, words in saw.refused.items():
        since = Coalesce("problem_since", Value(saw.began, output_field=DateTimeField()))
        row.followers.filter(pk=pk).update(problem=words, problem_since=since)
    return sorted(set(following(row).filter(pk__in=saw.told).values_list("deployment_id", flat=True)))


def note_problem(reference: FloatingReference, *, code: str, words: str, began: datetime, wait: float) -> None:
    """Keep since when it cannot be looked at, and why. In a transaction."""
    row = for_change(FloatingReference.objects.filter(pk=reference.pk)).get()
    row.failures, row.tried_at = row.failures + 1, began
    row.problem_code, row.problem, row.problem_since = code, words, row.problem_since or began
    row.look_at = _after(row, began, wait)
    row.save()


def postpone(reference: FloatingReference, until: datetime) -> None:
    """Its turn has not come: nothing was asked."""
    FloatingReference.objects.filter(pk=reference.pk).update(look_at=until)


def _after(row: FloatingReference, began: datetime, wait: float = 0.0) -> datetime | None:
    seconds = interval(row)
    return next_look(began, interval=seconds, failures=row.failures, asked_to_wait=wait) if seconds else None


def _begin(deployment: BundleDeployment, one: WantedReference) -> None:
    fixed = {"kind": one.kind, "host": one.host}
    reference, _ = FloatingReference.objects.get_or_create(key=one.key, defaults=fixed)
    ReferenceFollower.objects.create(
        deployment=deployment,
        reference=reference,
        position=one.position,
        name=one.name,
        interval_seconds=one.interval_seconds,
    )
    schedule(reference)


def _wanted(deployment: BundleDeployment) -> list[WantedReference]:
    found = []
    policy = EgressPolicy(allow_mutable=settings.PRATIQUE["MUTABLE_HTTP"])
    listed: Sequence[Any] = listed_sources(deployment.spec)
    for number, source in enumerate(listed):
        if not isinstance(source, Mapping):
            continue  # from before the CRD, or past it
        try:
            made = remote_source(source, f"spec.sources[{number}]")
            if made is not None and is_floating(made, policy):
                found.append(_one(deployment, number, source, made))
        except BadSource:
            continue  # a request says what is wrong with it
    return found


def _one(deployment: BundleDeployment, number: int, source: Mapping[str, Any], made: RemoteSource) -> WantedReference:
    parts = [str(source["kind"]), *_address(made)]
    if secret := secret_of(source):
        ref = named("Secret", secret, deployment.spec, f"spec.sources[{number}]")
        parts += [str(deployment.cluster_id), ref.namespace, ref.name]
    host = str(place_of_remote(made))
    return WantedReference(
        number, digest_of(parts), str(source["kind"]), host, shown_reference(made), interval_seconds(source)
    )


def _address(made: RemoteSource) -> tuple[str, ...]:
    if isinstance(made, ImageSource):
        return (made.ref,)
    if isinstance(made, GitSource):
        return made.repository, made.branch, made.tag
    assert isinstance(made, HttpSource)
    return (made.url,)


def pending(now: datetime) -> list[int]:
    """The deployments that are to be asked whether a reference moved away from them."""
    rows = ReferenceFollower.objects.filter(answer_at__lte=now, deployment__gone_at__isnull=True)
    return list(dict.fromkeys(rows.order_by("answer_at", "pk").values_list("deployment_id", flat=True)))
