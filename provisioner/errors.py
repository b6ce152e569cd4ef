"""One error tree. An error says: we could not find out, or not do it. A "no" is a value, not an error."""

from __future__ import annotations


class PratiqueError(Exception):
    """Something could not be found out, or not be done.

    `code` is stable, `advice` says what to do about any error of the class: the reference of errors is made of both.
    The message names object, what was found, what was expected.

    The message is written by us and never quotes a server or a live object, so that everybody who may read the request
    may read it. What a server said stands in `server_words`: that is a value of the object (security-rules S27), shown
    only to people who may get it.
    """

    code = "error"
    advice = "Read the message and, with the request's id, the log of the worker."

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
    advice = "Write the entry of spec.constraints in the BundleDeployment as the message expects it."


class ConstraintOverLimit(InvalidConstraint):
    """A constraint whose expression passes a limit on memory, time or depth: it is never met as it is written."""

    code = "constraint-over-limit"
    advice = "Shorten the expression: read fewer values and nest fewer macros."


class InvalidRange(InvalidConstraint):
    """A version or a range of versions that cannot be read."""

    code = "invalid-range"
    advice = "Write a version or range as the message expects it, such as 1.2.3 or >=1.2.0 <2.0.0."


class TryLater(PratiqueError):
    """May succeed when tried again. The only error that is retried."""

    code = "try-later"
    advice = "Nothing: it is tried again. If it lasts, do what the message says."


class Unreachable(TryLater):
    """A registry, host or API server did not answer in time, or answered that it cannot now (429, 5xx).

    `retry_after_seconds` is how long the server asked us to wait, 0.0 if it did not say.
    """

    code = "unreachable"
    advice = (
        "Nothing: it is tried again. If it lasts, check the network, DNS and proxies between Pratique and that host."
    )

    def __init__(self, message: str = "", *, retry_after_seconds: float = 0.0, server_words: str = ""):
        super().__init__(message, server_words=server_words)
        self.retry_after_seconds = retry_after_seconds


class Withheld(TryLater):
    """A write was not sent, because who was to send it may do so no longer: it says nothing about the object."""

    code = "withheld"
    advice = "Nothing: whoever took the work over goes on with it."


class WorkerDied(PratiqueError):
    """The processes that worked on it died, the last one alone with it: it is not tried again by itself."""

    code = "worker-died"
    advice = "Raise the worker's memory or make the bundle smaller, then ask for the deployment again."


class BadBundle(PratiqueError):
    """The content itself is at fault; trying again gives the same answer."""

    code = "bad-bundle"
    advice = "Mend the bundle, and name the new one in spec.sources."


class BadHealthCheck(PratiqueError):
    """An entry of spec.healthChecks that cannot be evaluated; the message names each, and what was expected."""

    code = "bad-health-check"
    advice = "Write the entry of spec.healthChecks as the message expects it."


class UnsafePath(BadBundle):
    """An archive entry that links, climbs, is absolute, or is no regular file."""

    code = "unsafe-path"
    advice = "Pack the archive again with regular files and relative paths only."


class BundleTooLarge(BadBundle):
    """Past a limit on bytes, ratio, count, depth or length; the message names the limit and its setting."""

    code = "bundle-too-large"
    advice = "Make the bundle smaller, or have the operator raise the setting that the message names."


class InvalidArchive(BadBundle):
    """Not an archive of a format that we read, or cut off."""

    code = "invalid-archive"
    advice = "Pack it again as tar, tar.gz, tar.zst or zip, and check that the upload was complete."


class InvalidManifest(BadBundle):
    """YAML or JSON that Kubernetes would not read, or an object that cannot be one of a bundle."""

    code = "invalid-manifest"
    advice = "Mend the file that the message names; `kubectl apply --dry-run=client` shows the same mistakes."


class TooManyRights(PratiqueError):
    """RBAC rules that grant more single rights than are compared one by one; the answer is not known, and no yes.

    `found` is how many there are.
    """

    code = "too-many-rights"
    advice = "Write fewer and wider rules, or divide the bundle."

    def __init__(self, message: str = "", *, found: int = 0):
        super().__init__(message)
        self.found = found


