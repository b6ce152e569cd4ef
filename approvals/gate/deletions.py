"""What a deletion takes: with a CRD or a namespace also what no plan names, and what of it reviewers were shown; and
the deletion that nobody has to review, as it takes no data and the operator allows it (security-rules.md S15)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from itertools import chain
from typing import Any

from django.conf import settings

from approvals.clock import database_now
from approvals.errors import TooManyLooks
from approvals.gate.facts import Fact, How, Known, Unreviewed, Unseen
from approvals.gate.live_spec import learn
from approvals.gate.plan_options import running_content
from approvals.ledger import claims
from approvals.lifecycle import Event
from approvals.models import AuditEntry, Report, Request
from approvals.policy import OWN_RULES_PREFIX, holdings
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.deletion_losses import NAMESPACE as _NAMESPACE
from provisioner.cluster.deletion_losses import (
    Holder,
    Shown,
    VolumeClaim,
    find_dependents,
    find_latecomers,
    find_lost_volumes,
    find_new_claims,
)
from provisioner.errors import OutOfTime, UnknownKind
from provisioner.json_values import uid_of
from provisioner.retention import STATEFUL_SET, takes_claims_along
from provisioner.review.base.record import from_record
from provisioner.review.checks.objects.deletions import MEASURED, MISSED
from provisioner.review.workloads.mounts import CLAIM
from provisioner.sentences import number, some, some_phrases
from provisioner.values import Action, GroupKind, ObjectRef, Plan, Severity

WORDS = "it contains no data, and PRATIQUE_UNREVIEWED_DELETIONS allows deleting it without a review"
MAX_NAMED = 3
_MEASURES = frozenset({"counts", "volumes"})
_TAKING = (Action.DELETE, Action.REPLACE)
_WRITING = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT)
# Kinds that keep nothing, of which others make some because of what goes.
_TIDYING = frozenset({GroupKind("batch", "Job")})
# What others put objects into, that go with it.
_HOLDERS = frozenset({GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"), _NAMESPACE})
_PARTS = fields(Unseen)
# All that goes is looked through in this time, or nobody knows; by so many requests of one cluster at once.
LOOK_SECONDS = 60.0
LOOKS_AT_ONCE = 2
# What a step does while something is asked that may take so long: it gives back what others could use.
Slowly = Callable[[], AbstractContextManager[object]]


def is_free(request: Request, planned: Plan | None = None) -> bool:
    """Whether this deletion takes no data, by what it would take now (`planned`), else by what its report says.

    No where the operator does not allow it now, and for every other request.
    """
    if not settings.PRATIQUE["UNREVIEWED_DELETIONS"] or request.purpose != Request.Purpose.DELETE:
        return False
    found = from_record(request.reports.get(round=request.round).exact_body)
    for finding in found.findings:
        if finding.severity is Severity.UNKNOWN or finding.rule.startswith(OWN_RULES_PREFIX):
            return False
    content = running_content(request)
    running = {manifest.ref.identity: manifest.body for manifest in (content.manifests if content else ())}
    return not holdings((planned or found.plan).actions, running)


def takes_data(request: Request, api: Api, planned: Plan) -> bool:
    """Whether what the operator lets go unreviewed holds data since its report: no plan tells values."""
    return is_free(request) and not (is_free(request, planned) and not _goes_along(request, api, planned))


def by_report(request: Request, connect: Callable[[], Api]) -> Fact[Unreviewed]:
    """Whether it may go without a review, also by what else would go that no plan names."""
    if not is_free(request):
        return Known(Unreviewed(False), database_now(), How.RECORDS)

    def look_along() -> Unreviewed:
        words = _goes_along(request, connect(), from_record(request.reports.get(round=request.round).exact_body).plan)
        if not words:
            return Unreviewed(True)
        named = some_phrases(words, MAX_NAMED)
        return Unreviewed(False, f"a review is needed, because no plan lists what else is deleted: {named}")

    return learn(look_along)


def by_records(request: Request) -> Fact[Unreviewed]:
    """Whether this round was let go without a review, and still may be by its report.

    What else would go was looked at before that. Where people approved it, perhaps because of what else would go, it
    stands on their word alone.
    """
    was_let_go = False
    if is_free(request):
        given = AuditEntry.objects.filter(request_uid=str(request.uid), verb=f"request.{Event.APPROVE}")
        facts = given.order_by("number").values_list("facts", flat=True).last() or {}
        was_let_go = (facts.get("why"), facts.get("subjectDigest")) == (WORDS, request.subject_digest)
    return Known(Unreviewed(was_let_go), database_now(), How.RECORDS)


def _goes_along(request: Request, api: Api, planned: Plan) -> list[str]:
    """What else a deletion would take that somebody may have put there, and what nobody could look at, in words."""
    deleted = [action for action in planned.actions if action.action is Action.DELETE and action.before is not None]
    return find_dependents(_readers(request, api), [(action.ref, action.uid) for action in deleted])


def unseen(request: Request, api: Api, report: Report, *, has_begun: bool = False) -> Unseen:
    """What goes with what is deleted and the report did not say: objects created since, and data that was to stay.

    The API server takes them along, whoever made them, and no plan names them. Once something `has_begun`, Jobs do not
    count: what goes makes others tidy up. Raises TryLater where nobody can tell now.
    """
    if not any(report.actions.get(action, 0) for action in _TAKING):
        return Unseen()  # without reading the report's body
    readers, actions = _readers(request, api), report.body["plan"]["actions"]
    taken = {ObjectRef(**action["ref"]): action for action in actions if action["action"] in _TAKING and action["uid"]}
    written = {ObjectRef(**action["ref"]).identity for action in actions if action["action"] in _WRITING}
    going = {action["uid"] for action in taken.values()}
    measured = [finding for finding in report.body["findings"] if finding["rule"] in MEASURED and finding["ref"]]
    shown = {ObjectRef(**found["ref"]): found["evidence"] for found in measured if _MEASURES & found["evidence"].keys()}
    holders, words, claims = list[Holder](), list[str](), list[VolumeClaim]()
    for ref, action in taken.items():
        evidence = shown.get(ref, {})
        losing_nothing = _list_safe_claims(ref, evidence, action)
        if "counts" not in evidence and ref.group_kind != STATEFUL_SET and not losing_nothing:
            continue
        # With what went, or goes already, went what was in it.
        if _uid_now(readers, ref) == action["uid"]:
            claims += losing_nothing
            words += _list_new_claims(readers, ref, evidence, action)
            if "counts" in evidence:
                holders.append(Holder(ref, _read_shown(ref, evidence), going, written))
    found = [_find_new_objects(readers, holder, holders, has_begun=has_begun) for holder in holders]
    return _join([*found, Unseen(words=tuple(words), lost=tuple(find_lost_volumes(readers, claims)))])


def _find_new_objects(readers: Sequence[Api], holder: Holder, holders: Sequence[Holder], *, has_begun: bool) -> Unseen:
    """What was created in it since it was shown."""
    ref, found = holder.ref, list[Unseen]()
    if has_begun and ref.group_kind == _NAMESPACE:
        holder = replace(holder, shown={kind: shown for kind, shown in holder.shown.items() if kind not in _TIDYING})
    # A holder without its Jobs has itself, with them, among the others: what a Job makes that was shown was there too.
    others = [other for other in holders if other is not holder]
    for kind, late in find_latecomers(readers, holder, others).items():
        objects, shown = f"{kind.kind} objects that would be deleted with {ref}", holder.shown[kind]
        if late.problem:
            patch = '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
            command = f"kubectl patch crd {ref.name} --type=merge -p '{patch}'"
            words = f"{objects} cannot be listed: {late.problem}. Without it: {command}"
            found.append(Unseen(unconverted=(words,), said=((ref, late.server_words),)))
        elif late.count is None:
            found.append(Unseen(too_many=(objects,)))
        elif shown.count is None and late.count:
            found.append(Unseen(untold=(f"the {objects} could not be counted, and now there are {late.count:,}",)))
        elif not shown.is_dated and late.total and not late.count:
            why = "an earlier version of Pratique made the report"
            found.append(Unseen(untold=(f"nobody can tell which of the {objects} were there, because {why}",)))
        elif late.count:
            words = f"{number(late.count, f'{kind.kind} object')} created since then would be deleted with {ref}"
            more = "; whether their owners are deleted too could not be asked of all of them" if late.unasked else ""
            found.append(Unseen((f"{words}{more}",)))
    return _join(found)


def _join(found: Sequence[Unseen]) -> Unseen:
    parts = {field.name: tuple(chain.from_iterable(getattr(part, field.name) for part in found)) for field in _PARTS}
    return Unseen(**parts)


def _list_safe_claims(ref: ObjectRef, evidence: Mapping[str, Any], planned: Mapping[str, Any]) -> list[VolumeClaim]:
    """The claims that go and lose nothing, as the report has them; those that a StatefulSet leaves behind do not go."""
    if ref.group_kind == STATEFUL_SET and not takes_claims_along(planned["before"] or {}):
        return []
    place = ref.name if ref.group_kind == _NAMESPACE else ref.namespace
    claims = [
        VolumeClaim(ObjectRef("", "v1", CLAIM.kind, place, volume["claim"]), volume["volume"], volume["policy"])
        for volume in evidence.get("volumes", ())
    ]
    return [claim for claim in claims if claim.was_to_stay]


def _list_new_claims(
    readers: Sequence[Api], ref: ObjectRef, evidence: Mapping[str, Any], planned: Mapping[str, Any]
) -> list[str]:
    if ref.group_kind != STATEFUL_SET or not planned["before"]:
        return []
    late = find_new_claims(readers, planned["before"], ref, {volume["claim"] for volume in evidence.get("volumes", ())})
    words = f"{number(len(late), 'PersistentVolumeClaim')} created since then would be deleted with {ref}"
    return [f"{words}: {some(late, MAX_NAMED)}"] if late else []


def look_through(request: Request, api: Api, report: Report, slowly: Slowly, ask: Callable[[Api], Unseen]) -> Unseen:
    """What `ask` finds, within LOOK_SECONDS for all kinds together, and for few requests of one cluster at once.

    It may take as long as that only where a CRD or a namespace goes: then `slowly` is entered meanwhile. Raises
    TooManyLooks where others are at it.
    """
    takes = any(report.actions.get(action, 0) for action in _TAKING)  # else the report's body is not read
    going = [action["ref"] for action in report.body["plan"]["actions"] if action["action"] in _TAKING] if takes else []
    if not any(GroupKind(ref["group"], ref["kind"]) in _HOLDERS for ref in going):
        return ask(api)
    with claims.place("look through", request.deployment.cluster_id, LOOKS_AT_ONCE) as is_ours:
        if not is_ours:
            words = f"{LOOKS_AT_ONCE} other requests of this cluster delete a CRD or a namespace, and what is in it"
            raise TooManyLooks(f"{words} is being listed: this request continues afterwards")
        with slowly():
            try:
                return ask(api.until(time.monotonic() + LOOK_SECONDS))
            except OutOfTime:
                return Unseen(too_many=(f"the objects that would be deleted, within {LOOK_SECONDS:.0f} s",))


def _read_shown(ref: ObjectRef, evidence: Mapping[str, Any]) -> dict[GroupKind, Shown]:
    """What was counted in it, and what could not be, but Pods: they come and go with what makes them."""
    last, versions, is_dated = evidence.get("newest") or {}, evidence.get("listedIn") or {}, "newest" in evidence
    found = {
        kind: Shown(count, last.get(kind), versions.get(kind, ""), is_dated)
        for kind, count in evidence["counts"].items()
    }
    uncounted = set(evidence.get("notCounted") or ()) - found.keys()
    found |= {kind: Shown(None, None, versions.get(kind, "")) for kind in uncounted}
    if ref.group_kind == _NAMESPACE:
        return {GroupKind(MISSED[kind], kind): shown for kind, shown in found.items() if kind != "Pod"}
    return {GroupKind(ref.name.partition(".")[2], kind): shown for kind, shown in found.items()}


def _uid_now(readers: Sequence[Api], ref: ObjectRef) -> str:
    """The uid that the object has now; "" where it is gone or being deleted."""
    try:
        live = readers[-1].get(ref)
    except UnknownKind:
        return ""
    return uid_of(live) if live and "deletionTimestamp" not in live["metadata"] else ""


def _readers(request: Request, api: Api) -> tuple[Api, Api]:
    """As whom lists are read: as the service, else as the account by whose right the objects go."""
    return api, api.acting_as(request.bundle_spec.installer)
