"""One request for the desired spec: made where a pivot calls for it, in place of the open one, or kept for later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from approvals import audit, wake
from approvals.audit import MACHINE, Actor
from approvals.bundle_spec import BundleSpec, parse_spec
from approvals.clock import database_now
from approvals.errors import UNREADABLE, KeyMissing
from approvals.ledger import change_words, labels, made_values, quotas, rounds
from approvals.ledger.moves import locked, move
from approvals.ledger.pivots.writers import (
    SpecWriter,
    answers_for,
    asker_of,
    joined,
    person_record,
    requesters_of_spec,
    with_asker,
    with_earlier,
    writers_of,
)
from approvals.lifecycle import AT_WORK, OPEN, SETTLED, SUPERSEDABLE, Event, State
from approvals.locks import for_change
from approvals.models import BundleDeployment, Report, Request, RequestAsker, RequestRule, RequestText, Revision
from approvals.selectors import lists
from provisioner import health_checks
from provisioner.errors import BadHealthCheck
from provisioner.values import Finding, Severity


@transaction.atomic(durable=True)
def note_problem(*, of: Request, words: str) -> None:
    """Keep why no request of this spec can be prepared, unless the spec is another one now."""
    deployment = for_change(BundleDeployment.objects.filter(pk=of.deployment_id)).get()
    if deployment.options_digest == of.options_digest:
        keep_problem(deployment, words)


def problem_of(spec: BundleSpec) -> str:
    """What cannot be read in the health part of a spec; no request of it can be prepared before that is mended.

    CEL is not compiled inside a transaction: what is wrong with it is found when the request is prepared.
    """
    try:
        health_checks.check_spec(spec.health)
    except BadHealthCheck as exc:
        return str(exc)
    return ""


def keep_problem(deployment: BundleDeployment, words: str) -> None:
    deployment.problem = words
    deployment.save(update_fields=["problem"])


# What is rendered anew, so that values can be made anew with it.
_RENDERED = (Request.Purpose.DEPLOY, Request.Purpose.ROTATE)
# Searching reads every text: no more of a headline than a row shows.
MAX_TEXT = 400
MAX_REASON_TEXT = 100
MAX_FORMAT = 60


def weight_of(severity: Severity) -> int:
    """6 for critical to 1 for safe, so that the worst comes first in descending order; 0 is left for "no report"."""
    return len(Severity) - severity.rank


def list_request(request: Request) -> None:
    """For a request that was just made: its name and its requesters."""
    RequestText.objects.create(request=request, text=_search_text(request, ()))
    list_askers(request)


def list_words(request: Request) -> None:
    """The words of a change that were written later."""
    report = request.reports.filter(round=request.round).only("headline").first()
    text = _search_text(request, report.headline if report else ())
    RequestText.objects.update_or_create(request=request, defaults={"text": text})


def list_askers(request: Request) -> None:
    """The requesters as the row has them now."""
    names = {str(person["username"])[:253] for person in request.requesters if person.get("username")}
    request.askers.exclude(username__in=names).delete()
    wanted = [RequestAsker(request=request, username=name) for name in sorted(names)]
    RequestAsker.objects.bulk_create(wanted, ignore_conflicts=True)


def list_report(request: Request, *, headline: Sequence[str], findings: Iterable[Finding]) -> None:
    """The headline and the rules of the present report, in place of those of the round before."""
    RequestText.objects.update_or_create(request=request, defaults={"text": _search_text(request, headline)})
    request.rules.all().delete()
    RequestRule.objects.bulk_create(
        RequestRule(request=request, rule=rule, weight=weight)
        for rule, weight in sorted(listed_rules(findings).items())
    )


def listed_rules(findings: Iterable[Finding]) -> Mapping[str, int]:
    """The weight of each rule's worst finding, of those findings whose rule every reader of the cluster may know.

    Which rule a Secret meets tells how it differs from the bundle's, so it is for those who may get it (access.sight).
    """
    found: dict[str, int] = {}
    for finding in findings:
        if finding.ref is None or (finding.ref.group, finding.ref.kind) != ("", "Secret"):
            found[finding.rule] = max(found.get(finding.rule, 0), weight_of(finding.severity))
    return found


def _search_text(request: Request, headline: Sequence[str]) -> str:
    words = [request.change_ticket, request.change_reason[:MAX_REASON_TEXT]]
    return "\n".join([request.deployment.name, *filter(None, words), *headline]).casefold()[:MAX_TEXT]


@dataclass(frozen=True, slots=True)
class Asking:
    """What a request is to be made for.

    `is_by_nobody`: no write calls for it, and nobody can tell who asked for it. `again`: although there was one of the
    same spec. `stands_for`: nobody asks now, and those who asked for that one ask still (`requesters_of_spec`).
    `rotation` names values of the chart to make anew, beside those of a request that this one takes the place of.
    """

    purpose: str
    asker: SpecWriter | None
    is_by_nobody: bool = False
    stands_for: Request | None = None
    to_revision: Revision | None = None
    again: bool = False
    rotation: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """As it waits for room; `asker_of` reads it again."""
        return {
            "purpose": self.purpose,
            "again": self.again,
            "revision": self.to_revision.number if self.to_revision else 0,
            "rotation": list(self.rotation),
            "asker": person_record(self.asker) if self.asker else None,
        }


def ensure_request(
    deployment: BundleDeployment, *, again: bool = False, asker: SpecWriter | None = None
) -> Request | None:
    """Make the request that a locked deployment's spec calls for, if there is none yet; also after an apply ended.

    `again`: also where there was one and it is settled, or what is stored for it cannot be read, because somebody,
    `asker` if known, asks for it once more. One that is open is reported again.
    """
    latest = deployment.requests.order_by("-number").first()
    is_same = latest and latest.options_digest == deployment.options_digest and latest.purpose != Request.Purpose.DELETE
    if (
        is_same
        and again
        and latest
        and not why_unreadable(latest)
        and rounds.report_anew(deployment, _asker_name(asker))
    ):
        return None
    if is_same and latest and not (again and (latest.state in SETTLED or why_unreadable(latest))):
        return None
    if deployment.deletion_requested_at or not _make_room(deployment):
        return None
    asker = asker or _waiting_asker(deployment, Request.Purpose.DEPLOY)
    is_by_nobody = bool(is_same) and asker is None
    return _ask(deployment, Asking(Request.Purpose.DEPLOY, asker, is_by_nobody, again=again))


@transaction.atomic
def ask_once_more(*, of: Request) -> Request | None:
    """A request for what runs since `of`, though nobody asks for it now; None where one is open, or the spec asks for
    something else.

    Nobody wrote another spec since: who wrote it then asks for it still, with the groups of that time, and may not
    approve it (S05, S07). None also where it waits for room (ledger.quotas).
    """
    deployment = for_change(BundleDeployment.objects.filter(pk=of.deployment_id)).get()
    return ask_as_before(deployment, of)


def ask_as_before(deployment: BundleDeployment, of: Request) -> Request | None:
    """The same as `ask_once_more`, of a locked deployment."""
    is_current = deployment.options_digest == of.options_digest and not deployment.deletion_requested_at
    if not is_current or deployment.gone_at or deployment.requests.filter(state__in=OPEN).exists():
        return None
    requesters, is_known = requesters_of_spec(deployment, of)
    if not _has_room(deployment, quotas.Charge.of(requesters, is_known=is_known), {"once_more": of.pk}):
        return None
    # What was asked of one that nobody wanted to end is still to be done.
    rotation = tuple(of.rotation) if of.state == State.WITHDRAWN else ()
    asking = Asking(of.purpose, None, to_revision=of.to_revision, stands_for=of, rotation=rotation)
    return _new_request(deployment, asking)


def ask_for_moved(deployment: BundleDeployment, of: Request) -> Request | None:
    """A request for the same spec as `of`, because a source moved: in place of the open one, which nobody has begun to
    review. Who asks is who asks for `of`, and all who wrote the spec since (S05). Needs the deployment's lock.

    None also where it waits for room (ledger.quotas).
    """
    return ask_as_before(deployment, of) if _make_room(deployment) else None


def follow_up(deployment: BundleDeployment) -> None:
    """Make the request that could not be made while another one was being applied. Needs the deployment's lock."""
    if deployment.deletion_requested_at:
        ensure_deletion_request(deployment, None)
    else:
        ensure_request(deployment)


