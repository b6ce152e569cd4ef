"""What a catalog offers to a deployment: a new request, the wait for one, or words that say why it is not taken.

The rows of those who follow say what is to be asked (`FollowedPackage.answer_at`, and `digest` where the catalog has
changed), until it is answered here. A worker that dies in between loses nothing, and who asks twice gets one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from approvals import audit
from approvals.audit import MACHINE
from approvals.catalogs import bundle_choice, followed_packages
from approvals.clock import database_now
from approvals.ledger.pivots.asking import ask_for_moved
from approvals.ledger.pivots.moved import DeploymentWish, wish_of
from approvals.lifecycle import State
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, FollowedPackage, Request
from approvals.policy.following import Answer, UpgradeFacts, answer_upgrade
from approvals.source_refs import UpgradePolicy, listed_sources, upgrade_policy
from provisioner.errors import BadSource, TryLater
from provisioner.values import ChosenBundle


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
    answers = {row: answer_upgrade(_facts(deployment, look), wish.facts) for row, look in looks.items()}
    is_due = latest is not None and Answer.ASK in answers.values()
    for row, look in looks.items():
        _note(row, look, now)
        waits = answers[row] is Answer.WAIT and not is_due
        row.answer_at = _asked_again_at(wish, now) if waits else None
        row.reason, row.why_not = _why_not(wish, look, answers[row])
        row.save()
    if latest is None or not is_due:
        return None
    asked = [row for row in looks if answers[row] is Answer.ASK]
    _audit({row: looks[row] for row in asked}, deployment)
    made = ask_for_moved(deployment, latest)
    FollowedPackage.objects.filter(pk__in=[row.pk for row in asked]).update(request=made)
    return made


def _look(deployment: BundleDeployment, row: FollowedPackage, latest: Request | None) -> _Look:
    source, where = listed_sources(deployment.spec)[row.position], f"spec.sources[{row.position}]"
    digest = followed_packages.shown_digest(row)
    try:
        bundle, beyond = bundle_choice.bundle_with_newer(deployment, source, where)
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


def _facts(deployment: BundleDeployment, look: _Look) -> UpgradeFacts:
    return UpgradeFacts(
        is_offered=look.is_offered, is_asked=look.asked is not None, policy=upgrade_policy(deployment.spec)
    )


def _asked_again_at(wish: DeploymentWish, now: datetime) -> datetime:
    """When what waits is asked about again. A request that is made is about all sources as they are then."""
    soon = now + timedelta(seconds=followed_packages.ASK_AGAIN_SECONDS)
    return soon if wish.is_pinning or wish.is_held else wish.rests_until or soon


def _note(row: FollowedPackage, look: _Look, now: datetime) -> None:
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
    if upgrade_policy(wish.deployment.spec) is UpgradePolicy.MANUAL:
        return "Manual", "upgradePolicy is Manual: it is taken when somebody asks for a new request"
    if found is Answer.ASK:
        return "Requested", "a request for it is made once there is room for one"
    if wish.rests_until and not wish.is_pinning and not wish.is_held:
        words = "something else was offered too often (PRATIQUE_SOURCE_REQUESTS_PER_HOUR)"
        return "Waiting", f"{words}, and it is requested at {wish.rests_until:%Y-%m-%d %H:%M} UTC"
    if wish.open_requests:
        return "Waiting", f"request {wish.open_requests[0].number} is settled first: decide or withdraw it"
    return "Waiting", "a request is still to be made for what the spec wishes"


def _audit(looks: Mapping[FollowedPackage, _Look], deployment: BundleDeployment) -> None:
    for row, look in looks.items():
        assert look.bundle is not None
        facts = {"reference": str(row), "from": look.bundle.before, "to": look.bundle.bundle}
        audit.record(verb="source.moved", actor=MACHINE, deployment=deployment, facts=facts)
