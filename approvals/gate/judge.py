"""What may happen next? The one place that says so, of facts that were gathered before. PURE.

A fact that could not be found out is a reason against, whatever the others are; so is one that is too old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from approvals.deciding.change_windows import HeldChange
from approvals.deciding.external_checks import AWAITED, CheckStage, CheckState
from approvals.gate import people, rules
from approvals.gate.answers import GateAnswer, GateQuestion, Next, Reason
from approvals.gate.facts import GateFacts, How, PlanFacts, Unknown, Unseen, value_of
from approvals.gate.remedies import UNANSWERED, RefusalKind, reason, unanswered
from approvals.lifecycle import MAX_ROUNDS
from provisioner.missing_kinds import Lack
from provisioner.sentences import some_phrases

# A worker that got no further for so long counts as dead; what it knew then is not acted on.
FRESH = timedelta(minutes=15)
SHOWN = 10
HAS_CHANGED = "the cluster changed since the review, so the plan changed: it needs a new report and a new review"
OVER = "the conflicting objects changed, so the plan changed: it needs a new report and a new review"
TAKES_DATA = "the deletion would now delete data: it needs a new report and a review"
_THEN = {
    GateQuestion.PLAN: "it is applied",
    GateQuestion.APPLY: "it is applied",
    GateQuestion.GO_ON: "applying continues",
    GateQuestion.RESTORE: "the previous revision is restored",
    GateQuestion.TAKE_AWAY: "objects that arrived late are deleted",
}
# What is asked before anything has begun: another round may follow.
_BEFORE_APPLY = (GateQuestion.DECIDE, GateQuestion.PLAN, GateQuestion.APPLY)
Check = Callable[[GateFacts], Iterator[Reason]]


def judge(facts: GateFacts, now: datetime) -> GateAnswer:
    """Return what may happen next, or every reason why not; the gravest comes first."""
    about, found = facts.about, list[Reason]()
    is_before_apply = facts.question in _BEFORE_APPLY
    if is_before_apply and about.expires_at <= now:
        found.append(
            reason(RefusalKind.EXPIRED, f"the request expired at {about.expires_at:%Y-%m-%d %H:%M} UTC", about)
        )
    # A break-glass goes past what these say, so also past that they could not be asked.
    skipped = ("guards", "rules", "windows", "orders", "checks") if people.break_glass_of(facts) else ()
    for name, fact in facts.needed():
        if name in skipped:
            continue
        label = name.replace("_", " ")
        if isinstance(fact, Unknown):
            words = f"not checked: {label}" if fact.code == "not-read" else fact.words
            found.append(unanswered(replace(fact, words=words), about))
        elif fact.how is How.CLUSTER and abs(now - fact.at) > FRESH:  # also where the clock was restored since
            found.append(reason(RefusalKind.TOO_OLD, f"the information is too old: {label}", about))
    found += check_windows(facts, now)
    found += check_external_checks(facts, now)
    found += chain.from_iterable(check(facts) for check in _CHECKS[facts.question])
    found += check_rings(facts, now)
    if facts.question == GateQuestion.RESTORE:
        found = [*found, *_end_restore(facts, found)]
    # What changes faster than people can review it is not reported again for ever: who asks again looks why. What was
    # applied long ago is never reported again: a new request asks people about it.
    if is_before_apply and about.rounds >= MAX_ROUNDS:
        more = f"it was reported again {about.rounds} times already, and will not be reported again"
        found = [
            reason(RefusalKind.CHANGES_AGAIN, f"{refusal.words}; {more}", about)
            if refusal.next == Next.REPORT_AGAIN
            else refusal
            for refusal in found
        ]
    return GateAnswer.of(facts.question, list(dict.fromkeys(found)), people.count(facts).words)


def _end_restore(facts: GateFacts, found: Sequence[Reason]) -> Iterator[Reason]:
    """End a rollback that waits for people to change something, where the spec asks for something else by now.

    A question that got no answer is no such wait: no answer is no end (S25).
    """
    spec, about = value_of(facts.desired_spec), facts.about
    if spec is None or spec.options_digest == about.options_digest:
        return
    waits = [refusal for refusal in found if refusal.next == Next.WAIT and refusal.remedy != UNANSWERED]
    if facts.is_untouched:
        yield reason(RefusalKind.NO_LONGER_WISHED, "the spec has changed", about)
    elif waits:
        words = f"the spec of {about.name} has changed, and {waits[0].words}"
        yield reason(RefusalKind.NO_LONGER_WISHED, words, about)


def check_cluster(facts: GateFacts) -> Iterator[Reason]:
    """The same cluster as ever (S19)."""
    about, uid = facts.about, value_of(facts.cluster_uid)
    if uid is not None and about.recorded_cluster and uid != about.recorded_cluster:
        words = f"its kube-system has uid {uid}, expected {about.recorded_cluster}"
        yield reason(RefusalKind.OTHER_CLUSTER, f"cluster {about.cluster} is a different cluster: {words}", about)


def check_spec(facts: GateFacts) -> Iterator[Reason]:
    """The BundleDeployment still asks for what was approved (S25)."""
    about, spec = facts.about, value_of(facts.desired_spec)
    kind = RefusalKind.NO_LONGER_WISHED if facts.question == GateQuestion.GO_ON else RefusalKind.FOLLOWED
    if spec is None:
        return
    if not spec.is_the_same:
        words = f"BundleDeployment {about.name} is no longer the one that was reviewed"
        yield reason(kind, words, about)
    elif spec.is_being_deleted != about.is_removal:
        words = f"BundleDeployment {about.name} is {'not ' if about.is_removal else ''}being deleted"
        yield reason(kind, words, about)
    elif spec.options_digest != about.options_digest:
        words = f"the spec of {about.name} is no longer the reviewed one: a new request will follow"
        yield reason(kind, words, about)


def check_presence(facts: GateFacts) -> Iterator[Reason]:
    """A rollback only needs a BundleDeployment that is not being deleted."""
    spec = value_of(facts.desired_spec)
    if spec is not None and (not spec.is_the_same or spec.is_being_deleted):
        words = f"BundleDeployment {facts.about.name} is gone or being deleted"
        yield reason(RefusalKind.NO_LONGER_WISHED, words, facts.about)


def check_pause(facts: GateFacts) -> Iterator[Reason]:
    spec = value_of(facts.desired_spec)
    if spec is not None and spec.is_paused:
        by = f" {spec.paused_by}" if spec.paused_by else ""
        words = f"{facts.about.name} is paused{by}; {_THEN[facts.question]} once it is resumed"
        yield reason(RefusalKind.PAUSED, words, facts.about)


def check_account(facts: GateFacts) -> Iterator[Reason]:
    """The ServiceAccount must exist, and be the very one that was approved (S07)."""
    account = value_of(facts.account)
    if account is None:
        return
    if not account.namespace or not account.name:
        words = "spec.installNamespace and spec.serviceAccountName are both needed"
        yield reason(RefusalKind.NO_ACCOUNT_NAMED, words, facts.about)
    elif account.approved_uid and not account.uid:
        words = f"the approved ServiceAccount with uid {account.approved_uid} was deleted"
        yield reason(RefusalKind.OTHER_ACCOUNT, words, facts.about)
    elif not account.uid:
        words = f"ServiceAccount {account.namespace}/{account.name} does not exist"
        more = "the request continues automatically when it is created with the permissions that the bundle needs"
        if facts.question in (GateQuestion.PLAN, GateQuestion.APPLY):
            more = "when it is created again, its permissions are reported, and the request is reviewed again"
        yield reason(RefusalKind.NO_ACCOUNT, f"{words}: {more}", facts.about)
    elif account.approved_uid and account.uid != account.approved_uid:
        words = f"the ServiceAccount has uid {account.uid}, but {account.approved_uid} was approved: it was recreated"
        yield reason(RefusalKind.OTHER_ACCOUNT, words, facts.about)


def check_subject(facts: GateFacts) -> Iterator[Reason]:
    """What would be applied is what was approved, byte for byte (promises 1 and 2)."""
    about, account = facts.about, value_of(facts.account)
    subject, approved = value_of(facts.subject), value_of(facts.approved)
    if subject is None or approved is None or account is None:
        return
    if not account.uid:
        return  # check_account waits for it: the one that comes is another one
    if account.uid != subject.service_account_uid:
        words = (
            f"a ServiceAccount with uid {subject.service_account_uid} was approved; the one of that name now has uid "
            f"{account.uid}: it was recreated, and may have other permissions"
        )
        yield reason(RefusalKind.ACCOUNT_REMADE, words, about)
        return
    found = subject.digest
    if found != about.subject_digest:
        words = f"the content to apply has subject digest {found}, but {about.subject_digest} was approved"
        yield reason(RefusalKind.OTHER_SUBJECT, words, about)
    elif found not in approved:
        words = f"no approval exists for {found} in round {about.round}"
        yield reason(RefusalKind.OTHER_SUBJECT, words, about)


def check_verdict(facts: GateFacts) -> Iterator[Reason]:
    """What runs was approved as it is recorded."""
    subject, approved = value_of(facts.subject), value_of(facts.approved)
    if subject is not None and approved is not None and subject.digest not in approved:
        running = value_of(facts.running)
        number = running.number if running else 0
        words = f"no approval exists for revision {number}, whose subject is {subject.digest}"
        yield reason(RefusalKind.NOT_VERIFIED, words, facts.about)


def check_running(facts: GateFacts) -> Iterator[Reason]:
    """Only what runs is compared, and only while nothing is applied or put back."""
    running = value_of(facts.running)
    if running is None:
        return
    if not running.is_active:
        yield reason(RefusalKind.NOT_RUNNING, f"revision {running.number} is no longer running", facts.about)
    if running.is_at_work:
        words = "a request is being applied: drift is checked afterwards"
        yield reason(RefusalKind.AT_WORK, words, facts.about)


def check_running_spec(facts: GateFacts) -> Iterator[Reason]:
    """A newer spec does not affect what runs until its request is applied; a pause or a deletion does."""
    about, spec = facts.about, value_of(facts.desired_spec)
    if spec is None:
        return
    if not spec.is_the_same:
        words = f"BundleDeployment {about.name} is no longer the one that was reviewed"
        yield reason(RefusalKind.OTHER_WISH, words, about)
    elif spec.is_being_deleted:
        yield reason(RefusalKind.DELETING, f"BundleDeployment {about.name} is being deleted", about)
    elif spec.is_paused:
        yield reason(RefusalKind.PAUSED, f"{about.name} is paused: this continues when someone resumes it", about)
    elif facts.question == GateQuestion.CORRECT and spec.drift == "Report":
        words = f"the spec of {about.name} now says that drift is only reported"
        yield reason(RefusalKind.OTHER_WISH, words, about)
    elif facts.question == GateQuestion.CREATE and spec.options_digest != about.options_digest:
        words = f"the spec of {about.name} is no longer the approved one: its request must be settled first"
        yield reason(RefusalKind.OTHER_WISH, words, about)


def check_collisions(facts: GateFacts) -> Iterator[Reason]:
    """What is someone else's is not adopted, whoever approves it: that is said up front."""
    found = value_of(facts.collisions)
    if found is None or not found.words:
        return
    if found.is_over:
        yield reason(RefusalKind.COLLISION_OVER, OVER, facts.about)
    words = "; ".join(found.words[:SHOWN])
    yield reason(
        RefusalKind.CANNOT_BE_ADOPTED,
        f"{words}. It will not be adopted, so this request cannot be approved",
        facts.about,
    )


