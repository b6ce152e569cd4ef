"""Writing an object that says how requests are decided, in its cluster as the person: Kubernetes decides who may."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
from approvals.services.deployments import translate_refusals
from approvals.services.policies.rows import PolicyRights, check_author, describe_rights, disable_policy
from provisioner.api_groups import OWN_GROUP
from provisioner.values import ObjectRef

# Of a stop: it stands in lists.
MAX_REASON = 500
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
Live = dict[str, Any]


def create_object(
    *,
    by: Caller,
    cluster: Cluster,
    kind: type[DecidingKind],
    name: str,
    spec: Mapping[str, Any],
    via: str,
    earlier_authors: Sequence[Mapping[str, Any]] = (),
) -> DecidingObject:
    """Create the object; `earlier_authors` wrote what it says before it was one, and stay its authors (S13)."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"the name is {name[:100]!r}; expected lowercase letters, digits, dashes and dots", field="name"
        )
    _check_spec(by, cluster, kind, name, spec)
    obj = {"apiVersion": f"{OWN_GROUP}/{VERSION}", "kind": kind.kind, "metadata": {"name": name}, "spec": dict(spec)}
    person = access.acting_as(by, cluster)
    made = translate_refusals(cluster, partial(access.kubernetes().create, cluster, obj, as_person=person), person)
    return _keep(by, cluster, kind, made, via, earlier_authors=earlier_authors)


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
    person, wanted = access.acting_as(by, cluster), {**live, "spec": dict(spec)}
    made = translate_refusals(cluster, partial(access.kubernetes().replace, cluster, wanted, as_person=person), person)
    return _keep(by, cluster, kind, made, via, before=live["metadata"].get("generation"))


def delete_object(*, by: Caller, cluster: Cluster, kind: type[DecidingKind], name: str, version: str, via: str) -> None:
    """Delete the object as it stood at `version`; raises NotAsExpected of another."""
    person, live = access.acting_as(by, cluster), _live(cluster, kind, name, version)
    ref, uid, at = _ref(kind, name), live["metadata"]["uid"], str(live["metadata"]["resourceVersion"])
    delete = partial(access.kubernetes().delete, cluster, ref, uid=uid, version=at, as_person=person)
    translate_refusals(cluster, delete, person)
    is_gone = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, ref)) is None
    deciding_objects.forget(cluster=cluster, uid=uid, actor=Actor(by.name, via), is_gone=is_gone)


def confirm_object(
    *, by: Caller, cluster: Cluster, kind: type[DecidingKind], name: str, version: str, via: str
) -> DecidingObject:
    """Stand behind the object as it is at `version` (DecidingObject.version), beside who wrote it: it counts once two
    people do.

    Kubernetes decides who may, by the verb `approve` on the kind. Raises NotFound, NotAsExpected of another version or
    of one that is not known here yet, InvalidInput of what nobody can confirm, NotAllowed and CouldNotAsk.
    """
    rows = DecidingObject.objects.select_related("cluster").filter(cluster=cluster, kind=kind.kind, gone_at=None)
    live = _live(cluster, kind, name, version)
    known = rows.filter(name=name, uid=live["metadata"]["uid"]).first()
    if known is None or known.version != version:
        raise NotAsExpected(f"{kind.kind} {name} was just written: try again in a moment", current=version)
    identity = access.acting_as(by, cluster)
    reviewer_checks.check_human(by, identity, f"confirm a {kind.words}")
    permission = access.may(by, cluster, "approve", resource=kind.plural, name=name, fresh=True)
    permission.check()
    spec = dict(live["spec"])
    parsed = _check_spec(by, cluster, kind, name, spec)
    if why := parsed.why_not_confirmable(database_now()):
        raise InvalidInput(why, field="spec")
    writers = map(access.person_recorded, known.writers if spec == known.spec else ())
    if any(map(access.person_of(by, cluster).is_same, writers)):
        raise NotAllowed(f"you wrote {name}, so someone else must confirm it")
    words = permission.server_words or permission.words
    return confirmations.confirm(row=known, spec=spec, by=by, access_reason=words, via=via)


def move_policy(*, by: Caller, policy: Policy, via: str) -> DecidingObject:
    """Create the ApprovalPolicy that says what a policy of the service says, in its cluster as the person, and disable
    the policy after that: at no moment is neither in force. Whoever wrote the policy stays an author of it (S13).
    Raises a Refused where either is not written."""
    if policy.cluster is None or not policy.is_active:
        raise InvalidInput(f"policy {policy.name} is not in force on one cluster, so there is nothing to move")
    loaded = policy_of_row(policy)
    spec = loaded.document.to_object()["spec"]
    about: dict[str, Any] = {"by": by, "cluster": policy.cluster, "kind": ApprovalPolicy, "name": policy.name}
    made = create_object(**about, spec=spec, via=via, earlier_authors=loaded.authors)
    deciding_objects.add_earlier_authors(made, loaded.authors)  # where the watch was faster
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
    window, _ = ChangeWindow.read(live["spec"] if live else {})
    if live is None or window is None or not window.is_stop:
        raise NotFound("there is no such stop: someone may have ended it")
    delete_object(by=by, cluster=cluster, kind=ChangeWindow, name=name, version=_version(live), via=via)


def _check_spec(
    by: Caller, cluster: Cluster, kind: type[DecidingKind], name: str, spec: Mapping[str, Any]
) -> DecidingKind:
    """What the spec says. Raises InvalidInput for what Pratique could not read: Kubernetes takes some of it, and it
    would hold requests.

    Who writes a grant must hold `approve` on what it selects, also where no admission policy of the cluster asks (S46).
    """
    if kind.written_by:
        raise InvalidInput(kind.written_by, field="kind")
    try:
        found = kind.parse(spec)
        deciding_objects.check_expressions(found)
    except UnreadableObject as exc:
        raise InvalidInput(str(exc), field=exc.place) from exc
    if isinstance(found, ApprovalPolicy):
        if not is_name(name):
            raise InvalidInput(f"the name is {name[:100]!r}; {BAD_NAME}", field="name")
        if found.document.is_grant:
            check_author(by, cluster, found.document.names)
    return found


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


def _keep(
    by: Caller,
    cluster: Cluster,
    kind: type[DecidingKind],
    obj: Live,
    via: str,
    before: int | None = None,
    earlier_authors: Sequence[Mapping[str, Any]] = (),
) -> DecidingObject:
    """Keep at once what was written: its page is shown before the watch tells of it.

    Whoever writes again what is there, at the generation `before`, is not its author.
    """
    is_written = before is None or obj["metadata"].get("generation") != before
    is_counted = not kind.needs_people or reviewer_checks.is_person(by, access.acting_as(by, cluster))
    writer = access.person_of(by, cluster).record() if is_written and is_counted else None
    about: dict[str, Any] = {"cluster": cluster, "kind": kind.kind, "obj": obj, "actor": Actor(by.name, via)}
    about |= {"writer": writer, "earlier_authors": earlier_authors, "is_made": before is None}
    row = deciding_objects.observe(**about, is_listed=False)
    if row is not None:
        wake.deciding_object(row.pk)
    return DecidingObject.objects.select_related("cluster").get(cluster=cluster, uid=obj["metadata"]["uid"])
