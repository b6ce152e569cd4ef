"""From what was seen in a cluster to requests: a change of content or options is a pivot, a pivot makes one request."""

from approvals.ledger.pivots.deployments import (
    ANNOTATION_LENGTH,
    ASK_AGAIN,
    PAUSE_REASON,
    PAUSE_REASON_LENGTH,
    ROLLBACK_TO,
    ROTATE,
    forget,
    forget_all,
    see,
)
from approvals.ledger.pivots.requests import (
    ask_once_more,
    ensure_request,
    follow_up,
    list_report,
    note_problem,
    take_up_waiting,
    weight_of,
    why_unreadable,
)
from approvals.ledger.pivots.source_changes import answer_moves, answer_upgrades
from approvals.ledger.pivots.writers import (
    AskedRequest,
    SpecWriter,
    has_requested,
    person_record,
    unknown_writes,
    why_unknown,
)

__all__ = [
    "ANNOTATION_LENGTH",
    "ASK_AGAIN",
    "PAUSE_REASON",
    "PAUSE_REASON_LENGTH",
    "ROLLBACK_TO",
    "ROTATE",
    "AskedRequest",
    "SpecWriter",
    "answer_moves",
    "answer_upgrades",
    "ask_once_more",
    "ensure_request",
    "follow_up",
    "forget",
    "forget_all",
    "has_requested",
    "list_report",
    "note_problem",
    "person_record",
    "see",
    "take_up_waiting",
    "unknown_writes",
    "weight_of",
    "why_unknown",
    "why_unreadable",
]
