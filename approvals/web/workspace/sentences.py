"""Entries of the audit as sentences, by their verb; a verb without a sentence of its own is told by its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from approvals.models import REQUEST_CHANGES, AuditEntry

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
    "review.not_counted": "made a review with kubectl, which does not count",
    "revision.recorded": "recorded a revision",
    "revision.restored": "restored the previous revision",
    "revision.overdue": "found that the revision did not become healthy in time",
    "revision.revoked": "revoked a revision: it can no longer be rolled back to",
    "revision.reinstated": "reinstated a revision that was revoked",
    "deployment.seen": "saw a new version of the deployment",
    "deployment.gone": "saw that the deployment was deleted",
    "deployment.back": "found the deployment in the cluster, though it was recorded as deleted",
    "deployment.health": "saw the health of the deployment change",
    "drift.found": "found drift: an object is not as approved",
    "drift.fight": "stopped correcting an object that something else changes again and again",
    "drift.corrected": "put an object back as approved",
    "drift.over": "saw that a drifted object is as approved again",
    "optional.created": "created an optional object",
    "optional.asked": "asked for a new request because of an optional object",
    "stray.removed": "removed an object that an interrupted apply left behind",
    "stray.kept": "kept an object that an interrupted apply left behind",
    "policy.saved": "saved a policy",
    "cluster.registered": "registered a cluster",
    "cluster.removed": "removed a cluster",
    "session.began": "signed in",
    "session.ended": "ended a session",
    "token.created": "created an API token",
    "token.revoked": "revoked an API token",
    "token.proved": "used a token of the cluster",
    "identity.proved": "proved an identity",
    "identity.mapped": "mapped an identity",
    "identity.linked": "linked an identity",
    "identity.unlinked": "unlinked an identity",
    "identity.forgotten": "removed an identity",
    "identity.ended": "ended an identity",
    "chat.linked": "linked a chat account",
    "chat.unlinked": "unlinked a chat account",
    "keys.rotated": "rotated the encryption keys",
}
DECIDED = {"Approve": "gave an approval", "Deny": "gave a denial", REQUEST_CHANGES: "requested changes"}


def fact_words(name: str) -> str:
    """`content digest` of the fact `contentDigest`, `groups at` of `groups_at`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").lower()


def sentence_of(entry: AuditEntry) -> str:
    """What the actor did, as it follows their name."""
    if entry.verb == "review.given":
        return _review(entry.facts)
    if entry.verb == "review.dismissed":
        reviewer = entry.facts.get("reviewer")
        return f"dismissed the changes that {reviewer} requested" if reviewer else "dismissed a review"
    return SENTENCES.get(entry.verb, entry.verb.replace(".", " ").replace("_", " "))


def _review(facts: Mapping[str, Any]) -> str:
    said = DECIDED.get(str(facts.get("decision", "")), "gave a review")
    return f"{said} instead of an earlier decision" if facts.get("replaces") else said
