"""Why an action of a person is refused. Each has a stable `code`, an HTTP status and words for that person.

At the end: why what is stored cannot be read, what people can do once a request has ended, and what one waits for.
"""

from __future__ import annotations

from enum import StrEnum

from provisioner.errors import DigestMismatch, TryLater


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
    """The API token may not do this; `scope` or `cluster` in facts says what it lacks (security.md S33)."""

    code = "out-of-scope"
    status = 403


class ProofTooOld(Refused):
    """Identity and groups were proved too long ago to count; `clusters` in facts says where (security.md S25)."""

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
    code = "not-found"
    status = 404


class Collides(Refused):
    """The plan meets objects that are somebody else's and are not to be adopted; the message says who can mend it."""

    code = "collides"
    status = 409


class DigestMoved(Refused):
    """The reviewer saw another subject than the current one."""

    code = "digest-moved"
    status = 409


class NotOpen(Refused):
    """The request is settled, or not yet reviewable."""

    code = "not-open"
    status = 409


class AlreadyReviewed(Refused):
    code = "already-reviewed"
    status = 409


class SelfApproval(Refused):
    """Who asked for it cannot approve it (security.md S05)."""

    code = "self-approval"
    status = 403


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
    """A finding that nobody may accept (security.md S22, promise 4); `findings` in facts says which and why."""

    code = "not-waivable"
    status = 422


class InvalidInput(Refused):
    code = "invalid-input"
    status = 422


class Changed(Refused):
    """What was edited is no longer as it was when it was opened."""

    code = "changed"
    status = 409


class Revoked(Refused):
    """Somebody who may approve has marked the revision as one that nobody goes back to (security.md S16)."""

    code = "revoked"
    status = 409


class NotAsExpected(Refused):
    """If-Match names another state of this address than the present one."""

    code = "precondition-failed"
    status = 412


class TooMany(Refused):
    """A quota of the requester or the cluster is used up (security.md S25)."""

    code = "too-many"
    status = 429


class TooManyAttempts(Refused):
    """A door was tried too often; `retryAfter` in facts says in how many seconds it opens again (security.md S29)."""

    code = "too-many-attempts"
    status = 429


# Not for a person, but for whoever keeps the service: at rest (security.md S30).


class KeyMissing(TryLater):
    """Something is encrypted with a key that this process does not have. It waits until the operator gives it."""

    code = "key-missing"


class Undecipherable(DigestMismatch):
    """What should be encrypted is not, was changed, or belongs to another row or file."""

    code = "undecipherable"


# What people can do about a request that has ended, as formats over the name of its deployment.
ASK_ANEW = (
    "Somebody who may update it asks anew: "
    "`kubectl annotate bd {name} core.rukpak.io/ask-again=$(date +%s) --overwrite`."
)
CHANGE_OR_ASK = ASK_ANEW.replace("asks anew", "changes it, or asks anew")
CHANGED = f"An operator looks into the audit for who changed what. {ASK_ANEW}"


class Awaits(StrEnum):
    """What in the cluster may end a wait; the watch hears when it changes."""

    ACCOUNT = "account"  # the installing ServiceAccount
    RIGHTS = "rights"  # any role or binding


class Awaiting(TryLater):
    """What is needed is not there yet. `awaits` says what in the cluster has to change for another look to be worth it,
    "" where nothing of it tells; `remedy` who can do what about it."""

    awaits: str = ""
    remedy: str = ""