@transaction.atomic
def take_up(deployment_id: int) -> None:
    """Make the request that waits for room, if there is some now (ledger.quotas)."""
    rows = BundleDeployment.objects.select_related("cluster").filter(pk=deployment_id)
    deployment = for_change(rows).get()
    waiting, deployment.waiting = deployment.waiting, None
    is_at_work = any(request.state in AT_WORK for request in hold_open(deployment))
    if waiting is None or is_at_work:
        return
    if deployment.gone_at is None:
        asker = asker_of(waiting)
        if "once_more" in waiting:
            ask_as_before(deployment, Request.objects.get(pk=waiting["once_more"]))
        elif waiting["purpose"] == Request.Purpose.DELETE:
            ensure_deletion_request(deployment, asker, again=waiting["again"])
        elif waiting["purpose"] == Request.Purpose.ROLLBACK:
            ensure_rollback_request(deployment, str(waiting["revision"]), asker)
        elif waiting.get("rotation"):
            ensure_rotation_request(deployment, waiting["rotation"], asker)
        else:
            ensure_request(deployment, again=waiting["again"], asker=asker)
    if deployment.waiting is None:
        quotas.stop_waiting(deployment)


def take_up_waiting() -> None:
    """All that waits for room. Where a limit has just refused one, those that it refused in the same words wait on:
    the hundreds of one requester would each hold the audit chain at every sweep (S40)."""
    refused: set[str] = set()
    for pk, words in quotas.waiting().values_list("pk", "waiting_words"):
        if words not in refused:
            take_up(pk)
            refused.update(quotas.waiting().filter(pk=pk).values_list("waiting_words", flat=True))


