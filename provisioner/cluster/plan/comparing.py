"""Two plans of one content: whether carrying out the one is, now, no more than the other says. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from operator import attrgetter

from provisioner.retention import takes_more
from provisioner.values import Action, PlanDifference, PlannedAction


def plan_digest(actions: Iterable[PlannedAction]) -> str:
    """sha256 over what will be done to which object, not over values that the cluster moves by itself (S03)."""
    entries = sorted((str(one.action), *one.ref.identity, one.uid) for one in actions)
    digest = hashlib.sha256()
    for entry in entries:
        for part in entry:
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"sha256:{digest.hexdigest()}"


def is_within(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> bool:
    """Whether carrying out `reviewed` is, now, at most what `now` says: the same on each object, or nothing any more
    where an object was to be updated (S04).

    Anything else is more, or something else: an object that is in one of the two plans only, an update of what was to
    stay as it is, another uid, data that goes along now.
    """
    now, reviewed = list(now), list(reviewed)
    before = {one.ref.identity: (one.action, one.uid) for one in reviewed}
    after = {one.ref.identity: (one.action, one.uid) for one in now}
    moved = {identity for identity, did in after.items() if before.get(identity) != did}
    is_covered = before.keys() == after.keys() and all(
        after[one] == (Action.NONE, before[one][1]) and before[one][0] is Action.UPDATE for one in moved
    )
    return is_covered and not data_lost(now, reviewed)


def data_lost(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> list[str]:
    """What data goes with the objects of `now` that did not with those of `reviewed`, in words."""
    before = {one.ref.identity: one for one in reviewed}
    found = (takes_more(one, before[one.ref.identity]) for one in now if one.ref.identity in before)
    return [words for words in found if words]


def differences(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> list[PlanDifference]:
    """What is planned otherwise than it was reviewed, by object.

    Of an object that was deleted and made again under its name both may be the same action, and `now` says so.
    """
    before, after = ({one.ref.identity: one for one in actions} for actions in (reviewed, now))
    found = []
    for identity, either in {**before, **after}.items():
        was, will = before.get(identity), after.get(identity)
        takes_data = bool(was and will and takes_more(will, was))
        if was and will and (was.action, was.uid) == (will.action, will.uid) and not takes_data:
            continue
        words = str(will.action) if will else ""
        if was and will and was.action is will.action and was.uid != will.uid:
            words += ", of an object that was made again"
        if takes_data:
            words += ", and its PersistentVolumeClaims go with it"
        found.append(PlanDifference(str(either.ref), str(was.action) if was else "", words))
    return sorted(found, key=attrgetter("object"))
