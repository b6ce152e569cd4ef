"""Why an action of a person is refused. Each has a stable `code`, an HTTP status and words for that person.

At the end: why what is stored cannot be read, what people can do once a request has ended, and what one waits for.
"""

from __future__ import annotations

from enum import StrEnum

from provisioner.api_groups import OWN_GROUP
from provisioner.errors import DigestMismatch, Forbidden, PratiqueError, PreconditionFailed, TryLater, Withheld


class Refused(Exception):
    """The message says what was found, what was expected and what to do; `facts` are JSON-ready."""

    code = "refused"
    status = 400

    def __init__(self, message: str, **facts: object):
        super().__init__(message)
        self.facts = facts


class NotAllowed(Refused):
    """Kubernetes said no; `rule` in facts is the RBAC rule that would allow it."""

    code = "not-allowed"
    status = 403


class OutOfScope(Refused):
    """The API token may not do this; `scope` or `cluster` in facts says what it lacks (security-rules.md S33)."""

    code = "out-of-scope"
    status = 403


class ProofTooOld(Refused):
    """Identity and groups were proved too long ago to count; `clusters` in facts says where (security-rules.md S25)."""

    code = "proof-too-old"
    status = 401


class CouldNotAsk(Refused):
    """The cluster did not answer whether this is allowed: that counts as no (promise 4)."""

    code = "could-not-ask"
    status = 503


class MissingOwnRight(Refused):
    """Pratique itself may not act as this person on the cluster; `command` in facts prints the rights (S31)."""

    code = "missing-right"
    status = 503


class NotFound(Refused):
    """There is no such thing, or none that you may read."""

    code = "not-found"
    status = 404


class Collides(Refused):
    """The plan meets objects that are someone else's and are not to be adopted; the message says who can mend it."""

    code = "collides"
    status = 409


class DigestMoved(Refused):
    """The reviewer saw another subject than the current one."""

    code = "digest-moved"
    status = 409


class UnlikeMember(Refused):
    """One approval of members of a change set does not cover this member."""

    code = "unlike-member"
    status = 409


class NotOpen(Refused):
    """The request is settled, or not yet reviewable."""

    code = "not-open"
    status = 409


class AlreadyReviewed(Refused):
    """One person gives one review a round, and yours is given."""

    code = "already-reviewed"
    status = 409


class SelfApproval(Refused):
    """Who asked for it cannot approve it (security-rules.md S05)."""

    code = "self-approval"
    status = 403


class ReviewOwed(Refused):
    """Who broke glass cannot do it again before somebody else has reviewed it; `page` is the URL of that request."""

    code = "review-owed"
    status = 409


class TooSerious(Refused):
    """The channel does not show the report, and the report is worse than may be approved unseen; `page` is its URL."""

    code = "too-serious"
    status = 403


class Unacknowledged(Refused):
    """Deletions, replacements and adoptions are to be named in the review."""

    code = "unacknowledged"
    status = 422


class UnknownFinding(Refused):
    """What is to be waived is no finding of the round that is decided on; `unknown` in facts lists it."""

    code = "unknown-finding"
    status = 422


class NotWaivable(Refused):
    """A finding that nobody may accept (security-rules.md S22, promise 4); `findings` in facts says which and why."""

    code = "not-waivable"
    status = 422


class CheckTokenRefused(Refused):
    """An external check has to answer with the token of its event (security-rules.md S49)."""

    code = "check-token"
    status = 401


class CheckClosed(Refused):
    """An external check may not answer this run any more, or has answered it."""

    code = "check-closed"
    status = 409


class InvalidInput(Refused):
    """A field of a form or of a body has a value that it cannot have."""

    code = "invalid-input"
    status = 422


class Changed(Refused):
    """What was edited is no longer as it was when it was opened."""

    code = "changed"
    status = 409


class Revoked(Refused):
    """Somebody who may approve has marked the revision as one that nobody goes back to (security-rules.md S16)."""

    code = "revoked"
    status = 409


class NotAsExpected(Refused):
    """If-Match names another state of this address than the present one."""

    code = PreconditionFailed.code
    status = 412


class NoVersion(Refused):
    """A write without If-Match, which says what the writer has read."""

    code = "precondition-required"
    status = 428


class TooMany(Refused):
    """A quota of the requester or the cluster is used up (security-rules.md S25)."""

    code = "too-many"
    status = 429


class TooManyAttempts(Refused):
    """Too many attempts; `retryAfter` in facts says when to try again, in seconds (security-rules.md S29)."""

    code = "too-many-attempts"
    status = 429


