"""The stop button: a ChangeWindow that denies without an end, written in the cluster as the person who presses it."""

from __future__ import annotations

from secrets import token_hex

from approvals import access
from approvals.access import Caller
from approvals.deciding.change_windows import ChangeWindow, HeldChange, WindowType
from approvals.deciding.kinds import VERSION
from approvals.errors import InvalidInput, NotFound
from approvals.ledger import deciding_objects
from approvals.ledger.pivots import SpecWriter, person_record
from approvals.models import Cluster, DecidingObject
from approvals.selectors.change_stops import is_stop
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
        raise InvalidInput(
            f"give a reason of up to {MAX_REASON} characters: everybody sees it who waits", field="reason"
        )
    writer = SpecWriter.of_proof(access.proved_on(by, cluster), via, by.user)
    spec = {"type": str(WindowType.DENY), "description": reason, "appliesTo": [str(each) for each in HeldChange]}
    obj = {
        "apiVersion": f"{OWN_GROUP}/{VERSION}",
        "kind": ChangeWindow.kind,
        "metadata": {"name": f"stop-{token_hex(4)}"},
        "spec": spec,
    }
    made = translate_refusals(
        cluster, lambda: access.kubernetes().create(cluster, obj, as_person=writer.identity), writer.identity
    )
    # The pages show it at once, and what waits is told.
    record = person_record(writer)
    deciding_objects.observe(cluster=cluster, kind=ChangeWindow.kind, obj=made, writer=record, is_listed=True)


def end_stop(*, by: Caller, cluster: Cluster, name: str) -> None:
    """Delete a ChangeWindow that stops changes, as the person; raises NotFound, or a Refused by Kubernetes' answer."""
    identity = access.acting_as(by, cluster)
    rows = DecidingObject.objects.filter(cluster=cluster, kind=ChangeWindow.kind, name=name, gone_at=None)
    row = rows.first()
    if row is None or not is_stop(row):
        raise NotFound("there is no such stop: somebody may have ended it")
    ref = ObjectRef(OWN_GROUP, VERSION, ChangeWindow.kind, "", name)
    translate_refusals(
        cluster, lambda: access.kubernetes().delete(cluster, ref, uid=row.uid, as_person=identity), identity
    )
    deciding_objects.forget(cluster=cluster, uid=row.uid)
