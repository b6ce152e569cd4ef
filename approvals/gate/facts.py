"""What the gate knows, each fact with when and how it was learned. "Could not find out" is a value. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

from approvals.deciding.approval_rules import ApprovalRule, Voter
from approvals.deciding.change_windows import Windows
from approvals.deciding.external_checks import SelectedCheck
from approvals.deciding.rings import Rollout
from approvals.gate.answers import GateQuestion
from approvals.ledger.digests import ReviewSubject
from approvals.policy import Lapsed
from provisioner.missing_kinds import Lack
from provisioner.values import ObjectRef, PlannedAction

T_co = TypeVar("T_co", covariant=True)


class How(StrEnum):
    """Where a fact was learned."""

    CLUSTER = "read from the cluster"
    RECORDS = "read from the database"


@dataclass(frozen=True, slots=True)
class Known(Generic[T_co]):
    value: T_co
    at: datetime
    how: How


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody could find out. `is_final`: to ask again gives the same answer, as of an expression that is wrong."""

    words: str
    at: datetime
    how: How
    code: str = "could-not-ask"
    is_final: bool = False


Fact: TypeAlias = Known[T_co] | Unknown
# What a question does not need is not read; judged by mistake, it is unknown.
NOT_READ = Unknown("it was not checked", datetime.min.replace(tzinfo=UTC), How.RECORDS, code="not-read")


def value_of(fact: Fact[T_co]) -> T_co | None:
    return fact.value if isinstance(fact, Known) else None


@dataclass(frozen=True, slots=True)
class Right:
    """What Kubernetes says of a right; `words` why or why not, `rule` the RBAC YAML that would give it."""

    is_given: bool
    words: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """The request that is asked about, as our records and settings have it.

    `needed` are approvals of people. `recorded_cluster` is "" where the cluster was never reached. `rounds` is how
    often it was reported again by itself. `why_unknown` is why nobody can tell who asked, "" where that is known.
    It is not applied before `apply_at`.
    """

    name: str
    cluster: str
    recorded_cluster: str
    number: int
    purpose: str
    round: int
    subject_digest: str
    options_digest: str
    is_requester_known: bool
    has_requesters: bool
    needed: int
    expires_at: datetime
    rounds: int = 0
    why_unknown: str = ""
    apply_at: datetime | None = None

    @property
    def is_removal(self) -> bool:
        return self.purpose == "delete"

    @property
    def is_rollback(self) -> bool:
        return self.purpose == "rollback"


@dataclass(frozen=True, slots=True)
class LiveSpec:
    """The BundleDeployment as it stands in the cluster. `paused_by` says who paused it and why, where that is known."""

    is_the_same: bool
    is_being_deleted: bool
    is_paused: bool
    paused_by: str
    options_digest: str
    drift: str


@dataclass(frozen=True, slots=True)
class Account:
    """The installing ServiceAccount; `uid` is "" where it does not exist, `approved_uid` where nothing was yet.

    `is_reserved`: in a namespace whose accounts are worth the whole cluster.
    """

    namespace: str
    name: str
    uid: str
    approved_uid: str
    is_reserved: bool = False


@dataclass(frozen=True, slots=True)
class Sources:
    """What sources and `config.lookup` name in the cluster, to be read for those who asked. `catalogs`: those of them.

    `is_read` where it was read already by groups that counted; `is_listed`: the operator lets it be read unattended.
    """

    names: tuple[str, ...] = ()
    is_read: bool = False
    is_unattended: bool = False
    is_listed: bool = False
    hours: int = 0
    catalogs: tuple[str, ...] = ()

    @property
    def private(self) -> tuple[str, ...]:
        """All but Catalogs: what one of these offers is no value of anybody's."""
        return tuple(name for name in self.names if name not in self.catalogs)


