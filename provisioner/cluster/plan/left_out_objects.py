"""May an object that was left out be created now, without another review? Pure."""

from __future__ import annotations

from provisioner.cluster.compare import changes, hidden
from provisioner.sentences import some
from provisioner.values import Action, Manifest, PlannedAction

SHOWN = 5


def objection(manifest: Manifest, planned: PlannedAction) -> str:
    """Why what would come of it is not what was reviewed, just these bytes and nothing there before; "" where it is.

    What a schema adds or drops was not seen by anybody while there was no schema (security-rules.md S17).
    """
    ref = planned.ref
    if planned.problem or planned.action is not Action.CREATE:
        return planned.problem or f"{ref} exists already"
    if not planned.is_proved:
        return f"the API server could not be asked what would come of {ref}"
    wrong = sorted(".".join(path) for path in changes(hidden(manifest.body), planned.after))
    if not wrong:
        return ""
    return f"its API makes something else of {ref} than was reviewed: {some(wrong, SHOWN)}"
