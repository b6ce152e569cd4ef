"""Why an action of a person is refused. Each has a stable `code`, an HTTP status and words for that person.

At the end: why what is stored cannot be read, what people can do once a request has ended, and what one waits for.
"""

from __future__ import annotations

from enum import StrEnum

from provisioner.errors import DigestMismatch, Forbidden, PratiqueError, PreconditionFailed, TryLater, Withheld


class Refused(Exception):
    """The message says what was found, what was expected and what to do; `facts` are JSON-ready."""

    code = "refused"
    advice = "Do what the message says."
    status = 400

    def __init__(self, message: str, **facts: object):
        super().__init__(message)
        self.facts = facts


class NotAllowed(Refused):
    """Kubernetes said no; `rule` in facts is the RBAC rule that would allow it."""

    code = "not-allowed"
    advice = "Ask an administrator of the cluster for the RBAC rule that the answer names."
    status = 403


class OutOfScope(Refused):
    """The API token may not do this; `scope` or `cluster` in facts says what it lacks (security-rules.md S33)."""

    code = "out-of-scope"
    advice = "Make an API token with that scope and cluster, or use the page."
    status = 403


class ProofTooOld(Refused):
    """Identity and groups were proved too long ago to count; `clusters` in facts says where (security-rules.md S25)."""

    code = "proof-too-old"
    advice = "Sign in again; for the API, make a new token or send a fresh one of your issuer."
    status = 401


class CouldNotAsk(Refused):
    """The cluster did not answer whether this is allowed: that counts as no (promise 4)."""

    code = "could-not-ask"
    advice = "Try again when the cluster answers."
    status = 503


class MissingOwnRight(Refused):
    """Pratique itself may not act as this person on the cluster; `command` in facts prints the rights (S31)."""

    code = "missing-right"
    advice = "An operator runs the command that the answer names, which prints the rights, and applies them."
    status = 503


class NotFound(Refused):
    """There is no such thing, or none that you may read."""

    code = "not-found"
    advice = "Check the name; what you may not read is not found either."
    status = 404


class Collides(Refused):
    """The plan meets objects that are somebody else's and are not to be adopted; the message says who can mend it."""

    code = "collides"
    advice = "Do what the message says: the object's owner deletes it, or lets it go."
    status = 409


class DigestMoved(Refused):
    """The reviewer saw another subject than the current one."""

    code = "digest-moved"
    advice = "Read the current report, and review that."
    status = 409


class NotOpen(Refused):
    """The request is settled, or not yet reviewable."""

    code = "not-open"
    advice = "Look at the request: it says what happened and what comes next."
    status = 409


class AlreadyReviewed(Refused):
    """One person gives one review a round, and yours is given."""

    code = "already-reviewed"
    advice = "Nothing, your review counts; to change it, wait for the next round."
    status = 409


class SelfApproval(Refused):
    """Who asked for it cannot approve it (security-rules.md S05)."""

    code = "self-approval"
    advice = "Ask somebody else who may approve."
    status = 403


class TooSerious(Refused):
    """The channel does not show the report, and the report is worse than may be approved unseen; `page` is its URL."""

    code = "too-serious"
    advice = "Open the request's page, and decide there."
    status = 403


class Unacknowledged(Refused):
    """Deletions, replacements and adoptions are to be named in the review."""

    code = "unacknowledged"
    advice = "Name in the review what the message lists, or tick it on the page."
    status = 422


class UnknownFinding(Refused):
    """What is to be waived is no finding of the round that is decided on; `unknown` in facts lists it."""

    code = "unknown-finding"
    advice = "Read the current report, and name findings of that."
    status = 422


class NotWaivable(Refused):
    """A finding that nobody may accept (security-rules.md S22, promise 4); `findings` in facts says which and why."""

    code = "not-waivable"
    advice = "Change the bundle so that the finding goes."
    status = 422


class InvalidInput(Refused):
    """A field of a form or of a body has a value that it cannot have."""

    code = "invalid-input"
    advice = "Correct the field that the message names."
    status = 422


class Changed(Refused):
    """What was edited is no longer as it was when it was opened."""

    code = "changed"
    advice = "Open it again, and make your change to what is there now."
    status = 409


class Revoked(Refused):
    """Somebody who may approve has marked the revision as one that nobody goes back to (security-rules.md S16)."""

    code = "revoked"
    advice = "Go back to another revision, or ask somebody who may approve to reinstate this one."
    status = 409


class NotAsExpected(Refused):
    """If-Match names another state of this address than the present one."""

    code = PreconditionFailed.code
    advice = "Read the address again, and send its new ETag."
    status = 412


