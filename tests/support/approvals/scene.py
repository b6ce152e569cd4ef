"""Rows as a busy afternoon leaves them: requests with real reports, a revision, an inventory, policies, an audit."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from approvals import audit
from approvals.audit import Actor
from approvals.ledger import pivots
from approvals.models import (
    BundleDeployment,
    Cluster,
    Content,
    Drift,
    Finding,
    InventoryItem,
    Outcome,
    Policy,
    PolicyEvaluation,
    Report,
    Request,
    Revision,
)
from approvals.services import reviews
from provisioner.review.base.record import to_record
from provisioner.values import Finding as FindingValue
from provisioner.values import ObjectRef, Severity
from tests.support.approvals import world
from tests.support.provisioner.cases import FOLDER
from tests.support.provisioner.cases import report_of as report_of_case

OBJECT = ("group", "version", "kind", "namespace", "name")
DIGEST = f"sha256:{'d' * 64}"


def asked(where: Cluster, name: str, by: User | None, version: str = "1.0.0") -> Request:
    """The request of a new deployment."""
    return world.submit_spec(where, world.seen(name, world.spec(version)), by).requests.get()


def report_of(*cases: str) -> dict[str, Any]:
    """The record of real reports of the library, put together."""
    records = [json.loads(_record(FOLDER / case)) for case in cases]
    order = ["critical", "breaking", "unknown", "dangerous", "notable", "safe"]
    findings = sorted(
        (finding for record in records for finding in record["findings"]), key=lambda it: order.index(it["severity"])
    )
    return {
        "version": 3,
        "private": [],
        "headline": [sentence for record in records for sentence in record["headline"][:1]],
        "worst": findings[0]["severity"] if findings else "safe",
        "findings": findings,
        "plan": {"digest": DIGEST, "actions": [one for record in records for one in record["plan"]["actions"]]},
    }


@cache
def _record(case: Path) -> str:
    return json.dumps(to_record(report_of_case(case)))


def reported(request: Request, body: dict[str, Any]) -> Request:
    """Bring a request to review with this report."""
    actions = Counter(action["action"] for action in body["plan"]["actions"])
    severities = Counter(finding["severity"] for finding in body["findings"])
    world.in_review(request)
    report = Report.objects.get(request=request)
    report.worst, report.headline, report.body = body["worst"], body["headline"], body
    report.actions, report.severities = dict(actions), dict(severities)
    report.save()
    columns = ("rule", "section", "severity", "message", "fingerprint")
    Finding.objects.bulk_create(
        Finding(report=report, position=position, is_new=one["isNew"], **{name: one[name] for name in columns})
        for position, one in enumerate(body["findings"])
    )
    Request.objects.filter(pk=request.pk).update(weight=pivots.weight_of(Severity(body["worst"])))
    found = [_finding(one) for one in body["findings"]]
    pivots.list_report(request, headline=body["headline"], findings=found)
    return request


def _finding(record: dict[str, Any]) -> FindingValue:
    """As much of it as lists are made from."""
    ref = ObjectRef(**{name: record["ref"][name] for name in OBJECT}) if record["ref"] else None
    return FindingValue(record["rule"], record["section"], Severity(record["severity"]), record["message"], ref)


def running(request: Request, *, objects: int = 12) -> BundleDeployment:
    """Bring a request to its end: applied, with a revision and an inventory."""
    now = timezone.now()
    world.in_review(request)
    Request.objects.filter(pk=request.pk).update(state="applied", settled_at=now)
    deployment = request.deployment
    revision = Revision.objects.create(
        deployment=deployment,
        number=1,
        request=request,
        content=Content.objects.get(),
        state="active",
        started_at=now,
        finished_at=now,
    )
    deployment.active_revision, deployment.health = revision, "Current"
    deployment.save(update_fields=["active_revision", "health"])
    for number in range(objects):
        item = InventoryItem.objects.create(
            deployment=deployment,
            revision=revision,
            version="v1",
            kind="ConfigMap",
            namespace="harbour",
            name=f"berth-{number}",
            nonce=f"n{number}",
            uid=f"u{number}",
            health="Current" if number % 5 else "InProgress",
        )
        Outcome.objects.create(
            request=request, position=number, object=str(item), action="create", state="done", at=now
        )
    return deployment


def policy(where: Cluster, by: User, name: str = "routine") -> Policy:
    now = timezone.now()
    return Policy.objects.create(
        name=name,
        kind="grant",
        mode="dry-run",
        cluster=where,
        names=["harbour*"],
        labels={"team": "harbour"},
        expression='worst_new in ["safe", "notable"]',
        author=by,
        editor=by,
        created_at=now,
        changed_at=now,
    )


def said(policy: Policy, request: Request, result: str = "silent", words: str = "worst_new is breaking") -> None:
    PolicyEvaluation.objects.create(
        request=request,
        round=request.round,
        policy=policy,
        policy_version=policy.version,
        result=result,
        words=words,
        at=timezone.now(),
    )


def afternoon(where: Cluster, ada: User, rita: User) -> dict[str, Any]:
    """Everything that the pages can show, at once: made once in a process, afterwards the rows of it are copied."""
    copy = _copies.get((where.pk, ada.pk, rita.pk))
    if copy is not None:
        return copy.put_back()
    before = {model: set(model._default_manager.values_list("pk", flat=True)) for model in MODELS}
    made = _made(where, ada, rita)
    _copies[where.pk, ada.pk, rita.pk] = Copy.taken(before, made)
    return made


@dataclass(frozen=True)
class Copy:
    """Rows as SQLite keeps them, by table, and which of them have a name."""

    rows: dict[str, list[tuple[Any, ...]]]
    named: dict[str, tuple[type[Model], Any]]

    @classmethod
    def taken(cls, before: dict[type[Model], set[Any]], made: dict[str, Any]) -> Copy:
        rows = {}
        with connection.cursor() as cursor:
            for model, known in before.items():
                table, key = model._meta.db_table, model._meta.pk.column
                cursor.execute(f'SELECT "{key}", * FROM "{table}"')
                rows[table] = [row[1:] for row in cursor.fetchall() if row[0] not in known]
        return cls(rows, {name: (type(row), row.pk) for name, row in made.items()})

    def put_back(self) -> dict[str, Any]:
        # In one transaction: the rows name each other, whatever order their tables come in.
        with transaction.atomic(), connection.cursor() as cursor:
            for table, rows in self.rows.items():
                if rows:
                    places = ", ".join(["%s"] * len(rows[0]))
                    cursor.executemany(f'INSERT INTO "{table}" VALUES ({places})', rows)
        return {name: model._default_manager.get(pk=pk) for name, (model, pk) in self.named.items()}


MODELS = list(apps.get_app_config("approvals").get_models(include_auto_created=True))
_copies: dict[tuple[int, int, int], Copy] = {}


def _made(where: Cluster, ada: User, rita: User) -> dict[str, Any]:
    deployment = running(asked(where, "lighthouse", rita))
    serious = reported(
        asked(where, "harbour", rita),
        report_of("crd-version-dropped", "account-reads-every-secret", "pods-own-the-node", "secret-in-the-bundle"),
    )
    quiet = reported(asked(where, "tugboat", rita), report_of("image-known-before"))
    deleting = reported(asked(where, "buoy", rita), report_of("data-is-deleted", "crd-deleted"))
    failed = asked(where, "ferry", rita)
    Request.objects.filter(pk=failed.pk).update(
        state="failed", problem_code="unreachable", problem="the registry did not answer", settled_at=timezone.now()
    )
    reviews.review(
        by=world.acting(ada),
        request_id=quiet.pk,
        decision="Approve",
        subject_digest=quiet.subject_digest,
        reason="as usual",
        channel="browser",
    )
    grant = policy(where, ada)
    said(grant, serious)
    audit_row(serious)
    return {"deployment": deployment, "serious": serious, "quiet": quiet, "deleting": deleting, "policy": grant}


def audit_row(request: Request) -> None:
    with transaction.atomic():
        audit.record(
            verb="request.moved", actor=Actor("pratique", "machine"), request=request, facts={"to": "in_review"}
        )


def drifted(deployment: BundleDeployment, name: str = "berth-0", **more: Any) -> Drift:
    """One object of a running deployment that somebody has edited."""
    now = timezone.now()
    field = {
        "path": "data.depth",
        "change": "changed",
        "manager": "kubectl-edit",
        "at": "2026-11-21T12:00:00Z",
        "expected": "ten fathoms",
        "found": "two feet",
    }
    told = {"state": "open", "kind": "changed", "fields": [field], "found_at": now, "changed_at": now, **more}
    item = InventoryItem.objects.get(deployment=deployment, name=name)
    return Drift.objects.create(item=item, revision=deployment.active_revision, **told)
