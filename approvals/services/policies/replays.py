"""Try a draft of a policy on past requests: what it would have said, as far as who asks may know (S09).

Nothing is saved, and nobody but who asks is told. Requests of other clusters are neither read nor counted.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from approvals import access
from approvals.access import Caller
from approvals.access.sight import ReportSight, Sight
from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy, parse_document
from approvals.deciding.spec_fields import UnreadableObject
from approvals.errors import CouldNotAsk, InvalidInput
from approvals.gate.explanation import find_terms, reader_facts, recorded_waivers
from approvals.gate.policies import JudgedFinding, find_obstacle_for_all
from approvals.ledger import labels
from approvals.ledger.deciding.deciding_objects import check_expressions
from approvals.ledger.pivots import has_requested
from approvals.models import Cluster, Finding, Report, Request, Verdict
from approvals.policy import POLICY, BadExpression, check_compiled, check_form
from approvals.policy.document import PolicyDocument
from approvals.policy.replay import PastRequest, Replayed, ReplayResult, count_results, replay
from approvals.policy.terms import ExpressionTerms
from approvals.rate_limits import Limit, take
from provisioner.expressions import ExpressionQuestion
from provisioner.expressions.evaluator import ask, ask_all, limited

DAYS, MAX_DAYS, MAX_REQUESTS = 90, 3_650, 1_000
# For all of it, and of that for evaluating.
SECONDS, EVALUATION_SECONDS = 25.0, 10.0
CHUNK, REPORTS = 25, 5  # requests whose expressions are evaluated together; reports that are in memory together
MOST_ASKED = 300
PER_HOUR = Limit("policy-replays", 120, 3600)
CLEARED = "its report was cleared (PRATIQUE_KEEP_DAYS)"
NO_REPORT = "its last round has no report"
REQUESTED = "its author requested this change"


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One request with what the draft would have said. `verdict` is "" where there was none."""

    request: Request
    verdict: str
    replayed: Replayed


@dataclass(frozen=True, slots=True)
class PolicyReplay:
    """`left_out` counts the older requests that were not looked at, `why_left_out` says why."""

    document: PolicyDocument
    days: int
    rows: tuple[ReplayRow, ...]
    counts: Mapping[str, int]
    left_out: int = 0
    why_left_out: str = ""

    @property
    def unselected(self) -> int:
        return self.counts[ReplayResult.NOT_SELECTED]


def read_document(value: object) -> PolicyDocument:
    """The policy of a document whose expressions compile. Raises InvalidInput with the place."""
    try:
        document = parse_document(value)
        check_expressions(ApprovalPolicy.of_document(document))
    except UnreadableObject as exc:
        raise InvalidInput(f"the policy is invalid: {exc}", field=exc.place) from exc
    return document


def replay_policy(
    *, by: Caller, document: PolicyDocument, clusters: Sequence[Cluster], days: int = DAYS, most: int = MAX_REQUESTS
) -> PolicyReplay:
    """Ask a draft about the latest requests of `clusters`, which are those whose requests `by` may read.

    Raises InvalidInput, and TooManyAttempts where they tried too often.
    """
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"days is {days}; expected 1 to {MAX_DAYS:,}", field="days")
    take(PER_HOUR, str(by.user.pk), words="you have tried too many policies within an hour: try again in {time}")
    try:
        check_form(document.expression)
        check_compiled(ask(POLICY, [document.expression])[0])
    except BadExpression as exc:
        raise InvalidInput(f"the expression is invalid: {exc}", field="expression") from exc
    texts = [document.expression, *(condition.expression for condition in document.match_conditions)]
    asked = [_terms_of(text) for text in texts]
    since = database_now() - timedelta(days=days)
    found = _past_requests(clusters).filter(created_at__gte=since)
    keys = list(found.values_list("pk", flat=True)[:most])
    total, deadline = found.count() if len(keys) == most else len(keys), time.monotonic() + SECONDS
    rows: list[ReplayRow] = []
    sight_of = cache(partial(_sight_of, by))
    with limited(EVALUATION_SECONDS):
        for first in range(0, len(keys), CHUNK):
            if time.monotonic() > deadline:
                break
            chunk = list(found.filter(pk__in=keys[first : first + CHUNK]))
            rows += _replay_chunk(document, asked, chunk, by, sight_of)
    left = total - len(rows)
    why = f"at most {most:,} are looked at" if len(rows) >= most else f"it took longer than {SECONDS:g} s"
    counts = count_results(row.replayed for row in rows)
    return PolicyReplay(document, days, tuple(rows), counts, max(0, left), why if left > 0 else "")


