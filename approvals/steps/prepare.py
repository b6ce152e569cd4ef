"""PREPARING or STALE → IN_REVIEW: pin, fetch, render, store, report. Nothing is written to the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import DataError, transaction
from django.utils import timezone

from approvals import access, store, wake
from approvals.access.port import connect
from approvals.access.questions import AUTHENTICATION
from approvals.audit import MACHINE
from approvals.errors import CouldNotAsk
from approvals.ledger import pivots
from approvals.ledger.digests import subject_digest
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event, State
from approvals.models import Content as ContentRow
from approvals.models import Finding as FindingRow
from approvals.models import Report as ReportRow
from approvals.models import Request, Revision
from approvals.steps import constraints, inventory
from approvals.steps.sources import egress, limits, read_by, sources_of
from approvals.steps.way_back import way_back
from provisioner import pipeline, render
from provisioner.cluster import probing
from provisioner.cluster.access import ask_self
from provisioner.cluster.api import Cluster as Api
from provisioner.errors import (
    BadHealthCheck,
    BadSource,
    BundleTooLarge,
    DigestMismatch,
    Forbidden,
    InvalidManifest,
    PreconditionFailed,
    TryLater,
)
from provisioner.review.record import to_record
from provisioner.values import AccessRequest, Content, GroupKind, Identity, JsonObject, ObjectRef, Report, Severity

DEFAULT_FORMAT = "plain"
ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Prepared:
    content: Content
    row: ContentRow
    account_uid: str
    report: Report
    unmet: str = ""


def run(request: Request, worker: str) -> None:
    if request.purpose != Request.Purpose.DELETE:
        _check_health_part(request)
    api = connect(request.deployment.cluster)
    check_cluster(request, api)
    check_requesters(request)
    note_proved(request)
    account_uid = account_uid_of(request, api)
    check_own_right(request, api)
    unmet = constraints.unmet_words(request, api)
    content, row = _content_of(request, api)
    report = pipeline.look(
        api,
        content,
        previous=running_content(request),
        inventory=inventory.owned(request.deployment),
        as_account=inventory.installer_of(request.spec),
        own_namespace=settings.PRATIQUE["NAMESPACE"],
        installers=inventory.installers_on(request.deployment.cluster),
        allowed_images=tuple(settings.PRATIQUE["ALLOWED_IMAGES"]),
        options=inventory.plan_options(request),
        way_back=way_back(request, content),
    )
    try:
        _record(request, Prepared(content, row, account_uid, report, unmet))
    except DataError as exc:
        # The database's own words may quote what it was given, so that they are not passed on.
        raise InvalidManifest(UNKEEPABLE) from exc


def _check_health_part(request: Request) -> None:
    """Raise BadHealthCheck, and say so of the deployment as well: no request of this spec can be prepared."""
    try:
        probing.check_spec(request.spec)
    except BadHealthCheck as exc:
        pivots.note_problem(of=request, words=str(exc))
        raise


UNKEEPABLE = (
    "the report cannot be kept by the database: a text of the bundle, or of a live object that it is compared with, "
    "holds what no column takes, such as a NUL"
)


def check_cluster(request: Request, api: Api) -> None:
    check_cluster_uid(request, api.uid())


def check_cluster_uid(request: Request, uid: str) -> None:
    """The same cluster as ever (S19): its uid is learned once and then never changes."""
    cluster = request.deployment.cluster
    if cluster.uid is None:
        type(cluster).objects.filter(pk=cluster.pk, uid__isnull=True).update(uid=uid)
        cluster.uid = uid
    if uid != cluster.uid:
        raise PreconditionFailed(
            f"cluster {cluster.name} is another one: its kube-system has uid {uid}, expected {cluster.uid}"
        )


def check_requesters(request: Request) -> None:
    """Every known requester may use the ServiceAccount, and get what the sources name in the cluster (S07, S08)."""
    needed = _read_for(request)
    if needed and not (request.is_requester_known and request.requesters):
        raise Forbidden(
            f"the sources name {', '.join(map(str, needed))}, and nobody knows who asked: nothing of it is read for "
            "somebody whose right to get it cannot be asked. Change the deployment as a person who signed in here"
        )
    for person in request.requesters:
        identity = _identity_of(person)
        _must(access.may_use_account(identity, request))
        for ref in needed:
            question = AccessRequest("get", resource=f"{ref.kind.lower()}s", namespace=ref.namespace, name=ref.name)
            _must(access.ask_for(identity, request.deployment.cluster, question, fresh=True))


def note_proved(request: Request) -> None:
    """Keep that `check_requesters` found everybody: until then nobody gives us a right to what the spec names (S31)."""
    is_proved = request.is_requester_known and bool(request.requesters)
    if is_proved and not request.is_installer_proved:
        type(request).objects.filter(pk=request.pk).update(is_installer_proved=True)
        request.is_installer_proved = True


def _read_for(request: Request) -> list[ObjectRef]:
    """Only a deployment fetches its sources; a rollback has its content, and a deletion none."""
    return read_by(request.spec) if request.purpose == Request.Purpose.DEPLOY else []


def _identity_of(person: Mapping[str, Any]) -> Identity:
    return Identity(person["username"], tuple(person["groups"]), person["uid"])


def _must(permission: access.Permission) -> None:
    if not permission.could_ask:
        raise CouldNotAskNow(permission.words)
    if not permission.allowed:
        raise Forbidden(f"{permission.words}; this would allow it:\n{permission.rule}")


class CouldNotAskNow(TryLater):
    """The cluster did not answer a question about a person's rights."""

    code = CouldNotAsk.code