class EmptyBundle(BadBundle):
    """No object at all where nobody asked for the removal of everything."""

    code = "empty-bundle"
    advice = "Check the source's folder; to remove everything, delete the BundleDeployment."


class DependencyCycle(BadBundle):
    """Objects that need each other in a circle, so that none can come first; the message shows the circle."""

    code = "dependency-cycle"
    advice = "Take one of the references out of the circle."


class BadSource(PratiqueError):
    """A source that cannot be used as written: wrong form, not found, not allowed in."""

    code = "bad-source"
    advice = "Write the source in spec.sources as the message expects it."


class SourceUnavailable(BadSource, TryLater):
    """What a source names is not there, or may not be read, at present: it may be pushed or allowed later."""

    code = "source-unavailable"
    advice = "Push what is missing or give the right to read it; it then goes on by itself."
    remedy = (
        "Once it is there and may be read, it goes on by itself. Where it is written wrongly, somebody who may update "
        "the BundleDeployment changes spec.sources, which makes a new request."
    )


class ForbiddenAddress(BadSource):
    """A host that resolves to an address which the operator does not allow (security-rules.md S18)."""

    code = "forbidden-address"
    advice = "Have the operator allow the network in PRATIQUE_ALLOWED_NETWORKS, or name another host."


class DigestMismatch(BadSource):
    """The bytes that came are not those that were named."""

    code = "digest-mismatch"
    advice = "Find out who changed the content; then name the digest that you mean."


class ClusterError(PratiqueError):
    """The API server refused. `status` is the HTTP status, `reason` its machine word, `details` its Status details.

    `details` quote the object as `server_words` do: they are for decisions, never for people.
    """

    code = "cluster-error"
    advice = "Read what the cluster said; the log of the API server has the rest."

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
    advice = "Give the account the right that the message names."


class Unauthenticated(ClusterError):
    """The API server does not know who asks."""

    code = "unauthenticated"
    advice = "Renew the credentials in the kubeconfig of that cluster."


class AlreadyExists(ClusterError):
    """A create-only apply met an object of that name."""

    code = "already-exists"
    advice = "Delete or rename the object that is there, or adopt it by spec.collisionProtection: IfNoController."


class FieldConflict(ClusterError):
    """Server-side apply met fields that another manager owns; the message names those that we sent."""

    code = "field-conflict"
    advice = "Take the fields out of the bundle, or have their other manager let them go."


class PreconditionFailed(ClusterError):
    """The object is not the one, or not in the state, that the plan was made on."""

    code = "precondition-failed"
    advice = "Look at what changed in the cluster, and ask for the deployment again."


class Overtaken(PreconditionFailed):
    """A later revision has written the object since this apply began: what is older leaves it."""


class InvalidObject(ClusterError):
    """The API server will not accept the object as written (400, 422, undeclared fields)."""

    code = "invalid-object"
    advice = "Mend the object in the bundle as the cluster's words say."


class UnknownKind(ClusterError):
    """The cluster serves no such kind."""

    code = "unknown-kind"
    advice = "Install the CRD that defines the kind first, or write the version that the cluster serves."


class Expired(ClusterError):
    """A watch's resourceVersion is too old (410): list again."""

    code = "expired"
    advice = "Nothing: the objects are listed again."


class PlanChanged(PratiqueError):
    """The plan computed now differs from the reviewed one."""

    code = "plan-changed"
    advice = "Read the new report, and review it again."


class BadRecord(PratiqueError):
    """A stored report that this version of the library cannot read."""

    code = "bad-record"
    advice = "Ask for the deployment again: that writes a new report."


class BadRuleFile(PratiqueError):
    """A file of `provisioner/review/rules` that cannot be read or contradicts itself: the installation is damaged."""

    code = "bad-rule-file"
    advice = "Install this version of Pratique again."