class InvalidQuery(Refused):
    """A parameter of the query string is unknown, given twice, or has a value that nothing can have."""

    code = "invalid-query"
    status = 400


class Ambiguous(Refused):
    """The address names several rows."""

    code = "ambiguous"
    status = 409


class SignInFailed(Refused):
    """The issuer did not send back what it should; nobody is signed in."""

    code = "sign-in-failed"
    status = 403


class IssuerAway(Refused):
    """The issuer does not answer: who somebody is cannot be found out now."""

    code = "issuer-away"
    status = 503


# Not for a person, but for whoever keeps the service: at rest (security-rules.md S30).


class KeyMissing(TryLater):
    """Something is encrypted with a key that this process does not have. It waits until the operator gives it."""

    code = "key-missing"


class Undecipherable(DigestMismatch):
    """What should be encrypted is not, was changed, or belongs to another row or file."""

    code = "undecipherable"


class StoreUnavailable(TryLater):
    """The content store does not answer, or refuses. Nothing is lost: what needs it waits.

    `is_refused`: the credentials lack a right.
    """

    code = "store-unavailable"

    def __init__(self, message: str, *, is_refused: bool = False):
        super().__init__(message)
        self.is_refused = is_refused


# What is stored for a request with such a problem cannot be read: asking again reads its sources afresh in its place.
UNREADABLE = frozenset({KeyMissing.code, DigestMismatch.code, Undecipherable.code})

# Not for a person: why a worker stops, or waits.


class LostClaim(Withheld):
    """Another worker has taken over what this one was working on: it stops at once, and writes nothing any more."""

    code = "lost-claim"

    def __init__(self, message: str = "the claim has passed to another worker"):
        super().__init__(message)


class GivesWay(LostClaim):
    """An approved request waits for the deployment that is being compared: what is left to compare comes after it."""


class Busy(TryLater):
    """Drift correction writes for the deployment; an apply or a restore starts when that is done."""

    code = "busy"


class Crashed(TryLater):
    """A bug of ours; the log has it in full, with the request's id."""

    code = "crashed"


class Full(TryLater):
    """As many are applied as one worker process may: some of its threads are kept for reports and the sweep."""

    code = "full"


class TooManyLooks(TryLater):
    """As many requests of a cluster list what goes with their deletions as may at once."""

    code = "too-many-looks"


class TooManyRules(PratiqueError):
    """A cluster has more objects that say how requests are decided than are read."""

    code = "too-many-rules"


class CouldNotStart(TryLater):
    """No process of its own could be started, or its end was not heard of. Nobody died."""

    code = "could-not-start"


class NoLongerWished(PratiqueError):
    """The BundleDeployment asks for something else now, or is being deleted; another request is about that."""

    code = "no-longer-wished"


class GroupsTooOld(Forbidden):
    """Nothing is read as somebody whose groups were proved too long ago."""

    code = "groups-too-old"


class ChangesAgain(PratiqueError):
    """What a request is about changes faster than people can review it. `remedy` says who can do what about it."""

    code = "changes-again"

    def __init__(self, message: str, *, remedy: str):
        super().__init__(message)
        self.remedy = remedy


# What people can do about a request that has ended, as formats over the name of its deployment.
ASK_ANEW = (
    "To request it again, someone who may update it runs `kubectl annotate bd {name} "
    f"{OWN_GROUP}/ask-again=$(date +%s) --overwrite`."
)
CHANGE_OR_ASK = ASK_ANEW.replace("who may update it runs", "who may update it changes it, or runs")
CHANGED = f"An operator checks the audit log for who changed what. {ASK_ANEW}"
STOP_IT = f"Find out what keeps changing it, and stop that. {ASK_ANEW}"


class Awaits(StrEnum):
    """What in the cluster may end a wait; the watch hears when it changes."""

    ACCOUNT = "account"  # the installing ServiceAccount
    RIGHTS = "rights"  # any role or binding
    WINDOW = "window"  # any ChangeWindow
    RING = "ring"  # how other members of the same set stand


class Awaiting(TryLater):
    """What is needed is not there yet. `awaits` says what in the cluster has to change for another look to be worth it,
    "" where nothing of it tells; `remedy` who can do what about it."""

    awaits: str = ""
    remedy: str = ""


class MissingRight(Awaiting):
    """The service itself lacks a right. It continues automatically once an operator has given it."""

    code = MissingOwnRight.code
    awaits = Awaits.RIGHTS