def account_uid_of(request: Request, api: Api) -> str:
    """The uid of the installing ServiceAccount, which must exist (S07)."""
    namespace, name = str(request.spec.get("installNamespace", "")), str(request.spec.get("serviceAccountName", ""))
    if not namespace or not name:
        raise BadSource("spec.installNamespace and spec.serviceAccountName are both needed")
    account = api.get(ObjectRef("", "v1", "ServiceAccount", namespace, name))
    if account is None:
        raise BadSource(
            f"ServiceAccount {namespace}/{name} does not exist: create it, with the rights that the bundle needs, first"
        )
    return str(account["metadata"]["uid"])


class MissingRight(TryLater):
    """The service itself lacks a right. It goes on by itself once an operator has given it."""

    code = "missing-right"

    def __init__(self, request: Request, words: str, named: str = ""):
        """`named` is an account that the command leaves out unless somebody names it."""
        option = f" --installer {named}" if named else ""
        command = f"pratique-manage rights --cluster {request.deployment.cluster.name}{option} | kubectl apply -f -"
        super().__init__(f"{words}: an operator has to give Pratique that right. To print and apply it: {command}")


def check_own_right(request: Request, api: Api) -> None:
    """Raise MissingRight where the worker may not act as the installing account: nothing could be planned (S31)."""
    namespace, name = str(request.spec["installNamespace"]), str(request.spec["serviceAccountName"])
    either = (
        AccessRequest("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts", "", namespace, name),
        AccessRequest("impersonate", resource="serviceaccounts", namespace=namespace, name=name),
    )
    if not any(ask_self(api, one) for one in either):
        is_named = request.is_installer_proved and namespace not in inventory.reserved_namespaces()
        words = f"Pratique's worker may not act as ServiceAccount {namespace}/{name}"
        raise MissingRight(request, words, "" if is_named else f"{namespace}/{name}")


def check_account(request: Request, api: Api) -> None:
    """The ServiceAccount must be the very one that was approved: the same name made again is another one (S07)."""
    found = account_uid_of(request, api)
    if found != request.service_account_uid:
        raise DigestMismatch(
            f"the ServiceAccount has uid {found}; approved was {request.service_account_uid}: it was made again"
        )


def running_content(request: Request) -> Content | None:
    active = request.deployment.revisions.filter(state=Revision.State.ACTIVE).select_related("content").first()
    return store.get(active.content) if active else None


def _content_of(request: Request, api: Api) -> tuple[Content, ContentRow]:
    """A request's content is rendered once; a later round is about the same bytes (promise 1)."""
    if request.content:
        return store.get(request.content, pins=store.pins_of(request.pins)), request.content
    if request.to_revision:
        row = request.to_revision.content
        return store.get(row, pins=store.pins_of(request.to_revision.request.pins)), row
    format_name = str(request.spec.get("format") or DEFAULT_FORMAT)
    content = _nothing(request) if request.purpose == Request.Purpose.DELETE else _fetched(request, api, format_name)
    return content, store.put(content, format_name=format_name)


