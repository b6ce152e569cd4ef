"""PREPARING or STALE → IN_REVIEW: pin, fetch, render, store, report. Nothing is written to the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.conf import settings
from django.db import DataError, transaction
from django.utils.crypto import salted_hmac

from approvals import access, gate, store, wake
from approvals.access.port import asking_through
from approvals.access.sight import SECRET_TEXTS
from approvals.audit import MACHINE
from approvals.catalogs import bundle_choice
from approvals.clock import database_now
from approvals.errors import KeyMissing
from approvals.gate import Reason, plan_options, reader, unmet_words
from approvals.gate.facts import value_of
from approvals.gate.remedies import RefusalKind, reason
from approvals.gate.rights import last_writer_of
from approvals.ledger import claims, made_values, pivots
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event, State
from approvals.models import Content as ContentRow
from approvals.models import Finding as FindingRow
from approvals.models import LookupAnswers, Request
from approvals.models import Report as ReportRow
from approvals.selectors.pages import report_of
from approvals.steps import shared_reads
from approvals.steps.live_values import find_live_values
from approvals.steps.records import source_history
from approvals.steps.records.likeness import likeness_of
from approvals.steps.records.source_history import way_back
from approvals.steps.sources import (
    check_object_count,
    egress,
    found_as,
    limits,
    polling_egress,
    read_for,
    read_values,
    reader_as,
    sources_of,
)
from provisioner import pipeline, render
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.health import observation
from provisioner.errors import BadBundle, BadHealthCheck, BadRecord, InvalidManifest, PratiqueError
from provisioner.review.base.made_texts import HiddenTexts, without_texts_of_report
from provisioner.review.base.messages import unjudged_fields
from provisioner.review.base.record import from_record, plain, ref_record, to_record
from provisioner.review.secret_texts import secret_texts
from provisioner.values import DELETING, DEPENDENCY, Content, JsonObject, ObjectRef, Pin, Report, Severity, SourceMove


@dataclass(frozen=True, slots=True)
class Prepared:
    content: Content
    row: ContentRow
    account_uid: str
    report: Report
    moves: tuple[SourceMove, ...] = ()
    unmet: Reason | None = None
    read_unattended: tuple[str, ...] = ()
    possible_authors: tuple[tuple[str, str], ...] = ()


def run(request: Request, worker: str) -> None:
    if request.purpose != Request.Purpose.DELETE:
        try:
            observation.check_spec(request.bundle_spec.health)
        except BadHealthCheck as exc:
            # No request of this spec can be prepared, so that the deployment says it as well.
            pivots.note_problem(of=request, words=str(exc))
            raise
    api = shared_reads.connected(request.deployment.cluster)
    with asking_through(request.deployment.cluster, api):
        facts = reader.preparing(request, api, read_for(request))
    if gate.are_requesters_proved(facts) and not request.is_installer_proved:
        # Until everybody who asked was let, nobody gives us a right to what the spec names (S31).
        Request.objects.filter(pk=request.pk).update(is_installer_proved=True)
        request.is_installer_proved = True
    gate.require(request, facts)
    account = value_of(facts.account)
    assert account is not None  # the answer was yes
    words = unmet_words(request, api)
    unmet = reason(RefusalKind.UNMET, words, facts.about) if words else None
    is_all_known = request.is_requester_known and not pivots.unknown_writes(request)
    authors = () if is_all_known else access.subjects_that_may_write(api, request)
    content, row, moves = _load_content(request, api)
    request.bundles = [asdict(bundle) for bundle in bundle_choice.bundles_as_offered_now(request)]
    with pipeline.resolving([pin.digest for pin in content.pins]):
        report = _make_report(request, api, content, moves)
        try:
            unattended = gate.reads_unattended(facts)
            _record(request, Prepared(content, row, account.uid, report, moves, unmet, unattended, authors))
        except DataError as exc:
            # The database's own words may quote what it was given, so that they are not passed on.
            raise InvalidManifest(UNKEEPABLE) from exc


def _make_report(request: Request, api: Api, content: Content, moves: tuple[SourceMove, ...]) -> Report:
    """What would change. It is compared with the reviewed report of what runs, where that can be read."""
    running, reviewed = request.deployment.active_revision, None
    if running and (row := report_of(running.request)):
        with suppress(BadRecord, KeyMissing):
            reviewed = from_record(row.body)
    return pipeline.look(
        api,
        content,
        previous=plan_options.running_content(request),
        inventory=plan_options.owned(request.deployment),
        as_account=request.bundle_spec.installer,
        own_namespace=settings.PRATIQUE["NAMESPACE"],
        installers=plan_options.installers_on(request.deployment.cluster),
        allowed_images=tuple(settings.PRATIQUE["ALLOWED_IMAGES"]),
        options=plan_options.plan_options(request),
        way_back=way_back(request, content),
        history=source_history.of(request, moves),
        deployment=request.deployment.name,
        running=reviewed,
    )


UNKEEPABLE = (
    "the report cannot be stored: the bundle, or a live object that it is compared with, contains a character "
    "that the database does not support, such as NUL"
)


def _load_content(request: Request, api: Api) -> tuple[Content, ContentRow, tuple[SourceMove, ...]]:
    """A request's content is rendered once; a later round is about the same bytes (promise 1). With how its sources
    moved, which is found out with the fetching."""
    if request.content:
        moves = source_history.recorded(request)
        return store.get(request.content, fetched_by=request), request.content, moves
    if request.to_revision:
        row = request.to_revision.content
        content = store.get(row, fetched_by=request.to_revision.request)
        return replace(content, made_up=content.made_up.kept()), row, ()
    if request.purpose == Request.Purpose.DELETE:
        # A deletion leaves no object at all. What runs may have hooks that run when it goes.
        namespace, account = request.bundle_spec.account
        old = plan_options.running_content(request) if plan_options.moments_of(request) else None
        hooks = old.hooks_at(DELETING) if old else ()
        digest = render.content_digest(hooks, install_namespace=namespace, service_account=account)
        content, moves = Content((), namespace, account, (), digest, hooks=hooks), ()
    else:
        content, moves = _fetch_content(request, api)
    running = request.deployment.active_revision
    content = store.salted(content, running.content if running else None)
    return content, store.put(content, format_name=request.bundle_spec.format), moves


def _fetch_content(request: Request, api: Api) -> tuple[Content, tuple[SourceMove, ...]]:
    spec = request.bundle_spec
    sources = sources_of(spec, reader_as_requester(request, api), bundle_choice.bundles_for(request))
    read_auth = reader_as_requester(request, api, named_in="spec.config.dependencyAuth")
    secrets = [(auth.host, read_auth(auth.secret)) for auth in spec.dependency_auth()]
    target: render.Target | None = None
    value_pins: tuple[Pin, ...] = ()
    if render.is_told_of_target(spec.format):
        # What a chart sees of the cluster, and that it runs already, be it as a release that is taken over: fixed with
        # the content (promise 1). It looks up objects as who wrote the spec last (S08).
        is_running = request.deployment.active_revision_id is not None
        is_takeover = spec.helm_release() is not None and not is_running
        wanted = spec.lookups()

        def find(ref: ObjectRef) -> JsonObject | None:
            return found_as(last_writer_of(request).identity, request.deployment.cluster, api)(ref)

        seed = salted_hmac("pratique: marks of lookups", str(request.deployment.cluster_id)).hexdigest()
        lookups = None if wanted is None else render.looked_up(wanted, find, seed=seed)
        values = tuple(read_values(reference, request.deployment.cluster, find) for reference in spec.values_from())
        value_pins = tuple(
            Pin("valuesFrom", reference.words, held.version, reference.where)
            for reference, held in zip(spec.values_from(), values, strict=True)
        )
        target = pipeline.target_of(
            api, is_upgrade=is_running or is_takeover, lookups=lookups, values_from=values, is_takeover=is_takeover
        )
    kept_values = {key: row.value for key, row in made_values.given_rows(request.deployment).items()}
    rotated = {named: made_values.rotated_keys(request.deployment, named) for named in request.rotation}
    kept_values |= dict.fromkeys(kept_values.keys() & set().union(*rotated.values()), "")
    options = pipeline.PrepareOptions(
        format=spec.format,
        install_namespace=spec.install_namespace,
        service_account=spec.service_account,
        config=dict(spec.config),
        target=target,
        kept_values=kept_values,
    )

    def rendered(fetched: pipeline.FetchedSources) -> Content:
        return pipeline.render_sources(fetched, options=options, limits=limits(), is_namespaced=api.is_namespaced)

    try:
        with pipeline.ready_to_render(options):
            fetched = pipeline.fetch_sources(
                sources,
                options=options,
                egress=egress(),
                credentials=None,
                limits=limits(),
                pins=_pins_of(request, len(sources)),
                secrets=secrets,
            )
            content = rendered(fetched)
            if live := find_live_values(request, api, content):
                options = replace(options, kept_values={**(options.kept_values or {}), **live})
                content = rendered(fetched)
            _check_rotated(content, rotated)
        with pipeline.resolving(fetched.digests):
            check_object_count(content)
    except PratiqueError as exc:
        if len(exc.resolved) == len(sources):  # what was fetched cannot be rendered: with other values it may
            exc.resolved += tuple(pin.digest for pin in value_pins)
        raise
    earlier = source_history.earlier_commits(request) if request.purpose == Request.Purpose.DEPLOY else {}
    moves = pipeline.moves(sources, fetched.pins, earlier, egress=polling_egress()) if earlier else ()
    # After those of the sources, as references.follow counts them.
    return replace(content, pins=(*fetched.pins, *value_pins, *fetched.dependencies.pins)), moves


def _pins_of(request: Request, count: int) -> list[Pin]:
    """Where the sources of a rotation, and the dependencies of its chart, were when what runs was rendered; none for
    other requests.
    """
    if request.purpose != Request.Purpose.ROTATE:
        return []
    assert request.from_revision is not None  # it is of what ran then
    pins = [
        Pin(pin["kind"], pin["reference"], pin["digest"], pin.get("destination", ""))
        for pin in request.from_revision.request.pins
    ]
    return [*pins[:count], *(pin for pin in pins[count:] if pin.kind == DEPENDENCY)]


def _check_rotated(content: Content, rotated: Mapping[str, set[str]]) -> None:
    """Raise BadBundle where nothing was made anew of what somebody named."""
    made = {place.key for made in content.made_up.values if made.is_rotated for place in made.places}
    for target, keys in rotated.items():
        if not keys & made:
            raise BadBundle(
                f"nothing of {target} is made anew: this version of the chart does not make it up, because it takes "
                "the value from spec.config, or no longer has it. Request it again to go on without the rotation"
            )


def reader_as_requester(
    request: Request, api: Api, *, named_in: str = "spec.sources"
) -> Callable[[ObjectRef], JsonObject]:
    """Reads as who wrote the spec last (S08); Kubernetes has said that they may (gate.reader.preparing)."""

    def read(ref: ObjectRef) -> JsonObject:
        person, cluster = last_writer_of(request).identity, request.deployment.cluster
        return reader_as(person, cluster, api, named_in=named_in)(ref)

    return read


@transaction.atomic(durable=True)
def _record(request: Request, prepared: Prepared) -> None:
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    if (row.state, row.round) != (request.state, request.round):
        return
    is_again = row.state == State.STALE
    round_number = row.round + 1 if is_again else row.round
    content, report = prepared.content, prepared.report
    made: dict[str, Any] = row.made_values
    if row.to_revision:
        made = made_values.as_kept(row.to_revision.request.made_values)
    if row.content_id is None and not row.to_revision:
        made = made_values.keep(row, content.made_up)
    hidden = made_values.hidden_texts(row.deployment_id, made.get("values", ()))
    worst = _save_report(row, round_number, report, content, hidden)
    subject = replace(
        reader.subject_of(row, content_digest=content.digest),
        round=round_number,
        plan_digest=report.plan.digest,
        service_account_uid=prepared.account_uid,
    )
    digest = subject.digest
    move(
        row,
        Event.REPORT_AGAIN if is_again else Event.PREPARED,
        actor=MACHINE,
        facts={"contentDigest": prepared.row.public_digest, "planDigest": report.plan.digest, "subjectDigest": digest},
        round=round_number,
        weight=pivots.weight_of(worst),
        content=prepared.row,
        pins=[
            {"kind": pin.kind, "reference": pin.reference, "digest": pin.digest, "destination": pin.destination}
            for pin in content.pins
        ],
        unused_files={
            "count": content.unused.count,
            "readableCount": content.unused.readable_count,
            "paths": list(content.unused.paths),
        },
        requirements=[asdict(requirement) for requirement in content.requirements],
        chart_values=content.values,
        spec_values=sorted(content.spec_values),
        repeated_keys=[asdict(repeated) for repeated in content.repeated],
        bundle_version=content.version,
        engine=content.engine[:40],
        helm_3_differs=None if content.helm_3_differs is None else [asdict(ref) for ref in content.helm_3_differs],
        source_moves=[asdict(source_move) for source_move in prepared.moves],
        lookups=[
            {
                "object": asdict(lookup.ref),
                "digest": lookup.digest,
                "copies": list(lookup.copies),
                "keys": list(lookup.keys),
                "compared": list(lookup.compared),
            }
            for lookup in content.lookups
        ],
        patches=[asdict(result) for result in content.patches],
        made_values=made,
        bundles=row.to_revision.request.bundles if row.to_revision else request.bundles,
        service_account_uid=prepared.account_uid,
        plan_digest=report.plan.digest,
        subject_digest=digest,
        **({"read_unattended": list(prepared.read_unattended)} if prepared.read_unattended else {}),
        possible_authors=[list(author) for author in prepared.possible_authors],
        attempts=0,
        look_again_at=database_now(),
        problem=prepared.unmet.words if prepared.unmet else "",
        problem_code=prepared.unmet.code if prepared.unmet else "",
        remedy=prepared.unmet.remedy if prepared.unmet else "",
    )
    # What the chart was told, of the one time that it was rendered: a content of the store does not say it again.
    answers = [lookup.answer for lookup in content.lookups]
    if any(answers):
        LookupAnswers.objects.filter(request=row).delete()
        LookupAnswers.objects.create(request=row, body=answers)
    wake.notice(row.pk, "needs_you")


def _save_report(
    request: Request, round_number: int, report: Report, content: Content, hidden: HiddenTexts
) -> Severity:
    """Keep the report, and what lists find the request by; answers with the worst new finding's severity.

    Of a new object, which nobody can get yet, it is kept where values of Secrets stand (approvals.access.sight). What
    is `hidden` from everybody is kept apart, for the apply (S44).
    """
    exact, texts = report.plan.actions, secret_texts(content, report.plan)
    if hidden:
        report = from_record(without_texts_of_report(to_record(report), hidden))
    counted = Counter(finding.severity for finding in report.public)
    # Reports of earlier versions do not say it: what no rule judges is among what they call safe.
    unjudged = sum(1 for finding in report.public for _ in unjudged_fields(finding.rule, finding.evidence))
    body: dict[str, Any] = {**to_record(report), "unjudged": unjudged}
    states = {}
    for position, (planned, record) in enumerate(zip(exact, body["plan"]["actions"], strict=True)):
        if planned.before is None and (found := texts.get(planned.ref.identity)):
            secrets = [ref_record(ref) for ref in sorted(found.secrets)]
            record[SECRET_TEXTS] = {"paths": [hidden.of(list(path)) for path in found.paths], "secrets": secrets}
        if (record["before"], record["after"]) != (planned.before, planned.after):
            states[str(position)] = [plain(planned.before), plain(planned.after)]
    new = [finding.severity for finding in report.public if finding.is_new]
    worst = min(new, key=lambda severity: severity.rank, default=Severity.SAFE)
    row = ReportRow.objects.create(
        request=request,
        round=round_number,
        worst=worst,
        headline=list(report.headline),
        severities={str(severity): counted[severity] for severity in Severity},
        actions={str(action): count for action, count in report.plan.counts().items()},
        body=body,
        exact_states=states or None,
        likeness=likeness_of(request, content, body, texts, hidden),
        computed_at=database_now(),
    )
    FindingRow.objects.bulk_create(
        FindingRow(
            report=row,
            position=position,
            rule=finding.rule,
            section=finding.section,
            severity=finding.severity,
            message=finding.message,
            object=str(finding.ref or "")[:600],
            fingerprint=finding.fingerprint,
            is_new=finding.is_new,
        )
        for position, finding in enumerate(report.public)
    )
    pivots.list_report(request, headline=report.headline, findings=report.public)
    return worst
