"""Writing an object that says how requests are decided, in its cluster as the person: Kubernetes decides who may."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from secrets import token_hex
from typing import Any

from approvals import access, wake
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.deciding.approval_policies import BAD_NAME, ApprovalPolicy, is_name
from approvals.deciding.change_windows import ChangeWindow, HeldChange, WindowType
from approvals.deciding.kinds import VERSION, DecidingKind
from approvals.deciding.spec_fields import UnreadableObject
from approvals.errors import InvalidInput, NotAllowed, NotAsExpected, NotFound
from approvals.gate import reviewer_checks
from approvals.gate.deciding_objects import policy_of_object, policy_of_row
from approvals.ledger.deciding import confirmations, deciding_objects
from approvals.models import Cluster, DecidingObject, Policy
from approvals.policy import BadExpression
from approvals.selectors.change_stops import is_stop
from approvals.services.deployments import translate_refusals
from approvals.services.policies.rows import PolicyRights, check_author, describe_rights, disable_policy
from provisioner.api_groups import OWN_GROUP
from provisioner.values import Identity, ObjectRef

# Of a stop: it stands in lists.
MAX_REASON = 500
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
Live = dict[str, Any]


def create_object(
    *, by: Caller, cluster: Cluster, kind: type[DecidingKind], name: str, spec: Mapping[str, Any], via: str
) -> DecidingObject:
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"the name is {name[:100]!r}; expected lowercase letters, digits, dashes and dots", field="name"
        )
    _check_spec(by, cluster, kind, name, spec)
    obj = {
        "apiVersion": f"{OWN_GROUP}/{VERSION}",
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": dict(spec),
    }

    def create(person: Identity) -> Live:
        return access.kubernetes().create(cluster, obj, as_person=person)

    return _write(by, cluster, kind, create, via)


def change_object(
    *,
    by: Caller,
    cluster: Cluster,
    kind: type[DecidingKind],
    name: str,
    spec: Mapping[str, Any],
    version: str,
    via: str,
) -> DecidingObject:
    """Replace the spec of the object as it stood at `version` (DecidingObject.version); raises NotAsExpected of
    another."""
    _check_spec(by, cluster, kind, name, spec)
    live = _live(cluster, kind, name, version)

    def change(person: Identity) -> Live:
        return access.kubernetes().replace(cluster, {**live, "spec": dict(spec)}, as_person=person)

    return _write(by, cluster, kind, change, via, before=live["metadata"].get("generation"))


def delete_object(*, by: Caller, cluster: Cluster, kind: type[DecidingKind], name: str, version: str, via: str) -> None:
    """Delete the object as it stood at `version`; raises NotAsExpected of another."""
    person, live = access.acting_as(by, cluster), _live(cluster, kind, name, version)
    ref, uid, at = _ref(kind, name), live["metadata"]["uid"], str(live["metadata"]["resourceVersion"])

    def delete() -> None:
        access.kubernetes().delete(cluster, ref, uid=uid, version=at, as_person=person)

    translate_refusals(cluster, delete, person)
    is_gone = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, ref)) is None
    deciding_objects.forget(cluster=cluster, uid=uid, actor=Actor(by.name, via), is_gone=is_gone)


def confirm_object(
    *, by: Caller, cluster: Cluster, kind: type[DecidingKind], name: str, generation: int, via: str
) -> DecidingObject:
    """Stand behind the object as it is at `generation`, beside who wrote it: it counts once two people do.

    Kubernetes decides who may, by the verb `approve` on the kind. Raises NotFound, NotAsExpected of another generation,
    InvalidInput of what nobody can confirm, NotAllowed and CouldNotAsk.
    """
    rows = DecidingObject.objects.select_related("cluster").filter(cluster=cluster, kind=kind.kind, gone_at=None)
    live = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, _ref(kind, name)))
    known = rows.filter(name=name, uid=live["metadata"]["uid"]).first() if live else None
    if known is None:
        raise NotFound(f"{kind.kind} {name} does not exist on cluster {cluster.name}, or is not known here yet")
    found = int(live["metadata"].get("generation") or 1)
    if found != generation:
        raise NotAsExpected(f"{kind.kind} {name} is at generation {found}, not {generation}: read it again")
    identity = access.acting_as(by, cluster)
    reviewer_checks.check_human(by, identity, f"confirm a {kind.words}")
    permission = access.may(by, cluster, "approve", resource=kind.plural, name=name, fresh=True)
    permission.check()
    spec = dict(live["spec"])
    _check_spec(by, cluster, kind, name, spec)
    parsed = kind.parse(spec)
    if why := parsed.why_not_confirmable(database_now()):
        raise InvalidInput(why, field="spec")
    writers = map(access.person_recorded, known.writers if spec == known.spec else ())
    if any(map(access.person_of(by, cluster).is_same, writers)):
        raise NotAllowed(f"you wrote {name}: somebody else has to confirm it")
    words = permission.server_words or permission.words
    return confirmations.confirm(row=known, spec=spec, by=by, access_reason=words, via=via)


def move_policy(*, by: Caller, policy: Policy, via: str) -> DecidingObject:
    """Create the ApprovalPolicy that says what a policy of the service says, in its cluster as the person, and disable
    the policy after that: at no moment is neither in force. Raises a Refused where either is not written."""
    if policy.cluster is None or not policy.is_active:
        raise InvalidInput(f"policy {policy.name} is not in force on one cluster, so there is nothing to move")
    spec = policy_of_row(policy).document.to_object()["spec"]
    made = create_object(by=by, cluster=policy.cluster, kind=ApprovalPolicy, name=policy.name, spec=spec, via=via)
    disable_policy(by=by, policy=policy, via=via)
    return made


def describe_object(row: DecidingObject) -> tuple[Policy, PolicyRights | None]:
    """The row that stands for an ApprovalPolicy; of a grant that can be read also as whom it stands."""
    policy = Policy.objects.select_related("cluster").get(cluster=row.cluster, uid=row.uid)
    loaded = policy_of_object(row, policy)
    is_grant = loaded is not None and loaded.document.is_grant and not loaded.problem
    return policy, describe_rights(loaded, row.cluster) if loaded and is_grant else None


def stop_changes(*, by: Caller, cluster: Cluster, reason: str, via: str) -> None:
    """Hold all changes of the cluster until somebody ends it; Kubernetes decides who may.

    Raises InvalidInput without a reason, and a Refused where it is not written.
    """
    reason = reason.strip()
    if not 0 < len(reason) <= MAX_REASON:
        words = f"give a reason of up to {MAX_REASON} characters: everyone who waits sees it"
        raise InvalidInput(words, field="reason")
    spec = {"type": str(WindowType.DENY), "description": reason, "appliesTo": [str(each) for each in HeldChange]}
    create_object(by=by, cluster=cluster, kind=ChangeWindow, name=f"stop-{token_hex(4)}", spec=spec, via=via)


def end_stop(*, by: Caller, cluster: Cluster, name: str, via: str) -> None:
    """Delete a ChangeWindow that stops changes, as the person; raises NotFound, or a Refused by Kubernetes' answer."""
    live = translate_refusals(cluster, partial(access.kubernetes().get, cluster, _ref(ChangeWindow, name)))
    if live is None or not is_stop(live["spec"]):
        raise NotFound("there is no such stop: somebody may have ended it")
    delete_object(by=by, cluster=cluster, kind=ChangeWindow, name=name, version=_version(live), via=via)


