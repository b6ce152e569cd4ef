"""What apply would do to each object, the hooks around it, what became of each, and its health."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from provisioner.values.objects import GroupKind, JsonObject, ObjectRef

_RECORD = re.compile(r"sh\.helm\.release\.v1\.(.+)\.v[0-9]+")
# What happens to an object beside the actions: it comes under another name, or it is a Secret that exists, of which
# only who may get it is told whether it changes (S38).
RENAME, UNTOLD = "rename", "untold"


class Action(StrEnum):
    """SKIP leaves an optional object out while the cluster does not serve its kind.

    ORPHAN lets go of an object that is ours: it stays as it is, and belongs to no deployment from then on.
    RERUN runs a hook that ran for an earlier request: what that run left is deleted, and it is made anew.
    """

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    RERUN = "rerun"
    ADOPT = "adopt"
    DELETE = "delete"
    ORPHAN = "orphan"
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
class HelmRelease:
    """A release of Helm, by the namespace that it is stored in."""

    name: str
    namespace: str

    @classmethod
    def of_record(cls, ref: ObjectRef) -> HelmRelease | None:
        """The release of which this object is a record: Helm keeps one Secret for each of its revisions."""
        found = _RECORD.fullmatch(ref.name) if (ref.group, ref.kind) == ("", "Secret") else None
        return cls(found[1], ref.namespace) if found else None


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """What apply will do to one object. `uid` and `resource_version` are the live object's, "" where there is none.

    `is_proved` is False where the API server could not be asked (its kind or namespace comes in the same bundle).
    `before` and `after` are the live and the resulting object with server fields removed; a Secret's values are masked.
    `problem` says in our words why the action cannot be done as things stand, `problem_code` is the code of the error
    behind it; both are "" where nothing stands in the way. `notes` are ours as well. `server_words` are what the server
    said of the problem or holds of the object, `warnings` what it warned of: values of the object (S27). `owner` is who
    holds an object that is planned as if it were adopted, which only its reader is told.
    `returns_as` is the name under which a role or binding comes that is deleted here, where nobody may do more or less
    by it than before; "" for all others.
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
    owner: str = ""
    returns_as: str = ""


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """What is planned for an object otherwise than it was reviewed, in words: "" where the plan does not have it."""

    object: str
    reviewed: str
    now: str


@dataclass(frozen=True, slots=True)
class Plan:
    actions: tuple[PlannedAction, ...]
    digest: str

    def counts(self) -> dict[Action, int]:
        """How many objects each action is planned for; what returns under another name is not deleted."""
        counted = [one.action for one in self.actions if not one.returns_as]
        return {action: counted.count(action) for action in Action}


def count_objects(actions: Iterable[PlannedAction], *, hides_secrets: bool = True) -> Counter[str]:
    """How many objects there are of each action, of RENAME and of UNTOLD: the numbers of every page and text.

    Each object counts once: one that comes under another name is neither created nor deleted. Without `hides_secrets`,
    where the only reader may see all, a Secret counts by its action.
    """
    planned = list(actions)
    come = {(one.ref.group_kind, one.ref.namespace, one.returns_as) for one in planned if one.returns_as}
    counted: Counter[str] = Counter()
    for one in planned:
        is_secret = one.ref.group_kind == GroupKind("", "Secret") and one.before is not None
        if one.returns_as:
            counted[RENAME] += 1
        elif is_secret and hides_secrets and one.action in (Action.UPDATE, Action.NONE):
            counted[UNTOLD] += 1
        elif one.action is not Action.CREATE or (one.ref.group_kind, one.ref.namespace, one.ref.name) not in come:
            counted[one.action] += 1
    return counted


class HookMoment(StrEnum):
    """When a hook runs: before or after all other objects are written, as a test once they are ready, or before or
    after they are deleted.
    """

    BEFORE = "before"
    AFTER = "after"
    TEST = "test"
    BEFORE_DELETION = "before-deletion"
    AFTER_DELETION = "after-deletion"


APPLYING = frozenset({HookMoment.BEFORE, HookMoment.AFTER, HookMoment.TEST})
DELETING = frozenset({HookMoment.BEFORE_DELETION, HookMoment.AFTER_DELETION})


@dataclass(frozen=True, slots=True)
class Hook:
    """When an object runs as a hook, in the order of the moments, and as which of them: lower `weight` first.

    `is_cleared`: its object is deleted once all hooks of the moment have succeeded.
    """

    moments: tuple[HookMoment, ...]
    weight: int = 0
    is_cleared: bool = False

    @classmethod
    def at(cls, moments: Iterable[HookMoment], *, weight: int = 0, is_cleared: bool = False) -> Hook:
        """With the moments in their order."""
        wanted = frozenset(moments)
        return cls(tuple(one for one in HookMoment if one in wanted), weight, is_cleared)

    def only(self, moments: Iterable[HookMoment]) -> Hook:
        """At those of its moments that are among these."""
        return Hook.at(set(self.moments) & set(moments), weight=self.weight, is_cleared=self.is_cleared)


@dataclass(frozen=True, slots=True)
class HookRun:
    """The last run of a hook: written with `nonce` before its object is, with `uid` after.

    `is_current`: it is of the request that is being applied, and began at `moment`; `has_succeeded` of that moment.
    """

    ref: ObjectRef
    moment: HookMoment
    nonce: str
    uid: str = ""
    has_succeeded: bool = False
    is_current: bool = True


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
class ObjectOutcome:
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
