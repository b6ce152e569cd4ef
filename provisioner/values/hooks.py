"""Hooks of charts: objects that run once at a moment of an apply or a deletion, and stand in no inventory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from provisioner.values.objects import ObjectRef


class HookMoment(StrEnum):
    """When a hook runs: before or after all other objects are written, or before or after they are deleted."""

    BEFORE = "before"
    AFTER = "after"
    BEFORE_DELETION = "before-deletion"
    AFTER_DELETION = "after-deletion"


APPLYING = frozenset({HookMoment.BEFORE, HookMoment.AFTER})
DELETING = frozenset({HookMoment.BEFORE_DELETION, HookMoment.AFTER_DELETION})


@dataclass(frozen=True, slots=True)
class Hook:
    """When an object runs as a hook, in the order of the moments, and as which of them: lower `weight` first.

    `is_cleared`: its object is deleted once all hooks of the moment have succeeded.
    """

    moments: tuple[HookMoment, ...]
    weight: int = 0
    is_cleared: bool = False

    @classmethod
    def at(cls, moments: Iterable[HookMoment], *, weight: int = 0, is_cleared: bool = False) -> Hook:
        """With the moments in their order."""
        wanted = frozenset(moments)
        return cls(tuple(one for one in HookMoment if one in wanted), weight, is_cleared)

    def only(self, moments: Iterable[HookMoment]) -> Hook:
        """At those of its moments that are among these."""
        return Hook.at(set(self.moments) & set(moments), weight=self.weight, is_cleared=self.is_cleared)


@dataclass(frozen=True, slots=True)
class HookRun:
    """The last run of a hook: written with `nonce` before its object is, with `uid` after.

    `is_current`: it is of the request that is being applied, and began at `moment`; `has_succeeded` of that moment.
    """

    ref: ObjectRef
    moment: HookMoment
    nonce: str
    uid: str = ""
    has_succeeded: bool = False
    is_current: bool = True
