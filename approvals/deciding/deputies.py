"""Deputy: somebody holds a ClusterRole of another person until a time. PURE.

The right itself is a ClusterRoleBinding that whoever makes the Deputy writes, so that Kubernetes refuses to give more
than they hold. The Deputy owns it: once it is deleted at its end, Kubernetes deletes the binding (decision 0101).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from approvals.deciding.kinds import DecidingKind, ReadyState
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import SpecFields

# As `kubectl pratique deputy` has them.
LONGEST, SOON = timedelta(days=92), timedelta(days=3)
# So that whoever made it can read why.
UNREADABLE_STAYS = timedelta(hours=1)
# With the uid of the Deputy: one that is made again under the same name has another one.
BINDING_PREFIX = "pratique:deputy:"
SYSTEM = "system:"


@dataclass(frozen=True, slots=True)
class Deputy(DecidingKind):
    """`user` holds `cluster_role` for `deputy_for` until `until`."""

    kind: ClassVar[str] = "Deputy"
    plural: ClassVar[str] = "deputies"
    slug: ClassVar[str] = "deputies"
    words: ClassVar[str] = "deputy"
    words_for_many: ClassVar[str] = "deputies"
    about: ClassVar[str] = "A deputy holds a ClusterRole for somebody else until a time."
    asks: ClassVar[str] = "Definition"
    after_deletion: ClassVar[str] = "Kubernetes then deletes the binding, and with it the right of the deputy."
    written_by: ClassVar[str] = (
        "You can create it with `kubectl pratique deputy`, which writes the binding with your own rights: Pratique may "
        "not write bindings."
    )
    has_when: ClassVar[bool] = False
    selector_parts: ClassVar[tuple[str, ...]] = ()

    user: str
    deputy_for: str
    cluster_role: str
    until: datetime
    description: str
    selector: Selector = field(default=Selector())
    when: str = ""

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> Self:
        fields = SpecFields(spec)
        found = cls(
            user=_read_person(fields, "user"),
            deputy_for=_read_person(fields, "deputyFor"),
            cluster_role=fields.text("clusterRole"),
            until=fields.moment("until", example="2026-12-24T18:00:00Z"),
            description=fields.text("reason", default="", longest=1000),
        )
        fields.end()
        if found.user == found.deputy_for:
            raise fields.refuse("user", "is also spec.deputyFor; expected two people")
        if not found.cluster_role:
            raise fields.refuse("clusterRole", "is empty; expected a ClusterRole such as pratique-approver")
        return found

    @classmethod
    def describe_unreadable(cls, spec: Mapping[str, Any]) -> str:
        return (
            "Pratique counts no right by it. Its binding gives the right in Kubernetes all the same, until Pratique "
            "deletes the Deputy an hour after it said so"
        )

    @classmethod
    def unreadable_ends_at(cls, since: datetime) -> datetime | None:
        return since + UNREADABLE_STAYS

    @property
    def summary(self) -> str:
        return f"{self.user} is deputy of {self.deputy_for} until {self.until:%Y-%m-%d %H:%M} UTC"

    @property
    def selects(self) -> str:
        return f"what ClusterRole {self.cluster_role} allows"

    def ends_at(self, since: datetime) -> datetime:
        return min(self.until, since + LONGEST)

    def ready(self, people: Sequence[str], now: datetime) -> ReadyState:
        if self.until <= now:
            return ReadyState(False, "Ended", f"it ended at {self.until:%Y-%m-%d %H:%M} UTC")
        days = f"{LONGEST.days} days after it was made at the latest"
        return ReadyState(True, "Active", f"it counts until {self.until:%Y-%m-%d %H:%M} UTC, or {days}")


def _read_person(fields: SpecFields, name: str) -> str:
    """A user of Kubernetes. Accounts and the system's own names are no people."""
    found = fields.text(name)
    if not found.strip() or not found.isprintable() or found.startswith(SYSTEM):
        raise fields.refuse(name, f"is {found!r:.80}; expected the name of a person as Kubernetes has it")
    return found