def ensure_deletion_request(deployment: BundleDeployment, asker: SpecWriter | None, *, again: bool = False) -> None:
    """Make the request for what is Terminating. `again`: also where there was one and it is settled, because somebody,
    `asker` if known, asks for it once more."""
    latest = deployment.requests.order_by("-number").first()
    is_same = latest and latest.options_digest == deployment.options_digest and latest.purpose == Request.Purpose.DELETE
    is_kept = latest is not None and latest.state in OPEN and not (again and why_unreadable(latest))
    if is_same and is_kept and again:
        rounds.report_anew(deployment, _asker_name(asker))
    if is_same and (is_kept or (asker is None and not again)):
        # Denied or withdrawn: the object stays Terminating until somebody asks again, or asks for something else.
        return
    if deployment.needs_deletion and _make_room(deployment):
        asker = asker or _waiting_asker(deployment, Request.Purpose.DELETE)
        is_by_nobody = again and asker is None
        _ask(deployment, Asking(Request.Purpose.DELETE, asker, is_by_nobody, again=again))


def ensure_rollback_request(deployment: BundleDeployment, number: str, asker: SpecWriter | None) -> None:
    """Ask for the content of an earlier revision; why that cannot be is kept as the deployment's problem."""
    why_not = lists.why_not_restorable(deployment=deployment, number=number)
    revision = lists.numbered(deployment=deployment, number=number)
    if why_not:
        keep_problem(deployment, why_not)
    elif not _make_room(deployment):
        keep_problem(deployment, f"a request is being applied: request revision {number} again when it is finished")
    else:
        keep_problem(deployment, problem_of(deployment.bundle_spec))
        _ask(deployment, Asking(Request.Purpose.ROLLBACK, asker, is_by_nobody=asker is None, to_revision=revision))


def ensure_rotation_request(deployment: BundleDeployment, targets: Sequence[str], asker: SpecWriter | None) -> None:
    """Ask for what runs with values of its chart made anew; why that cannot be is kept as the deployment's problem.

    Where a request for something else is open, or the spec is one that nothing was asked for yet, the new one is for
    both.
    """
    latest = deployment.requests.order_by("-number").first()
    is_of_spec = (
        latest is None
        or latest.options_digest != deployment.options_digest
        or (latest.state in (*SUPERSEDABLE, State.SUPERSEDED) and latest.purpose != Request.Purpose.ROTATE)
    )
    why_not = next(filter(None, (made_values.why_not_rotatable(deployment, target) for target in targets)), "")
    if why_not:
        keep_problem(deployment, f"nothing is rotated: {why_not}")
        ensure_request(deployment, asker=asker)
    elif _make_room(deployment):
        keep_problem(deployment, problem_of(deployment.bundle_spec))
        purpose = Request.Purpose.DEPLOY if is_of_spec else Request.Purpose.ROTATE
        _ask(deployment, Asking(purpose, asker, is_by_nobody=asker is None, again=True, rotation=tuple(targets)))


def _asker_name(asker: SpecWriter | None) -> str:
    return asker.identity.username if asker else ""


def _waiting_asker(deployment: BundleDeployment, purpose: str) -> SpecWriter | None:
    """Who asked for this first, where it waits for room and is only seen again now."""
    waiting = deployment.waiting
    return asker_of(waiting) if waiting and waiting.get("purpose") == purpose else None


