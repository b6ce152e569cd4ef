"""Facts of the gate for tests: all well, what can be worse about them, and drawn at random."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from approvals.deciding.approval_rules import ApprovalRule, Voter
from approvals.deciding.change_windows import ChangeWindow, HeldChange, SelectingWindow, Windows
from approvals.deciding.external_checks import CheckRunFacts, ExternalCheck, SelectedCheck
from approvals.deciding.rings import MemberState, Ring, Rollout, RolloutMember
from approvals.gate.answers import GateAnswer, GateQuestion
from approvals.gate.facts import (
    About,
    Account,
    Collisions,
    EarlierRule,
    GateFacts,
    How,
    Known,
    LiveSpec,
    PlanFacts,
    PolicyFacts,
    ReadUnattended,
    RefusedObject,
    ReviewFacts,
    Right,
    RuleFacts,
    Running,
    Sources,
    Unknown,
    Unreviewed,
    Unseen,
)
from approvals.ledger.digests import ReviewSubject
from approvals.policy import Lapsed
from provisioner.values import ObjectRef

NOW = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
YES, NO = Right(True, "Kubernetes allows it"), Right(False, "Kubernetes does not allow it", "kind: ClusterRole")
SUBJECT = ReviewSubject("kube", "d", "r", 1, "content", "plan", "options", "account", "salt")
ABOUT = About(
    name="harbour",
    cluster="prod",
    recorded_cluster="kube",
    number=7,
    purpose="deploy",
    round=1,
    subject_digest=SUBJECT.digest,
    options_digest="options",
    is_requester_known=True,
    has_requesters=True,
    needed=1,
    expires_at=NOW + timedelta(hours=1),
)
WISH = LiveSpec(True, False, False, "", "options", "Correct")
ACCOUNT = Account("harbour", "installer", "account", "account")
PLAN = PlanFacts((), True, False)
NO_SOURCES = Known(Sources(), NOW, How.RECORDS)
URL = "https://checks.example.com/tickets"
CONFIG = ObjectRef("", "v1", "ConfigMap", "harbour", "a")


def known(value: Any, how: How = How.CLUSTER, at: datetime = NOW) -> Known[Any]:
    return Known(value, at, how)


def unknown(words: str = "the API server did not answer", *, is_final: bool = False) -> Unknown:
    return Unknown(words, NOW, How.CLUSTER, is_final=is_final)


def review(key: int = 1, **changes: Any) -> ReviewFacts:
    """Ada's approval, which counts for everything."""
    facts = ReviewFacts(
        key, f"ada-{key}", "Approve", False, True, False, "", known(YES), known(YES), known(YES), frozenset({"f"})
    )
    facts = replace(facts, voter=Voter(facts.name, frozenset({"platform"})), given_at=NOW)
    return replace(facts, **changes)


def rule(name: str, **part: Any) -> ApprovalRule:
    return ApprovalRule.parse({"require": [{"name": name, **part}]})


def policy(key: int = 1, result: str = "passes", **changes: Any) -> PolicyFacts:
    return replace(PolicyFacts(key, 1, f"policy-{key}", True, result, "`x` is true"), **changes)


def all_well(question: GateQuestion) -> GateFacts:
    """Facts on which the answer is yes."""
    return GateFacts(
        question,
        ABOUT,
        NOW,
        cluster_uid=known("kube"),
        desired_spec=known(WISH),
        account=known(ACCOUNT),
        own_right=known(YES),
        requesters=known((known(YES),)),
        too_old=known(()),
        sources=known(Sources(("Secret harbour/pull",), hours=12)),
        read_unattended=known(ReadUnattended()),
        subject=known(SUBJECT),
        approved=known(frozenset({SUBJECT.digest})),
        reviews=known((review(),)),
        guards=known((policy(),)),
        grants=known(()),
        rules=known(()),
        checks=known(()),
        unreviewed=known(Unreviewed(False)),
        collisions=known(Collisions()),
        unmet=known(""),
        offers=known(()),
        plan=known(PLAN),
        unseen=known(Unseen()),
        running=known(Running(3, True, False)),
        revoked=known(""),
        windows=known(Windows()),
        orders=known(()),
    )


