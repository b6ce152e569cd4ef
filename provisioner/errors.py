"""One error tree. An error says: we could not find out, or not do it. A "no" is a value, not an error."""

from __future__ import annotations


class PratiqueError(Exception):
    """Something could not be found out, or not be done.

    `code` is stable; docs/generators/error_codes.yaml says what each means and what to do.
    The message names object, what was found, what was expected.

    The message is written by us and never quotes a server or a live object, so that everybody who may read the request
    may read it. What a server said stands in `server_words`: that is a value of the object (security-rules S27), shown
    only to people who may get it.

    `resolved` has the digests or commits of the sources that had been fetched by then, in their order.
    """

    code = "error"
    resolved: tuple[str, ...] = ()

    def __init__(self, message: str = "", *, server_words: str = ""):
        super().__init__(message)
        self.server_words = server_words

    @property
    def in_full(self) -> str:
        """The message with the server's words, for the terminal of somebody who reads with their own credentials."""
        return f"{self}: {self.server_words}" if self.server_words else str(self)


class InvalidConstraint(PratiqueError):
    """A constraint of a BundleDeployment that cannot be read or asked."""

    code = "invalid-constraint"


class ConstraintOverLimit(InvalidConstraint):
    """A constraint whose expression passes a limit on memory, time or depth: it is never met as it is written."""

    code = "constraint-over-limit"


class InvalidRange(InvalidConstraint):
    """A version or a range of versions that cannot be read."""

    code = "invalid-range"


class TryLater(PratiqueError):
    """May succeed when tried again. The only error that is retried."""

    code = "try-later"


class Unreachable(TryLater):
    """A registry, host or API server did not answer in time, or answered that it cannot now (429, 5xx).

    `retry_after_seconds` is how long the server asked us to wait, 0.0 if it did not say; `status` is that of its
    answer to a request for a source, 0 if there was none.
    """

    code = "unreachable"

    def __init__(self, message: str = "", *, retry_after_seconds: float = 0.0, server_words: str = "", status: int = 0):
        super().__init__(message, server_words=server_words)
        self.retry_after_seconds, self.status = retry_after_seconds, status


class SourceTooSlow(Unreachable):
    """A source did not send all of what it names in the time that it was given."""

    code = "source-too-slow"


class WebhookUnavailable(Unreachable):
    """The API server itself answers, but not a webhook that it has to call for the object; the message names it."""

    code = "webhook-unavailable"
    remedy = (
        "Whoever runs the webhook makes it answer, or a cluster administrator changes the configuration that calls it. "
        "Pratique retries automatically."
    )


class OutOfTime(TryLater):
    """All the time that was given for a question of many calls, or a comparison, is used up: nothing more is asked."""

    code = "out-of-time"


class Withheld(TryLater):
    """A write was not sent, because who was to send it may do so no longer: it says nothing about the object."""

    code = "withheld"


class WorkerDied(PratiqueError):
    """The processes that worked on it died, the last one alone with it: it is not tried again by itself."""

    code = "worker-died"


class PluginFailed(PratiqueError):
    """A plug-in is disabled, or did not do what it is for; the message names it and its package."""

    code = "plugin-failed"


class BadBundle(PratiqueError):
    """The content itself is at fault; trying again gives the same answer."""

    code = "bad-bundle"


class BadHealthCheck(PratiqueError):
    """An entry of spec.healthChecks that cannot be evaluated; the message names each, and what was expected."""

    code = "bad-health-check"


class UnsafePath(BadBundle):
    """An archive entry that links, climbs, is absolute, or is no regular file."""

    code = "unsafe-path"


class BundleTooLarge(BadBundle):
    """Past a limit on bytes, ratio, count, depth or length; the message names the limit and its setting."""

    code = "bundle-too-large"


class InvalidArchive(BadBundle):
    """Not an archive of a format that we read, or cut off."""

    code = "invalid-archive"


