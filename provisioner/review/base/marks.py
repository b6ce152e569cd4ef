"""How the pictures of a report tell before from after: a word and a shape, never a colour alone."""

from __future__ import annotations

from enum import StrEnum


class Mark(StrEnum):
    """What a change does to one thing in a picture."""

    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    SAME = "as before"

    @property
    def sign(self) -> str:
        return {Mark.NEW: "+", Mark.GONE: "–", Mark.CHANGED: "±", Mark.SAME: "="}[self]

    @classmethod
    def of(cls, *, was: bool, is_: bool) -> Mark:
        """The mark of what was there before or is there after, or both."""
        if was and is_:
            return cls.SAME
        return cls.NEW if is_ else cls.GONE