def as_of(found: GateFacts, at: datetime) -> GateFacts:
    """The same, learned at another time."""
    known_ones = {each.name: getattr(found, each.name) for each in fields(found)}
    later = {name: replace(fact, at=at) for name, fact in known_ones.items() if isinstance(fact, Known)}
    return replace(found, **later)


Worse = Callable[[GateFacts], GateFacts]


def _set(**changes: Any) -> Worse:
    return lambda facts: replace(facts, **changes)


def _wish(**changes: Any) -> Worse:
    def worse(facts: GateFacts) -> GateFacts:
        assert isinstance(facts.desired_spec, Known)
        return replace(facts, desired_spec=known(replace(facts.desired_spec.value, **changes)))

    return worse


def _about(**changes: Any) -> Worse:
    return lambda facts: replace(facts, about=replace(facts.about, **changes))


def _both(one: Worse, other: Worse) -> Worse:
    return lambda facts: other(one(facts))


def _reviews(**changes: Any) -> Worse:
    def worse(facts: GateFacts) -> GateFacts:
        assert isinstance(facts.reviews, Known)
        return replace(facts, reviews=known(tuple(replace(one, **changes) for one in facts.reviews.value)))

    return worse


def _with_reviews(facts: GateFacts, *more: ReviewFacts) -> GateFacts:
    assert isinstance(facts.reviews, Known)
    return replace(facts, reviews=known((*facts.reviews.value, *more)))


def stop(**more: Any) -> Known[Any]:
    """A window that holds what it applies to, without an end."""
    window = ChangeWindow.parse({"type": "Deny", "description": "incident 7", **more})
    return known(Windows((SelectingWindow("stop", window),)))


def order(state: MemberState) -> Rollout:
    """The order of a set in which this member comes after another one that stands so."""
    first = RolloutMember("elsewhere", "harbour", 0, state, 1, NOW)
    own = RolloutMember(ABOUT.cluster, ABOUT.name, 1, MemberState.APPROVED, 1, NOW)
    return Rollout("spring", (Ring("canary"), Ring("rest")), (first, own))


def check(outcome: str = "", **changes: Any) -> SelectedCheck:
    """A mandatory check of tickets that was asked a minute ago; `changes` are of its spec."""
    answered = {"outcome": outcome, "answered_at": NOW} if outcome else {}
    run = CheckRunFacts(URL, NOW - timedelta(minutes=1), NOW + timedelta(minutes=9), is_delivered=True, **answered)
    return SelectedCheck("tickets", "u", ExternalCheck.parse({"url": URL, **changes}), run=run)