def why_unreadable(request: Request) -> dict[str, str]:
    """Why what is stored for an open request cannot be read, so that it may be asked for anew (S30); empty if it can.

    That a key is missing is found out here: what nobody has reviewed yet is read by nobody.
    """
    if request.state not in SUPERSEDABLE:
        return {}
    if request.problem_code in UNREADABLE:
        return {"problem_code": request.problem_code, "problem": request.problem}
    field = Report._meta.get_field("body")
    try:
        for report in request.reports.filter(round=request.round):
            field.check_key(report)
    except KeyMissing as exc:
        return {"problem_code": exc.code, "problem": str(exc)}
    return {}


def hold_open(deployment: BundleDeployment) -> list[Request]:
    """The open request, if any, locked before anything is written to the audit chain (approvals.locks)."""
    is_saved = deployment.pk is not None
    return [locked(request.pk) for request in deployment.requests.filter(state__in=OPEN)] if is_saved else []


def _make_room(deployment: BundleDeployment) -> bool:
    """Supersede the open request, if any; False where one is being applied, which finishes first."""
    current = deployment.requests.filter(state__in=OPEN).first()
    if current is None:
        return True
    if current.state not in SUPERSEDABLE:
        return False
    cause = why_unreadable(current)
    said = {"code": cause["problem_code"], "why": cause["problem"]} if cause else {}
    facts = {"by generation": deployment.generation, **said}
    move(locked(current.pk), Event.SUPERSEDE, actor=MACHINE, facts=facts, **cause)
    return True


def _ask(deployment: BundleDeployment, asking: Asking) -> Request | None:
    """Make a request, or have it wait where a quota is used up. A rotation that waits already is wished still."""
    waiting = deployment.waiting or {}
    if asking.purpose in _RENDERED and (earlier := waiting.get("rotation")):
        asker = None if asking.is_by_nobody else _common_asker(asker_of(waiting), asking.asker)
        rotation = tuple(dict.fromkeys((*asking.rotation, *earlier)))
        asking = replace(asking, rotation=rotation, asker=asker, is_by_nobody=asker is None)
    requesters, is_known = _requesters(deployment, asking)
    if not _has_room(deployment, quotas.Charge.of(requesters, is_known=is_known), asking.record()):
        return None
    return _new_request(deployment, asking)


def _common_asker(first: SpecWriter | None, then: SpecWriter | None) -> SpecWriter | None:
    """Who asks for all of it; None, as of nobody known, where two do. A spec that is written asks for no rotation."""
    if first is None or then is None:
        return first
    return then if len(with_asker([person_record(first)], then)) == 1 else None


def _has_room(deployment: BundleDeployment, charge: quotas.Charge, asked: Mapping[str, Any]) -> bool:
    """Whether a quota leaves room for one more; else what is `asked` waits."""
    audit.hold_chain()
    why_not = quotas.why_not(deployment.cluster, charge, but=deployment)
    if why_not:
        quotas.wait(deployment, asked, why_not)
        return False
    quotas.stop_waiting(deployment)
    return True


def _requesters(deployment: BundleDeployment, asking: Asking) -> tuple[list[dict[str, Any]], bool]:
    """Whose request it will be, and whether all of them are known."""
    if asking.stands_for:
        return requesters_of_spec(deployment, asking.stands_for)
    is_of_running = asking.to_revision or asking.purpose == Request.Purpose.ROTATE
    writers, is_known = ([], True) if is_of_running else writers_of(deployment)
    requesters = with_asker(writers, asking.asker) if asking.asker else writers
    if asking.again and asking.asker and asking.purpose == Request.Purpose.DEPLOY and not asking.to_revision:
        is_known = is_known or answers_for(deployment, asking.asker)
    if earlier := _find_passed_on(deployment, asking):
        requesters, is_known = with_earlier(requesters, earlier.requesters), is_known and earlier.is_requester_known
    return requesters, bool(requesters) and is_known and not asking.is_by_nobody


def _find_passed_on(deployment: BundleDeployment, asking: Asking) -> Request | None:
    """The request that gave way to this one, where its rotation is wished still: not by who goes back from it."""
    latest = deployment.requests.order_by("-number").first()
    is_passed_on = latest is not None and latest.state == State.SUPERSEDED and asking.purpose in _RENDERED
    return latest if is_passed_on and latest and latest.rotation else None


