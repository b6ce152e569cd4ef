"""How a request ends that cannot come right, with its words and who can do what about it."""

from __future__ import annotations

from typing import Any

from approvals.audit import MACHINE
from approvals.errors import CHANGED
from approvals.ledger.moves import move
from approvals.lifecycle import Event
from approvals.models import Request
from provisioner.errors import DigestMismatch, PratiqueError, TryLater
from provisioner.review.base.record import ref_record


def is_end(error: PratiqueError) -> bool:
    """Whether an error ends a request that is approved and has not begun: the gate said so, or what is stored is not
    what was approved. What else a step could not find out is waited for.
    """
    is_answer = bool(getattr(error, "remedy", "")) or isinstance(error, DigestMismatch)
    return is_answer and not isinstance(error, TryLater)


def remedy_of(error: PratiqueError, name: str) -> str:
    """Who can do what about it, where that is known; `name` is the deployment's."""
    known = str(getattr(error, "remedy", ""))
    return CHANGED.format(name=name) if not known and isinstance(error, DigestMismatch) else known


def said_of(error: PratiqueError, name: str) -> dict[str, Any]:
    """The columns of a request that fails of this: what people are told, and what the API server said of it."""
    said = getattr(error, "said", ())
    return {
        "problem": str(error),
        "problem_code": error.code,
        "remedy": remedy_of(error, name),
        "server_words": [{"ref": ref_record(ref), "words": words} for ref, words in said],
    }


def end(row: Request, error: PratiqueError) -> None:
    """End a locked request that is in review or approved: nothing of it was written, and it may be asked for anew."""
    facts = {"code": error.code, "why": str(error)}
    move(row, Event.GIVE_UP, actor=MACHINE, facts=facts, look_again_at=None, **said_of(error, row.deployment.name))
