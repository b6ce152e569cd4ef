"""What a finding shows of changed fields: values before and after, without what is a credential."""

from __future__ import annotations

from typing import Any

from provisioner.masking import masked_value
from provisioner.review.base.difference import FieldChange
from provisioner.review.base.facts import items, mapping
from provisioner.values import JsonObject, PlannedAction

MAX_CHANGES = 20
Path = tuple[str | int, ...]


def evidence_of(found: list[FieldChange], planned: PlannedAction) -> dict[str, Any]:
    """The first MAX_CHANGES, those of mere words last: a CRD has thousands, and the whole diff is the object's own.

    What is named or written like a credential is hidden.
    """
    chosen = sorted(found, key=_is_of_words)[:MAX_CHANGES]
    shown = []
    for one in chosen:
        before, after = (
            masked_value(value, _name_at(side, one.path))
            for value, side in ((one.before, planned.before), (one.after, planned.after))
        )
        shown.append({"path": list(one.path), "before": before, "after": after})
    return {"changes": shown, "left_out": max(0, len(found) - MAX_CHANGES)}


def _name_at(obj: JsonObject | None, path: Path) -> str:
    """The name that a value goes by: that of the variable it is in, else its key."""
    held: object = obj
    for part in path[:-1]:
        if isinstance(part, int):
            found = items(held)
            held = found[part] if part < len(found) else None
        else:
            held = mapping(held).get(part)
    name = mapping(held).get("name") if path[-1:] == ("value",) else None
    return str(name if isinstance(name, str) else path[-1] if path else "")


def _is_of_words(change: FieldChange) -> bool:
    """A description of a schema; `properties.description` is a field that has that name."""
    return change.path[-1:] == ("description",) and change.path[-2:-1] != ("properties",)