_PEOPLE = frozenset(
    {
        GateQuestion.DECIDE,
        GateQuestion.PLAN,
        GateQuestion.APPLY,
        GateQuestion.GO_ON,
        GateQuestion.RESTORE,
        GateQuestion.CREATE,
    }
)
_GATE = frozenset({GateQuestion.PLAN, GateQuestion.APPLY})
_RULES = _GATE | {GateQuestion.DECIDE, GateQuestion.CREATE}
_ASKERS = _GATE | {GateQuestion.PREPARE}
_STANDING = frozenset({GateQuestion.CORRECT, GateQuestion.CREATE})
_LIVE = _GATE | _STANDING | {GateQuestion.GO_ON, GateQuestion.RESTORE}
_CHECKS = _GATE | {GateQuestion.DECIDE}
REFUSED = RefusedObject(CONFIG, "it exists already", "managed by helm", is_foreign=True)
# What can be worse, and which questions it makes a no of.
WORSE: dict[str, tuple[Worse, frozenset[GateQuestion]]] = {
    "another cluster": (
        _set(cluster_uid=known("other")),
        _ASKERS | _STANDING | {GateQuestion.MEET, GateQuestion.TAKE_AWAY},
    ),
    "another deployment of the name": (_wish(is_the_same=False), _LIVE),
    "it is being deleted": (_wish(is_being_deleted=True), _LIVE),
    "it is paused": (_wish(is_paused=True, paused_by="by rita: wait"), _LIVE | {GateQuestion.TAKE_AWAY}),
    "another wish": (_wish(options_digest="others"), _GATE | {GateQuestion.GO_ON, GateQuestion.CREATE}),
    "drift is reported only": (_wish(drift="Report"), frozenset({GateQuestion.CORRECT})),
    "no account": (_set(account=known(replace(ACCOUNT, uid=""))), _LIVE | {GateQuestion.PREPARE}),
    "no account named": (_set(account=known(Account("", "", "", ""))), _LIVE | {GateQuestion.PREPARE}),
    "another account of the name": (_set(account=known(replace(ACCOUNT, uid="new"))), _LIVE | {GateQuestion.PREPARE}),
    "the account was made again": (_set(account=known(replace(ACCOUNT, uid="new", approved_uid=""))), _GATE),
    "the account is gone": (
        _set(account=known(replace(ACCOUNT, uid="", approved_uid=""))),
        _LIVE | {GateQuestion.PREPARE},
    ),
    "Pratique lacks a right": (_set(own_right=known(NO)), frozenset({GateQuestion.PREPARE})),
    "a requester may not": (_set(requesters=known((known(YES), known(NO)))), _ASKERS),
    "nobody knows who asked": (_about(is_requester_known=False), _ASKERS),
    "who asked is known by old groups": (_set(too_old=known((Lapsed("rita"),))), frozenset({GateQuestion.PREPARE})),
    "what was read unattended is withdrawn": (
        _set(read_unattended=known(ReadUnattended(("Secret harbour/pull",), False, (Lapsed("rita"),)))),
        _ASKERS | {GateQuestion.DECIDE, GateQuestion.GO_ON, GateQuestion.CREATE},
    ),
    "another subject": (_about(subject_digest="sha256:other"), _GATE),
    "no verdict": (_set(approved=known(frozenset())), _GATE | _STANDING),
    "nobody approved": (_set(reviews=known(())), _PEOPLE),
    "who approved may not any more": (_reviews(decides=known(NO)), _PEOPLE),
    "who approved asked for it": (_reviews(is_by_a_requester=True), _PEOPLE),
    "what was carried over does not count again": (
        _reviews(carried_from="round 1", lapse="it was given too long ago"),
        _PEOPLE,
    ),
    "who accepted may not any more": (_reviews(overrides=known(NO)), _PEOPLE - {GateQuestion.DECIDE}),
    "somebody denied it": (_reviews(decision="Deny"), _PEOPLE),
    "somebody requests changes": (lambda facts: _with_reviews(facts, review(7, decision="RequestChanges")), _PEOPLE),
    "who dismissed a request for changes may not any more": (
        lambda facts: _with_reviews(
            facts, review(7, decision="RequestChanges", dismissal=known(NO), dismissed_by="carol")
        ),
        _PEOPLE,
    ),
    "the policy was changed since": (_reviews(is_in_force=False), _PEOPLE),
    "more have to approve": (_about(needed=2), _PEOPLE),
    "a guard holds": (_set(guards=known((policy(), policy(2, "holds")))), _PEOPLE),
    "a guard cannot be asked": (_set(guards=known((policy(3, "error"),))), _PEOPLE),
    "a freeze": (_set(windows=stop()), _GATE | {GateQuestion.CREATE}),
    "a freeze of everything": (
        _set(windows=stop(appliesTo=[*HeldChange], onClose="StopBetweenPhases")),
        _GATE | _STANDING | {GateQuestion.GO_ON},
    ),
    "a window that nobody can read": (_set(windows=known(Windows((), ("it is odd",)))), _GATE | _STANDING),
    "an earlier ring is not healthy": (_set(orders=known((order(MemberState.SETTLING),))), _GATE),
    "it is to be applied later": (_about(apply_at=NOW + timedelta(minutes=5)), _GATE),
    "a rule needs others": (_set(rules=known((RuleFacts("security", rule("a", groups=["security"])),))), _RULES),
    "a rule cannot be read": (_set(rules=known((RuleFacts("security", problem="spec.require is empty"),))), _RULES),
    "a rule was lowered": (
        _set(
            rules=known((RuleFacts("security", earlier=(EarlierRule(rule("a", groups=["security"]), NOW),)),)),
        ),
        frozenset({GateQuestion.DECIDE}),
    ),
    "nobody knows who holds a role": (_set(rules=known((RuleFacts("release", holders=unknown()),))), _RULES),
    "a check has not answered": (_set(checks=known((check(),))), _CHECKS),
    "a check failed": (_set(checks=known((check("failed"),))), _CHECKS),
    "a check cannot be read": (_set(checks=known((SelectedCheck("tickets", "u", problem="spec.url"),))), _CHECKS),
    "a check before the apply has not answered": (_set(checks=known((check(stage="BeforeApply"),))), _GATE),
    "constraints are not met": (_set(unmet=known("Kubernetes is 1.20")), _GATE),
    "a catalog says worse": (_set(offers=known(("harbour is deprecated",))), _GATE | {GateQuestion.DECIDE}),
    "the plan does more": (_set(plan=known(replace(PLAN, is_within=False))), frozenset({GateQuestion.APPLY})),
    "it meets what is somebody else's": (
        _set(collisions=known(Collisions(("a exists",)))),
        frozenset({GateQuestion.DECIDE}),
    ),
    "what it met is gone": (_set(collisions=known(Collisions(("a exists",), True))), frozenset({GateQuestion.DECIDE})),
    "rights are missing": (
        _set(plan=known(replace(PLAN, missing="lacks\nkind: Role"))),
        frozenset({GateQuestion.APPLY}),
    ),
    "objects are refused": (_set(plan=known(replace(PLAN, refused=(REFUSED,)))), frozenset({GateQuestion.APPLY})),
    "another revision runs": (
        _set(running=known(Running(3, False, False))),
        _STANDING | {GateQuestion.COMPARE, GateQuestion.TAKE_AWAY},
    ),
    "something is applied": (
        _set(running=known(Running(3, True, True))),
        _STANDING | {GateQuestion.COMPARE, GateQuestion.TAKE_AWAY},
    ),
    "what it met is gone once too often": (
        _both(_set(collisions=known(Collisions(("a exists",), True))), _about(rounds=5)),
        frozenset({GateQuestion.DECIDE}),
    ),
    "the plan does more once too often": (
        _both(_set(plan=known(replace(PLAN, is_within=False))), _about(rounds=5)),
        frozenset({GateQuestion.APPLY}),
    ),
    "objects would go that nobody was shown": (
        _set(plan=known(replace(PLAN, unseen=Unseen(("1 Lantern object",))))),
        frozenset({GateQuestion.APPLY}),
    ),
    "more objects would go than can be looked through": (
        _set(
            plan=known(replace(PLAN, unseen=Unseen(too_many=("Lantern objects",)))),
            unseen=known(Unseen(too_many=("Lantern objects",))),
        ),
        frozenset({GateQuestion.APPLY, GateQuestion.GO_ON}),
    ),
    "a conversion webhook does not work": (
        _set(
            plan=known(replace(PLAN, unseen=Unseen(unconverted=("Lantern objects",)))),
            unseen=known(Unseen(unconverted=("Lantern objects",))),
        ),
        frozenset({GateQuestion.APPLY, GateQuestion.GO_ON}),
    ),
    "data would go that was to stay": (
        _set(
            plan=known(replace(PLAN, is_within=False, unseen=Unseen(lost=("a claim",)))),
            unseen=known(Unseen(lost=("a claim",))),
        ),
        frozenset({GateQuestion.APPLY, GateQuestion.GO_ON}),
    ),
    "the report tells less than one made now": (
        _set(
            plan=known(replace(PLAN, unseen=Unseen(untold=("Lantern objects",)))),
            unseen=known(Unseen(untold=("Lantern objects",))),
        ),
        frozenset({GateQuestion.APPLY}),
    ),
    "objects would go by now that nobody was shown": (
        _set(unseen=known(Unseen(("1 Lantern object",)))),
        frozenset({GateQuestion.GO_ON}),
    ),
    "the data of a deletion is not as it was": (
        _set(plan=known(replace(PLAN, takes_data=True)), unreviewed=known(Unreviewed(True))),
        frozenset({GateQuestion.APPLY}),
    ),
    "the revision is revoked": (_set(revoked=known("revision 1 is revoked")), frozenset({GateQuestion.RESTORE})),
    "what was missing is there": (
        _set(came=known(("the cluster serves Boat in harbour.example/v1 now",))),
        frozenset({GateQuestion.DECIDE}),
    ),
    "it expired": (_about(expires_at=NOW), _GATE | {GateQuestion.DECIDE}),
}

