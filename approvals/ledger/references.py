"""Which references that may move a deployment follows, and when each is looked at next.

One row for a reference, however many deployments name it (models.followed_sources).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from approvals.clock import database_now
from approvals.ledger import claims
from approvals.ledger.digests import digest_of
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, FloatingReference, ReferenceFollower, Request, SourceHost
from approvals.policy.source_changes import end_of_wait, next_look
from provisioner.errors import BadConfig, BadSource
from provisioner.source import EgressPolicy

# The task that looks at one of them (TaskClaim).
POLL = "poll"
MINUTE_SECONDS = 60.0
ACTIVE = Q(
    deployment__is_paused=False, deployment__gone_at__isnull=True, deployment__deletion_requested_at__isnull=True
)


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
    held = _held(wanted.values(), rows.values())
    touched = set()
    for position, row in rows.items():
        if position not in wanted or wanted[position].key != row.reference.key:
            row.delete()
            touched.add(row.reference.key)
    for position, one in wanted.items():
        before = rows.get(position)
        if before is None or before.reference.key != one.key:
            _begin(deployment, one, held[one.key])
            touched.add(one.key)
        elif before.interval_seconds != one.interval_seconds:
            before.interval_seconds = one.interval_seconds
            before.save(update_fields=["interval_seconds"])
            touched.add(one.key)
    for key in touched & held.keys():
        _schedule(held[key])


def hold_all(deployment: BundleDeployment, *, let_go_by: Iterable[BundleDeployment]) -> None:
    """Lock what a deployment of this spec will follow, and what others follow until then."""
    rows = ReferenceFollower.objects.filter(deployment__in=let_go_by).select_related("reference")
    _held(_wanted(deployment), rows)


def resume(deployment: BundleDeployment) -> None:
    """The deployment was paused, or resumed: its references are looked at again when they are due."""
    for reference in _held((), deployment.followed_references.select_related("reference")).values():
        _schedule(reference)


def let_go(deployment: BundleDeployment) -> None:
    """The deployment is gone: what nobody else follows is not looked at any more."""
    held = _held((), deployment.followed_references.select_related("reference"))
    deployment.followed_references.all().delete()
    for reference in held.values():
        _schedule(reference)


def _held(wanted: Iterable[WantedReference], rows: Iterable[ReferenceFollower]) -> dict[str, FloatingReference]:
    """The references of both, by key, locked before any follower of theirs: what is wanted is made where there is none.

    Who follows a reference and who lets it go wait for each other, so that none is deleted under a new follower and
    none is left without a time for its next look.
    """
    new = {one.key: FloatingReference(key=one.key, kind=one.kind, host=one.host) for one in wanted}
    keys = {*new, *(row.reference.key for row in rows)}
    while True:
        FloatingReference.objects.bulk_create([new[key] for key in sorted(new)], ignore_conflicts=True)
        found = {one.key: one for one in for_change(FloatingReference.objects.filter(key__in=keys).order_by("pk"))}
        if new.keys() <= found.keys():  # else one was deleted after we had found it there
            return found


def _schedule(reference: FloatingReference) -> None:
    """Set when to look at a locked reference next: by the shortest interval of those who follow it now, never where
    nobody does."""
    if not reference.followers.exists():
        reference.delete()
        return
    since = reference.tried_at or database_now()
    FloatingReference.objects.filter(pk=reference.pk).update(look_at=_after(reference, since))


def interval(reference: FloatingReference) -> int:
    """Seconds between two looks at it, 0 where nobody wants any."""
    asked = [one.effective_seconds for one in following(reference)]
    return min((one for one in asked if one), default=0)


def following(reference: FloatingReference) -> QuerySet[ReferenceFollower]:
    """Those for whom it is looked at: not the paused ones, and not those that go away."""
    return reference.followers.filter(ACTIVE).select_related("deployment__cluster")


def take_up() -> None:
    """Schedule what is not looked at although somebody wants it: the operator has turned looks on meanwhile."""
    operator = settings.PRATIQUE
    if not operator["SOURCE_POLLS_PER_HOST"]:
        return
    wanted = Q(interval_seconds__gt=0)
    if operator["SOURCE_POLL_SECONDS"] > 0:
        wanted |= Q(interval_seconds__isnull=True)
    rows = ReferenceFollower.objects.filter(wanted, ACTIVE, reference__look_at__isnull=True)
    for pk in sorted(set(rows.values_list("reference_id", flat=True))):
        with transaction.atomic():
            for reference in for_change(FloatingReference.objects.filter(pk=pk, look_at__isnull=True)):
                _schedule(reference)


@transaction.atomic
def take_turn(host: str) -> float:
    """Count one look at this host; how many seconds to wait where it was looked at too often within the last minute."""
    most, now = settings.PRATIQUE["SOURCE_POLLS_PER_HOST"], database_now().timestamp()
    row, _ = for_change(SourceHost.objects.all()).get_or_create(host=host)
    within = [at for at in row.polls if now - MINUTE_SECONDS < at <= now]
    if len(within) >= most:
        return within[len(within) - most] + MINUTE_SECONDS - now if most else MINUTE_SECONDS
    row.polls = [*within, now]
    row.save(update_fields=["polls"])
    return 0.0


@transaction.atomic
def clear_unused() -> None:
    """Let go what is kept beside references that are no more: the claims of their looks, and their hosts."""
    claims.forget_tasks(POLL, but=FloatingReference.objects.values("pk"))
    unused = for_change(SourceHost.objects.exclude(host__in=FloatingReference.objects.values("host")).order_by("pk"))
    before = database_now().timestamp() - MINUTE_SECONDS
    # Within the minute it counts on, should somebody name the host again.
    SourceHost.objects.filter(pk__in=[row.pk for row in unused if max(row.polls, default=0.0) < before]).delete()


def note_seen(reference: FloatingReference, saw: Seen) -> list[int]:
    """Keep what a look saw, and whom to ask what follows; the deployments that are asked. In a transaction."""
    row = for_change(FloatingReference.objects.filter(pk=reference.pk)).first()
    if row is None:
        return []  # nobody follows it any more
    row.seen, row.etag, row.looked_at, row.tried_at = saw.digest, saw.etag, saw.began, saw.began
    row.failures, row.problem_code, row.problem, row.problem_since, row.rests_until = 0, "", "", None, None
    row.look_at = _after(row, saw.began)
    row.save()
    hold(row.followers.all())
    row.followers.filter(pk__in=saw.told).update(answer_at=saw.began, problem="", problem_since=None)
    note_refused(row, saw.refused, saw.began)
    return sorted(set(following(row).filter(pk__in=saw.told).values_list("deployment_id", flat=True)))


def note_resolved(request: Request, digests: Sequence[str]) -> None:
    """Keep what the sources of a locked request were that cannot be prepared, as it has no pins: another commit, which
    may be the mended one, makes a new request."""
    is_current = request.options_digest == request.deployment.options_digest
    if request.purpose != Request.Purpose.DEPLOY or not is_current:
        return
    for row in for_change(ReferenceFollower.objects.filter(deployment_id=request.deployment_id).order_by("pk")):
        if row.position < len(digests):
            row.answered = digests[row.position]
            row.save(update_fields=["answered"])


def note_problem(reference: FloatingReference, *, code: str, words: str, began: datetime, wait: float) -> None:
    """Keep since when it cannot be looked at, and why. In a transaction."""
    row = for_change(FloatingReference.objects.filter(pk=reference.pk)).first()
    if row is None:
        return  # nobody follows it any more
    row.failures, row.tried_at = row.failures + 1, began
    row.problem_code, row.problem, row.problem_since = code, words, row.problem_since or began
    row.rests_until = end_of_wait(began, asked_to_wait=wait)
    row.look_at = _after(row, began)
    row.save()


def note_refused(reference: FloatingReference, refused: Mapping[int, str], began: datetime) -> None:
    """Keep why a look was not for these followers, and since when. In a transaction that holds the reference."""
    since = Coalesce("problem_since", Value(began, output_field=DateTimeField()))
    for pk in sorted(refused):
        reference.followers.filter(pk=pk).update(problem=refused[pk], problem_since=since)


def postpone(reference: FloatingReference, until: datetime | None) -> None:
    """Its turn has not come: nothing was asked. None: nobody wants it any more."""
    FloatingReference.objects.filter(pk=reference.pk).update(look_at=until)


def _after(row: FloatingReference, since: datetime) -> datetime | None:
    """When to look again after a look at `since`; None where nobody wants it."""
    seconds = interval(row)
    return next_look(since, interval=seconds, failures=row.failures, not_before=row.rests_until) if seconds else None


def _begin(deployment: BundleDeployment, one: WantedReference, reference: FloatingReference) -> None:
    ReferenceFollower.objects.create(
        deployment=deployment,
        reference=reference,
        position=one.position,
        name=one.name,
        interval_seconds=one.interval_seconds,
    )


def _wanted(deployment: BundleDeployment) -> list[WantedReference]:
    found = []
    policy = EgressPolicy(allow_mutable=settings.PRATIQUE["MUTABLE_HTTP"])
    for number, source in enumerate(deployment.bundle_spec.sources):
        try:
            made = source.remote()
            if made is None or not made.is_floating(policy):
                continue
            parts = [source.kind, *made.address]
            if secret := source.secret:
                parts += [str(deployment.cluster_id), secret.namespace, secret.name]
            host, words = str(made.place()), made.shown
        except BadSource:
            continue  # a request says what is wrong with it
        found.append(WantedReference(number, digest_of(parts), source.kind, host, words, source.interval_seconds))
    with suppress(BadConfig):  # a request says what is wrong with it
        spec = deployment.bundle_spec
        for number, wanted in enumerate(spec.values_from(), start=len(spec.sources)):
            key = digest_of(["valuesFrom", str(deployment.cluster_id), str(wanted.ref), wanted.key])
            host = f"cluster {deployment.cluster.name}"
            found.append(WantedReference(number, key, "valuesFrom", host, wanted.words, None))
    return found


def pending(now: datetime) -> list[int]:
    """The deployments that are to be asked whether a reference moved away from them."""
    rows = ReferenceFollower.objects.filter(answer_at__lte=now, deployment__gone_at__isnull=True)
    return list(dict.fromkeys(rows.order_by("answer_at", "pk").values_list("deployment_id", flat=True)))


def put_off(deployment_id: int, until: datetime) -> None:
    """What could not be answered is asked again then, so that others are answered meanwhile."""
    ReferenceFollower.objects.filter(deployment_id=deployment_id, answer_at__isnull=False).update(answer_at=until)
