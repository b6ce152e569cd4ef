"""How short a report for a terminal is: as much of each rule as fits into what a person reads."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.review.base.statements import Statement
from provisioner.values import Severity

# The short report takes the first of BREVITIES by which it has at most so many lines, else the last.
MAX_LINES = 100


@dataclass(frozen=True, slots=True)
class Brevity:
    """How much is told before a number stands for the rest; of what is critical or unknown all is.

    Statements of one rule, fields of one statement and lines of its objects, whether a value that is no longer taken is
    told, and whether each rule about CRDs is one entry.
    """

    breaking: int = 5
    others: int = 3
    fields: int = 6
    reach_lines: int = 2
    has_examples: bool = True
    has_entries: bool = False


BREVITIES = (
    Brevity(),
    Brevity(3, 2, 4),
    Brevity(3, 2, 4, has_examples=False, has_entries=True),
    Brevity(2, 1, 1, 1, has_examples=False, has_entries=True),
)


@dataclass(slots=True)
class Brief:
    """A short report, and how many places it leaves to a number."""

    brevity: Brevity
    places: int = 0

    def kept(self, told: list[Statement]) -> list[Statement]:
        """The first of statements of one rule; one more takes no more room than to say that it is left out."""
        most = self.brevity.breaking if told[0].first.severity is Severity.BREAKING else self.brevity.others
        return told[:most] if len(told) > most + 1 else told
