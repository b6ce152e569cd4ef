"""A reference that moved away from what a deployment's latest request is about: a new request, or the wait for it.

The rows of those who follow it say what is to be asked (`ReferenceFollower.answer_at`), from the look on until it is
answered here. A worker that dies in between loses nothing, and who asks twice gets one request.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    UpgradeFacts,
    WishFacts,
    answer_of,
    answer_upgrade,
    rest_of,
)
from provisioner.errors import BadSource, TryLater
from provisioner.values import ChosenBundle

# What waits for a request to be settled or pinned is asked about so often: nobody says when that is.
ASK_AGAIN_SECONDS = 30


@dataclass(frozen=True, slots=True)
class DeploymentWish:
    """A locked deployment and what its references are judged by; `rests_until` as `policy.source_changes` has it."""

    deployment: BundleDeployment
    latest: Request | None
    open_requests: list[Request]
    rests_until: datetime | None

    @property
    def is_held(self) -> bool:
        return any(is_held(one) for one in self.open_requests)

    @property
    def is_pinning(self) -> bool:
        return self.latest is not None and self.latest.state == State.PREPARING

    @property
    def facts(self) -> WishFacts:
        deployment, latest = self.deployment, self.latest
        is_leaving = bool(deployment.gone_at or deployment.deletion_requested_at)
        return WishFacts(
            is_stopped=deployment.is_paused or is_leaving or deployment.waiting_since is not None,
            is_other_wished=latest is None or latest.options_digest != deployment.options_digest,
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
    wish = wish_of(deployment, now)
    hold(deployment.followed_references.all())
    rows = list(deployment.followed_references.select_related("reference").exclude(reference__seen=""))
    answers = {row.pk: answer_of(_facts(wish, row), wish.facts) if _is_told(row) else Answer.NOTHING for row in rows}
    made = None
    is_due = Answer.ASK in answers.values()
    for row in rows:
        _note(row, answers[row.pk], wish, now, is_due=is_due)
    if is_due and wish.latest:
        _audit_moves(deployment, [row for row in rows if answers[row.pk] is Answer.ASK], wish.latest)
        made = ask_for_moved(deployment, wish.latest)
    return made


def wish_of(deployment: BundleDeployment, now: datetime) -> DeploymentWish:
    """Of a locked deployment; locks its open request."""
    return DeploymentWish(deployment, latest_wish(deployment), hold_open(deployment), _rests_until(deployment, now))


def latest_wish(deployment: BundleDeployment) -> Request | None:
    """The last request for what the spec wishes: going back to a revision does not change that."""
    return deployment.requests.filter(purpose=Request.Purpose.DEPLOY).order_by("-number").first()


def _rests_until(deployment: BundleDeployment, now: datetime) -> datetime | None:
    made = deployment.requests.filter(is_unattended=True, created_at__gt=now - timedelta(seconds=RATE_SECONDS))
    latest_first = made.order_by("-created_at").values_list("created_at", flat=True)
    return rest_of(list(latest_first), most=settings.PRATIQUE["SOURCE_REQUESTS_PER_HOUR"], now=now)


def _facts(wish: DeploymentWish, row: ReferenceFollower) -> FollowerFacts:
    return FollowerFacts(
        seen=row.reference.seen,
        pin=_pin(row, wish.latest),
        answered=row.answered,
        is_fresh=_is_fresh(row, wish.latest),
    )


def _pin(row: ReferenceFollower, latest: Request | None) -> str:
    """Pins stand in the order of the sources."""
    pins = latest.pins if latest else []
    return str(pins[row.position].get("digest", "")) if row.position < len(pins) else ""


def _is_told(row: ReferenceFollower) -> bool:
    """Whether a look was for this deployment: who may not read a source is not told that it moved (S09)."""
    return row.answer_at is not None and not row.problem


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
    if request.purpose != Request.Purpose.DEPLOY or request.state not in (
        State.PREPARING,
        State.IN_REVIEW,
        State.STALE,
    ):
        return True
    return request.reviews.exists() or ViewedObject.objects.filter(request=request).exists()


def _note(row: ReferenceFollower, found: Answer, wish: DeploymentWish, now: datetime, *, is_due: bool) -> None:
    """Keep what was answered. A request that is made is about all references as they are now."""
    is_asked = is_due or found is Answer.REMEMBER
    row.answered = row.reference.seen if is_asked else row.answered
    waits = found is Answer.WAIT and not is_due
    has_moved = waits and not wish.is_pinning
    row.rests_until = wish.rests_until if has_moved and not wish.is_held else None
    row.answer_at = (row.rests_until or now + timedelta(seconds=ASK_AGAIN_SECONDS)) if waits else None
    row.moved_at = (row.moved_at or now) if has_moved else None
    row.save(update_fields=["answered", "answer_at", "moved_at", "rests_until"])


def _audit_moves(deployment: BundleDeployment, rows: list[ReferenceFollower], latest: Request) -> None:
    for row in rows:
        facts = {"reference": row.name, "from": _pin(row, latest), "to": row.reference.seen}
        audit.record(verb="source.moved", actor=MACHINE, deployment=deployment, facts=facts)


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
    wish = wish_of(deployment, now)
    latest = wish.latest
    hold(deployment.followed_packages.all())
    looks = {row: _look(deployment, row, latest) for row in deployment.followed_packages.all()}
    answers = {row: answer_upgrade(_upgrade_facts(deployment, look), wish.facts) for row, look in looks.items()}
    is_due = latest is not None and Answer.ASK in answers.values()
    for row, look in looks.items():
        _note_offer(row, look, now)
        waits = answers[row] is Answer.WAIT and not is_due
        row.answer_at = _asked_again_at(wish, now) if waits else None
        row.reason, row.why_not = _why_not(wish, look, answers[row])
        row.save()
    if latest is None or not is_due:
        return None
    asked = [row for row in looks if answers[row] is Answer.ASK]
    _audit_offers({row: looks[row] for row in asked}, deployment)
    made = ask_for_moved(deployment, latest)
    FollowedPackage.objects.filter(pk__in=[row.pk for row in asked]).update(request=made)
    return made


def _look(deployment: BundleDeployment, row: FollowedPackage, latest: Request | None) -> _Look:
    digest = followed_packages.shown_digest(row)
    try:
        bundle, beyond = bundle_choice.bundle_with_newer(deployment, deployment.bundle_spec.sources[row.position])
    except (BadSource, TryLater) as exc:
        return _Look(problem=str(exc), digest=digest)
    asked = _asked(deployment, bundle) or (None if row.digest != bundle.digest else _failed(latest))
    return _Look(
        bundle, beyond, digest=digest, is_offered=not bundle_choice.is_bundle_running(deployment, bundle), asked=asked
    )


def _asked(deployment: BundleDeployment, bundle: ChosenBundle) -> Request | None:
    """The last request for the same wish that was for it. One that something else took the place of asks no more."""
    rows = deployment.requests.filter(purpose=Request.Purpose.DEPLOY, options_digest=deployment.options_digest)
    key = bundle_choice.offer_key(bundle)
    for request in rows.exclude(bundles=[]).exclude(state=State.SUPERSEDED).only("bundles").order_by("-number"):
        if any(bundle_choice.offer_key(one) == key for one in bundle_choice.recorded_bundles(request)):
            return request
    return None


def _failed(latest: Request | None) -> Request | None:
    """The latest request, if it failed before a bundle was chosen: while the same is offered, nobody asks again."""
    return latest if latest and latest.state == State.FAILED and not latest.bundles else None


def _upgrade_facts(deployment: BundleDeployment, look: _Look) -> UpgradeFacts:
    return UpgradeFacts(
        is_offered=look.is_offered, is_asked=look.asked is not None, policy=deployment.bundle_spec.upgrade_policy
    )


def _asked_again_at(wish: DeploymentWish, now: datetime) -> datetime:
    """When what waits is asked about again. A request that is made is about all sources as they are then."""
    soon = now + timedelta(seconds=followed_packages.ASK_AGAIN_SECONDS)
    return soon if wish.is_pinning or wish.is_held else wish.rests_until or soon


def _note_offer(row: FollowedPackage, look: _Look, now: datetime) -> None:
    """Keep what was seen."""
    bundle = look.bundle
    row.looked_at = now
    row.problem, row.problem_since = look.problem, (row.problem_since or now) if look.problem else None
    row.digest = look.digest
    row.request = look.asked
    available = bundle.bundle if bundle and look.is_offered else ""
    row.since = (row.since if row.available == available else now) if available else None
    row.available = available
    row.available_version = bundle.version if bundle and available else ""
    row.beyond = look.beyond


def _why_not(wish: DeploymentWish, look: _Look, found: Answer) -> tuple[str, str]:
    """Why what is offered is not taken, as a word for programs and in words. How a request for it stands people read
    when they look (selectors.followed_sources)."""
    if not look.is_offered:
        return "", ""
    if look.asked:
        return "Requested", ""
    if wish.deployment.bundle_spec.upgrade_policy is UpgradePolicy.MANUAL:
        return "Manual", "upgradePolicy is Manual: it is taken when somebody asks for a new request"
    if found is Answer.ASK:
        return "Requested", "a request for it is made once there is room for one"
    if wish.rests_until and not wish.is_pinning and not wish.is_held:
        words = "something else was offered too often (PRATIQUE_SOURCE_REQUESTS_PER_HOUR)"
        return "Waiting", f"{words}, and it is requested at {wish.rests_until:%Y-%m-%d %H:%M} UTC"
    if wish.open_requests:
        return "Waiting", f"request {wish.open_requests[0].number} is settled first: decide or withdraw it"
    return "Waiting", "a request is still to be made for what the spec wishes"


def _audit_offers(looks: Mapping[FollowedPackage, _Look], deployment: BundleDeployment) -> None:
    for row, look in looks.items():
        assert look.bundle is not None
        facts = {"reference": str(row), "from": look.bundle.before, "to": look.bundle.bundle}
        audit.record(verb="source.moved", actor=MACHINE, deployment=deployment, facts=facts)
