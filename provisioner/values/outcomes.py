"""What an apply did to each object, and what it wrote down before."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from provisioner.values.objects import ObjectRef
from provisioner.values.plans import Action


@dataclass(frozen=True, slots=True)
class Why:
    """Why something was not done, in our words, "" for nothing; what a server says of it, a value of `ref` (S27)."""

    words: str = ""
    server_words: str = ""
    ref: ObjectRef | None = None

    def __bool__(self) -> bool:
        return bool(self.words)


class OutcomeState(StrEnum):
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """What happened to one object in an apply.

    `message` is ours. `warnings` are values of the object, `server_words` too, or of the object `about` where one that
    it waited for is why it was not tried (S27).
    """

    ref: ObjectRef
    action: Action
    state: OutcomeState
    message: str = ""
    uid: str = ""
    resource_version: str = ""
    warnings: tuple[str, ...] = ()
    server_words: str = ""
    about: ObjectRef | None = None


@dataclass(frozen=True, slots=True)
class InventoryItem:
    """One object of a revision. Written with `nonce` before the object is touched, with `uid` after."""

    ref: ObjectRef
    nonce: str
    uid: str = ""
