"""The frozen values that travel between the rooms. No behaviour beyond naming, ordering and hashing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from provisioner.errors import InvalidManifest

# A Kubernetes object as JSON has it. Values that hold one never change it; who needs another object copies it.
JsonObject = Mapping[str, Any]


_WORDS: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}


def object_in(value: object, name: str) -> JsonObject:
    """`value` if it is a JSON object. Raises InvalidManifest, which calls it `name`, for what else it is."""
    if isinstance(value, Mapping):
        return value
    found = "nothing" if value is None else _WORDS.get(type(value), type(value).__name__)
    raise InvalidManifest(f"{name}: expected an object, found {found}")


def created_at(obj: JsonObject) -> str:
    """When an object was created, "" where nobody says: in UTC and to the second, so that times sort as text."""
    return str((obj.get("metadata") or {}).get("creationTimestamp") or "")


class Severity(StrEnum):
    """How much a finding should worry a reviewer, the worst first.

    The rule catalogue's scales meet here: CRD rules use BREAKING, DANGEROUS, UNKNOWN and SAFE; permission rules say
    critical (CRITICAL), high (DANGEROUS), medium (NOTABLE) and low (SAFE).
    """

    CRITICAL = "critical"
    BREAKING = "breaking"
    UNKNOWN = "unknown"
    DANGEROUS = "dangerous"
    NOTABLE = "notable"
    SAFE = "safe"

    @property
    def rank(self) -> int:
        """0 is the worst; sorting by rank puts what matters first."""
        return list(Severity).index(self)

    def is_at_least(self, other: Severity) -> bool:
        return self.rank <= other.rank


# A severity is a word and a shape, never a colour alone: so who sees no colours can tell them apart.
SHAPES: Mapping[str, str] = {
    Severity.CRITICAL: "◆",
    Severity.BREAKING: "■",
    Severity.UNKNOWN: "?",
    Severity.DANGEROUS: "▲",
    Severity.NOTABLE: "●",
    Severity.SAFE: "○",
}

# Of an object, `ObjectRef.identity`: group, kind, namespace ("" for a cluster-scoped one) and name.
ObjectIdentity = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class GroupKind:
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True, order=True)
class ObjectRef:
    """The name of one object: `namespace` is "" for a cluster-scoped one, `group` is "" for the core group."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @property
    def identity(self) -> ObjectIdentity:
        """What makes it the same object, whichever version it is written in."""
        return (self.group, self.kind, self.namespace, self.name)

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.group_kind} {place}"

    @classmethod
    def of(cls, obj: JsonObject) -> ObjectRef:
        """The reference of a Kubernetes object; absent parts become "". Raises InvalidManifest for what is none."""
        try:
            group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
            meta = obj.get("metadata") or {}
            namespace, name = str(meta.get("namespace") or ""), str(meta.get("name", ""))
            return cls(group, version, str(obj.get("kind", "")), namespace, name)
        except AttributeError:  # asked afterwards: this is done for every object, many times
            object_in(object_in(obj, "the object").get("metadata"), "metadata")
            raise


@dataclass(frozen=True, slots=True)
class Archive:
    """Bytes to unpack, recognised by what they are; `name` names a file that is none (a single YAML file)."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Tree:
    """An unpacked bundle in memory: file contents by path (relative, `/`-separated, never climbing)."""

    files: Mapping[str, bytes]


class SourceKind(StrEnum):
    IMAGE = "image"
    GIT = "git"
    HTTP = "http"
    CONFIG_MAP = "configMap"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Pin:
    """What a source was resolved to: `digest` is `sha256:<hex>`, or for git the commit's 40 hex digits.

    `reference` is what was asked for, as people wrote it, without credentials.
    """

    kind: SourceKind
    reference: str
    digest: str
    destination: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One rendered object. `body` is canonical (see render.canonical), `file` is where in the bundle it stands."""

    body: JsonObject
    file: str = ""
    _ref: ObjectRef | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def ref(self) -> ObjectRef:
        """Read from the body once: a report of 500 objects asks for it 160,000 times."""
        if self._ref is None:
            object.__setattr__(self, "_ref", ObjectRef.of(self.body))
        assert self._ref is not None
        return self._ref


@dataclass(frozen=True, slots=True)
class Content:
    """What a request is about: the rendered manifests, sorted, and the digest over them (render.content_digest)."""

    manifests: tuple[Manifest, ...]
    install_namespace: str
    service_account: str
    pins: tuple[Pin, ...]
    digest: str


class Section(StrEnum):
    """The parts of a report, in the order in which a page shows them."""

    OBJECTS = "objects"
    PERMISSIONS = "permissions"
    CRDS = "crds"
    PODS = "pods"
    WEBHOOKS = "webhooks"
    IMAGES = "images"
    PREFLIGHT = "preflight"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a reviewer should know.

    `rule` is the catalogue's id (`RB-11`, `CRD-10`), `path` the field as a tuple of keys and indexes, `message` one
    sentence, `evidence` JSON-ready facts behind it, never a Secret's value. `verdicts` answers, for CRD rules, the five
    questions api, stored, writers, readers, rollback. `fingerprint` names the same finding in two reports.

    `message` is ours: whoever may read the request may read it. `server_words`, path and evidence hold what a server
    said, or what stands in a live object: for people who may get `ref`, and where that is None all live objects of the
    plan. A finding that `is_private` is there for them only: it would tell how somebody else's object differs.
    `sources` are objects beside the plan of which it is made, such as roles: where there are any, all of them have to
    be readable. One without a name stands for every object of its kind, in its namespace where it names one.
    """

    rule: str
    section: Section
    severity: Severity
    message: str
    ref: ObjectRef | None = None
    path: tuple[str | int, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    verdicts: Mapping[str, Severity] = field(default_factory=dict)
    is_new: bool = True
    fingerprint: str = ""
    server_words: str = ""
    is_private: bool = False
    sources: tuple[ObjectRef, ...] = ()


class Action(StrEnum):
    """SKIP leaves an optional object out while the cluster does not serve its kind."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    ADOPT = "adopt"
    DELETE = "delete"
    SKIP = "skip"
    NONE = "none"


