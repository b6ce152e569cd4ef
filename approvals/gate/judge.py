"""What may happen next? The one place that says so, of facts that were gathered before. PURE.

A fact that could not be found out is a reason against, whatever the others are; so is one that is too old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from approvals.gate import people, requesters
from approvals.gate.answers import GateAnswer, GateQuestion, Next, Reason
from approvals.gate.facts import GateFacts, How, PlanFacts, Unknown, Unseen, value_of
from approvals.gate.remedies import UNANSWERED, RefusalKind, reason, unanswered
from approvals.lifecycle import MAX_ROUNDS
from provisioner.sentences import some_phrases
from provisioner.unserved import Lack

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
_OF_A_ROUND = (GateQuestion.DECIDE, GateQuestion.PLAN, GateQuestion.APPLY)
Check = Callable[[GateFacts], Iterator[Reason]]


def judge(facts: GateFacts, now: datetime) -> GateAnswer:
    """What may happen next, or every reason why not; the gravest comes first."""
    found = [
        *_of_time(facts, now),
        *_unknowns(facts, now),
        *chain.from_iterable(check(facts) for check in _CHECKS[facts.question]),
    ]
    found = _not_for_ever(facts, _settled(facts, found))
    return GateAnswer.of(facts.question, list(dict.fromkeys(found)), people.count(facts).words)


def _not_for_ever(facts: GateFacts, found: list[Reason]) -> list[Reason]:
    """What changes faster than people can review it is not reported again and again: who asks again looks why.

    Of what was applied long ago nothing is reported again: there people are asked by a new request.
    """
    about = facts.about
    if about.rounds < MAX_ROUNDS or facts.question not in _OF_A_ROUND:
        return found
    more = f"it was reported again {about.rounds} times already, and will not be reported again"
    return [
        reason(RefusalKind.CHANGES_AGAIN, f"{one.words}; {more}", about) if one.next == Next.REPORT_AGAIN else one
        for one in found
    ]


def _settled(facts: GateFacts, found: list[Reason]) -> list[Reason]:
    """What putting back waits for people to change ends where they wish for something else instead.

    What merely could not be asked is no such wait: no answer is no end (S25).
    """
    wish = value_of(facts.wish)
    if facts.question != GateQuestion.RESTORE or wish is None or wish.options_digest == facts.about.options_digest:
        return found
    waits = [one for one in found if one.next == Next.WAIT and one.remedy != UNANSWERED]
    if facts.is_untouched:
        found.append(reason(RefusalKind.NO_LONGER_WISHED, "the spec has changed", facts.about))
    elif waits:
        words = f"the spec of {facts.about.name} has changed, and {waits[0].words}"
        found.append(reason(RefusalKind.NO_LONGER_WISHED, words, facts.about))
    return found


def _of_time(facts: GateFacts, now: datetime) -> Iterator[Reason]:
    about = facts.about
    if facts.question in _OF_A_ROUND and about.expires_at <= now:
        yield reason(RefusalKind.EXPIRED, f"the request expired at {about.expires_at:%Y-%m-%d %H:%M} UTC", about)


def _unknowns(facts: GateFacts, now: datetime) -> Iterator[Reason]:
    for name, fact in facts.needed():
        if isinstance(fact, Unknown):
            words = f"not checked: {name.replace('_', ' ')}" if fact.code == "not-read" else fact.words
            yield unanswered(replace(fact, words=words), facts.about)
        elif fact.how is How.CLUSTER and abs(now - fact.at) > FRESH:  # also where the clock was restored since
            words = f"the information is too old: {name.replace('_', ' ')}"
            yield reason(RefusalKind.TOO_OLD, words, facts.about)


def _cluster(facts: GateFacts) -> Iterator[Reason]:
    """The same cluster as ever (S19)."""
    about, uid = facts.about, value_of(facts.cluster_uid)
    if uid is not None and about.recorded_cluster and uid != about.recorded_cluster:
        words = f"its kube-system has uid {uid}, expected {about.recorded_cluster}"
        yield reason(RefusalKind.OTHER_CLUSTER, f"cluster {about.cluster} is a different cluster: {words}", about)


def _wish(facts: GateFacts) -> Iterator[Reason]:
    """The BundleDeployment still asks for what was approved (S25)."""
    about, wish = facts.about, value_of(facts.wish)
    kind = RefusalKind.NO_LONGER_WISHED if facts.question == GateQuestion.GO_ON else RefusalKind.FOLLOWED
    if wish is None:
        return
    if not wish.is_the_same:
        words = f"BundleDeployment {about.name} is no longer the one that was reviewed"
        yield reason(kind, words, about)
    elif wish.is_being_deleted != about.is_removal:
        words = f"BundleDeployment {about.name} is {'not ' if about.is_removal else ''}being deleted"
        yield reason(kind, words, about)
    elif wish.options_digest != about.options_digest:
        words = f"the spec of {about.name} is no longer the reviewed one: a new request will follow"
        yield reason(kind, words, about)


def _is_there(facts: GateFacts) -> Iterator[Reason]:
    """A rollback only requires that the BundleDeployment is not being deleted."""
    wish = value_of(facts.wish)
    if wish is not None and (not wish.is_the_same or wish.is_being_deleted):
        words = f"BundleDeployment {facts.about.name} is gone or being deleted"
        yield reason(RefusalKind.NO_LONGER_WISHED, words, facts.about)


def _pause(facts: GateFacts) -> Iterator[Reason]:
    wish = value_of(facts.wish)
    if wish is None or not wish.is_paused:
        return
    by = f" {wish.paused_by}" if wish.paused_by else ""
    words = f"{facts.about.name} is paused{by}; {_THEN[facts.question]} once it is resumed"
    yield reason(RefusalKind.PAUSED, words, facts.about)


def _account(facts: GateFacts) -> Iterator[Reason]:
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


def _subject(facts: GateFacts) -> Iterator[Reason]:
    """What would be applied is what was approved, byte for byte (promises 1 and 2)."""
    about, account = facts.about, value_of(facts.account)
    subject, approved = value_of(facts.subject), value_of(facts.approved)
    if subject is None or approved is None or account is None:
        return
    if not account.uid:
        return  # _account waits for it: the one that comes is another one
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


def _verdict(facts: GateFacts) -> Iterator[Reason]:
    """What runs was approved as it is recorded."""
    subject, approved = value_of(facts.subject), value_of(facts.approved)
    if subject is not None and approved is not None and subject.digest not in approved:
        running = value_of(facts.running)
        number = running.number if running else 0
        words = f"no approval exists for revision {number}, whose subject is {subject.digest}"
        yield reason(RefusalKind.NOT_VERIFIED, words, facts.about)


def _running(facts: GateFacts) -> Iterator[Reason]:
    """Only what runs is compared, and only while nothing is applied or put back."""
    running = value_of(facts.running)
    if running is None:
        return
    if not running.is_active:
        yield reason(RefusalKind.NOT_RUNNING, f"revision {running.number} is no longer running", facts.about)
    if running.is_at_work:
        words = "a request is being applied: drift is checked afterwards"
        yield reason(RefusalKind.AT_WORK, words, facts.about)


def _stands(facts: GateFacts) -> Iterator[Reason]:
    """A newer spec does not affect the running revision until it is applied; a pause or deletion does."""
    about, wish = facts.about, value_of(facts.wish)
    if wish is None:
        return
    if not wish.is_the_same:
        words = f"BundleDeployment {about.name} is no longer the one that was reviewed"
        yield reason(RefusalKind.OTHER_WISH, words, about)
    elif wish.is_being_deleted:
        yield reason(RefusalKind.DELETING, f"BundleDeployment {about.name} is being deleted", about)
    elif wish.is_paused:
        yield reason(RefusalKind.PAUSED, f"{about.name} is paused: this continues when someone resumes it", about)
    elif facts.question == GateQuestion.CORRECT and wish.drift == "Report":
        words = f"the spec of {about.name} now says that drift is only reported"
        yield reason(RefusalKind.OTHER_WISH, words, about)
    elif facts.question == GateQuestion.CREATE and wish.options_digest != about.options_digest:
        words = f"the spec of {about.name} is no longer the approved one: its request must be settled first"
        yield reason(RefusalKind.OTHER_WISH, words, about)


def _collisions(facts: GateFacts) -> Iterator[Reason]:
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


def _came(facts: GateFacts) -> Iterator[Reason]:
    """What the report said was missing is there now, so that it is not as people read it."""
    came = value_of(facts.came)
    if came:
        words = f"{some_phrases(came, SHOWN)}: a new report and review are needed"
        yield reason(RefusalKind.CAUSE_OVER, words, facts.about)


def _revoked(facts: GateFacts) -> Iterator[Reason]:
    """A revoked revision is nowhere to go back to (S16)."""
    words = value_of(facts.revoked)
    if words:
        yield reason(RefusalKind.REVOKED, f"previous {words}", facts.about)


def _unmet(facts: GateFacts) -> Iterator[Reason]:
    words = value_of(facts.unmet)
    if words:
        yield reason(RefusalKind.UNMET, words, facts.about)


def _offers(facts: GateFacts) -> Iterator[Reason]:
    """What a catalog says against a bundle is shown to reviewers, also where it was published after the report."""
    words = value_of(facts.offers)
    if words:
        yield reason(RefusalKind.CATALOG_CHANGED, some_phrases(words, SHOWN), facts.about)


def _plan(facts: GateFacts) -> Iterator[Reason]:
    """No more than was reviewed, and nothing that would be refused (S04, S15)."""
    plan = value_of(facts.plan)
    if plan is None:
        return
    yield from _outgrown(facts, plan)
    yield from _unlisted(facts, plan.unseen)
    if plan.missing:
        yield reason(RefusalKind.MISSING_RIGHTS, plan.missing, facts.about)
    if plan.refused:
        yield _refused(facts, plan)


def _outgrown(facts: GateFacts, plan: PlanFacts) -> Iterator[Reason]:
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


def _refused(facts: GateFacts, plan: PlanFacts) -> Reason:
    shown = plan.refused[:SHOWN]
    words = "; ".join(f"{one.ref}: {one.words}" for one in shown)
    said = tuple((one.ref, one.said) for one in shown if one.said)
    kind = RefusalKind.COLLIDES if all(one.is_foreign for one in plan.refused) else RefusalKind.REFUSED
    kind = _unserved({one.lack for one in plan.refused}) or kind
    words = f"{len(plan.refused)} of {len(plan.actions)} objects would be rejected: {words}"
    return reason(kind, words, facts.about, said)


def _unserved(lacks: set[Lack | None]) -> RefusalKind | None:
    """What is said of kinds that are not served, None where other things stand in the way. Of what Kubernetes removed
    nothing in the cluster helps, whatever else is refused."""
    if Lack.REMOVED in lacks:
        return RefusalKind.REMOVED_API
    if None in lacks:
        return None
    return RefusalKind.NOT_SERVED if lacks == {Lack.UNDEFINED} else RefusalKind.OTHER_VERSION


def _unseen(facts: GateFacts) -> Iterator[Reason]:
    """What turned up since goes with nothing that is deleted: nobody approved that (S15)."""
    unseen = value_of(facts.unseen) or Unseen()
    if unseen.lost:
        yield reason(RefusalKind.LOSES_DATA_LATE, _lost_words(unseen.lost), facts.about)
    if unseen.words:
        yield reason(RefusalKind.GOES_ALONG_LATE, _unseen_words(unseen.words), facts.about)
    yield from _unlisted(facts, unseen)


def _unlisted(facts: GateFacts, unseen: Unseen) -> Iterator[Reason]:
    """What nobody can look through is not taken for what reviewers were shown (promise 4)."""
    if unseen.unconverted:
        words = f"nobody can tell whether some were created since the review: {'; '.join(unseen.unconverted[:SHOWN])}"
        yield reason(RefusalKind.NOT_CONVERTED, words, facts.about, unseen.said[:SHOWN])
    if unseen.too_many:
        words = f"nobody can tell whether some were created since the review: {'; '.join(unseen.too_many[:SHOWN])}"
        yield reason(RefusalKind.TOO_MANY_TO_SEE, words, facts.about)


def _lost_words(words: Sequence[str]) -> str:
    return f"data would be deleted that the report said would stay: {some_phrases(words, SHOWN)}"


def _unseen_words(words: Sequence[str]) -> str:
    return f"the deletion would also delete objects that no reviewer saw: {some_phrases(words, SHOWN)}"


_PEOPLE: tuple[Check, ...] = (people.still_approved, people.guards_let_go)
_STANDING: tuple[Check, ...] = (_running, _verdict, _cluster, _stands, _account)
_READY: tuple[Check, ...] = (
    _cluster,
    _wish,
    requesters.may_have_it,
    requesters.reads_still_allowed,
    _account,
    _subject,
    people.still_lets_go,
    *_PEOPLE,
    _pause,
    _unmet,
    _offers,
)
_CHECKS: dict[GateQuestion, tuple[Check, ...]] = {
    GateQuestion.MEET: (_cluster,),
    GateQuestion.PREPARE: (
        _cluster,
        requesters.may_have_it,
        requesters.reads_still_allowed,
        _account,
        requesters.own_right,
    ),
    GateQuestion.DECIDE: (_collisions, _came, _offers, requesters.reads_still_allowed, people.decided),
    GateQuestion.PLAN: _READY,
    GateQuestion.APPLY: (*_READY, _plan),
    GateQuestion.GO_ON: (_account, _wish, requesters.reads_still_allowed, *_PEOPLE, _unseen, _pause),
    GateQuestion.RESTORE: (_revoked, _account, _is_there, _pause, *_PEOPLE),
    GateQuestion.COMPARE: (_running,),
    GateQuestion.CORRECT: _STANDING,
    GateQuestion.CREATE: (*_STANDING, requesters.reads_still_allowed, *_PEOPLE),
    GateQuestion.TAKE_AWAY: (_running, _cluster, _pause),
}