@dataclass(frozen=True, slots=True)
class ReadUnattended:
    """What was read because the operator had listed the deployment, as nobody who asked could be asked about.

    `is_listed` now; `too_old` are those who asked and still cannot be asked about.
    Not `is_sure`: an earlier version read it and did not keep on whose word.
    """

    names: tuple[str, ...] = ()
    is_listed: bool = False
    too_old: tuple[Lapsed, ...] = ()
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    """One review of the present subject. The rights are asked again; of a Deny none are: no it stays.

    `decides`, `uses_account` and `overrides` are None where nobody has to know. `is_in_force`: not of a policy that was
    changed since. `dismissal`: whether who dismissed the changes that it asks for may still `override`; None where
    nobody did. `doubt` was found when the review was given: why they may have written the spec before that (S05).
    `voter` is who gives it, as they are known now, else as they were then; None of what is no approval. `carried_from`
    names the round or request of one that was carried over, and `lapse` says why it does not count again now.
    """

    key: int
    name: str
    decision: str
    is_policy: bool
    is_in_force: bool
    is_by_a_requester: bool
    doubt: str = ""
    decides: Fact[Right] | None = None
    uses_account: Fact[Right] | None = None
    overrides: Fact[Right] | None = None
    waives: frozenset[str] = frozenset()
    dismissal_key: int | None = None
    dismissed_by: str = ""
    dismissal: Fact[Right] | None = None
    voter: Voter | None = None
    given_at: datetime | None = None
    carried_from: str = ""
    lapse: str = ""


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """What one policy said; `result` as PolicyEvaluation has it. `has_approved`: by a review of this round.

    `uses_account` is asked of the identity of a grant that approves, else None.
    """

    key: int
    version: int
    name: str
    is_enforced: bool
    result: str
    words: str
    has_approved: bool = False
    uses_account: Fact[Right] | None = None


@dataclass(frozen=True, slots=True)
class EarlierRule:
    """What a rule said until a moment of this round, and selected the request; None: it could not be read."""

    rule: ApprovalRule | None
    until: datetime


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """An ApprovalRule that selects the request, or did since it was reported.

    `rule` is None where it does not any more, and where it cannot be read: `problem` says why then. `note` says why it
    is taken to select the request, although nobody can tell. It `is_sure` if it selects by every set of labels.
    `changes` are when it was changed or deleted while an approval may have been given that is carried over. Not
    `is_seen`: the cluster has it otherwise than the watch saw it last. `nobody` are groups of which no known person is
    a member, `holders` by ClusterRole whom its bindings name, as `User NAME` or `Group NAME`; None where it names none.
    """

    name: str
    rule: ApprovalRule | None = None
    problem: str = ""
    note: str = ""
    earlier: tuple[EarlierRule, ...] = ()
    changes: tuple[datetime, ...] = ()
    is_sure: bool = True
    is_seen: bool = True
    nobody: tuple[str, ...] = ()
    holders: Fact[Mapping[str, frozenset[str]]] | None = None

    @property
    def rules(self) -> tuple[ApprovalRule, ...]:
        """As it is, and as it was."""
        return tuple(rule for rule in (self.rule, *(one.rule for one in self.earlier)) if rule)


@dataclass(frozen=True, slots=True)
class ExceptionFacts:
    """A FindingException that accepts findings, by their fingerprints, or would if nothing stood against it: `why_not`
    says what does. `by` are the people who stand behind it."""

    name: str
    reason: str
    ticket: str
    until: datetime
    by: tuple[str, ...]
    fingerprints: frozenset[str]
    why_not: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """As Request.finding_exceptions keeps it."""
        return {
            "name": self.name,
            "reason": self.reason,
            "ticket": self.ticket,
            "until": self.until.isoformat(),
            "by": list(self.by),
            "fingerprints": sorted(self.fingerprints),
        }