def check_cured(facts: GateFacts) -> Iterator[Reason]:
    """What the report said was missing is there now, so that it is not as people read it."""
    if came := value_of(facts.came):
        words = f"{some_phrases(came, SHOWN)}: a new report and review are needed"
        yield reason(RefusalKind.CAUSE_OVER, words, facts.about)


def check_windows(facts: GateFacts, now: datetime) -> Iterator[Reason]:
    """Change windows, and the time that was chosen with the approval.

    What has begun is stopped by windows alone that stop between phases. What puts back what failed is not asked at all,
    and a break-glass does not wait.
    """
    windows, about = value_of(facts.windows), facts.about
    if windows is None or "windows" not in facts.question.needs or people.break_glass_of(facts) is not None:
        return
    change = HeldChange.DRIFT_CORRECTION if facts.question is GateQuestion.CORRECT else HeldChange.APPLY
    if about.is_rollback and facts.question not in (GateQuestion.CORRECT, GateQuestion.CREATE):
        change = HeldChange.RESTORE
    if facts.question is GateQuestion.GO_ON:
        state = windows.judge_between_phases(change, now)
    elif facts.question in _BEFORE_APPLY and about.apply_at and about.apply_at > now:
        then = windows.judge(change, about.apply_at)
        due_at = about.apply_at if then.is_open else then.opens_at
        words = f"it is to be applied at {about.apply_at:%Y-%m-%d %H:%M} UTC"
        if not then.is_open:
            words = f"{words}, and then {then.why}; {_when_open(due_at)}"
        yield reason(RefusalKind.APPLY_LATER, words, about, due_at=due_at)
        return
    else:
        state = windows.judge(change, now)
    if not state.is_read:
        yield reason(RefusalKind.WINDOW_UNREADABLE, state.why, about)
    elif not state.is_open:
        words = f"{state.why}; {_when_open(state.opens_at)}"
        yield reason(RefusalKind.OUTSIDE_WINDOW, words, about, due_at=state.opens_at)


