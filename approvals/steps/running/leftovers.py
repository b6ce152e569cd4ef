"""What a revision that failed has left behind: objects that are neither as it wished nor surely as the running one.

Nobody approved that state, so nobody can say what of it is drift. All other objects are still the running revision's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from approvals.models import InventoryItem, Outcome, Report, Revision
from provisioner.sentences import some
from provisioner.values import Action, ObjectIdentity, ObjectRef, OutcomeState

NAMED = 3
# With these an object is deleted before anything of it stands in the inventory.
_DELETING = frozenset({Action.DELETE, Action.REPLACE})
_STANDS = (OutcomeState.DONE, OutcomeState.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The objects that are not compared, and why, in words; none and "" where no revision has failed since."""

    objects: frozenset[ObjectIdentity] = frozenset()
    words: str = ""


def leftovers_of(running: Revision, known: Collection[ObjectIdentity]) -> Leftovers:
    """The objects that revisions which failed after `running` had begun with, or were to delete.

    `known` are those of `running`. What restoring it has put back is none of them. An object that was to be deleted is
    one also where that was not reached: a worker may have died between the deletion and its record.
    """
    failed = running.deployment.revisions.filter(number__gt=running.number, state=Revision.State.FAILED)
    left: dict[ObjectIdentity, ObjectRef] = {}
    last = 0
    for revision in failed.select_related("request").order_by("number"):
        touched = [*_written(revision, known), *_deleted(revision)]
        restored = _restored(revision)
        left |= {ref.identity: ref for ref in touched}
        left = {identity: ref for identity, ref in left.items() if str(ref)[:600] not in restored}
        last = revision.number
    return Leftovers(frozenset(left), _words(last, running.number, sorted(left.values())))


def _written(revision: Revision, known: Collection[ObjectIdentity]) -> Iterator[ObjectRef]:
    """Every write is in the inventory before it is done, under the revision that it is done for.

    One without a uid that only the failed revision knows was never made: it met another's object, or a refusal.
    """
    for row in InventoryItem.objects.filter(deployment_id=revision.deployment_id, revision=revision):
        ref = ObjectRef.from_parts(row)
        if row.uid or ref.identity in known:
            yield ref


def _deleted(revision: Revision) -> Iterator[ObjectRef]:
    request = revision.request
    report = Report.objects.filter(request=request, round=request.round).first()
    actions: list[Mapping[str, Any]] = report.body["plan"]["actions"] if report else []
    for planned in actions:
        if planned["action"] in _DELETING:
            yield ObjectRef(**planned["ref"])


def _restored(revision: Revision) -> frozenset[str]:
    outcomes = Outcome.objects.filter(request=revision.request, step=Outcome.Step.RESTORE, state__in=_STANDS)
    return frozenset(outcomes.exclude(action=Action.DELETE).values_list("object", flat=True))


def _words(failed: int, running: int, left: list[ObjectRef]) -> str:
    if not left:
        return ""
    named = some(left, NAMED)
    return (
        f"revision {failed} failed after it started to change or delete {named}. Nobody approved their current "
        "state, so they are not compared until a request succeeds; all others are compared with revision "
        f"{running}"
    )