class DeletionPolicy(StrEnum):
    """What becomes of a deployment's objects when it is deleted (`spec.deletionPolicy`)."""

    DELETE = "Delete"
    ORPHAN = "Orphan"


class CollisionProtection(StrEnum):
    """What becomes of an object that exists and is not ours: never touched, or adopted where nobody holds it."""

    PREVENT = "Prevent"
    IF_NO_CONTROLLER = "IfNoController"


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """What apply will do to one object. `uid` and `resource_version` are the live object's, "" where there is none.

    `is_proved` is False where the API server could not be asked (its kind or namespace comes in the same bundle).
    `before` and `after` are the live and the resulting object with server fields removed; a Secret's values are masked.
    `problem` says in our words why the action cannot be done as things stand, `problem_code` is the code of the error
    behind it; both are "" where nothing stands in the way. `notes` are ours as well. `server_words` are what the server
    said of the problem or holds of the object, `warnings` what it warned of: values of the object (S27).
    """

    ref: ObjectRef
    action: Action
    uid: str = ""
    resource_version: str = ""
    before: JsonObject | None = None
    after: JsonObject | None = None
    is_proved: bool = True
    warnings: tuple[str, ...] = ()
    problem: str = ""
    problem_code: str = ""
    notes: tuple[str, ...] = ()
    server_words: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is planned for an object otherwise than it was reviewed, in words: "" where the plan does not have it."""

    object: str
    reviewed: str
    now: str


@dataclass(frozen=True, slots=True)
class Plan:
    actions: tuple[PlannedAction, ...]
    digest: str

    def counts(self) -> dict[Action, int]:
        return {action: sum(1 for planned in self.actions if planned.action is action) for action in Action}


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one content on one cluster, worst first, with the plan they belong to."""

    headline: tuple[str, ...]
    findings: tuple[Finding, ...]
    plan: Plan

    @property
    def public(self) -> tuple[Finding, ...]:
        """The findings that everybody may know of who may read the request."""
        return tuple(finding for finding in self.findings if not finding.is_private)

    @property
    def worst(self) -> Severity:
        return min((finding.severity for finding in self.public), key=lambda it: it.rank, default=Severity.SAFE)

    def in_section(self, section: Section) -> list[Finding]:
        return [finding for finding in self.findings if finding.section is section]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who Kubernetes takes somebody for."""

    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @classmethod
    def of_service_account(cls, namespace: str, name: str) -> Identity:
        """The identity and the groups that the API server gives a ServiceAccount."""
        return cls(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
        )


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """One question to Kubernetes' authorizers. `path` makes it a non-resource question; then the rest stays ""."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.verb} {self.path}"
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        resource = f"{resource}.{self.group}" if self.group else resource
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{f' {self.name}' if self.name else ''}{place}"


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """What the API server said; `reason` is its own words, for people."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """Why something was not done, in our words, "" for nothing; what a server says of it, a value of `ref` (S27)."""

    words: str = ""
    server_words: str = ""
    ref: ObjectRef | None = None

    def __bool__(self) -> bool:
        return bool(self.words)


class OutcomeState(StrEnum):
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to one object in an apply.

    `message` is ours. `warnings` are values of the object, `server_words` too, or of the object `about` where one that
    it waited for is why it was not tried (S27).
    """

    ref: ObjectRef
    action: Action
    state: OutcomeState
    message: str = ""
    uid: str = ""
    resource_version: str = ""
    warnings: tuple[str, ...] = ()
    server_words: str = ""
    about: ObjectRef | None = None


@dataclass(frozen=True, slots=True)
class InventoryItem:
    """One object of a revision. Written with `nonce` before the object is touched, with `uid` after."""

    ref: ObjectRef
    nonce: str
    uid: str = ""


class HealthState(StrEnum):
    """The answers of kstatus."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"
    UNKNOWN = "Unknown"


# The worst first: what makes a whole deployment unhealthy.
WORST_FIRST = (
    HealthState.FAILED,
    HealthState.NOT_FOUND,
    HealthState.UNKNOWN,
    HealthState.TERMINATING,
    HealthState.IN_PROGRESS,
    HealthState.CURRENT,
)


@dataclass(frozen=True, slots=True)
class Health:
    """`message` is ours: states and counts. `server_words` are what the object, its pods and its events say (S27)."""

    state: HealthState
    message: str = ""
    server_words: str = ""


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in the order of every report: severity, new before known, section, object, rule, path."""
    sections = list(Section)
    return tuple(
        sorted(
            findings,
            key=lambda it: (
                it.severity.rank,
                not it.is_new,
                sections.index(it.section),
                str(it.ref or ""),
                it.rule,
                tuple(str(part) for part in it.path),
            ),
        )
    )