class InvalidManifest(BadBundle):
    """YAML or JSON that Kubernetes would not read, or an object that cannot be one of a bundle."""

    code = "invalid-manifest"


class TooManyRights(PratiqueError):
    """RBAC rules that grant more single rights than are compared one by one; the answer is not known, and no yes.

    `found` is how many there are.
    """

    code = "too-many-rights"

    def __init__(self, message: str = "", *, found: int = 0):
        super().__init__(message)
        self.found = found


class EmptyBundle(BadBundle):
    """No object at all where nobody asked for the removal of everything."""

    code = "empty-bundle"


class DependencyCycle(BadBundle):
    """Objects that need each other in a circle, so that none can come first; the message shows the circle."""

    code = "dependency-cycle"


class BadConfig(BadBundle):
    """spec.config holds what the format of the bundle does not take, or lacks what it needs."""

    code = "bad-config"


class BadSource(PratiqueError):
    """A source that cannot be used as written: wrong form, not found, not allowed in."""

    code = "bad-source"


class BundleNotOffered(BadSource):
    """A catalog that has no such package, channel or version, or no edge to one from what runs."""

    code = "bundle-not-offered"


class SourceUnavailable(BadSource, TryLater):
    """What a source names is not there, or may not be read, at present: it may be pushed or allowed later."""

    code = "source-unavailable"
    remedy = (
        "Once it is there and may be read, the request continues automatically. If it is wrong, someone who may update "
        "the BundleDeployment changes the spec, which makes a new request."
    )


class ForbiddenAddress(BadSource):
    """A host that resolves to an address which the operator does not allow (security-rules.md S18)."""

    code = "forbidden-address"


class DigestMismatch(BadSource):
    """The bytes that came are not those that were named."""

    code = "digest-mismatch"


class ClusterError(PratiqueError):
    """The API server refused. `status` is the HTTP status, `reason` its machine word, `details` its Status details.

    `details` quote the object as `server_words` do: they are for decisions, never for people.
    """

    code = "cluster-error"

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        details: dict[str, object] | None = None,
        server_words: str = "",
    ):
        super().__init__(message, server_words=server_words)
        self.status = status
        self.reason = reason
        self.details = details or {}


class Forbidden(ClusterError):
    """Kubernetes does not let this account do that."""

    code = "forbidden"


class Unauthenticated(ClusterError):
    """The API server does not know who asks."""

    code = "unauthenticated"


class AlreadyExists(ClusterError):
    """A create-only apply met an object of that name."""

    code = "already-exists"


class FieldConflict(ClusterError):
    """Server-side apply met fields that another manager owns; the message names those that we sent."""

    code = "field-conflict"


class PreconditionFailed(ClusterError):
    """The object is not the one, or not in the state, that the plan was made on."""

    code = "precondition-failed"


class Overtaken(PreconditionFailed):
    """A later revision has written the object since this apply began: what is older leaves it."""


class AnswerTooLarge(ClusterError):
    """An answer of more bytes than are read; of a list fewer objects at once may come through."""

    code = "answer-too-large"


class LosesData(ClusterError):
    """What would be written takes data along that nobody was shown: the object changed since the plan was made."""

    code = "loses-data"


class InvalidObject(ClusterError):
    """The API server will not accept the object as written (400, 422, undeclared fields)."""

    code = "invalid-object"


class UnknownKind(ClusterError):
    """The cluster serves no such kind."""

    code = "unknown-kind"


class Expired(ClusterError):
    """A watch's resourceVersion is too old (410): list again."""

    code = "watch-expired"


class PlanChanged(PratiqueError):
    """The plan computed now differs from the reviewed one."""

    code = "plan-changed"


class BadRecord(PratiqueError):
    """A stored report that this version of the library cannot read."""

    code = "bad-record"


class BadRuleFile(PratiqueError):
    """A file of `provisioner/review/rules` that cannot be read or contradicts itself: the installation is damaged."""

    code = "bad-rule-file"