rights = st.sampled_from([known(YES), known(NO), unknown()])
reviews = st.lists(
    st.builds(
        review,
        key=st.integers(1, 4),
        decision=st.sampled_from(["Approve", "Approve", "Approve", "RequestChanges", "Deny"]),
        dismissal=st.none() | rights,
        is_policy=st.booleans(),
        is_in_force=st.booleans(),
        is_by_a_requester=st.booleans(),
        doubt=st.sampled_from(["", "ada may write it"]),
        decides=rights,
        uses_account=st.none() | rights,
        overrides=st.none() | rights,
        waives=st.sampled_from([frozenset(), frozenset({"f"})]),
    ),
    max_size=4,
    unique_by=lambda one: one.key,
)
policies = st.lists(
    st.builds(
        policy,
        key=st.integers(1, 4),
        result=st.sampled_from(["passes", "holds", "error", "silent", "approves", "not-selected"]),
        is_enforced=st.booleans(),
        has_approved=st.booleans(),
        uses_account=st.none() | rights,
    ),
    max_size=3,
    unique_by=lambda one: one.key,
)
questions = st.sampled_from(list(GateQuestion))


@st.composite
def any_facts(draw: st.DrawFn, question: st.SearchStrategy[GateQuestion] = questions) -> GateFacts:
    """Any facts at all: some worse than well, people and policies at random, some unknown, some old."""
    found = all_well(draw(question))
    found = replace(
        found,
        reviews=known(tuple(draw(reviews))),
        guards=known(tuple(draw(policies))),
        grants=known(tuple(draw(policies))),
        unreviewed=known(Unreviewed(draw(st.booleans()))),
        about=replace(found.about, needed=draw(st.integers(1, 3)), is_requester_known=draw(st.booleans())),
    )
    for name in draw(st.lists(st.sampled_from(sorted(WORSE)), max_size=3, unique=True)):
        found = WORSE[name][0](found)
    lost = draw(st.lists(st.sampled_from(found.question.needs), max_size=2, unique=True))
    return replace(found, **{name: unknown(is_final=draw(st.booleans())) for name in lost})


def is_said_well(answer: GateAnswer) -> bool:
    """Every reason of a no has words, a code and a remedy without holes."""
    return all(
        refusal.words
        and re.fullmatch("[a-z]+(-[a-z]+)*", refusal.code)
        and refusal.remedy
        and "{" not in refusal.remedy
        for refusal in answer.reasons
    )
