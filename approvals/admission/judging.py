"""What follows from admission policies that were seen in force. PURE: facts come in, an answer goes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# The policies take effect some seconds after they are written, and clocks differ.
MARGIN = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class PolicyState:
    """The policies as they are now: `since` is when they were first seen so, None where `problem` says why not."""

    since: datetime | None
    problem: str


@dataclass(frozen=True, slots=True)
class InForce:
    """Between which writes the policies are known to have been in force without a change, as resourceVersions.

    What was written after `sure_from` and not after `seen_until` met them; `since` is when they were first seen so.
    """

    sure_from: int
    seen_until: int
    since: datetime


@dataclass(frozen=True, slots=True)
class StampedWrite:
    """When a spec was written: after `after` and not after `by`, as resourceVersions; `created_at` of a new object."""

    after: int
    by: int
    created_at: datetime | None = None


def met(written: StampedWrite, policies: InForce) -> bool:
    """Whether the policies stood for longer than MARGIN when this was written, and still stood afterwards."""
    is_after = written.after >= policies.sure_from
    if written.created_at and written.created_at - policies.since > MARGIN:
        is_after = True
    return is_after and written.by <= policies.seen_until
