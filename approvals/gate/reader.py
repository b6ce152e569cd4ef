"""The one reader: everything that an answer is made of, gathered before anything is judged.

Records are read in the thread that asks, what the cluster says beside it. Nothing here says what follows from it; only
who may still `override` is counted in between, because a guard is asked about what they left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.conf import settings

from approvals import access
from approvals.access.port import connect
from approvals.catalogs import bundle_choice
from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy
from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.change_windows import Windows
from approvals.deciding.external_checks import ExternalCheck, SelectedCheck
from approvals.deciding.finding_exceptions import FindingException
from approvals.gate import deletions, live_spec, policies, rights
from approvals.gate.answers import GateQuestion
from approvals.gate.deciding_objects import (
    KeptRows,
    checks_of,
    kept_rows,
    load_policies,
    read_exceptions,
    read_objects,
    read_windows,
)
from approvals.gate.deletions import Slowly
from approvals.gate.facts import (
    About,
    Fact,
    GateFacts,
    How,
    Known,
    LiveSpec,
    PolicyFacts,
    ReadUnattended,
    RuleFacts,
    Running,
    Sources,
    Unknown,
    Unseen,
)
from approvals.gate.live_spec import PendingFacts, learn, unmet_words
from approvals.gate.people import accepted, with_exceptions
from approvals.gate.plan_facts import Approved, came_of, collisions_of, plan_facts
from approvals.gate.rule_facts import oldest_carried, rules_of
from approvals.gate.rules import RuleNeeds, standings, with_lapses
from approvals.ledger import rollouts, rounds
from approvals.ledger.digests import ReviewSubject
from approvals.ledger.pivots import why_unknown
from approvals.lifecycle import AT_WORK
from approvals.models import BundleDeployment, Report, Request, Revision
from approvals.models.request import READ_EARLIER
from approvals.policy import Lapsed
from approvals.policy.document import LoadedPolicy
from approvals.selectors import lists
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import ObjectRef

# The kinds whose rows say how a round is decided: what is applied asks the cluster.
DECIDE_BY = (ApprovalPolicy, ApprovalRule, ExternalCheck, FindingException)


@dataclass(frozen=True, slots=True)
class Back:
    """What is restored, and the reviewed report of the request that failed."""

    revision: Revision
    reviewed: Report


def meeting(request: Request, api: Api) -> GateFacts:
    """Whether it is the cluster that it always was (S19)."""
    return replace(_facts(GateQuestion.MEET, request), cluster_uid=live_spec.cluster_uid(request, learn(api.uid)))


def preparing(request: Request, api: Api, reads: Iterable[ObjectRef]) -> GateFacts:
    """Before anything is fetched: who asked may do so, and we may act as the account."""
    facts = _facts(GateQuestion.PREPARE, request)
    return replace(
        facts,
        read_unattended=_read_unattended(request),
        cluster_uid=live_spec.cluster_uid(request, learn(api.uid)),
        **_requesters(request, reads),
        account=_before_approval(learn(partial(live_spec.account_of, request, api))),
        own_right=learn(partial(live_spec.own_right, request, api)),
    )


def deciding(request: Request) -> GateFacts:
    """What reviews, guards and grants say of this round now."""
    facts, report = _facts(GateQuestion.DECIDE, request), policies.reviewed_report(request)
    reach = partial(connect, request.deployment.cluster)
    rows = kept_rows(request.deployment.cluster, DECIDE_BY)
    every_policy, rules = _policies(request, None, rows), read_rules(request, report, None, rows)
    is_vouching = rights.needs_vouching(request)
    return replace(
        facts,
        **_reviewed(request, report, None, every_policy, rules, rows, is_vouching=is_vouching),
        grants=_of_policies(every_policy, partial(policies.grants_of, request, report)),
        rules=rules,
        checks=_checks(request, report, None, rows),
        too_old=_too_old(request),
        read_unattended=_read_unattended(request),
        unreviewed=deletions.by_report(request, reach),
        collisions=collisions_of(request, report, reach),
        offers=_record(lambda: bundle_choice.list_new_problems(request)),
        came=came_of(request, report, reach),
    )


def approved(
    request: Request, api: Api, reads: Iterable[ObjectRef], load: Callable[[], Approved]
) -> tuple[GateFacts, Approved]:
    """All that is known without asking about every object; `load` reads the stored bytes while the cluster answers."""
    with ThreadPoolExecutor(max_workers=3) as beside:
        asked = PendingFacts.of(beside, request, api)
        loaded = load()
    subject = subject_of(request, content_digest=loaded.content.digest)
    report = policies.reviewed_report(request)
    every_policy, rules = _policies(request, api), read_rules(request, report, api)
    facts = replace(
        _facts(GateQuestion.PLAN, request),
        cluster_uid=live_spec.cluster_uid(request, asked.cluster_uid.result()),
        desired_spec=live_spec.desired_spec(request.deployment, asked.live.result()),
        account=_before_approval(asked.account.result()),
        **_requesters(request, reads),
        read_unattended=_read_unattended(request),
        subject=_record(lambda: replace(subject, plan_digest=loaded.plan.digest)),
        approved=_record(lambda: _approved_subjects(request)),
        **_reviewed(request, report, api, every_policy, rules, is_vouching=rights.needs_vouching(request)),
        rules=rules,
        checks=_checks(request, report, api),
        unreviewed=deletions.by_records(request),
        unmet=learn(partial(unmet_words, request, api), may_be_final=True),
        windows=_windows(request, api),
        orders=_record(lambda: rollouts.orders_of(request)),
        offers=_record(lambda: bundle_choice.list_new_problems(request)),
    )
    return facts, loaded


def planned(facts: GateFacts, request: Request, api: Api, loaded: Approved, slowly: Slowly = nullcontext) -> GateFacts:
    """The same, with what would be done now, which asks the API server about every object.

    `slowly` is entered where objects are looked through that no plan names.
    """
    plan = learn(partial(plan_facts, request, api, loaded, slowly), may_be_final=True)
    # That may have taken minutes, in which somebody stopped all changes, or another member of a set failed.
    orders = _record(lambda: rollouts.orders_of(request))
    return replace(facts, question=GateQuestion.APPLY, plan=plan, windows=_windows(request, api), orders=orders)


def unseen(request: Request, api: Api, reviewed: Report, slowly: Slowly = nullcontext) -> Fact[Unseen]:
    """What goes with what is deleted and was created since: the part of `going_on` that may take a minute."""

    def ask(bounded: Api) -> Unseen:
        return deletions.unseen(request, bounded, reviewed, has_begun=True)

    return learn(partial(deletions.look_through, request, api, reviewed, slowly, ask))


def going_on(request: Request, api: Api, reviewed: Report, looked_through: Fact[Unseen]) -> GateFacts:
    """Before each phase (S25): everybody whose approval stands behind it, then the spec and the account.

    These are read last: a pause or another spec counts that came while all else was asked, and `looked_through` before
    that (`unseen`). Guards are asked again too: without any it costs two queries, else the reviewed facts are read once
    for all phases.
    """
    people = _people(request, reviewed, api)
    return replace(
        _facts(GateQuestion.GO_ON, request),
        **people,
        read_unattended=_read_unattended(request),
        unseen=looked_through,
        windows=_windows(request, api),
        **_last(request, api, account_by=request),
    )


def restoring(request: Request, api: Api, back: Back) -> GateFacts:
    """Before each phase of putting back: as before each phase of an apply, with the account of what is restored."""
    people = _people(request, back.reviewed, api)
    last = _last(request, api, account_by=back.revision.request)
    back.revision.refresh_from_db(fields=["revoked_at", "revoked_by", "revoked_reason"])
    return replace(
        _facts(GateQuestion.RESTORE, request),
        **people,
        **last,
        revoked=_record(lambda: lists.revoked_words(back.revision)),
        is_untouched=Revision.objects.filter(request=request, state=Revision.State.ACTIVE).exists(),
    )


def running(revision: Revision) -> GateFacts:
    """Whether it is this revision that runs, by our records alone."""
    return replace(_facts(GateQuestion.COMPARE, revision.request), running=_record(lambda: _running(revision)))


def correcting(revision: Revision, api: Api) -> GateFacts:
    """Before each phase of a correction (S25): nobody is there to ask, so that all must stand as it was approved."""
    request = revision.request
    return replace(
        _facts(GateQuestion.CORRECT, request),
        running=_record(lambda: _running(revision)),
        subject=_record(lambda: subject_of(request, content_digest=revision.content_id)),
        approved=_record(lambda: _approved_subjects(request)),
        cluster_uid=live_spec.cluster_uid(request, learn(api.uid)),
        windows=_windows(request, api),
        desired_spec=_live_spec(request.deployment, api),
        account=learn(partial(live_spec.account_of, request, api)),
    )


def creating(revision: Revision, api: Api) -> GateFacts:
    """Before what was left out is created: a first write, so reviewers and guards are asked as well."""
    request = revision.request
    report = policies.reviewed_report(request)
    rules = read_rules(request, report, api)
    people = {**_people(request, report, api, rules), "rules": rules, "read_unattended": _read_unattended(request)}
    return replace(correcting(revision, api), question=GateQuestion.CREATE, **people)


def subject_of(request: Request, *, content_digest: str) -> ReviewSubject:
    """As the request's row has it, for this content; what differs is replaced (dataclasses.replace)."""
    return ReviewSubject(
        cluster_uid=request.deployment.cluster.uid or "",
        deployment_uid=request.deployment.uid,
        request_uid=str(request.uid),
        round=request.round,
        content_digest=content_digest,
        plan_digest=request.plan_digest,
        options_digest=request.options_digest,
        service_account_uid=request.service_account_uid,
        salt=request.salt,
    )


