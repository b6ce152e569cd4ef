"""What a report is computed from, and what a check is. Pure: whoever calls has read everything before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, TypeVar

from provisioner.json_values import mapping, pointer, uid_of
from provisioner.missing_kinds import Absence, absence_of
from provisioner.plugins import Plugin
from provisioner.rbac import RbacObjects, RbacSubject
from provisioner.review.base.claims import Claim
from provisioner.review.base.messages import first_message
from provisioner.values import (
    AccessAnswer,
    AccessRequest,
    Action,
    Content,
    Finding,
    GroupKind,
    HelmRelease,
    JsonObject,
    Lookup,
    ObjectIdentity,
    ObjectRef,
    Plan,
    Section,
    Severity,
    SourceHistory,
    created_at,
    display_name,
)

_T = TypeVar("_T")
FieldPath = tuple[str | int, ...]
said = display_name

SECRET = GroupKind("", "Secret")
# Where deploy/ puts Pratique; an installation that lives elsewhere says so (ClusterSurroundings.own_namespace).
OWN_NAMESPACE = "pratique"
# Under this key the evidence of a finding has what the bundle alone says of it, in words that anybody may read where
# the rest is made of objects beside the plan.
STATED = "stated"
_UNDECLARED = "a check that reads roles has to declare Reads.ROLES"


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that should have been looked at and could not be: it becomes a finding of severity unknown."""

    what: str
    why: str
    section: Section


