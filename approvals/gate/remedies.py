"""Every kind of no: its code, what follows, and who can do what about it. `docs/gate.md` holds this table. PURE."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum

from approvals.errors import ASK_ANEW, CHANGED, Awaits
from approvals.gate.answers import Next, Reason
from approvals.gate.facts import About, Unknown
from provisioner.errors import BadSource, DigestMismatch, Forbidden, PlanChanged, PreconditionFailed
from provisioner.values import ObjectRef

HELD_BACK = "held-back"
UNANSWERED = "It is asked again by itself. If that lasts, an operator looks why the cluster does not answer."
WRONG = "Somebody who may update BundleDeployment {name} corrects its spec, which makes a new request."
_REVIEW_AGAIN = "Reviewers look at the new report of request {number}, and decide again."
MAKE_WAY = (
    "Their owner renames or removes them, and it goes on by itself. Where nobody holds them, somebody who may update "
    "BundleDeployment {name} may set spec.collisionProtection to IfNoController: the request that follows adopts them, "
    "once reviewers acknowledge that."
)
_OR_CHANGE = "Or somebody who may update BundleDeployment {name} changes it, which makes a new request."
_RIGHT_AGAIN = "The reviewer signs in again, or an administrator of the cluster gives the right back"


@dataclass(frozen=True, slots=True)
class Row:
    """`when` says when it is so. `remedy` is a format over the name, cluster and number of About.

    `awaits`: what in the cluster has to change, where the watch sees that.
    """

    next: Next
    code: str
    when: str
    remedy: str
    is_problem: bool = True
    awaits: Awaits | None = None


class Kind(Enum):
    """Every kind of no."""

    OTHER_CLUSTER = Row(
        Next.END,
        PreconditionFailed.code,
        "the kubeconfig leads to another cluster",
        "An operator corrects the kubeconfig of cluster {cluster}, or registers the other one under a name of its own. "
        f"{ASK_ANEW}",
    )
    NO_LONGER_WISHED = Row(
        Next.END,
        "no-longer-wished",
        "the BundleDeployment asks for something else, is gone or is being deleted",
        "Decide on the request that follows.",
    )
    # Not begun: nothing has to be ended, and the wish may be the approved one again before anybody sees the other.
    FOLLOWED = Row(
        Next.WAIT,
        "no-longer-wished",
        "what was approved and has not begun is not what the BundleDeployment asks for by now",
        "Decide on the request that follows, which takes the place of this one.",
    )
    NO_ACCOUNT_NAMED = Row(Next.END, BadSource.code, "the spec names no ServiceAccount", WRONG)
    NO_ACCOUNT = Row(
        Next.WAIT,
        "missing-account",
        "the ServiceAccount does not exist",
        "An administrator of the cluster creates it, with its rights; it goes on by itself.",
        awaits=Awaits.ACCOUNT,
    )
    OTHER_ACCOUNT = Row(
        Next.END,
        DigestMismatch.code,
        "the ServiceAccount is gone or was made again, and it has begun",
        f"What was approved was approved for the account before. {ASK_ANEW}",
    )
    # Not begun: the new one's rights are reported, and reviewers decide about it (S07).
    ACCOUNT_REMADE = Row(
        Next.REPORT_AGAIN,
        "account-changed",
        "the ServiceAccount was made again since the approval, and nothing has begun",
        _REVIEW_AGAIN,
    )
    OTHER_SUBJECT = Row(
        Next.END,
        DigestMismatch.code,
        "content, plan, options or account are not what was approved",
        CHANGED,
    )
    NOT_VERIFIED = Row(
        Next.END,
        DigestMismatch.code,
        "no verdict approves what runs as it is recorded",
        CHANGED,
    )
    REQUESTER_LACKS = Row(
        Next.WAIT,
        Forbidden.code,
        "somebody who asked may not use the ServiceAccount, or may not get what the sources name",
        "An administrator of the cluster gives them that right, and it goes on by itself; or somebody who has it "
        "changes the deployment.",
        awaits=Awaits.RIGHTS,
    )
    REQUESTER_UNKNOWN = Row(
        Next.END,
        Forbidden.code,
        "the sources name a Secret or ConfigMap, and nobody knows who asked",
        "Somebody who signed in here and may get it changes BundleDeployment {name}.",
    )
    GROUPS_TOO_OLD = Row(
        Next.END,
        "groups-too-old",
        "the sources name a Secret or ConfigMap, and the groups of who asked were proved too long ago",
        f"Who asked signs in again. {ASK_ANEW} An operator may list the deployment in PRATIQUE_UNATTENDED_READS.",
    )
    CANNOT_BE_ADOPTED = Row(Next.WAIT, "collides", "the plan meets objects that are somebody else's", MAKE_WAY)
    REVOKED = Row(
        Next.END,
        PreconditionFailed.code,
        "the revision to be put back is revoked",
        "Somebody who may `approve` BundleDeployment {name} reinstates it, or a rollback to another one is asked for.",
    )
    DENIED = Row(
        Next.DENY,
        "denied",
        "a reviewer denied it",
        f"Somebody who may update BundleDeployment {{name}} changes it. {ASK_ANEW}",
    )
    NOT_LET_GO = Row(
        Next.REPORT_AGAIN, PlanChanged.code, "a deletion may not go without a review any more", _REVIEW_AGAIN
    )
    PLAN_CHANGED = Row(
        Next.REPORT_AGAIN, PlanChanged.code, "the plan does more than the reviewed one did", _REVIEW_AGAIN
    )
    COLLISION_OVER = Row(Next.REPORT_AGAIN, "collision-over", "what stood in the way is gone", _REVIEW_AGAIN)
    CHANGES_AGAIN = Row(
        Next.END,
        "changes-again",
        "it would be reported again, and was five times by itself",
        f"Who or what changes it all the time stops that. {ASK_ANEW}",
    )
    POLICY_CHANGED = Row(
        Next.REPORT_AGAIN,
        "policy-changed",
        "the policy that approved was changed, or is off by now, and nothing has begun",
        f"The policy is asked as it is by now. {_REVIEW_AGAIN}",
    )
    GOES_ALONG_UNSEEN = Row(
        Next.REPORT_AGAIN,
        "goes-along-unseen",
        "objects that no reviewer was shown would go with what is deleted",
        f"{_REVIEW_AGAIN} Where something makes them all the time, it is stopped first.",
    )
    GOES_ALONG_LATE = Row(
        Next.END,
        "goes-along-unseen",
        "the same, where it has begun: what holds them is not deleted",
        f"Whoever made those objects keeps or removes them. {ASK_ANEW}",
    )
    TOO_MANY_TO_SEE = Row(
        Next.WAIT,
        "too-many-to-see",
        "with a CRD or a namespace more objects would go than can be looked through (100,000, or what takes 20 s)",
        "Somebody who may deletes some of those objects first: it goes on by itself once all can be looked through.",
    )
    TAKES_DATA = Row(
        Next.REPORT_AGAIN, PlanChanged.code, "an unreviewed deletion would take data by now", _REVIEW_AGAIN
    )
    OWN_RIGHT = Row(
        Next.WAIT,
        "missing-right",
        "Pratique itself may not act as the ServiceAccount",
        "An operator prints and applies the rights with the command that the words hold; it goes on by itself.",
        awaits=Awaits.RIGHTS,
    )
    EXPIRED = Row(Next.WAIT, "expired", "nobody settled the request in time", ASK_ANEW)
    TOO_OLD = Row(Next.WAIT, "too-old", "what was learned is too old to act on", UNANSWERED)
    TOO_FEW = Row(
        Next.WAIT,
        "needs-approval",
        "people have not approved it yet",
        "Somebody who may `approve` BundleDeployment {name}, and did not ask for the change, decides on it.",
        is_problem=False,
    )
    LOST_APPROVAL = Row(
        Next.WAIT,
        "approval-lost",
        "an approval does not count now",
        f"{_RIGHT_AGAIN}, which is asked anew by itself; or somebody else who may `approve` it approves it.",
        awaits=Awaits.RIGHTS,
    )
    GOES_ALONG = Row(
        Next.WAIT,
        "needs-review",
        "a deletion would take along what others hung to it",
        "Somebody who may `approve` BundleDeployment {name} reviews the deletion.",
    )
    NOBODY_USES_ACCOUNT = Row(
        Next.WAIT,
        HELD_BACK,
        "nobody who asked is known by now, and no approver may use the ServiceAccount",
        "An administrator of the cluster lets one of the approvers `impersonate` the ServiceAccount, which is asked "
        "anew by itself; or somebody approves it who may.",
        awaits=Awaits.RIGHTS,
    )
    DOUBTED = Row(
        Next.WAIT,
        HELD_BACK,
        "nobody knows who asked, and an approver may have",
        "One more person who may `approve` BundleDeployment {name} approves it.",
    )
    HELD_BY_GUARD = Row(
        Next.WAIT,
        HELD_BACK,
        "a guard holds back what is in review",
        "Somebody who may `approve` and `override` accepts the findings with their approval, or the policy is changed "
        "by who may; guards are asked anew by themselves.",
    )
    NOT_APPROVED_ANY_MORE = Row(
        Next.WAIT,
        "no-longer-approved",
        "the approval would not be given today",
        f"{_RIGHT_AGAIN}; it goes on by itself. {_OR_CHANGE}",
        awaits=Awaits.RIGHTS,
    )
    POLICY_CHANGED_MIDWAY = Row(
        Next.WAIT,
        "policy-changed",
        "the same, where it has begun",
        "Somebody who may update BundleDeployment {name} changes it: then this ends, and the request that follows is "
        "reviewed. Of a policy that was only switched off: who may switches it on again.",
    )
    WAIVER_LOST = Row(
        Next.WAIT,
        "waiver-lost",
        "who accepted a finding may not any more",
        f"{_RIGHT_AGAIN}; it goes on by itself. {_OR_CHANGE}",
        awaits=Awaits.RIGHTS,
    )
    GUARD_HOLDS = Row(
        Next.WAIT,
        "guard-holds",
        "a guard holds back what was approved",
        "The guard lets go by itself, or who may changes the policy; it goes on by itself.",
    )
    PAUSED = Row(
        Next.WAIT,
        "paused",
        "the BundleDeployment is paused",
        "Somebody who may update BundleDeployment {name} resumes it.",
    )
    UNMET = Row(
        Next.WAIT,
        "unmet-constraints",
        "the cluster is not as spec.constraints wants it",
        "What the constraints ask for is brought about, and it goes on by itself; or somebody who may update "
        "BundleDeployment {name} changes them, which makes a new request.",
    )
    MISSING_RIGHTS = Row(
        Next.WAIT,
        "missing-rights",
        "the installing ServiceAccount lacks rights",
        "An administrator of the cluster applies the roles that the words hold; it goes on by itself.",
        awaits=Awaits.RIGHTS,
    )
    NOT_SERVED = Row(
        Next.WAIT,
        "unknown-kind",
        "the cluster serves no such kind, or not in this version",
        "Whoever may installs what serves the kind, mostly its CustomResourceDefinition, and it goes on by itself. Or "
        "somebody who may update BundleDeployment {name} lists it in spec.optionalKinds, which makes a new request.",
    )
    REFUSED = Row(
        Next.WAIT,
        "objects-refused",
        "the API server would refuse objects",
        "What stands in the way is taken away in the cluster, and it goes on by itself; or the bundle is corrected, "
        "which makes a new request.",
    )
    COLLIDES = Row(Next.WAIT, "collides", "what was approved meets objects that are somebody else's", MAKE_WAY)
    NOT_RUNNING = Row(
        Next.WAIT,
        "not-running",
        "the revision is not the one that runs",
        "Nothing is to be done: what runs is compared.",
    )
    AT_WORK = Row(
        Next.WAIT,
        "at-work",
        "a request is being applied or put back",
        "Nothing is to be done: that comes first.",
    )
    OTHER_WISH = Row(
        Next.WAIT,
        "other-wish",
        "the wish is another one by now than what runs was approved for",
        "Decide on the request for what is wished for by now.",
    )
    DELETING = Row(
        Next.WAIT, "being-deleted", "the BundleDeployment is being deleted", "Decide on the request for the deletion."
    )


def reason(kind: Kind, words: str, about: About, said: tuple[tuple[ObjectRef, str], ...] = ()) -> Reason:
    row = kind.value
    return Reason(row.next, row.code, words, filled(row.remedy, about), said, row.is_problem, row.awaits or "")


def unanswered(fact: Unknown, about: About) -> Reason:
    """What could not be found out is no, in the words of who could not."""
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
    return f"{words}: an operator has to give Pratique that right. To print and apply it: {command}"