@dataclass(frozen=True, slots=True)
class Unreviewed:
    """Whether the operator lets this deletion go without a review; `words` why not, where nearly."""

    is_enough: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object of the plan that could not be written now. `said` is the API server's, a value of the object (S27).

    `is_foreign`: it is someone else's and not to be adopted. `lack` says why the cluster knows no such kind, None where
    it does.
    """

    ref: ObjectRef
    words: str
    said: str
    is_foreign: bool = False
    lack: Lack | None = None


@dataclass(frozen=True, slots=True)
class Collisions:
    """Objects of the reviewed plan that are someone else's and not to be adopted, in words.

    `is_over`: one of them is gone, or may be adopted now, so that the plan is another one.
    """

    words: tuple[str, ...] = ()
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Unseen:
    """What would go with what is deleted and no reviewer was shown, in words.

    `too_many` are those of which there are more than can be looked through: some of them may be new. `lost` is data
    that was to stay and would go now. `untold` is what the report could not tell, or does not, and one that is made
    now would. `unconverted` are kinds that nobody can list, because what converts their objects does not work; `said`
    is what the API server says of that, values of the object (S27).
    """

    words: tuple[str, ...] = ()
    too_many: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    unconverted: tuple[str, ...] = ()
    said: tuple[tuple[ObjectRef, str], ...] = ()

    def __bool__(self) -> bool:
        return any((self.words, self.too_many, self.lost, self.untold, self.unconverted))


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What would be done now. `missing` says what the installing account lacks, with the RBAC YAML that gives it."""

    actions: tuple[PlannedAction, ...]
    is_within: bool
    takes_data: bool
    refused: tuple[RefusedObject, ...] = ()
    missing: str = ""
    unseen: Unseen = Unseen()


@dataclass(frozen=True, slots=True)
class Running:
    """The revision that runs, by our records."""

    number: int
    is_active: bool
    is_at_work: bool


@dataclass(frozen=True, slots=True)
class GateFacts:
    """Everything that an answer is made of. What is NOT_READ has no part in the question.

    `offers` are what catalogs say against the bundles of the request now, and did not when it was reported, in words.
    `orders` are those of the sets that the request belongs to.
    """

    question: GateQuestion
    about: About
    read_at: datetime
    cluster_uid: Fact[str] = NOT_READ
    desired_spec: Fact[LiveSpec] = NOT_READ
    account: Fact[Account] = NOT_READ
    own_right: Fact[Right] = NOT_READ
    requesters: Fact[tuple[Fact[Right], ...]] = NOT_READ
    too_old: Fact[tuple[Lapsed, ...]] = NOT_READ
    sources: Fact[Sources] = NOT_READ
    read_unattended: Fact[ReadUnattended] = NOT_READ
    subject: Fact[ReviewSubject] = NOT_READ
    approved: Fact[frozenset[str]] = NOT_READ
    reviews: Fact[tuple[ReviewFacts, ...]] = NOT_READ
    guards: Fact[tuple[PolicyFacts, ...]] = NOT_READ
    grants: Fact[tuple[PolicyFacts, ...]] = NOT_READ
    rules: Fact[tuple[RuleFacts, ...]] = NOT_READ
    exceptions: Fact[tuple[ExceptionFacts, ...]] = NOT_READ
    checks: Fact[tuple[SelectedCheck, ...]] = NOT_READ
    unreviewed: Fact[Unreviewed] = NOT_READ
    collisions: Fact[Collisions] = NOT_READ
    came: Fact[tuple[str, ...]] = NOT_READ
    unmet: Fact[str] = NOT_READ
    windows: Fact[Windows] = NOT_READ
    orders: Fact[tuple[Rollout, ...]] = NOT_READ
    offers: Fact[tuple[str, ...]] = NOT_READ
    plan: Fact[PlanFacts] = NOT_READ
    unseen: Fact[Unseen] = NOT_READ
    running: Fact[Running] = NOT_READ
    revoked: Fact[str] = NOT_READ
    is_untouched: bool = False

    def needed(self) -> Iterator[tuple[str, Fact[object]]]:
        """Every fact that the question needs, with those inside it, by its name."""
        for name in self.question.needs:
            fact: Fact[object] = getattr(self, name)
            yield name, fact
            value = value_of(fact)
            for item in value if isinstance(value, tuple) else ():
                inner = [item]
                if isinstance(item, ReviewFacts | PolicyFacts | RuleFacts):
                    inner = [getattr(item, field.name) for field in fields(item)]
                for found in inner:
                    if isinstance(found, Known | Unknown):
                        yield name, found
