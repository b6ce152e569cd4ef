"""Guards select by labels, so other labels are a new round, and earlier ones stay on record (security-rules.md S14)."""

from __future__ import annotations

from approvals import audit, lifecycle
from approvals.audit import MACHINE
from approvals.ledger import rounds
from approvals.ledger.moves import locked
from approvals.lifecycle import SUPERSEDABLE, Event, State
from approvals.models import BundleDeployment, Request


def follow(deployment: BundleDeployment) -> None:
    """Other labels are a new round of the open request, and the earlier ones stay with it (S14)."""
    request = deployment.requests.filter(state__in=SUPERSEDABLE).first()
    if request is None or request.labels == deployment.labels:
        return
    row = locked(request.pk)
    known = _distinct([*row.earlier_labels, row.labels])
    facts = {"labels": deployment.labels, "labelsBefore": row.labels}
    if lifecycle.may(State(row.state), Event.FIND_STALE):
        words = "the labels changed since the report, so other guards may apply: a new report and review are needed"
        changes = {"labels": deployment.labels, "earlier_labels": known}
        rounds.void(row, code=rounds.LABELS_CHANGED, words=words, facts=facts, **changes)
        return
    row.labels, row.earlier_labels = deployment.labels, known
    row.save(update_fields=["labels", "earlier_labels"])
    audit.record(verb="request.labels", actor=MACHINE, request=row, facts=facts)


def earlier(latest: Request | None) -> list[dict[str, str]]:
    """Those of the request before, and while nothing since was applied also those that it took over (S14)."""
    if latest is None:
        return []
    kept = [] if latest.state == State.APPLIED else latest.earlier_labels
    return _distinct([*kept, latest.labels])


def _distinct(label_maps: list[dict[str, str]]) -> list[dict[str, str]]:
    return [labels for position, labels in enumerate(label_maps) if labels not in label_maps[:position]]
