"""A reference that moved away from what a deployment's latest request is about: a new request, or the wait for it.

The rows of those who follow it say what is to be asked (`ReferenceFollower.answer_at`), from the look on until it is
answered here. A worker that dies in between loses nothing, and who asks twice gets one request.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from approvals import audit
from approvals.audit import MACHINE
from approvals.bundle_spec import UpgradePolicy
from approvals.catalogs import bundle_choice, followed_packages
from approvals.clock import database_now
from approvals.ledger.pivots.requests import ask_for_moved, hold_open
from approvals.lifecycle import State
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, FollowedPackage, ReferenceFollower, Request, ViewedObject
from approvals.policy.source_changes import (
    RATE_SECONDS,
    Answer,
    FollowerFacts,
    SpecFacts,
    UpgradeFacts,
    answer_of,
    answer_upgrade,
    rest_of,
)
from provisioner.errors import BadSource, TryLater
from provisioner.values import ChosenBundle

# What waits for a request to be settled or pinned is asked about so often: nobody says when that is.
ASK_AGAIN_SECONDS = 30


@dataclass(frozen=True, slots=True)
class FollowingDeployment:
    """A locked deployment and what its references are judged by; `rests_until` as `policy.source_changes` has it."""

    deployment: BundleDeployment
    latest: Request | None
    open_requests: list[Request]
    rests_until: datetime | None

    @property
    def is_held(self) -> bool:
        return any(map(is_held, self.open_requests))

    @property
    def is_pinning(self) -> bool:
        return self.latest is not None and self.latest.state == State.PREPARING

    @property
    def facts(self) -> SpecFacts:
        deployment, latest = self.deployment, self.latest
        is_leaving = bool(deployment.gone_at or deployment.deletion_requested_at)
        return SpecFacts(
            is_stopped=deployment.is_paused or is_leaving or deployment.waiting_since is not None,
            is_other_spec=latest is None or latest.options_digest != deployment.options_digest,
            is_pinning=self.is_pinning,
            is_held=self.is_held,
            is_too_soon=self.rests_until is not None,
        )


@transaction.atomic
def answer_moves(deployment_id: int) -> Request | None:
    """Make the request that a move calls for, in place of an open one that nobody has begun to review.

    None where nothing moved, where it waits for a request to be settled or pinned or moves too often, and where a quota
    is used up.
    """
    deployment = for_change(BundleDeployment.objects.select_related("cluster").filter(pk=deployment_id)).get()
    now = database_now()
    following = read_following(deployment, now)
    latest = following.latest
    hold(deployment.followed_references.all())
    rows = list(deployment.followed_references.select_related("reference").exclude(reference__seen=""))
    answers = dict.fromkeys((row.pk for row in rows), Answer.NOTHING)
    for row in rows:
        # Who may not read a source is not told that it moved (S09).
        if row.answer_at is not None and not row.problem:
            facts = FollowerFacts(
                seen=row.reference.seen, pin=_pin(row, latest), answered=row.answered, is_fresh=_is_fresh(row, latest)
            )
            answers[row.pk] = answer_of(facts, following.facts)
    is_due = Answer.ASK in answers.values()
    for row in rows:
        _note_move(row, answers[row.pk], following, now, is_due=is_due)
    if not is_due or latest is None:
        return None
    for row in rows:
        if answers[row.pk] is Answer.ASK:
            moved = {"reference": row.name, "from": _pin(row, latest), "to": row.reference.seen}
            audit.record(verb="source.moved", actor=MACHINE, deployment=deployment, facts=moved)
    return ask_for_moved(deployment, latest)


def read_following(deployment: BundleDeployment, now: datetime) -> FollowingDeployment:
    """Read what references of a locked deployment are judged by; locks its open request.

    `latest` is the last request for the desired spec: a rollback does not change that.
    """
    latest = deployment.requests.filter(purpose=Request.Purpose.DEPLOY).order_by("-number").first()
    made = deployment.requests.filter(is_unattended=True, created_at__gt=now - timedelta(seconds=RATE_SECONDS))
    latest_first = list(made.order_by("-created_at").values_list("created_at", flat=True))
    rests_until = rest_of(latest_first, most=settings.PRATIQUE["SOURCE_REQUESTS_PER_HOUR"], now=now)
    return FollowingDeployment(deployment, latest, hold_open(deployment), rests_until)


def _pin(row: ReferenceFollower, latest: Request | None) -> str:
    """Pins stand in the order of the sources."""
    pins = latest.pins if latest else []
    return str(pins[row.position].get("digest", "")) if row.position < len(pins) else ""


def _is_fresh(row: ReferenceFollower, latest: Request | None) -> bool:
    """Whether the look began after the request had been pinned, or had failed: an older one may have seen what was
    before."""
    if latest is None:
        return True
    first = latest.reports.order_by("round").first()
    pinned_at = first.computed_at if first else latest.changed_at
    looked_at = row.reference.looked_at
    return looked_at is not None and looked_at > pinned_at


def is_held(request: Request) -> bool:
    """Whether a move has to wait for this open request (S25)."""
    is_before_verdict = request.state in (State.PREPARING, State.IN_REVIEW, State.STALE)
    if request.purpose != Request.Purpose.DEPLOY or not is_before_verdict:
        return True
    return request.reviews.exists() or ViewedObject.objects.filter(request=request).exists()


def _note_move(
    row: ReferenceFollower, found: Answer, following: FollowingDeployment, now: datetime, *, is_due: bool
) -> None:
    """Keep what was answered. A request that is made is about all references as they are now."""
    is_asked = is_due or found is Answer.REMEMBER
    row.answered = row.reference.seen if is_asked else row.answered
    waits = found is Answer.WAIT and not is_due
    has_moved = waits and not following.is_pinning
    row.rests_until = following.rests_until if has_moved and not following.is_held else None
    row.answer_at = (row.rests_until or now + timedelta(seconds=ASK_AGAIN_SECONDS)) if waits else None
    row.moved_at = (row.moved_at or now) if has_moved else None
    row.save(update_fields=["answered", "answer_at", "moved_at", "rests_until"])


@dataclass(frozen=True, slots=True)
class _Look:
    """What one source is offered: `bundle` is what it would take now, None where `problem` says why nobody can tell.

    `digest` is the catalog's as it was shown before it was read: one that changes meanwhile is looked at again.
    """

    bundle: ChosenBundle | None = None
    beyond: str = ""
    problem: str = ""
    digest: str = ""
    is_offered: bool = False
    asked: Request | None = None


@transaction.atomic
def answer_upgrades(deployment_id: int) -> Request | None:
    """Make the request that an offer calls for, in place of an open one that nobody has begun to review.

    None where nothing is offered, where it waits for a request to be settled or pinned or is offered something new too
    often, where the deployment only wants to know, and where a quota is used up.
    """
    deployment = for_change(BundleDeployment.objects.select_related("cluster").filter(pk=deployment_id)).get()
    now = database_now()
    following = read_following(deployment, now)
    latest, upgrade_policy = following.latest, deployment.bundle_spec.upgrade_policy
    hold(deployment.followed_packages.all())
    looks = {row: _look(deployment, row, latest) for row in deployment.followed_packages.all()}
    answers = {}
    for row, look in looks.items():
        facts = UpgradeFacts(is_offered=look.is_offered, is_asked=look.asked is not None, policy=upgrade_policy)
        answers[row] = answer_upgrade(facts, following.facts)
    is_due = latest is not None and Answer.ASK in answers.values()
    # When what waits is asked about again. A request that is made is about all sources as they are then.
    soon = now + timedelta(seconds=followed_packages.ASK_AGAIN_SECONDS)
    again_at = soon if following.is_pinning or following.is_held else following.rests_until or soon
    for row, look in looks.items():
        _note_offer(row, look, now)
        row.answer_at = again_at if answers[row] is Answer.WAIT and not is_due else None
        row.reason, row.why_not = _explain_wait(following, look, answers[row])
        row.save()
    for row in looks:
        if row.available and row.since == now:
            # Not what it is: not everybody who may read this may read the catalog (S09).
            about = {"reference": str(row)}
            audit.record(verb="deployment.upgrade-offered", actor=MACHINE, deployment=deployment, facts=about)
    if latest is None or not is_due:
        return None
    asked = [row for row in looks if answers[row] is Answer.ASK]
    for row in asked:
        bundle = looks[row].bundle
        assert bundle is not None
        moved = {"reference": str(row), "from": bundle.before, "to": bundle.bundle}
        audit.record(verb="source.moved", actor=MACHINE, deployment=deployment, facts=moved)
    made = ask_for_moved(deployment, latest)
    FollowedPackage.objects.filter(pk__in=[row.pk for row in asked]).update(request=made)
    return made


def _look(deployment: BundleDeployment, row: FollowedPackage, latest: Request | None) -> _Look:
    digest = followed_packages.shown_digest(row)
    try:
        bundle, beyond = bundle_choice.bundle_with_newer(deployment, deployment.bundle_spec.sources[row.position])
    except (BadSource, TryLater) as exc:
        return _Look(problem=str(exc), digest=digest)
    asked = _find_request_for(deployment, bundle)
    # One that failed before a bundle was chosen: while the same is offered, nobody asks again.
    if asked is None and row.digest == digest and latest and latest.state == State.FAILED and not latest.bundles:
        asked = latest
    return _Look(
        bundle, beyond, digest=digest, is_offered=not bundle_choice.is_bundle_running(deployment, bundle), asked=asked
    )


def _find_request_for(deployment: BundleDeployment, bundle: ChosenBundle) -> Request | None:
    """The last request for the same spec that was for it. One that something else took the place of asks no more."""
    rows = deployment.requests.filter(purpose=Request.Purpose.DEPLOY, options_digest=deployment.options_digest)
    key = bundle_choice.offer_key(bundle)
    for request in rows.exclude(bundles=[]).exclude(state=State.SUPERSEDED).only("bundles").order_by("-number"):
        if key in map(bundle_choice.offer_key, bundle_choice.recorded_bundles(request)):
            return request
    return None


def _note_offer(row: FollowedPackage, look: _Look, now: datetime) -> None:
    """Keep what was seen."""
    bundle = look.bundle
    row.looked_at = now
    row.problem, row.problem_since = look.problem, (row.problem_since or now) if look.problem else None
    row.digest = look.digest
    if row.is_selected and bundle:
        row.catalog = bundle.catalog
    row.request = look.asked
    available = bundle.bundle if bundle and look.is_offered else ""
    row.since = (row.since if row.available == available else now) if available else None
    row.available = available
    row.available_version = bundle.version if bundle and available else ""
    row.beyond = look.beyond


def _explain_wait(following: FollowingDeployment, look: _Look, found: Answer) -> tuple[str, str]:
    """Why what is offered is not taken, as a word for programs and in words. How a request for it stands people read
    when they look (selectors.followed_sources)."""
    if not look.is_offered:
        return "", ""
    if look.asked:
        return "Requested", ""
    if following.deployment.bundle_spec.upgrade_policy is UpgradePolicy.MANUAL:
        return "Manual", "upgradePolicy is Manual: it is taken when somebody asks for a new request"
    if found is Answer.ASK:
        return "Requested", "a request for it is made once there is room for one"
    if following.rests_until and not following.is_pinning and not following.is_held:
        words = "something else was offered too often (PRATIQUE_SOURCE_REQUESTS_PER_HOUR)"
        return "Waiting", f"{words}, and it is requested at {following.rests_until:%Y-%m-%d %H:%M} UTC"
    if following.open_requests:
        return "Waiting", f"request {following.open_requests[0].number} is settled first: decide or withdraw it"
    return "Waiting", "a request is still to be made for the present spec"
