"""What happens, by the verb that the audit records it with: how people are told, and which event goes out. PURE

The audit page, the feed of the home page, the timeline of a request and the events all take it from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from approvals.lifecycle import Event


class EventType(StrEnum):
    """The types of CloudEvents that are sent. A type keeps its meaning: another one gets another version."""

    REQUEST_CREATED = "dev.pratique.request.created.v1"
    REQUEST_READY = "dev.pratique.request.ready.v1"
    REQUEST_NEEDS_APPROVAL = "dev.pratique.request.needs-approval.v1"
    REQUEST_CHANGES_REQUESTED = "dev.pratique.request.changes-requested.v1"
    REQUEST_APPROVED = "dev.pratique.request.approved.v1"
    REQUEST_DENIED = "dev.pratique.request.denied.v1"
    REQUEST_STALE = "dev.pratique.request.stale.v1"
    REQUEST_APPLYING = "dev.pratique.request.applying.v1"
    REQUEST_APPLIED = "dev.pratique.request.applied.v1"
    REQUEST_RESTORING = "dev.pratique.request.restoring.v1"
    REQUEST_FAILED = "dev.pratique.request.failed.v1"
    REQUEST_SUPERSEDED = "dev.pratique.request.superseded.v1"
    REQUEST_EXPIRED = "dev.pratique.request.expired.v1"
    REQUEST_WITHDRAWN = "dev.pratique.request.withdrawn.v1"
    REVIEW_OWED = "dev.pratique.review-owed.v1"
    DEPLOYMENT_DRIFTED = "dev.pratique.deployment.drifted.v1"
    DEPLOYMENT_CORRECTED = "dev.pratique.deployment.corrected.v1"
    DEPLOYMENT_HEALTHY = "dev.pratique.deployment.healthy.v1"
    DEPLOYMENT_UNHEALTHY = "dev.pratique.deployment.unhealthy.v1"
    DEPLOYMENT_UPGRADE_AVAILABLE = "dev.pratique.deployment.upgrade-available.v1"
    POLICY_CHANGED = "dev.pratique.policy.changed.v1"
    TEST = "dev.pratique.test.v1"


def brief_type(event_type: str) -> str:
    """`request.created` of `dev.pratique.request.created.v1`."""
    return event_type.removeprefix("dev.pratique.").removesuffix(".v1")


# A test goes to the target that it was asked for, and to no other.
CHOSEN_TYPES = tuple(one for one in EventType if one != EventType.TEST)


@dataclass(frozen=True, slots=True)
class Occasion:
    """`words` follow the name of who did it. Where the fact `told_by` has one of the `cases`, that is the occasion."""

    words: str
    event: EventType | None = None
    told_by: str = ""
    cases: Mapping[str, Occasion] = field(default_factory=dict)


OCCASIONS: Mapping[str, Occasion] = {
    "request.made": Occasion("created the request", EventType.REQUEST_CREATED),
    "request.prepared": Occasion("finished the report: the request is ready for review", EventType.REQUEST_READY),
    "request.needs-approval": Occasion("found who is still needed to approve", EventType.REQUEST_NEEDS_APPROVAL),
    "request.could_not_prepare": Occasion("could not prepare the report", EventType.REQUEST_FAILED),
    "request.approve": Occasion("recorded the approval of the request", EventType.REQUEST_APPROVED),
    "request.deny": Occasion("recorded the denial of the request", EventType.REQUEST_DENIED),
    "request.expire": Occasion("closed the request, because it expired", EventType.REQUEST_EXPIRED),
    "request.withdraw": Occasion("withdrew the request", EventType.REQUEST_WITHDRAWN),
    "request.supersede": Occasion("closed the request, because a newer one replaced it", EventType.REQUEST_SUPERSEDED),
    "request.start": Occasion("started to apply the request", EventType.REQUEST_APPLYING),
    "request.finish": Occasion("applied the request", EventType.REQUEST_APPLIED),
    "request.fail": Occasion("could not apply the request", EventType.REQUEST_FAILED),
    "request.restore": Occasion("started to restore the previous revision", EventType.REQUEST_RESTORING),
    "request.find_stale": Occasion(
        "found that the plan changed: earlier approvals no longer count", EventType.REQUEST_STALE
    ),
    "request.report_again": Occasion("started a new round with a new report", EventType.REQUEST_READY),
    "request.give_up": Occasion("stopped trying", EventType.REQUEST_FAILED),
    "review.given": Occasion(
        "reviewed",
        told_by="decision",
        cases={
            "Approve": Occasion("approved"),
            "Deny": Occasion("denied"),
            "RequestChanges": Occasion("requested changes", EventType.REQUEST_CHANGES_REQUESTED),
            "BreakGlass": Occasion("broke glass", EventType.REVIEW_OWED),
            "Accept": Occasion("accepted the break-glass afterwards"),
            "Object": Occasion("objected to the break-glass afterwards"),
        },
    ),
    "revision.overdue": Occasion(
        "found that the revision did not become healthy in time", EventType.DEPLOYMENT_UNHEALTHY
    ),
    "deployment.health": Occasion(
        "saw the health of the deployment change",
        told_by="to",
        cases={
            "Current": Occasion("saw that the deployment is healthy", EventType.DEPLOYMENT_HEALTHY),
            "Failed": Occasion("saw that the deployment is unhealthy", EventType.DEPLOYMENT_UNHEALTHY),
            "NotFound": Occasion("saw that objects of the deployment are missing", EventType.DEPLOYMENT_UNHEALTHY),
        },
    ),
    "drift.found": Occasion("found drift: an object is not as approved", EventType.DEPLOYMENT_DRIFTED),
    "drift.corrected": Occasion("put an object back as approved", EventType.DEPLOYMENT_CORRECTED),
    "drift.over": Occasion("saw that a drifted object is as approved again", EventType.DEPLOYMENT_CORRECTED),
    "deployment.upgrade-offered": Occasion(
        "saw that a catalog offers an upgrade of the deployment", EventType.DEPLOYMENT_UPGRADE_AVAILABLE
    ),
    "policy.saved": Occasion("saved a policy", EventType.POLICY_CHANGED),
    "policy.switched": Occasion("switched a built-in guard on or off", EventType.POLICY_CHANGED),
    "deciding-object.created": Occasion("created a rule", EventType.POLICY_CHANGED),
    "deciding-object.changed": Occasion("changed a rule", EventType.POLICY_CHANGED),
    "deciding-object.deleted": Occasion("deleted a rule", EventType.POLICY_CHANGED),
    "deciding-object.seen": Occasion("saw that a rule was written or deleted in the cluster", EventType.POLICY_CHANGED),
    "deciding-object.confirmed": Occasion("confirmed a finding exception", EventType.POLICY_CHANGED),
    "notification-target.tested": Occasion("tested a notification target", EventType.TEST),
}

# What is recorded, and no event: how people are told of it.
WITHOUT_EVENT: Mapping[str, str] = {
    "request.cleared": "removed the report and details of the request, which were kept long enough",
    "request.waits": "is waiting before it creates a request",
    "source.moved": "has a source that changed",
    "request.change-words": "recorded another reason or ticket of the change",
    "request.labels": "recorded new labels of the deployment",
    "request.requester-known": "learned who requested it",
    "request.apply_at": "set when the request is applied",
    "review.dismissed": "dismissed a review",
    "review.carried": "carried over an approval of an earlier round or request",
    "review.not_counted": "made a review with kubectl, which does not count",
    "revision.recorded": "recorded a revision",
    "revision.restored": "restored the previous revision",
    "revision.revoked": "revoked a revision: it can no longer be rolled back to",
    "revision.reinstated": "reinstated a revision that was revoked",
    "deployment.seen": "saw a new version of the deployment",
    "deployment.gone": "saw that the deployment was deleted",
    "deployment.back": "found the deployment in the cluster, though it was recorded as deleted",
    "drift.fight": "stopped correcting an object that something else changes again and again",
    "optional.created": "created an optional object",
    "optional.asked": "asked for a new request because of an optional object",
    "stray.removed": "removed an object that an interrupted apply left behind",
    "stray.kept": "kept an object that an interrupted apply left behind",
    "external-check.asked": "asked an external check",
    "external-check.answered": "answered an external check",
    "external-check.secret-made": "made the signing secret of an external check",
    "notification-target.created": "created a notification target",
    "notification-target.changed": "changed a notification target",
    "notification-target.deleted": "deleted a notification target",
    "notification-target.secret-made": "made the signing secret of a notification target",
    "notification-target.stopped": "switched off a notification target that answered that it is gone",
    "notification.sent-again": "had an event sent again",
    "set.joined": "gave a deployment its place in the order of a set",
    "set.left": "took a deployment out of the order of a set",
    "set.ring_approved": "approved the next ring of a set",
    "set.order_ended": "ended the order of a set",
    "set.done": "saw that all members of an ordered set are applied and healthy",
    "cluster.labelled": "labelled a cluster",
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

# What a requester or a reviewer is told on the home page; the rest stands in the audit.
NEWS = (
    *(f"request.{event}" for event in Event if event not in (Event.START, Event.REPORT_AGAIN)),
    *("review.given", "review.dismissed", "request.waits"),
)


def find_occasion(verb: str, facts: Mapping[str, Any]) -> Occasion:
    """The occasion of an entry; one of an earlier version, whose verb is not known any more, is told by its verb."""
    known = OCCASIONS.get(verb) or Occasion(WITHOUT_EVENT.get(verb, verb.replace(".", " ").replace("_", " ")))
    return known.cases.get(str(facts.get(known.told_by, "")), known)


def event_type_of(verb: str, facts: Mapping[str, Any]) -> EventType | None:
    """The type of the event that goes out for an entry, None where none does.

    Not of the drift of a Secret: who may not get it would read in it when it changed (S38).
    """
    if verb.startswith("drift.") and str(facts.get("object", "")).startswith("Secret "):
        return None
    return find_occasion(verb, facts).event


def words_of(verb: str, facts: Mapping[str, Any]) -> str:
    """What somebody did, as it follows their name."""
    words = find_occasion(verb, facts).words
    if verb == "review.given" and facts.get("replaces"):
        return f"{words}, replacing an earlier decision"
    if verb == "review.dismissed" and (reviewer := facts.get("reviewer")):
        return f"dismissed the changes that {reviewer} requested"
    if verb.startswith("deciding-object.") and (kind := facts.get("kind")):
        return words.replace("a rule", f"{kind} {facts.get('name', '')}".rstrip())
    return words
