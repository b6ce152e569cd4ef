"""Entries of the audit as sentences, by their verb; a verb without a sentence of its own is told by its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.models import AuditEntry

SENTENCES = {
    "request.made": "created the request",
    "request.prepared": "finished the report: the request is ready for review",
    "request.could_not_prepare": "could not prepare the report",
    "request.approve": "approved the request",
    "request.deny": "denied the request",
    "request.expire": "closed the request, because it expired",
    "request.withdraw": "withdrew the request",
    "request.supersede": "closed the request, because a newer one replaced it",
    "request.start": "started to apply the request",
    "request.finish": "applied the request",
    "request.fail": "could not apply the request",
    "request.restore": "started to restore the previous revision",
    "request.find_stale": "found that the plan changed: earlier approvals no longer count",
    "request.report_again": "started a new report",
    "request.give_up": "stopped trying",
    "request.cleared": "removed the report and details of the request, which were kept long enough",
    "request.waits": "is waiting before it creates a request",
    "source.moved": "has a source that changed",
    "request.labels": "recorded new labels of the deployment",
    "request.requester-known": "learned who requested it",
    "revision.recorded": "recorded a revision",
    "revision.restored": "restored the previous revision",
    "revision.overdue": "found that the revision did not become healthy in time",
    "deployment.seen": "saw a new version of the deployment",
    "deployment.gone": "saw that the deployment was deleted",
    "deployment.health": "saw the health of the deployment change",
    "drift.over": "saw that a drifted object is as approved again",
    "optional.created": "created an optional object",
    "optional.asked": "asked for a new request because of an optional object",
    "policy.saved": "saved a policy",
    "cluster.registered": "registered a cluster",
    "session.began": "signed in",
    "session.ended": "ended a session",
    "token.created": "created an API token",
    "token.revoked": "revoked an API token",
    "token.proved": "used a token of the cluster",
    "identity.proved": "proved an identity",
    "identity.mapped": "mapped an identity",
    "identity.linked": "linked an identity",
    "identity.forgotten": "removed an identity",
    "identity.ended": "ended an identity",
    "chat.linked": "linked a chat account",
    "chat.unlinked": "unlinked a chat account",
    "keys.rotated": "rotated the encryption keys",
}
DECIDED = {"Approve": "gave an approval", "Deny": "gave a denial"}


def sentence_of(entry: AuditEntry) -> str:
    """What the actor did, as it follows their name."""
    if entry.verb == "review.given":
        return _review(entry.facts)
    return SENTENCES.get(entry.verb, entry.verb.replace(".", " ").replace("_", " "))


def _review(facts: Mapping[str, Any]) -> str:
    said = DECIDED.get(str(facts.get("decision", "")), "gave a review")
    return f"{said} instead of an earlier decision" if facts.get("replaces") else said
