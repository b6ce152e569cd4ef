"""What `/readyz` tells beside its checks: what an operator should mend, though this process can work."""

from __future__ import annotations

from collections.abc import Mapping

_notes: dict[str, dict[str, str]] = {}


def put(subject: str, words: Mapping[str, str]) -> None:
    """Say this about `subject` from now on, by what it concerns; nothing where `words` are empty."""
    _notes[subject] = dict(words)


def told() -> dict[str, dict[str, str]]:
    return {subject: words for subject, words in sorted(_notes.items()) if words}


def about(subject: str) -> dict[str, str] | None:
    """What was said last about `subject`; None where nobody has looked yet."""
    return _notes.get(subject)
