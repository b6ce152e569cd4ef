"""Guards select by labels, so other labels are a new round, and earlier ones stay on record (security-rules.md S14)."""

from __future__ import annotations

from approvals import audit, lifecycle
from approvals.audit import MACHINE
from approvals.errors import STOP_IT, ChangesAgain
from approvals.ledger import moves, rounds
from approvals.ledger.moves import locked
from approvals.lifecycle import MAX_ROUNDS, SUPERSEDABLE, Event, State
from approvals.models import BundleDeployment, Request

# So many sets of labels are kept beside the present one. One more stands for all that come after (`are_all_kept`).
MAX_KEPT = 10
CHANGED = "the labels changed since the report, so other guards may apply"


def follow(deployment: BundleDeployment) -> None:
    """Other labels are a new round of the open request, and the earlier ones stay with it (S14).

    Labels that change faster than people can review what they select end it, as everything else that does.
    """
    request = deployment.requests.filter(state__in=SUPERSEDABLE).first()
    if request is None or request.labels == deployment.labels:
        return
    row = locked(request.pk)
    known = _kept([*row.earlier_labels, row.labels])
    facts = {"labels": deployment.labels, "labelsBefore": row.labels}
    if not lifecycle.may(State(row.state), Event.FIND_STALE) or rounds.is_denied(row):
        row.labels, row.earlier_labels = deployment.labels, known
        row.save(update_fields=["labels", "earlier_labels"])
        audit.record(verb="request.labels", actor=MACHINE, request=row, facts=facts)
        return
    if (made := rounds.made_by_itself(row)) >= MAX_ROUNDS:
        words = f"{CHANGED}; it was reported again {made} times already, and will not be reported again"
        row.labels, row.earlier_labels = deployment.labels, known
        row.save(update_fields=["labels", "earlier_labels"])
        moves.end(row, ChangesAgain(words, remedy=STOP_IT.format(name=deployment.name)))
        return
    words = f"{CHANGED}: a new report and review are needed"
    changes = {"labels": deployment.labels, "earlier_labels": known}
    rounds.void(row, code=rounds.LABELS_CHANGED, words=words, facts=facts, **changes)


def earlier(latest: Request | None) -> list[dict[str, str]]:
    """Those of the request before, and while nothing since was applied also those that it took over (S14)."""
    if latest is None:
        return []
    kept = [] if latest.state == State.APPLIED else latest.earlier_labels
    return _kept([*kept, latest.labels])


def sets_of(request: Request) -> list[dict[str, str]]:
    """Every set of labels that counts, each once, that of the request first (S14)."""
    known = [request.labels, *request.earlier_labels, request.deployment.labels]
    sets = [{str(key): str(value) for key, value in labels.items()} for labels in known]
    return [labels for position, labels in enumerate(sets) if labels not in sets[:position]]


def are_all_kept(request: Request) -> bool:
    """Whether all labels that count are known; else every guard has to be taken for one that selects the request."""
    return len(request.earlier_labels) <= MAX_KEPT


def _kept(label_maps: list[dict[str, str]]) -> list[dict[str, str]]:
    """Each once, the first ones, and one more where there were more."""
    distinct = [labels for position, labels in enumerate(label_maps) if labels not in label_maps[:position]]
    return distinct[: MAX_KEPT + 1]
