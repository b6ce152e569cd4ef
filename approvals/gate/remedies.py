"""Every kind of no: its code, what follows, and who can do what about it. `docs/gate.md` holds this table. PURE."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from approvals.errors import ASK_ANEW, CHANGED, STOP_IT, Awaits, ChangesAgain, TooManyLooks
from approvals.gate.answers import Next, Reason
from approvals.gate.facts import About, Unknown
from provisioner.errors import BadSource, DigestMismatch, Forbidden, PlanChanged, PreconditionFailed
from provisioner.values import ObjectRef

HELD_BACK = "held-back"
UNANSWERED = (
    "Pratique retries automatically. If the problem persists, an operator checks why the cluster is not responding."
)
WRONG = "Someone who may update BundleDeployment {name} corrects its spec, which creates a new request."
_REVIEW_AGAIN = "Reviewers check the new report of request {number} and decide again."
MAKE_WAY = (
    "The owner of these objects renames or deletes them, and the request continues automatically. Or someone who may "
    "update BundleDeployment {name} says that they are adopted: with spec.collisionProtection: IfNoController if they "
    "have no owner and are neither Secrets nor Kubernetes' own namespaces, with spec.adoptHelmRelease and the name of "
    "the release if a Helm release holds them. The new request adopts the objects after reviewers acknowledge it. "
    "People who may get the objects see in the report who holds them, and what adopting them would change."
)
_OTHER_BUNDLE = (
    "who may update BundleDeployment {name} chooses a version of the bundle that uses a version which the cluster "
    "serves, or adds the kind to spec.optionalKinds to leave its objects out; either creates a new request."
)
_OR_CHANGE = "Or someone who may update BundleDeployment {name} changes it, which creates a new request."
_RIGHT_AGAIN = "The reviewer signs in again, or a cluster administrator restores the permission"


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """`when` says when it is so. `remedy` is a format over the name, cluster and number of About.

    `awaits`: what in the cluster has to change, where the watch sees that. `is_costly` as in Reason.
    """

    next: Next
    code: str
    when: str
    remedy: str
    is_problem: bool = True
    awaits: Awaits | None = None
    is_costly: bool = False


class RefusalKind(Enum):
    """Every kind of no."""

    OTHER_CLUSTER = RefusalRow(
        Next.END,
        PreconditionFailed.code,
        "the kubeconfig points to another cluster",
        "An operator corrects the kubeconfig of cluster {cluster}, or registers the other cluster under a "
        f"new name. {ASK_ANEW}",
    )
    NO_LONGER_WISHED = RefusalRow(
        Next.END, "no-longer-wished", "the BundleDeployment was changed or deleted", "Decide on the new request."
    )
    # Not begun: nothing has to be ended, and the spec may be the approved one again before anybody sees the other.
    FOLLOWED = RefusalRow(
        Next.WAIT,
        "no-longer-wished",
        "the BundleDeployment was changed after the approval, and applying has not started",
        "Decide on the new request, which replaces this one.",
    )
    NO_ACCOUNT_NAMED = RefusalRow(Next.END, BadSource.code, "the spec names no ServiceAccount", WRONG)
    NO_ACCOUNT = RefusalRow(
        Next.WAIT,
        "missing-account",
        "the ServiceAccount does not exist",
        "A cluster administrator creates it with the required permissions; the request then continues automatically.",
        awaits=Awaits.ACCOUNT,
    )
    OTHER_ACCOUNT = RefusalRow(
        Next.END,
        DigestMismatch.code,
        "the ServiceAccount was deleted or recreated after applying started",
        f"The approval was for the previous ServiceAccount. {ASK_ANEW}",
    )
    # Not begun: the new one's rights are reported, and reviewers decide about it (S07).
    ACCOUNT_REMADE = RefusalRow(
        Next.REPORT_AGAIN,
        "account-changed",
        "the ServiceAccount was recreated after the approval, and applying has not started",
        _REVIEW_AGAIN,
    )
    OTHER_SUBJECT = RefusalRow(
        Next.END, DigestMismatch.code, "content, plan, options or ServiceAccount differ from what was approved", CHANGED
    )
    NOT_VERIFIED = RefusalRow(
        Next.END, DigestMismatch.code, "no approval matches the recorded running revision", CHANGED
    )
    REQUESTER_LACKS = RefusalRow(
        Next.WAIT,
        Forbidden.code,
        "a requester may not use the ServiceAccount, or may not get what the sources or config.lookup name",
        "A cluster administrator grants the permission, and the request continues automatically; or someone "
        "who has it changes the deployment.",
        awaits=Awaits.RIGHTS,
    )
    REQUESTER_UNKNOWN = RefusalRow(
        Next.END,
        Forbidden.code,
        "the sources or config.lookup name something in the cluster, and the requester is unknown",
        "Someone who may get it changes BundleDeployment {name}, then signs in to Pratique and requests it again.",
    )
    GROUPS_TOO_OLD = RefusalRow(
        Next.END,
        "groups-too-old",
        "the sources or config.lookup name more than Catalogs, and the requester's groups were verified too long ago",
        f"The requester signs in again. {ASK_ANEW} Or an operator adds the deployment to PRATIQUE_UNATTENDED_READS.",
    )
    READS_WITHDRAWN = RefusalRow(
        Next.WAIT,
        "reads-withdrawn",
        "what the spec names was read because PRATIQUE_UNATTENDED_READS listed the deployment, and it no longer does",
        "The requesters sign in again, and the request continues automatically if they may get what was read. Or an "
        "operator lists {cluster}/{name} in PRATIQUE_UNATTENDED_READS again. Or someone who may get it changes "
        "BundleDeployment {name}, which creates a new request.",
    )
    CANNOT_BE_ADOPTED = RefusalRow(
        Next.WAIT, "collides", "the plan includes existing objects that belong to someone else", MAKE_WAY
    )
    REVOKED = RefusalRow(
        Next.END,
        PreconditionFailed.code,
        "the target revision of the rollback is revoked",
        "Someone who may `approve` BundleDeployment {name} reinstates the revision, or requests a rollback to "
        "another one.",
    )
    DENIED = RefusalRow(
        Next.DENY,
        "denied",
        "a reviewer denied it",
        f"Someone who may update BundleDeployment {{name}} changes it. {ASK_ANEW}",
    )
    CHANGES_REQUESTED = RefusalRow(
        Next.WAIT,
        "changes-requested",
        "a reviewer requests changes",
        "Someone who may update BundleDeployment {name} changes it, which creates a new request. Or the reviewer "
        "reviews again, or someone else who may `override` it dismisses the review with a reason.",
        awaits=Awaits.RIGHTS,
    )
    NOT_LET_GO = RefusalRow(Next.REPORT_AGAIN, PlanChanged.code, "the deletion needs a review now", _REVIEW_AGAIN)
    PLAN_CHANGED = RefusalRow(
        Next.REPORT_AGAIN, PlanChanged.code, "the plan contains more than the reviewed one", _REVIEW_AGAIN
    )
    CATALOG_CHANGED = RefusalRow(
        Next.REPORT_AGAIN,
        "catalog-changed",
        "a catalog says something against a chosen bundle that it did not say when the report was made",
        _REVIEW_AGAIN,
    )
    COLLISION_OVER = RefusalRow(Next.REPORT_AGAIN, "collision-over", "the conflicting objects are gone", _REVIEW_AGAIN)
    CAUSE_OVER = RefusalRow(
        Next.REPORT_AGAIN, "cause-over", "what the report said was missing in the cluster is there now", _REVIEW_AGAIN
    )
    CHANGES_AGAIN = RefusalRow(
        Next.END, ChangesAgain.code, "it would need a new report, and was reported again five times already", STOP_IT
    )
    POLICY_CHANGED = RefusalRow(
        Next.REPORT_AGAIN,
        "policy-changed",
        "the approving policy was changed or disabled, and applying has not started",
        f"Pratique evaluates the current policy. {_REVIEW_AGAIN}",
    )
    NOT_CARRIED_ANY_MORE = RefusalRow(
        Next.REPORT_AGAIN,
        "not-carried-over",
        "an approval that was carried over does not count any more, and applying has not started",
        _REVIEW_AGAIN,
    )
    GOES_ALONG_UNSEEN = RefusalRow(
        Next.REPORT_AGAIN,
        "goes-along-unseen",
        "the deletion would also delete objects that no reviewer saw",
        f"{_REVIEW_AGAIN} If something keeps creating these objects, stop it first.",
    )
    GOES_ALONG_LATE = RefusalRow(
        Next.END,
        "goes-along-unseen",
        "the same, after applying started: the object that contains them is not deleted",
        f"The owner of these objects decides whether to keep or delete them. {ASK_ANEW}",
    )
    TOO_MANY_TO_SEE = RefusalRow(
        Next.WAIT,
        "too-many-to-see",
        "a CRD or a namespace would be deleted with more objects than can be checked (100,000 of a kind, or what takes "
        "20 s of a kind or 60 s of all)",
        "Someone who may delete those objects deletes some of them first. The request continues automatically once all "
        "can be checked.",
        is_costly=True,
    )
    NOT_CONVERTED = RefusalRow(
        Next.WAIT,
        "conversion-fails",
        "objects that would be deleted with a CRD cannot be listed, because its conversion webhook does not work",
        "Someone who may change the CRD makes its conversion webhook work again, or sets its spec.conversion to "
        "strategy None with the command in the message: the objects are then listed as they are stored. The request "
        "continues automatically.",
    )
    OTHERS_LOOK = RefusalRow(
        Next.WAIT,
        TooManyLooks.code,
        "two other requests of the cluster list what would be deleted with a CRD or a namespace",
        "No action needed: the request continues automatically, within a minute or two, when one of them is done.",
    )
    LOSES_DATA = RefusalRow(
        Next.REPORT_AGAIN,
        "loses-data",
        "data would be deleted that the report said would stay",
        f"If the data must stay, undo that change first: set the retention or reclaim policy to Retain. "
        f"{_REVIEW_AGAIN}",
    )
    LOSES_DATA_LATE = RefusalRow(
        Next.END,
        "loses-data",
        "the same, after applying started: the object is not deleted",
        f"If the data must stay, set the retention or reclaim policy to Retain. {ASK_ANEW}",
    )
    REPORT_TOO_OLD = RefusalRow(
        Next.REPORT_AGAIN,
        "untold",
        "a report made now tells more about what would be deleted than the reviewed one",
        _REVIEW_AGAIN,
    )
    TAKES_DATA = RefusalRow(
        Next.REPORT_AGAIN, PlanChanged.code, "an unreviewed deletion would now delete data", _REVIEW_AGAIN
    )
    OWN_RIGHT = RefusalRow(
        Next.WAIT,
        "missing-right",
        "Pratique is not allowed to impersonate the ServiceAccount",
        "An operator runs the command in the message to grant the permission; the request then continues "
        "automatically.",
        awaits=Awaits.RIGHTS,
    )
    EXPIRED = RefusalRow(Next.WAIT, "expired", "the request was not settled in time", ASK_ANEW)
    TOO_OLD = RefusalRow(Next.WAIT, "too-old", "the information is too old to act on", UNANSWERED)
    TOO_FEW = RefusalRow(
        Next.WAIT,
        "needs-approval",
        "not enough people have approved it yet",
        "Someone who may `approve` BundleDeployment {name}, and did not request the change, decides on it.",
        is_problem=False,
    )
    LOST_APPROVAL = RefusalRow(
        Next.WAIT,
        "approval-lost",
        "an approval does not count at the moment",
        f"{_RIGHT_AGAIN}, which Pratique detects automatically; or someone else who may `approve` it approves it.",
        awaits=Awaits.RIGHTS,
    )
    GOES_ALONG = RefusalRow(
        Next.WAIT,
        "needs-review",
        "the deletion would also delete objects of others",
        "Someone who may `approve` BundleDeployment {name} reviews the deletion.",
    )
    NOBODY_USES_ACCOUNT = RefusalRow(
        Next.WAIT,
        HELD_BACK,
        "the requesters cannot be verified, and no approver may use the ServiceAccount",
        "A cluster administrator allows one of the approvers to `impersonate` the ServiceAccount, which "
        "Pratique detects automatically; or someone with this permission approves it.",
        awaits=Awaits.RIGHTS,
    )
    DOUBTED = RefusalRow(
        Next.WAIT,
        HELD_BACK,
        "an approver may be who requested it",
        "One more person who may `approve` BundleDeployment {name} approves it. Where the message names a person, they "
        "can instead sign in here and request it again.",
    )
    HELD_BY_GUARD = RefusalRow(
        Next.WAIT,
        HELD_BACK,
        "a guard holds the request in review back",
        "Someone who may `approve` and `override` accepts the findings when approving, or the policy is "
        "changed. Pratique evaluates guards again automatically.",
    )
    RULE_HOLDS = RefusalRow(
        Next.WAIT,
        "approval-rule",
        "an approval rule needs approvals of other people",
        "The people whom the message describes approve it, or someone who may update the ApprovalRule changes it. "
        "`kubectl get approvalrules` lists the rules.",
        is_problem=False,
    )
    RULE_UNREADABLE = RefusalRow(
        Next.WAIT,
        "approval-rule-unreadable",
        "an approval rule that may select the request cannot be read",
        "Someone who may update the ApprovalRule corrects it, and the request continues automatically.",
    )
    RULE_LOWERED = RefusalRow(
        Next.WAIT,
        "approval-rule-changed",
        "an approval rule that held the request back was changed or deleted after the last approval",
        "One person who may `approve` BundleDeployment {name}, and did not request the change, approves it after that "
        "change. Someone who has approved already may approve again.",
    )
    RULE_HOLDS_LATE = RefusalRow(
        Next.REPORT_AGAIN,
        "approval-rule",
        "the approvals are not those that an approval rule needs, and applying has not started",
        _REVIEW_AGAIN,
    )
    CHECK_AWAITED = RefusalRow(
        Next.WAIT,
        "external-check",
        "a mandatory external check has not answered yet",
        "The external check answers, and the request continues automatically. `kubectl get externalchecks` lists the "
        "checks.",
        is_problem=False,
    )
    CHECK_HOLDS = RefusalRow(
        Next.WAIT,
        "external-check-failed",
        "a mandatory external check failed, did not answer in time, or has no secret",
        "Correct what the check says, or ask the people who run the check to repair it; then someone who may `approve` "
        "BundleDeployment {name} runs it again. Someone who may update the ExternalCheck makes its secret, or changes "
        "it.",
    )
    CHECK_UNREADABLE = RefusalRow(
        Next.WAIT,
        "external-check-unreadable",
        "an external check that may select the request cannot be read",
        "Someone who may update the ExternalCheck corrects it, and the request continues automatically.",
    )
    NOT_APPROVED_ANY_MORE = RefusalRow(
        Next.WAIT,
        "no-longer-approved",
        "the approval is no longer valid",
        f"{_RIGHT_AGAIN}; the request then continues automatically. {_OR_CHANGE}",
        awaits=Awaits.RIGHTS,
    )
    POLICY_CHANGED_MIDWAY = RefusalRow(
        Next.WAIT,
        "policy-changed",
        "the same, after applying started",
        "Someone who may update BundleDeployment {name} changes it: this request then ends, and the new one is "
        "reviewed. If the policy was only disabled, someone who may edit it enables it again.",
    )
    WAIVER_LOST = RefusalRow(
        Next.WAIT,
        "waiver-lost",
        "the reviewer who accepted a finding no longer has the permission",
        f"{_RIGHT_AGAIN}; the request then continues automatically. {_OR_CHANGE}",
        awaits=Awaits.RIGHTS,
    )
    GUARD_HOLDS = RefusalRow(
        Next.WAIT,
        "guard-holds",
        "a guard holds the approved request back",
        "The guard's condition becomes true, or the policy is changed; the request then continues automatically.",
    )
    OUTSIDE_WINDOW = RefusalRow(
        Next.WAIT,
        "outside-window",
        "a change window of type Deny is active, or none of type Allow",
        "The request continues automatically when the windows allow it. Someone who may delete or change the "
        "ChangeWindow can end the wait earlier.",
        awaits=Awaits.WINDOW,
    )
    WINDOW_UNREADABLE = RefusalRow(
        Next.WAIT,
        "window-unreadable",
        "a change window that may select the request cannot be read",
        "Someone who may change or delete the ChangeWindow corrects it; the request then continues automatically.",
        awaits=Awaits.WINDOW,
    )
    WAITS_FOR_RING = RefusalRow(
        Next.WAIT,
        "waits-for-ring",
        "other members of the same set come first: those of an earlier ring, or on the same cluster",
        "No action needed where the message gives a time. Else the page of the set says who is waited for. Someone who "
        "may `approve` all members that wait can approve the next ring, remove a deployment from the order, or end the "
        "order.",
        awaits=Awaits.RING,
    )
    APPLY_LATER = RefusalRow(
        Next.WAIT,
        "apply-later",
        "it is to be applied at a later time, which was chosen with the approval",
        "No action needed: it is applied at that time. Someone who may `approve` BundleDeployment {name} can change "
        "the time or remove it.",
        awaits=Awaits.WINDOW,
    )
    PAUSED = RefusalRow(
        Next.WAIT,
        "paused",
        "the BundleDeployment is paused",
        "Someone who may update BundleDeployment {name} resumes it.",
    )
    UNMET = RefusalRow(
        Next.WAIT,
        "unmet-constraints",
        "the cluster does not meet spec.constraints",
        "When the cluster meets the constraints, the request continues automatically. Or someone who may "
        "update BundleDeployment {name} changes them, which creates a new request.",
    )
    MISSING_RIGHTS = RefusalRow(
        Next.WAIT,
        "missing-rights",
        "the installing ServiceAccount lacks permissions",
        "A cluster administrator applies the roles in the message; the request then continues automatically.",
        awaits=Awaits.RIGHTS,
    )
    NOT_SERVED = RefusalRow(
        Next.WAIT,
        "unknown-kind",
        "nothing in the cluster defines the kind",
        "Install what serves the kind, usually its CustomResourceDefinition; the request then continues automatically. "
        "Or someone who may update BundleDeployment {name} adds it to spec.optionalKinds, which creates a new request.",
    )
    REMOVED_API = RefusalRow(
        Next.WAIT,
        "removed-api",
        "Kubernetes itself no longer serves the version of a kind",
        f"Nobody can install it again. Someone {_OTHER_BUNDLE} If there is no such version yet, ask the author of the "
        "bundle for one.",
    )
    OTHER_VERSION = RefusalRow(
        Next.WAIT,
        "unknown-version",
        "the cluster does not serve this version of the kind",
        "A cluster administrator installs a version of the extension, or of Kubernetes, that serves it; the request "
        f"then continues automatically. Or someone {_OTHER_BUNDLE}",
    )
    REFUSED = RefusalRow(
        Next.WAIT,
        "objects-refused",
        "the API server would reject objects",
        "Fix the cause in the cluster, and the request continues automatically. Or correct the bundle, which "
        "creates a new request.",
    )
    COLLIDES = RefusalRow(
        Next.WAIT, "collides", "the approved plan includes existing objects that belong to someone else", MAKE_WAY
    )
    NOT_RUNNING = RefusalRow(
        Next.WAIT,
        "not-running",
        "the revision is no longer the running one",
        "No action needed: the running revision is compared instead.",
    )
    AT_WORK = RefusalRow(
        Next.WAIT,
        "at-work",
        "a request is being applied or rolled back",
        "No action needed: the comparison runs afterwards.",
    )
    OTHER_WISH = RefusalRow(
        Next.WAIT,
        "other-wish",
        "the spec has changed since the running revision was approved",
        "Decide on the request for the new spec.",
    )
    DELETING = RefusalRow(
        Next.WAIT, "being-deleted", "the BundleDeployment is being deleted", "Decide on the request for the deletion."
    )


# What external checks hold: those of before an apply are asked once nothing else does.
CHECK_CODES = frozenset(
    kind.value.code for kind in (RefusalKind.CHECK_AWAITED, RefusalKind.CHECK_HOLDS, RefusalKind.CHECK_UNREADABLE)
)


def reason(
    kind: RefusalKind,
    words: str,
    about: About,
    said: tuple[tuple[ObjectRef, str], ...] = (),
    due_at: datetime | None = None,
) -> Reason:
    row = kind.value
    remedy, awaits = filled(row.remedy, about), row.awaits or ""
    return Reason(row.next, row.code, words, remedy, said, row.is_problem, awaits, row.is_costly, due_at)


def unanswered(fact: Unknown, about: About) -> Reason:
    """What could not be found out is no, in the words of who could not."""
    if fact.code == TooManyLooks.code:
        return reason(RefusalKind.OTHERS_LOOK, fact.words, about)
    if fact.is_final:
        is_ours = fact.code == DigestMismatch.code
        return Reason(Next.END, fact.code, fact.words, filled(CHANGED if is_ours else WRONG, about))
    return Reason(Next.WAIT, fact.code, fact.words, UNANSWERED)


def filled(remedy: str, about: About) -> str:
    return remedy.format(name=about.name, cluster=about.cluster, number=about.number)


def missing_right(cluster: str, words: str, named: str = "") -> str:
    """That the service itself lacks a right, with what gives it.

    `named` is an account, as namespace/name, that the command leaves out unless somebody names it.
    """
    option = f" --installer {shlex.quote(named)}" if named else ""
    command = f"pratique-manage rights --cluster {cluster}{option} | kubectl apply -f -"
    return f"{words}: an operator must grant Pratique this permission. Print and apply it with:\n{command}"
