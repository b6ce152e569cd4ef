"""How an object does, in the words of kstatus."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HealthState(StrEnum):
    """The answers of kstatus."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"
    UNKNOWN = "Unknown"


# The worst first: what makes a whole deployment unhealthy.
WORST_FIRST = (
    HealthState.FAILED,
    HealthState.NOT_FOUND,
    HealthState.UNKNOWN,
    HealthState.TERMINATING,
    HealthState.IN_PROGRESS,
    HealthState.CURRENT,
)


@dataclass(frozen=True, slots=True)
class Health:
    """`message` is ours: states and counts. `server_words` are what the object, its pods and its events say (S27)."""

    state: HealthState
    message: str = ""
    server_words: str = ""