@dataclass(frozen=True, slots=True, order=True)
class Listing:
    """A list of live objects that a check wants to see: of one kind, everywhere or in one namespace.

    With `version` "" in the one that the cluster prefers. `metadata_only` leaves everything else in the cluster, which
    is how Secrets are counted. `is_counted`: more are looked through than are kept, to say when the last was created.
    """

    group: str
    version: str
    kind: str
    namespace: str = ""
    metadata_only: bool = False
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """What was read of a Listing: the first `objects` of `total`, in the server's order (by namespace and name).

    `problem` says why nothing could be read; a kind that is not served has no objects and no problem. `total` is None
    where the server did not say how many there are. `last` is when the last of all was created where not all are kept,
    None where nobody looked through them.
    """

    objects: tuple[JsonObject, ...] = ()
    total: int | None = 0
    resource_version: str = ""
    problem: str = ""
    last: str | None = None

    @property
    def is_whole(self) -> bool:
        return not self.problem and self.total == len(self.objects)

    @property
    def newest(self) -> str | None:
        """When the last of all was created, by the clock of the API server, "" of none; None where nobody knows."""
        return max(map(created_at, self.objects), default="") if self.is_whole else self.last


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One kind in one version as the cluster serves it; `plural` is its word in rules, `other_names` are its singular
    and its short names."""

    group: str
    version: str
    kind: str
    plural: str
    verbs: frozenset[str] = frozenset()
    is_namespaced: bool = True
    other_names: frozenset[str] = frozenset()

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)


@dataclass(frozen=True, slots=True)
class ClusterSurroundings:
    """What of the cluster stands around a change.

    `kinds` is what its discovery says, None if nobody knows, `unanswered` the groups whose own servers did not answer.
    `lists` holds what checks asked for (`Check.lists`), `exists` whether objects that they mention are there
    (`Check.mentions`), `schemas` the cluster's own schemas by (group, version, kind) of what could not be tried.
    `own_namespace` is where Pratique itself runs, `installers` are the accounts (namespace, name) by which it applies
    other bundles. `version` is the API server's, such as v1.36.3. `allowed_images` are the registries, and the
    beginnings of repositories in them, that images may come from; empty: there is no list.
    """

    kinds: tuple[ServedKind, ...] | None = None
    unanswered: frozenset[str] = frozenset()
    lists: Mapping[Listing, Listed] = field(default_factory=dict)
    exists: Mapping[ObjectIdentity, bool] = field(default_factory=dict)
    schemas: Mapping[tuple[str, str, str], JsonObject] = field(default_factory=dict)
    own_namespace: str = OWN_NAMESPACE
    installers: frozenset[tuple[str, str]] = frozenset()
    version: str = ""
    allowed_images: tuple[str, ...] = ()

    def serves(self, group: str, version: str, kind: str) -> bool | None:
        """Whether the cluster serves a kind; None where nobody knows."""
        if self.kinds is None:
            return None
        if any((one.group, one.version, one.kind) == (group, version, kind) for one in self.kinds):
            return True
        return None if group in self.unanswered else False

    def absence_of(self, group: str, version: str, kind: str) -> Absence:
        """Why the cluster does not serve a kind in this version."""
        served = ((kind.group, kind.version, kind.kind) for kind in self.kinds or ())
        return absence_of(group, version, kind, served, release=self.version)


@dataclass(frozen=True, slots=True)
class Installer:
    """Who will apply the content, and what the API server answered about the rights that its roles do not give it.

    `gaps` say what could not be asked.
    """

    account: RbacSubject
    answers: Mapping[AccessRequest, AccessAnswer] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """Objects that somebody says are all that is stored of `kinds`; None for all kinds."""

    objects: tuple[JsonObject, ...]
    kinds: frozenset[GroupKind] | None = None

    def tells_of(self, kind: GroupKind) -> bool:
        return self.kinds is None or kind in self.kinds


@dataclass(frozen=True, slots=True)
class Gone:
    """An object that was deleted, or replaced by a new one of its name, when `revision` was applied."""

    ref: ObjectRef
    action: Action
    revision: int


@dataclass(frozen=True, slots=True)
class WayBack:
    """Content that is restored because it ran once, as `revision`; of its objects `gone` are those taken away since."""

    revision: int
    gone: tuple[Gone, ...] = ()


@dataclass(frozen=True, slots=True)
class StateFacts:
    """The objects of one side of a change, for what can be said of a state alone (an image without digest).

    `lookups` are what a chart was told: values of Secrets that come from there are not the bundle's own. Nor are keys
    that are not `written` in the bundle: a chart made up their values, or others or an earlier version left them in the
    object.
    """

    objects: tuple[JsonObject, ...]
    install_namespace: str
    service_account: str
    live: Mapping[ObjectIdentity, JsonObject | None] = field(default_factory=dict)
    is_offline: bool = False
    around: ClusterSurroundings = field(default_factory=ClusterSurroundings)
    lookups: tuple[Lookup, ...] = ()
    written: Mapping[ObjectIdentity, frozenset[str]] = field(default_factory=dict)
    _named: tuple[tuple[ObjectRef, JsonObject], ...] | None = field(default=None, init=False, repr=False, compare=False)
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def installers(self) -> frozenset[tuple[str, str]]:
        """(namespace, name) of each account that applies bundles. Who tries one may have named none for it."""
        own = {(self.install_namespace, self.service_account)} if self.service_account else set()
        return self.around.installers | own

    def once(self, name: str, work: Callable[[StateFacts], _T]) -> _T:
        """What `work` makes of this state, made once for all its objects; each work has a name of its own."""
        if name not in self._kept:
            self._kept[name] = work(self)
        found: _T = self._kept[name]
        return found

    @property
    def named(self) -> tuple[tuple[ObjectRef, JsonObject], ...]:
        """The objects with their references, read once for all checks."""
        if self._named is None:
            object.__setattr__(self, "_named", tuple((ObjectRef.of(obj), obj) for obj in self.objects))
        assert self._named is not None
        return self._named


class RolesRead(tuple[JsonObject, ...]):  # noqa: SLOT001 -- it keeps what it sorted out
    """All roles and bindings of a cluster as they were read: sorted out once, however often they are looked at."""

    @cached_property
    def known(self) -> RbacObjects:
        """Raises InvalidManifest where one of them is no object."""
        return RbacObjects.of(self)

    @cached_property
    def salt(self) -> str:
        """The uid of a role that each cluster has; "" where none has a uid."""
        uids = {ObjectRef.of(one).name: uid_of(one) for one in self if one.get("kind") == "ClusterRole"}
        known = (uid for name, uid in sorted(uids.items(), key=lambda it: (it[0] != "cluster-admin", it[0])) if uid)
        return next(known, "")


class RolesNotGiven(RolesRead):
    """The roles of the cluster for a check that does not declare that it reads them: reading them is an error."""

    def __new__(cls, _: str) -> RolesNotGiven:
        return super().__new__(cls)

    def __init__(self, salt: str) -> None:
        self.__dict__["salt"] = salt

    def __iter__(self) -> Iterator[JsonObject]:
        raise LookupError(_UNDECLARED)

    def __len__(self) -> int:
        raise LookupError(_UNDECLARED)

    @cached_property
    def known(self) -> RbacObjects:
        raise LookupError(_UNDECLARED)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that checks may look at.

    `live` holds the objects that checks asked for (`Check.wants`), None for one that does not exist; a missing key
    means that nobody knows. `live_rbac` holds all roles and bindings of the cluster, None if unknown. `around` is the
    rest of what is known of the cluster. Offline there is no cluster, and two bundles are compared; `stored` is then
    what somebody gave as the stored objects. `installer` is None where the content is applied by whoever asks.
    `way_back` is None for content that did not run before, `history` what the sources named earlier. `hides_old_names`
    is set where names alone may tell which objects are renamed, and nothing what they held. `choices_of` are
    the objects of which it is told what the server chose for them, such as an address; None for all. `left_by_hooks` is
    what hooks made and nobody removes. `deployment` is the name of the BundleDeployment, "" where nobody gave it.
    `helm_release` is what it is to take over, None once it has taken over some of it.

    `bundle` is the plan as if the cluster held exactly the previous content: what of a report differs from that, live
    objects decide (S09). None where nothing is read of a cluster.
    """

    content: Content
    plan: Plan
    previous: Content | None = None
    live: Mapping[ObjectIdentity, JsonObject | None] = field(default_factory=dict)
    live_rbac: tuple[JsonObject, ...] | None = None
    gaps: tuple[Gap, ...] = ()
    is_offline: bool = False
    around: ClusterSurroundings = field(default_factory=ClusterSurroundings)
    installer: Installer | None = None
    way_back: WayBack | None = None
    history: SourceHistory = field(default_factory=SourceHistory)
    bundle: Plan | None = None
    stored: Stored | None = None
    left_by_hooks: tuple[ObjectRef, ...] = ()
    hides_old_names: bool = False
    choices_of: frozenset[ObjectIdentity] | None = None
    deployment: str = ""
    helm_release: HelmRelease | None = None
    _state: StateFacts | None = field(default=None, init=False, repr=False, compare=False)
    _previous_state: StateFacts | None = field(default=None, init=False, repr=False, compare=False)
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.live_rbac is not None and not isinstance(self.live_rbac, RolesRead):
            object.__setattr__(self, "live_rbac", RolesRead(self.live_rbac))

    def once(self, name: str, work: Callable[[Facts], _T]) -> _T:
        """What `work` makes of these facts, made once for all checks; each work has a name of its own."""
        if name not in self._kept:
            self._kept[name] = work(self)
        found: _T = self._kept[name]
        return found

    @property
    def known_rbac(self) -> RbacObjects | None:
        """`live_rbac`, sorted out; None if unknown."""
        return self.live_rbac.known if isinstance(self.live_rbac, RolesRead) else None

    def state(self) -> StateFacts:
        """What will be, as the cluster would store it where it could be asked: others' fields included (S11)."""
        if self._state is None:
            object.__setattr__(self, "_state", self._side(self._results(), self.content))
        assert self._state is not None
        return self._state

    @property
    def salt(self) -> str:
        """What nobody can guess who may not get the objects of the cluster, the same in every report: the uid of a role
        that each cluster has, else the uids of the plan; "" where nothing was read."""
        of_roles = self.live_rbac.salt if isinstance(self.live_rbac, RolesRead) else ""
        return of_roles or "\n".join(sorted({planned.uid for planned in self.plan.actions if planned.uid}))

    def _results(self) -> tuple[JsonObject, ...]:
        results = {planned.ref.identity: planned.after for planned in self.plan.actions if planned.after is not None}
        return tuple(results.get(manifest.ref.identity) or manifest.body for manifest in self.content.manifests)

    def previous_state(self) -> StateFacts:
        """What was approved before; nothing for a first request."""
        if self._previous_state is None:
            objects = tuple(manifest.body for manifest in self.previous.manifests) if self.previous else ()
            object.__setattr__(self, "_previous_state", self._side(objects, self.previous))
        assert self._previous_state is not None
        return self._previous_state

    def _side(self, objects: tuple[JsonObject, ...], side: Content | None) -> StateFacts:
        content, lookups = self.content, side.lookups if side else ()
        made = {
            (place.name, made.place.path)
            for made in (side.made_up.values if side else ())
            for place in (made.place, *made.copies)
            if place.path == made.place.path  # patches gave the object another name
        }
        written = {
            manifest.ref.identity: frozenset(
                str(key)
                for part in ("data", "stringData")
                for key in mapping(manifest.body.get(part))
                if (manifest.ref.name, pointer((part, key))) not in made
            )
            for manifest in (side.manifests if side else ())
            if manifest.ref.group_kind == SECRET
        }
        namespace, account = content.install_namespace, content.service_account
        return StateFacts(objects, namespace, account, self.live, self.is_offline, self.around, lookups, written)


