"""Who asked may become known after the request is made: the watch saw the write before the door could say by whom."""

from __future__ import annotations

from typing import Any

from approvals import audit, wake
from approvals.audit import Actor
from approvals.ledger.pivots.asking import ensure_request
from approvals.ledger.pivots.listing import list_askers
from approvals.ledger.pivots.writers import SpecWriter, answers_for, joined, with_asker, writers_of
from approvals.lifecycle import OPEN, State
from approvals.models import BundleDeployment, Request


def correct_requesters(deployment: BundleDeployment, writer: SpecWriter) -> None:
    """The watch saw a write before the door that made it could say by whom."""
    request = deployment.requests.order_by("-number").first()
    if request is None or request.is_requester_known:
        return
    writers, is_known = writers_of(deployment)
    if request.state == State.FAILED and is_known:
        # It may have failed for want of a name: then nobody's right to the named Secrets could be checked (S08).
        ensure_request(deployment, again=True, asker=writer)
    elif request.state in OPEN:
        _note_requesters(request, joined(writers, but_last=request.requesters), is_known, writer)


def join(deployment: BundleDeployment, asker: SpecWriter, *, is_theirs: bool, is_again: bool) -> None:
    """Who asks is a requester as well, also where the watch saw it first; `is_theirs`: it saw this very asking.

    `is_again`: they ask for the same once more, and may answer for all of it.
    """
    request = deployment.requests.order_by("-number").first()
    if request is None:
        return
    is_known = request.is_requester_known or (is_theirs and writers_of(deployment)[1])
    # Whoever goes back to a revision asks for what others wrote: today's spec says nothing about that.
    is_for_spec = request.purpose == Request.Purpose.DEPLOY and request.options_digest == deployment.options_digest
    is_known = is_known or (is_again and is_for_spec and answers_for(deployment, asker))
    if request.state == State.FAILED and is_known and not request.is_requester_known:
        ensure_request(deployment, again=True, asker=asker)
    elif request.state in OPEN:
        requesters = with_asker(request.requesters, asker)
        if (requesters, is_known) != (request.requesters, request.is_requester_known):
            _note_requesters(request, requesters, is_known, asker)


def _note_requesters(request: Request, requesters: list[dict[str, Any]], is_known: bool, latest: SpecWriter) -> None:
    request.requesters, request.is_requester_known, request.mirrored_at = requesters, is_known, None
    request.save(update_fields=["requesters", "is_requester_known", "mirrored_at"])
    list_askers(request)
    wake.deployment(request.deployment_id)
    actor = Actor(latest.identity.username, latest.via)
    audit.record(verb="request.requester-known", actor=actor, request=request)
