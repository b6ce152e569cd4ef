"""Revoking a revision: nobody can roll back to it, and it is not restored automatically (security-rules.md S16)."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from approvals import audit, wake
from approvals.access import Caller
from approvals.audit import Actor
from approvals.errors import Changed, InvalidInput
from approvals.gate.reviewer_checks import Decider, check_decider
from approvals.ledger.moves import locked, move
from approvals.lifecycle import SUPERSEDABLE, Event
from approvals.locks import for_change
from approvals.models import BundleDeployment, Revision
from approvals.selectors import lists

MAX_REASON = 1000


def revoke_revision(*, by: Caller, deployment: BundleDeployment, revision: int, reason: str, via: str) -> Revision:
    """Mark a revision that could be gone back to as revoked, as one who may `approve` the deployment.

    An open request to go back to it is withdrawn. Raises NotAllowed and CouldNotAsk by Kubernetes' answer, InvalidInput
    for a revision that is none or a reason that is missing or too long, Changed where it is revoked already.
    """
    words = _checked_reason(reason)
    if not words:
        raise InvalidInput("give a reason: people who want to roll back to this revision will see it", field="reason")
    return _revoke(deployment.pk, revision, words, check_decider(by, deployment), via)


def reinstate_revision(*, by: Caller, deployment: BundleDeployment, revision: int, reason: str, via: str) -> Revision:
    """Take the mark off again, with the same right; raises Changed where there is none, else as `revoke_revision`."""
    return _reinstate(deployment.pk, revision, _checked_reason(reason), check_decider(by, deployment), via)


def _checked_reason(reason: str) -> str:
    words = reason.strip()
    if len(words) > MAX_REASON:
        raise InvalidInput(f"the reason has {len(words)} characters; at most {MAX_REASON} are allowed", field="reason")
    return words


@transaction.atomic(durable=True)
def _revoke(deployment_id: int, number: int, reason: str, decider: Decider, via: str) -> Revision:
    row = _locked(deployment_id, number)
    if row.revoked_at:
        raise Changed(lists.revoked_words(row))
    # Before the audit chain, as everybody (approvals.locks).
    there = [locked(one.pk) for one in row.deployment.requests.filter(to_revision=row, state__in=SUPERSEDABLE)]
    row.revoked_at, row.revoked_by, row.revoked_reason = timezone.now(), decider.identity.username, reason
    _keep(row, "revision.revoked", reason, decider, via)
    actor, why = Actor(decider.identity.username, via), lists.revoked_words(row)
    for request in there:
        if request.state in SUPERSEDABLE:
            move(request, Event.WITHDRAW, actor=actor, facts={"why": why}, problem_code="revoked", problem=why)
    return row


@transaction.atomic(durable=True)
def _reinstate(deployment_id: int, number: int, reason: str, decider: Decider, via: str) -> Revision:
    row = _locked(deployment_id, number)
    if row.revoked_at is None:
        raise Changed(f"revision {number} is not revoked")
    row.revoked_at, row.revoked_by, row.revoked_reason = None, "", ""
    _keep(row, "revision.reinstated", reason, decider, via)
    return row


def _locked(deployment_id: int, number: int) -> Revision:
    """The revision, under the lock of its deployment, by which requests to go back are made."""
    deployment = for_change(BundleDeployment.objects.filter(pk=deployment_id)).get()
    row = lists.once_in_force(deployment=deployment).filter(number=number).first()
    if row is None:
        raise InvalidInput(f"revision {number} does not exist or was never running", field="revision")
    return row


def _keep(row: Revision, verb: str, reason: str, decider: Decider, via: str) -> None:
    row.save(update_fields=["revoked_at", "revoked_by", "revoked_reason"])
    facts = {
        "revision": row.number,
        "reason": reason,
        "contentDigest": row.content.public_digest,
        "access": decider.words,
        "signedInAs": decider.signed_in_as,
    }
    audit.record(verb=verb, actor=Actor(decider.identity.username, via), deployment=row.deployment, facts=facts)
    wake.deployment(row.deployment_id)