def taking_away(request: Request, api: Api) -> GateFacts:
    """Whether anything of this deployment may be taken away now that was created late; `request` is its newest."""
    deployment = request.deployment
    is_at_work = deployment.requests.filter(state__in=AT_WORK).exists()
    return replace(
        _facts(GateQuestion.TAKE_AWAY, request),
        running=_record(lambda: Running(0, True, is_at_work)),
        cluster_uid=live_spec.cluster_uid(request, learn(api.uid)),
        desired_spec=_live_spec(deployment, api),
    )


def _facts(question: GateQuestion, request: Request) -> GateFacts:
    deployment = request.deployment
    about = About(
        name=deployment.name,
        cluster=deployment.cluster.name,
        recorded_cluster=deployment.cluster.uid or "",
        number=request.number,
        purpose=request.purpose,
        round=request.round,
        subject_digest=request.subject_digest,
        options_digest=request.options_digest,
        is_requester_known=request.is_requester_known,
        has_requesters=bool(request.requesters),
        needed=settings.PRATIQUE["APPROVALS_NEEDED"],
        expires_at=request.expires_at,
        rounds=rounds.made_by_itself(request),
        why_unknown=why_unknown(request),
        apply_at=request.apply_at,
    )
    return GateFacts(question, about, database_now())