def nothing(*_: Any) -> tuple[()]:
    """Return no findings: the default of a check."""
    return ()


class Reads(Enum):
    """What of a cluster a check reads beside the change itself; it is given nothing else of these."""

    LIVE = "live objects and lists"
    ROLES = "roles and bindings"
    CHOICES = "fields of objects that the server chose"


@dataclass(frozen=True, slots=True)
class Check:
    """One way of looking at a change, in one file.

    `changes` finds what the change does. `standing` finds what is so in a state, whatever was before: it is asked about
    both sides, and what the previous one had as well is no longer new. `claims` says which fields its rules
    judge; what nobody claims is reported when it changes. `wants` names live objects to read first; Secrets are never
    read. `mentions` names objects of which only the existence matters, Secrets too. `lists`, asked when those are
    there, names lists. `settles` is given all findings at last and says them again with what is known of the live
    objects; it may add some and drop none. `reads` is what of the cluster it is given; what asks for objects or lists
    is given these. `plugin` is set for a check of another package (review.plugged), which is given everything.
    """

    name: str
    changes: Callable[[Facts], Iterable[Finding]] = nothing
    standing: Callable[[StateFacts], Iterable[Finding]] = nothing
    claims: tuple[Claim, ...] = ()
    wants: Callable[[Content, Plan], Iterable[ObjectRef]] = nothing
    mentions: Callable[[Facts], Iterable[ObjectRef]] = nothing
    lists: Callable[[Facts], Iterable[Listing]] = nothing
    settles: Callable[[Facts, Sequence[Finding]], Iterable[Finding]] | None = None
    reads: frozenset[Reads] = frozenset()
    plugin: Plugin | None = None

    @property
    def given(self) -> frozenset[Reads]:
        """All that it is given of the cluster."""
        if self.plugin:
            return frozenset(Reads)
        is_asking = self.wants is not nothing or self.lists is not nothing
        return self.reads | {Reads.LIVE} if is_asking else self.reads


