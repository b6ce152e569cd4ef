"""The outbox: the event of an audit entry is a row of the same transaction, whoever may be told of it later.

It costs one INSERT and no query: all that it says is in the rows that the writer of the entry holds.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from approvals.events.cloud_event import home_url, request_record
from approvals.events.occasions import EventType, event_type_of
from approvals.models import AuditEntry, BundleDeployment, OutboxEvent, Request
from provisioner.values import Severity

MAX_WORDS = 1000
MAX_SUBJECT = 400
MAX_ITEMS = 50
# Facts that every reader of the deployment may know, by the type of the event. The rest may quote objects.
_TOLD = {
    EventType.REQUEST_NEEDS_APPROVAL: ("needs",),
    EventType.REVIEW_OWED: ("incident",),
    EventType.DEPLOYMENT_DRIFTED: ("object", "revision"),
    EventType.DEPLOYMENT_CORRECTED: ("object", "revision"),
    EventType.DEPLOYMENT_UNHEALTHY: ("revision",),
}


def put_event(entry: AuditEntry, request: Request | None, deployment: BundleDeployment | None) -> None:
    """Write the event of an entry, if it is an occasion; in the transaction of the entry."""
    event_type = event_type_of(entry.verb, entry.facts)
    if event_type is None:
        return
    data: dict[str, Any] = {"actor": {"name": entry.actor, "via": entry.via}}
    if deployment is None:
        cluster = str(entry.facts.get("cluster", ""))
        kind, name = str(entry.facts.get("kind", "Policy")), str(entry.facts.get("name", ""))
        if event_type == EventType.POLICY_CHANGED:
            kind = kind if entry.verb.startswith("deciding-object.") else "Policy"
            change = str(entry.facts.get("change") or entry.verb.partition(".")[2])
            data |= {"cluster": cluster, "policy": {"kind": kind, "name": name, "change": change}}
        subject = "/".join(filter(None, (cluster, kind, name)))
    else:
        cluster, subject = entry.cluster, f"{entry.cluster}/{deployment.name}"
        page = f"{home_url()}/deployments/{quote(entry.cluster)}/{quote(deployment.name)}"
        data |= {"cluster": cluster, "deployment": {"name": deployment.name, "uid": deployment.uid, "page": page}}
        data |= {fact: _told(entry.facts[fact]) for fact in _TOLD.get(event_type, ()) if fact in entry.facts}
    severity = ""
    if request:
        subject = f"{subject}/{request.uid}"
        severity = severity_of(request)
        about = request_record(request, round_number=request.round, severity=severity)
        data["request"] = {**about, "state": request.state}
        data["change"] = {"reason": request.change_reason[:MAX_WORDS], "ticket": request.change_ticket}
        # What people wrote when they reviewed or withdrew it.
        data["reason"] = _told(entry.facts.get("reason", ""))
    labels = [deployment.labels] if deployment else []
    if request:  # whoever takes a label off takes nobody's events away (S14)
        labels = [request.labels, *request.earlier_labels]
    OutboxEvent.objects.create(
        number=entry.number,
        type=event_type,
        cluster=cluster[:63],
        subject=subject[:MAX_SUBJECT],
        labels=labels,
        severity=severity,
        data=data,
        at=entry.at,
    )


def severity_of(request: Request) -> str:
    """Of its worst new finding; `unknown` where there is no report yet (Request.weight)."""
    found = (severity for severity in Severity if len(Severity) - severity.rank == request.weight)
    return str(next(found, Severity.UNKNOWN))


def _told(fact: object) -> Any:
    if isinstance(fact, dict):
        return {name: _told(value) for name, value in fact.items()}
    if isinstance(fact, list):
        return [_told(item) for item in fact[:MAX_ITEMS]]
    return fact if isinstance(fact, int) else str(fact)[:MAX_WORDS]