def _check_spec(by: Caller, cluster: Cluster, kind: type[DecidingKind], name: str, spec: Mapping[str, Any]) -> None:
    """Raise InvalidInput for what Pratique could not read: Kubernetes takes some of it, and it would hold requests.

    Who writes a grant must hold `approve` on what it selects, also where no admission policy of the cluster asks (S46).
    """
    if kind.written_by:
        raise InvalidInput(kind.written_by, field="kind")
    try:
        found = kind.parse(spec)
    except UnreadableObject as exc:
        raise InvalidInput(str(exc), field=exc.place) from exc
    try:
        deciding_objects.check_expressions(found)
    except BadExpression as exc:
        raise InvalidInput(str(exc), field=str(exc).partition(": ")[0]) from exc
    if isinstance(found, ApprovalPolicy):
        if not is_name(name):
            raise InvalidInput(f"the name is {name[:100]!r}; {BAD_NAME}", field="name")
        if found.document.is_grant:
            check_author(by, cluster, found.document.names)


def _live(cluster: Cluster, kind: type[DecidingKind], name: str, version: str) -> Live:
    """As the service, which may read them all: only writes need the right to act as people (S31)."""
    live = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, _ref(kind, name)))
    if live is None:
        raise NotFound(f"{kind.kind} {name} does not exist on cluster {cluster.name}")
    if (current := _version(live)) != version:
        words = f"{kind.kind} {name} was changed since you read it: read it again, and say what should change now"
        raise NotAsExpected(words, current=current)
    return dict(live)


def _version(live: Mapping[str, Any]) -> str:
    return DecidingObject(uid=live["metadata"]["uid"], generation=live["metadata"]["generation"]).version


def _ref(kind: type[DecidingKind], name: str) -> ObjectRef:
    return ObjectRef(OWN_GROUP, VERSION, kind.kind, "", name)


def _write(
    by: Caller,
    cluster: Cluster,
    kind: type[DecidingKind],
    write: Callable[[Identity], Live],
    via: str,
    before: int | None = None,
) -> DecidingObject:
    """Send it, and keep what came of it at once: its page is shown before the watch tells of it.

    Whoever writes again what is there, at the generation `before`, is not its author.
    """
    person = access.acting_as(by, cluster)
    obj = translate_refusals(cluster, lambda: write(person), person)
    is_written = before is None or obj["metadata"].get("generation") != before
    writer = access.person_of(by, cluster).record() if is_written else None
    row = deciding_objects.observe(
        cluster=cluster, kind=kind.kind, obj=obj, writer=writer, actor=Actor(by.name, via), is_listed=False
    )
    if row is not None:
        wake.deciding_object(row.pk)
    return DecidingObject.objects.select_related("cluster").get(cluster=cluster, uid=obj["metadata"]["uid"])