def check_external_checks(facts: GateFacts, now: datetime) -> Iterator[Reason]:
    """Each mandatory check has passed exactly this subject; a break-glass goes past them.

    Those of before the apply are asked, and needed, once it is approved.
    """
    checks = value_of(facts.checks)
    if checks is None or "checks" not in facts.question.needs or people.break_glass_of(facts) is not None:
        return
    words: dict[RefusalKind, list[str]] = {}
    for result in (check.result(now) for check in checks):
        is_later = result.stage == CheckStage.BEFORE_APPLY and facts.question is GateQuestion.DECIDE
        if not result.holds or is_later:
            continue
        kind = RefusalKind.CHECK_AWAITED if result.state in AWAITED else RefusalKind.CHECK_HOLDS
        if result.state is CheckState.UNREADABLE:
            kind = RefusalKind.CHECK_UNREADABLE
        words.setdefault(kind, []).append(f"external check {result.name}: {result.words}")
    for kind, phrases in words.items():
        yield reason(kind, some_phrases(phrases, SHOWN), facts.about)


def _when_open(at: datetime | None) -> str:
    return f"it can continue from {at:%Y-%m-%d %H:%M} UTC" if at else "it cannot continue within a year"


def check_rings(facts: GateFacts, now: datetime) -> Iterator[Reason]:
    """Other members of the same set come first. What has begun is finished, and a break-glass does not wait."""
    if "orders" not in facts.question.needs or people.break_glass_of(facts) is not None:
        return
    for order in value_of(facts.orders) or ():
        if hold := order.hold_of(facts.about.cluster, facts.about.name, now):
            yield reason(RefusalKind.WAITS_FOR_RING, hold.words, facts.about, due_at=hold.due_at)


