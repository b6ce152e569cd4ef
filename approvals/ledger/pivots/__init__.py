"""From what was seen in a cluster to requests: a change of content or options is a pivot, a pivot makes one request."""

from approvals.ledger.pivots.asking import ask_once_more, ensure_request, follow_up, take_up
from approvals.ledger.pivots.problems import note_problem
from approvals.ledger.pivots.seen import (
    ANNOTATION_LENGTH,
    ASK_AGAIN,
    PAUSE_REASON,
    PAUSE_REASON_LENGTH,
    ROLLBACK_TO,
    forget,
    see,
)
from approvals.ledger.pivots.writers import Writer, has_asked

__all__ = [
    "ANNOTATION_LENGTH",
    "ASK_AGAIN",
    "PAUSE_REASON",
    "PAUSE_REASON_LENGTH",
    "ROLLBACK_TO",
    "Writer",
    "ask_once_more",
    "ensure_request",
    "follow_up",
    "forget",
    "has_asked",
    "note_problem",
    "see",
    "take_up",
]
