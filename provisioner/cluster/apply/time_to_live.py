"""A Job of a hook is written with the longest time to live, and gets its own once it is recorded that it has succeeded.

Else the cluster could delete it before anybody has seen how it ended: before the answer to its write came, or while a
worker that died is not replaced yet. Then nobody could tell whether it has run, and whoever carries on would run it
again. A Job that failed never gets its own, so that people can read its logs.

The field is there all the time, because clusters have admission policies that add it where it is missing, or refuse a
Job without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from provisioner.values import GroupKind, JsonObject, Manifest, PlannedAction

# The largest int32, which the field is: 68 years.
LONGEST_SECONDS = 2**31 - 1
_JOB, _FIELD = GroupKind("batch", "Job"), "ttlSecondsAfterFinished"


def has_time_to_live(manifest: Manifest) -> bool:
    """Whether the cluster would delete it by itself, some time after it has ended."""
    return manifest.ref.group_kind == _JOB and _spec(manifest.body).get(_FIELD) is not None


def held_back(manifest: Manifest, planned: PlannedAction) -> tuple[Manifest, PlannedAction]:
    """The manifest and its plan as they are until it has succeeded."""
    if not has_time_to_live(manifest):
        return manifest, planned
    after = _kept(planned.after) if planned.after is not None else None
    return replace(manifest, body=_kept(manifest.body)), replace(planned, after=after)


def _kept(body: JsonObject) -> JsonObject:
    return {**body, "spec": {**_spec(body), _FIELD: LONGEST_SECONDS}}


def _spec(body: JsonObject) -> dict[str, Any]:
    spec = body.get("spec")
    return spec if isinstance(spec, dict) else {}
