"""What is said of planned actions alone, without the cluster that they were planned on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from provisioner.values import Action, PlannedAction


def plan_digest(actions: Iterable[PlannedAction]) -> str:
    """sha256 over what will be done to which object, not over values that the cluster moves by itself (S03)."""
    entries = sorted((str(action.action), *action.ref.identity, action.uid) for action in actions)
    digest = hashlib.sha256()
    for entry in entries:
        for part in entry:
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"sha256:{digest.hexdigest()}"


def plan_release(planned: PlannedAction, why: str) -> PlannedAction:
    """What stays, with why: the one note that it has is what its finding says."""
    return replace(planned, action=Action.ORPHAN, notes=(f"{planned.ref} stays as it is, because {why}",))
