"""The form of an explanation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Explanation:
    """One rule in words: each part one or two sentences; `source` names where Kubernetes itself says so."""

    means: str
    matters: str
    do: str
    source: str

    def __str__(self) -> str:
        return f"{self.means} {self.matters} {self.do} Source: {self.source}."