def _record(read: Callable[[], Any]) -> Known[Any]:
    return Known(read(), database_now(), How.RECORDS)


def _how(api: Api | None) -> How:
    return How.CLUSTER if api else How.RECORDS


def _windows(request: Request, api: Api) -> Fact[Windows]:
    return learn(partial(read_windows, request, api))


def _live_spec(deployment: BundleDeployment, api: Api) -> Fact[LiveSpec]:
    return live_spec.desired_spec(deployment, learn(partial(live_spec.live_deployment, api, deployment)))


def _last(request: Request, api: Api, *, account_by: Request) -> dict[str, Any]:
    """The spec, and the account that the spec of `account_by` names, as they are at this moment."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        live = beside.submit(learn, partial(live_spec.live_deployment, api, request.deployment))
        account = learn(partial(live_spec.account_of, account_by, api))
    return {"desired_spec": live_spec.desired_spec(request.deployment, live.result()), "account": account}


def _people(
    request: Request, report: Report, api: Api, rules: Fact[tuple[RuleFacts, ...]] | None = None
) -> dict[str, Any]:
    """Everybody whose word counts for what has begun, and the operator's about deletions."""
    is_vouching = not request.is_requester_known
    reviewed = _reviewed(request, report, api, _policies(request, api), rules, is_vouching=is_vouching)
    return {**reviewed, "unreviewed": deletions.by_records(request)}


def _policies(request: Request, api: Api | None, rows: KeptRows | None = None) -> Fact[tuple[LoadedPolicy, ...]]:
    """Those of the cluster as it has them now, which a copy of ours may be late of; without `api` as we saw them."""
    return learn(partial(load_policies, request, api, rows), how=_how(api))


def _reviewed(
    request: Request,
    report: Report,
    api: Api | None,
    every_policy: Fact[tuple[LoadedPolicy, ...]],
    rules: Fact[tuple[RuleFacts, ...]] | None,
    rows: KeptRows | None = None,
    *,
    is_vouching: bool,
) -> dict[str, Any]:
    """What reviewers said, with what they may do now, and every guard on what they and finding exceptions left. Without
    `api` these are as the watch saw them last. Once applying has begun no `rules` are asked (decision 0091)."""
    given = rights.reviews_of(request, every_policy, is_vouching=is_vouching)
    reviews = _record(lambda: with_lapses(given, rules, oldest_carried(request)) if rules else given)
    exceptions = learn(partial(read_exceptions, request, report, api, rows), how=_how(api))
    left = with_exceptions(accepted(reviews.value), exceptions)
    guards = _of_policies(every_policy, lambda known: policies.guards_of(request, report, left, known))
    return {"reviews": reviews, "exceptions": exceptions, "guards": guards}


