"""The stop button: a ChangeWindow that denies without an end, written in the cluster as the person who presses it."""

from __future__ import annotations

from secrets import token_hex

from approvals import access
from approvals.access import Caller
from approvals.deciding.change_windows import ChangeWindow, HeldChange, WindowType
from approvals.deciding.kinds import VERSION
from approvals.errors import InvalidInput, NotFound
from approvals.models import Cluster, DecidingObject
from approvals.selectors.change_stops import is_stop
from approvals.services.deciding_objects import create_object, delete_object
from approvals.services.deployments import translate_refusals
from provisioner.api_groups import OWN_GROUP
from provisioner.values import ObjectRef

MAX_REASON = 500


def stop_changes(*, by: Caller, cluster: Cluster, reason: str, via: str) -> None:
    """Hold all changes of the cluster until somebody ends it; Kubernetes decides who may.

    Raises InvalidInput without a reason, and a Refused where it is not written.
    """
    reason = reason.strip()
    if not 0 < len(reason) <= MAX_REASON:
        words = f"give a reason of up to {MAX_REASON} characters: everybody sees it who waits"
        raise InvalidInput(words, field="reason")
    spec = {"type": str(WindowType.DENY), "description": reason, "appliesTo": [str(each) for each in HeldChange]}
    create_object(by=by, cluster=cluster, kind=ChangeWindow, name=f"stop-{token_hex(4)}", spec=spec, via=via)


def end_stop(*, by: Caller, cluster: Cluster, name: str, via: str) -> None:
    """Delete a ChangeWindow that stops changes, as the person; raises NotFound, or a Refused by Kubernetes' answer."""
    row = DecidingObject.objects.filter(cluster=cluster, kind=ChangeWindow.kind, name=name, gone_at=None).first()
    ref = ObjectRef(OWN_GROUP, VERSION, ChangeWindow.kind, "", name)
    live = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, ref)) if row and is_stop(row) else None
    if live is None:
        raise NotFound("there is no such stop: somebody may have ended it")
    # Its status may have been written since the page was made, which changes nothing of it.
    version = str(live["metadata"]["resourceVersion"])
    delete_object(by=by, cluster=cluster, kind=ChangeWindow, name=name, version=version, via=via)
