"""What would come of an object of somebody else's if it were adopted, for who asks with their own credential.

Nobody applies such a plan: whoever reviews a bundle beside what Helm, kubectl or Argo CD runs wants to see the change
first. Who may not read the object, or not write it, is told so as anywhere else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from provisioner.cluster.compare import masked, uid_of, version_of
from provisioner.cluster.drift.left_out import without_theirs
from provisioner.cluster.plan.known import PlanInputs, body_of
from provisioner.cluster.plan.ownership import present_owner
from provisioner.cluster.tracking import LARGEST_TRACKING, nonce_of
from provisioner.schema.fields import is_same
from provisioner.values import Action, Manifest, PlannedAction


def is_supposed(scene: PlanInputs, live: dict[str, Any], ours: str) -> bool:
    """Whether an object is planned as if it were adopted: the options say so, and it is not ours.

    What an old bundle names is taken for ours by `uid`, whoever runs it: ours it is with our mark only.
    """
    return scene.options.supposes_adoption and not (uid_of(live) == ours and nonce_of(live))


def supposed(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """The change of the object by a forced dry-run, as its owner's fields would be handed over, and who owns it now.

    Raises ClusterError where the API server refuses it.
    """
    sent = without_theirs(scene.cluster, manifest, live, manager=scene.field_manager)
    body = body_of(sent, tracking=LARGEST_TRACKING, uid=uid_of(live), resource_version=version_of(live))
    result = scene.cluster.apply(body, field_manager=scene.field_manager, dry_run=True, force=True)
    before, after = masked(live, result.object)
    action = Action.NONE if is_same(before, after) else Action.UPDATE
    planned = PlannedAction(manifest.ref, action, uid_of(live), version_of(live), before, after)
    return replace(planned, warnings=result.warnings, owner=present_owner(live))