def _nothing(request: Request) -> Content:
    """What a deletion leaves: no object at all."""
    namespace, account = str(request.spec["installNamespace"]), str(request.spec["serviceAccountName"])
    digest = render.content_digest((), install_namespace=namespace, service_account=account)
    return Content((), namespace, account, (), digest)


def _fetched(request: Request, api: Api, format_name: str) -> Content:
    spec = request.spec
    served = {GroupKind(each.group, each.kind): each.is_namespaced for each in api.resources()}
    content = pipeline.prepare(
        sources_of(spec, _reader(request, api)),
        options=pipeline.PrepareOptions(
            format=format_name,
            install_namespace=str(spec["installNamespace"]),
            service_account=str(spec["serviceAccountName"]),
            config=dict(spec.get("config") or {}),
        ),
        egress=egress(),
        credentials=None,
        limits=limits(),
        is_namespaced=served.get,
    )
    most = settings.PRATIQUE["MAX_OBJECTS"]
    if len(content.manifests) > most:
        raise BundleTooLarge(f"the bundle has {len(content.manifests)} objects; PRATIQUE_MAX_OBJECTS allows {most}")
    return content


def _reader(request: Request, api: Api) -> Callable[[ObjectRef], JsonObject]:
    """Reads as the person who asked, so that the service needs no right of its own to anybody's Secrets (S08).

    Kubernetes has said that they may get it (`check_requesters`), so it is mostly acting as them that is refused. For
    an account it is read by a right to this very object: the right to act as the account, with what installers may be
    asked to do, would be all that the account may (S31).
    """

    def read(ref: ObjectRef) -> JsonObject:
        person = _identity_of(request.requesters[0])
        is_account = person.username.startswith(ACCOUNT)
        try:
            found = (api if is_account else api.acting_as(person)).get(ref)
        except Forbidden as exc:
            words = f"{ref} cannot be read {'for' if is_account else 'as'} {person.username}, who may get it"
            if is_account or "impersonate" in exc.in_full:
                raise MissingRight(request, words) from exc
            raise Forbidden(f"{words}: {exc}") from exc
        if found is None:
            raise BadSource(f"{ref} does not exist; spec.sources names it")
        return found

    return read


@transaction.atomic(durable=True)
def _record(request: Request, prepared: Prepared) -> None:
    row = locked(request.pk)
    if row.state != request.state:
        return
    is_again = row.state == State.STALE
    round_number = row.round + 1 if is_again else row.round
    report = prepared.report
    _save_report(row, round_number, report)
    digest = subject_digest(
        cluster_uid=row.deployment.cluster.uid or "",
        deployment_uid=row.deployment.uid,
        request_uid=str(row.uid),
        round_number=round_number,
        content_digest=prepared.content.digest,
        plan_digest=report.plan.digest,
        options_digest=row.options_digest,
        service_account_uid=prepared.account_uid,
    )
    move(
        row,
        Event.REPORT_AGAIN if is_again else Event.PREPARED,
        actor=MACHINE,
        facts={"contentDigest": prepared.content.digest, "planDigest": report.plan.digest, "subjectDigest": digest},
        round=round_number,
        content=prepared.row,
        pins=[
            {"kind": pin.kind, "reference": pin.reference, "digest": pin.digest, "destination": pin.destination}
            for pin in prepared.content.pins
        ],
        service_account_uid=prepared.account_uid,
        plan_digest=report.plan.digest,
        subject_digest=digest,
        attempts=0,
        look_again_at=None,
        problem=prepared.unmet,
        problem_code=constraints.CODE if prepared.unmet else "",
    )
    wake.notice(row.pk, "needs_you")


def _save_report(request: Request, round_number: int, report: Report) -> None:
    counted = Counter(finding.severity for finding in report.public)
    body: dict[str, Any] = to_record(report)
    row = ReportRow.objects.create(
        request=request,
        round=round_number,
        worst=min((it.severity for it in report.public if it.is_new), key=lambda it: it.rank, default=Severity.SAFE),
        headline=list(report.headline),
        severities={str(severity): counted[severity] for severity in Severity},
        actions={str(action): count for action, count in report.plan.counts().items()},
        body=body,
        computed_at=timezone.now(),
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