def _of_policies(
    every_policy: Fact[tuple[LoadedPolicy, ...]], ask: Callable[[tuple[LoadedPolicy, ...]], tuple[PolicyFacts, ...]]
) -> Fact[tuple[PolicyFacts, ...]]:
    """What policies say; where nobody could find out which there are, nobody knows that either."""
    return every_policy if isinstance(every_policy, Unknown) else _record(lambda: ask(every_policy.value))


def read_rules(
    request: Request, report: Report, api: Api | None, rows: KeptRows | None = None
) -> Fact[tuple[RuleFacts, ...]]:
    """The ApprovalRules as they are now; without `api` as the watch saw them last, which is looked at again before
    anything is applied."""

    def read() -> tuple[RuleFacts, ...]:
        return rules_of(request, report, read_objects(request.deployment.cluster, ApprovalRule, api, rows), api)

    return learn(read, how=_how(api))


def rules_now(request: Request) -> tuple[RuleNeeds, ...]:
    """What ApprovalRules need of a request that nobody has decided on yet; () where that could not be found out."""
    rules = read_rules(request, policies.reviewed_report(request), None)
    return standings(replace(_facts(GateQuestion.DECIDE, request), rules=rules))


def _checks(
    request: Request, report: Report, api: Api | None, rows: KeptRows | None = None
) -> Fact[tuple[SelectedCheck, ...]]:
    def read() -> tuple[SelectedCheck, ...]:
        return checks_of(request, report, read_objects(request.deployment.cluster, ExternalCheck, api, rows))

    return learn(read, how=_how(api))


def _requesters(request: Request, reads: Iterable[ObjectRef]) -> dict[str, Any]:
    """Those who asked, each as they are known now, and what is to be read for them."""
    wanted = list(reads)
    sources = Sources(
        names=tuple(map(_name_ref, wanted)),
        is_read=bool(request.content_id),
        is_unattended=request.is_unattended,
        is_listed=_is_listed(request),
        hours=settings.PRATIQUE["GROUPS_HOURS"],
        catalogs=tuple(_name_ref(ref) for ref in wanted if ref.kind == "Catalog"),
    )
    return {
        "requesters": _record(lambda: rights.requesters_of(request, wanted)),
        "too_old": _too_old(request),
        "sources": _record(lambda: sources),
    }


def _name_ref(ref: ObjectRef) -> str:
    return str(ref) if ref.name else f"every {ref.kind}"


def _is_listed(request: Request) -> bool:
    place = f"{request.deployment.cluster.name}/{request.deployment.name}"
    return place in settings.PRATIQUE["UNATTENDED_READS"]


def _read_unattended(request: Request) -> Fact[ReadUnattended]:
    """Of most requests nothing was: then no more is asked."""
    if not request.read_unattended:
        return _record(ReadUnattended)
    too_old = tuple(access.no_longer_current(request))
    names = tuple(name for name in request.read_unattended if name != READ_EARLIER)
    is_sure = READ_EARLIER not in request.read_unattended
    return _record(lambda: ReadUnattended(names, _is_listed(request), too_old, is_sure))


def _too_old(request: Request) -> Fact[tuple[Lapsed, ...]]:
    return _record(lambda: tuple(access.no_longer_current(request)))


def _before_approval(account: Fact[Any]) -> Fact[Any]:
    """Whether it is the one that was approved is told by the subject, whose part it is."""
    return replace(account, value=replace(account.value, approved_uid="")) if isinstance(account, Known) else account


def _approved_subjects(request: Request) -> frozenset[str]:
    given = request.verdicts.filter(round=request.round, verdict="Approved")
    return frozenset(given.values_list("subject_digest", flat=True))


def _running(revision: Revision) -> Running:
    row = BundleDeployment.objects.get(pk=revision.deployment_id)
    is_active = row.active_revision_id == revision.pk and not row.gone_at and not row.deletion_requested_at
    return Running(revision.number, is_active, row.requests.filter(state__in=AT_WORK).exists())