@dataclass(frozen=True, slots=True)
class ReviewRule:
    """A rule of the catalog: makes findings that have its id, place and severity, and a fingerprint.

    Rules about CRDs have `verdicts` too: what each says to all five questions (`Verdict.as_mapping`).
    """

    id: str
    section: Section
    severity: Severity
    verdicts: Mapping[str, Severity] = field(default_factory=dict)

    def finding(
        self, variant: str, subject: ObjectRef | None, *, where: FieldPath = (), key: object = None, **params: Any
    ) -> Finding:
        """A finding about `subject`, at the field `where`, in the words that the rule's file has for `variant`.

        `params` are the facts behind it, which its message may show. `key`, JSON-ready, is what makes it this finding
        and no other beside rule, object and field: what the facts mean, not counts or words.
        """
        found = Finding(
            self.id,
            self.section,
            self.severity,
            "",
            subject,
            where,
            params,
            dict(self.verdicts),
            fingerprint=fingerprint(self.id, subject, where, key),
            variant=variant,
        )
        known = {name: value for name, value in params.items() if value is not None}
        return replace(found, message=first_message(found, params), evidence=known)

    def at(
        self,
        ref: ObjectRef | None,
        message: str,
        *,
        path: tuple[str | int, ...] = (),
        evidence: Mapping[str, Any] | None = None,
        key: object = None,
    ) -> Finding:
        """A finding about `ref`. `key`, JSON-ready, is what makes it this finding and no other beside rule, object and
        path: what the evidence means, not counts or words."""
        return Finding(
            self.id,
            self.section,
            self.severity,
            message,
            ref,
            path,
            dict(evidence or {}),
            dict(self.verdicts),
            fingerprint=fingerprint(self.id, ref, path, key),
        )


def fingerprint(rule: str, ref: ObjectRef | None, path: tuple[str | int, ...], key: object) -> str:
    """The same for the same finding in two reports: over rule, object (whatever its version), path and `key`."""
    named = [rule, list(ref.identity) if ref else None, [str(part) for part in path], key]
    canonical = json.dumps(named, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def what_it_says(obj: JsonObject) -> dict[str, Any]:
    """What an object holds, as the key of a finding that is new as soon as the object says something else.

    Of metadata it is the labels, which selectors obey; of a Secret its keys, for a hash of its values could be guessed.
    """
    labels = mapping(obj.get("metadata")).get("labels") or {}
    said_in = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    if obj.get("kind") == SECRET.kind:
        said_in |= {name: sorted(map(str, mapping(said_in.get(name)))) for name in ("data", "stringData")}
    return {**said_in, "labels": labels}