def check_revocation(facts: GateFacts) -> Iterator[Reason]:
    """A revoked revision is nowhere to go back to (S16)."""
    if words := value_of(facts.revoked):
        yield reason(RefusalKind.REVOKED, f"previous {words}", facts.about)


def check_constraints(facts: GateFacts) -> Iterator[Reason]:
    if words := value_of(facts.unmet):
        yield reason(RefusalKind.UNMET, words, facts.about)


def check_catalogs(facts: GateFacts) -> Iterator[Reason]:
    """What a catalog says against a bundle is shown to reviewers, also where it was published after the report."""
    if words := value_of(facts.offers):
        yield reason(RefusalKind.CATALOG_CHANGED, some_phrases(words, SHOWN), facts.about)


def check_plan(facts: GateFacts) -> Iterator[Reason]:
    """No more than was reviewed, and nothing that would be refused (S04, S15)."""
    plan, about = value_of(facts.plan), facts.about
    if plan is None:
        return
    yield from _check_growth(facts, plan)
    yield from _check_listed(facts, plan.unseen)
    if plan.missing:
        yield reason(RefusalKind.MISSING_RIGHTS, plan.missing, about)
    if plan.refused:
        shown, lacks = plan.refused[:SHOWN], {refused.lack for refused in plan.refused}
        if Lack.REMOVED in lacks:  # Kubernetes dropped the kind: nothing in the cluster helps, whatever else is refused
            kind = RefusalKind.REMOVED_API
        elif None not in lacks:
            kind = RefusalKind.NOT_SERVED if lacks == {Lack.UNDEFINED} else RefusalKind.OTHER_VERSION
        else:
            is_foreign = all(refused.is_foreign for refused in plan.refused)
            kind = RefusalKind.COLLIDES if is_foreign else RefusalKind.REFUSED
        words = "; ".join(f"{refused.ref}: {refused.words}" for refused in shown)
        words = f"{len(plan.refused)} of {len(plan.actions)} objects would be rejected: {words}"
        yield reason(kind, words, about, tuple((refused.ref, refused.said) for refused in shown if refused.said))