def _new_request(deployment: BundleDeployment, asking: Asking) -> Request:
    """A rollback is requested by who asks, and done as that revision was: its account and options. So is a rotation, as
    what runs."""
    now = database_now()
    to_revision = asking.to_revision
    requesters, is_known = _requesters(deployment, asking)
    latest = deployment.requests.order_by("-number").first()
    number = latest.number + 1 if latest else 1
    active = deployment.revisions.filter(state=Revision.State.ACTIVE).first()
    is_rotation = asking.purpose == Request.Purpose.ROTATE
    like = to_revision or (active if is_rotation else None)
    spec = like.request.spec if like else deployment.spec
    earlier = _find_passed_on(deployment, asking)
    rotation = {*asking.rotation, *(earlier.rotation if earlier else ())}
    words = change_words.take_up(deployment, of=asking.stands_for)
    request = Request.objects.create(
        deployment=deployment,
        cluster_id=deployment.cluster_id,
        number=number,
        purpose=asking.purpose,
        generation=deployment.generation,
        spec=spec,
        format=parse_spec(spec).format[:MAX_FORMAT],
        labels=deployment.labels,
        earlier_labels=labels.earlier(latest),
        options_digest=deployment.options_digest,
        rotation=sorted(rotation),
        change_reason=words.reason,
        change_ticket=words.ticket,
        bundles=active.request.bundles if is_rotation and active else [],
        requesters=requesters,
        is_requester_known=is_known,
        is_unattended=asking.stands_for is not None,
        from_revision=active,
        to_revision=to_revision,
        state=State.PREPARING,
        created_at=now,
        changed_at=now,
        expires_at=now + timedelta(hours=settings.PRATIQUE["REQUEST_HOURS"]),
    )
    list_request(request)
    names = ", ".join(person["username"] for person in requesters) or "unknown"
    audit.record(
        verb="request.made",
        actor=MACHINE if asking.stands_for else Actor(names, requesters[-1]["via"] if requesters else "cluster"),
        request=request,
        facts={
            "number": number,
            "purpose": asking.purpose,
            "generation": deployment.generation,
            **({"rotates": sorted(rotation)} if rotation else {}),
            **({"reason": words.reason} if words.reason else {}),
            **({"ticket": words.ticket} if words.ticket else {}),
            **({"standsFor": names} if asking.stands_for else {}),
        },
    )
    wake.request(request.pk)
    wake.deployment(deployment.pk)  # the cluster shows it from the first moment
    return request


def correct_requesters(deployment: BundleDeployment, writer: SpecWriter) -> None:
    """The watch saw a write before the door that made it could say by whom."""
    request = deployment.requests.order_by("-number").first()
    if request is None or request.is_requester_known:
        return
    writers, is_known = writers_of(deployment)
    if request.state == State.FAILED and is_known:
        # It may have failed for want of a name: then nobody's right to the named Secrets could be checked (S08).
        _ask_anew(deployment, request, writer)
    elif request.state in OPEN:
        _note_requesters(request, joined(writers, but_last=request.requesters), is_known, writer)


def _ask_anew(deployment: BundleDeployment, failed: Request, asker: SpecWriter) -> None:
    """The same as a request that may have failed for want of a name."""
    if failed.rotation:
        ensure_rotation_request(deployment, failed.rotation, asker)
    else:
        ensure_request(deployment, again=True, asker=asker)


def join(deployment: BundleDeployment, asker: SpecWriter, *, is_theirs: bool, is_again: bool) -> None:
    """Who asks is a requester as well, also where the watch saw it first; `is_theirs`: it saw this very asking.

    `is_again`: they ask for the same once more, and may answer for all of it.
    """
    request = deployment.requests.order_by("-number").first()
    if request is None:
        return
    is_known = request.is_requester_known or (is_theirs and writers_of(deployment)[1])
    # Whoever goes back to a revision asks for what others wrote: today's spec says nothing about that.
    is_for_spec = request.purpose == Request.Purpose.DEPLOY and request.options_digest == deployment.options_digest
    is_known = is_known or (is_again and is_for_spec and answers_for(deployment, asker))
    if request.state == State.FAILED and is_known and not request.is_requester_known:
        _ask_anew(deployment, request, asker)
    elif request.state in OPEN:
        requesters = with_asker(request.requesters, asker)
        if (requesters, is_known) != (request.requesters, request.is_requester_known):
            _note_requesters(request, requesters, is_known, asker)


def _note_requesters(request: Request, requesters: list[dict[str, Any]], is_known: bool, latest: SpecWriter) -> None:
    request.requesters, request.is_requester_known, request.mirrored_at = requesters, is_known, None
    request.save(update_fields=["requesters", "is_requester_known", "mirrored_at"])
    list_askers(request)
    wake.deployment(request.deployment_id)
    actor = Actor(latest.identity.username, latest.via)
    audit.record(verb="request.requester-known", actor=actor, request=request)