class TooMany(Refused):
    """A quota of the requester or the cluster is used up (security-rules.md S25)."""

    code = "too-many"
    advice = "Withdraw or settle open requests, or have the operator raise the quota that the message names."
    status = 429


class TooManyAttempts(Refused):
    """Too many attempts; `retryAfter` in facts says when to try again, in seconds (security-rules.md S29)."""

    code = "too-many-attempts"
    advice = "Wait as many seconds as Retry-After says."
    status = 429


class InvalidQuery(Refused):
    """A parameter of the query string is unknown, given twice, or has a value that nothing can have."""

    code = "invalid-query"
    advice = "Correct the parameter that the message names; /api/v1/docs lists them."
    status = 400


class Ambiguous(Refused):
    """The address names several rows."""

    code = "ambiguous"
    advice = "Say which by what the message names, such as ?cluster=."
    status = 409


class SignInFailed(Refused):
    """The issuer did not send back what it should; nobody is signed in."""

    code = "sign-in-failed"
    advice = "Sign in again. If it lasts, the operator compares the issuer's settings with PRATIQUE_OIDC_FILE."
    status = 403


class IssuerAway(Refused):
    """The issuer does not answer: who somebody is cannot be found out now."""

    code = "issuer-away"
    advice = "Try again in a minute. If it lasts, the operator checks the way from Pratique to the issuer."
    status = 503


# Not for a person, but for whoever keeps the service: at rest (security-rules.md S30).


class KeyMissing(TryLater):
    """Something is encrypted with a key that this process does not have. It waits until the operator gives it."""

    code = "key-missing"
    advice = "The operator gives the process the key that the message names in PRATIQUE_ENCRYPTION_KEYS."


class Undecipherable(DigestMismatch):
    """What should be encrypted is not, was changed, or belongs to another row or file."""

    code = "undecipherable"
    advice = "The operator looks into the audit for who changed what, and asks for the deployment again."


# Not for a person: why a worker stops, or waits.


class LostClaim(Withheld):
    """Another worker has taken over what this one was working on: it stops at once, and writes nothing any more."""

    code = "lost-claim"
    advice = "Nothing. The other worker continues."

    def __init__(self, message: str = "the claim has passed to another worker"):
        super().__init__(message)


class Busy(TryLater):
    """Drift correction writes for the deployment; an apply or a restore starts when that is done."""

    code = "busy"
    advice = "Nothing. The request continues when the correction is done."


class Crashed(TryLater):
    """A bug of ours; the log has it in full, with the request's id."""

    code = "crashed"
    advice = "Report it with that part of the log. It is tried again meanwhile."


class Full(TryLater):
    """As many are applied as one worker process may: some of its threads are kept for reports and the sweep."""

    code = "full"
    advice = "Nothing. The request continues when one of them is done. To apply more at once, run another worker."


class CouldNotStart(TryLater):
    """No process of its own could be started, or its end was not heard of. Nobody died."""

    code = "could-not-start"
    advice = "Nothing: it is tried again. If it lasts, look at the worker's log and its limit on processes and memory."


class NoLongerWished(PratiqueError):
    """The BundleDeployment asks for something else by now, or is being deleted; another request is about that."""

    code = "no-longer-wished"
    advice = "Look at the deployment's newer request."


class GroupsTooOld(Forbidden):
    """Nothing is read as somebody whose groups were proved too long ago."""

    code = "groups-too-old"
    advice = "The requester signs in again, and asks for the deployment again."


# What people can do about a request that has ended, as formats over the name of its deployment.
ASK_ANEW = (
    "To request it again, someone who may update it runs `kubectl annotate bd {name} "
    "core.rukpak.io/ask-again=$(date +%s) --overwrite`."
)
CHANGE_OR_ASK = ASK_ANEW.replace("who may update it runs", "who may update it changes it, or runs")
CHANGED = f"An operator checks the audit log for who changed what. {ASK_ANEW}"


class Awaits(StrEnum):
    """What in the cluster may end a wait; the watch hears when it changes."""

    ACCOUNT = "account"  # the installing ServiceAccount
    RIGHTS = "rights"  # any role or binding


class Awaiting(TryLater):
    """What is needed is not there yet. `awaits` says what in the cluster has to change for another look to be worth it,
    "" where nothing of it tells; `remedy` who can do what about it."""

    awaits: str = ""
    remedy: str = ""


class MissingRight(Awaiting):
    """The service itself lacks a right. It goes on by itself once an operator has given it."""

    code = MissingOwnRight.code
    advice = MissingOwnRight.advice
    awaits = Awaits.RIGHTS