def _terms_of(text: str) -> ExpressionTerms:
    terms = find_terms(text)
    if not isinstance(terms, ExpressionTerms):
        raise CouldNotAsk(f"the expression could not be evaluated: {terms.words}")
    return terms


def _past_requests(clusters: Sequence[Cluster]) -> QuerySet[Request]:
    """Those that ever came as far as a report, the latest first."""
    reported = Report.objects.filter(request=OuterRef("pk"))
    found = Request.objects.filter(cluster__in=[cluster.pk for cluster in clusters])
    found = found.filter(Exists(reported) | Q(cleared_at__isnull=False)).select_related("deployment__cluster")
    deferred = ("spec", "chart_values", "deployment__spec", "deployment__cluster__kubeconfig")
    return found.defer(*deferred).order_by("-created_at", "-pk")


def _sight_of(by: Caller, cluster: Cluster) -> Sight:
    """One for all requests of a cluster: what was asked once is not asked again."""
    return Sight(by, cluster, limit=MOST_ASKED)


def _replay_chunk(
    document: PolicyDocument,
    asked: Sequence[ExpressionTerms],
    chunk: Sequence[Request],
    by: Caller,
    sight_of: Callable[[Cluster], Sight],
) -> Iterator[ReplayRow]:
    """`asked` are the terms of all validations together, and of each matchCondition."""
    terms = asked[0]
    texts = [*terms.texts, *(condition.whole.text for condition in asked[1:])]
    past = {request.pk: _without_report(request) for request in chunk}
    selected = [request for request in chunk if not past[request.pk].why_not_selected_by(document)]
    reports = Report.objects.filter(request__in=selected, round=F("request__round"))
    by_key = {request.pk: request for request in selected}
    is_grant = document.is_grant
    rows, public = Finding.objects.filter(report__in=reports), defaultdict[int, list[JudgedFinding]](list)
    for report_id, *columns in rows.order_by().values_list("report_id", *JudgedFinding._fields):
        public[report_id].append(JudgedFinding(*columns))
    waived = {} if is_grant else recorded_waivers(selected)  # a grant sees every finding
    # Not the rows with each report: those refer to each other, so that its body would stay in memory for a while.
    reports = reports.prefetch_related("findings") if is_grant else reports
    for report in reports.defer("exact_states").iterator(chunk_size=REPORTS):
        request = by_key[report.request_id]
        sight = ReportSight(sight_of(request.deployment.cluster), report.body)
        facts = reader_facts(request, report, sight, asked, waived.get(request.pk, ()), public[report.pk])
        obstacle = _find_obstacle(document, request, report, by) if is_grant else ""
        past[request.pk] = replace(past[request.pk], facts=facts, obstacle=obstacle)
    questions = [
        ExpressionQuestion(POLICY, text, one.facts.known)
        for one in past.values()
        if one.facts is not None
        for text in texts
    ]
    answers = iter(ask_all(questions, seconds=EVALUATION_SECONDS))
    reads_labels = any("labels" in one.whole.reads for one in asked)
    verdicts = Verdict.objects.filter(request__in=chunk, round=F("request__round"))
    verdict_of = dict(verdicts.values_list("request_id", "verdict"))
    for request in chunk:
        one = past[request.pk]
        own = [next(answers) for _ in texts] if one.facts is not None else []
        said = replay(document, one, terms, own, reads_labels=reads_labels)
        yield ReplayRow(request, verdict_of.get(request.pk, ""), said)


def _without_report(request: Request) -> PastRequest:
    kept = (*request.earlier_labels, request.labels) if labels.are_all_kept(request) else None
    why = CLEARED if request.cleared_at else NO_REPORT
    return PastRequest(request.deployment.cluster.name, request.deployment.name, kept, None, why)


def _find_obstacle(document: PolicyDocument, request: Request, report: Report, by: Caller) -> str:
    """Why no grant of this author would have approved the request; "" where one would."""
    obstacle, _ = find_obstacle_for_all(request, report, allows_known_powers=document.allows_known_powers)
    author = access.person_of(by, request.deployment.cluster)
    if not obstacle and not settings.PRATIQUE["SELF_APPROVAL"] and has_requested(request, author):
        return REQUESTED
    return obstacle