def _check_growth(facts: GateFacts, plan: PlanFacts) -> Iterator[Reason]:
    """What would be done is not what reviewers were shown; the first of these reasons says best why."""
    about, unseen = facts.about, plan.unseen
    if unseen.lost:
        yield reason(RefusalKind.LOSES_DATA, _lost_words(unseen.lost), about)
    elif not plan.is_within:
        yield reason(RefusalKind.PLAN_CHANGED, HAS_CHANGED, about)
    elif unseen.words:
        yield reason(RefusalKind.GOES_ALONG_UNSEEN, _unseen_words(unseen.words), about)
    elif unseen.untold:
        yield reason(RefusalKind.REPORT_TOO_OLD, f"a new report is needed: {some_phrases(unseen.untold, SHOWN)}", about)
    elif plan.takes_data and people.is_let_go(facts):
        yield reason(RefusalKind.TAKES_DATA, TAKES_DATA, about)


def check_unseen(facts: GateFacts) -> Iterator[Reason]:
    """What turned up since goes with nothing that is deleted: nobody approved that (S15)."""
    unseen = value_of(facts.unseen) or Unseen()
    if unseen.lost:
        yield reason(RefusalKind.LOSES_DATA_LATE, _lost_words(unseen.lost), facts.about)
    if unseen.words:
        yield reason(RefusalKind.GOES_ALONG_LATE, _unseen_words(unseen.words), facts.about)
    yield from _check_listed(facts, unseen)


def _check_listed(facts: GateFacts, unseen: Unseen) -> Iterator[Reason]:
    """What nobody can look through is not taken for what reviewers were shown (promise 4)."""
    for kind, objects, said in (
        (RefusalKind.NOT_CONVERTED, unseen.unconverted, unseen.said[:SHOWN]),
        (RefusalKind.TOO_MANY_TO_SEE, unseen.too_many, ()),
    ):
        if objects:
            words = f"nobody can tell whether some were created since the review: {'; '.join(objects[:SHOWN])}"
            yield reason(kind, words, facts.about, said)


def _lost_words(words: Sequence[str]) -> str:
    return f"data would be deleted that the report said would stay: {some_phrases(words, SHOWN)}"


def _unseen_words(words: Sequence[str]) -> str:
    return f"the deletion would also delete objects that no reviewer saw: {some_phrases(words, SHOWN)}"


_PEOPLE: tuple[Check, ...] = (people.still_approved, people.guards_let_go)
_STANDING: tuple[Check, ...] = (check_running, check_verdict, check_cluster, check_running_spec, check_account)
_READY: tuple[Check, ...] = (
    check_cluster,
    check_spec,
    people.may_have_it,
    people.reads_still_allowed,
    check_account,
    check_subject,
    people.still_lets_go,
    *_PEOPLE,
    rules.check_rules,
    check_pause,
    check_constraints,
    check_catalogs,
)
_CHECKS: dict[GateQuestion, tuple[Check, ...]] = {
    GateQuestion.MEET: (check_cluster,),
    GateQuestion.PREPARE: (
        check_cluster,
        people.may_have_it,
        people.reads_still_allowed,
        check_account,
        people.own_right,
    ),
    GateQuestion.DECIDE: (
        check_collisions,
        check_cured,
        check_catalogs,
        people.reads_still_allowed,
        people.decided,
        rules.check_rules,
    ),
    GateQuestion.PLAN: _READY,
    GateQuestion.APPLY: (*_READY, check_plan),
    GateQuestion.GO_ON: (check_account, check_spec, people.reads_still_allowed, *_PEOPLE, check_unseen, check_pause),
    GateQuestion.RESTORE: (check_revocation, check_account, check_presence, check_pause, *_PEOPLE),
    GateQuestion.COMPARE: (check_running,),
    GateQuestion.CORRECT: _STANDING,
    GateQuestion.CREATE: (*_STANDING, people.reads_still_allowed, *_PEOPLE, rules.check_rules),
    GateQuestion.TAKE_AWAY: (check_running, check_cluster, check_pause),
}
