"""What a deletion takes: with a CRD or a namespace also what no plan names, and what of it reviewers were shown; and
the deletion that nobody has to review, as it takes no data and the operator allows it (security.md S15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.utils import timezone

from approvals.gate.facts import Fact, How, Known, Unreviewed
from approvals.gate.planning import installer_of, running_content
from approvals.gate.wish import learn
from approvals.lifecycle import Event
from approvals.models import AuditEntry, Report, Request
from approvals.policy import OWN_RULES_PREFIX, holdings
from provisioner.cluster.client.api import Cluster as Api
from provisioner.cluster.compare import uid_of
from provisioner.cluster.dependents import dependents
from provisioner.cluster.evidence import Query, Sample, samples
from provisioner.errors import TryLater, UnknownKind
from provisioner.review.base.creation_times import created_at
from provisioner.review.base.record import from_record
from provisioner.sentences import number, some_phrases
from provisioner.values import Action, GroupKind, JsonObject, ObjectRef, Plan, Severity

WORDS = "it contains no data, and PRATIQUE_UNREVIEWED_DELETIONS allows deleting it without a review"
MAX_NAMED = 3
_DEFINITION, _NAMESPACE = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"), GroupKind("", "Namespace")
_TAKING = (Action.DELETE, Action.REPLACE)
# What people and programs keep in a namespace; the rest is made of other objects, and comes and goes by itself.
_KEEPING = ("ConfigMap", "PersistentVolumeClaim", "Secret")


def is_free(request: Request, planned: Plan | None = None) -> bool:
    """Whether this deletion takes no data, by what it would take by now (`planned`), else by what its report says.

    No where the operator does not allow it by now, and for every other request.
    """
    if not settings.PRATIQUE["UNREVIEWED_DELETIONS"] or request.purpose != Request.Purpose.DELETE:
        return False
    found = from_record(request.reports.get(round=request.round).body)
    if any(one.severity is Severity.UNKNOWN or one.rule.startswith(OWN_RULES_PREFIX) for one in found.findings):
        return False
    content = running_content(request)
    running = {one.ref.identity: one.body for one in (content.manifests if content else ())}
    return not holdings((planned or found.plan).actions, running)


def takes_data(request: Request, api: Api, planned: Plan) -> bool:
    """Whether what the operator lets go unreviewed holds data since its report: no plan tells values."""
    return is_free(request) and not (is_free(request, planned) and not _goes_along(request, api, planned))


def by_report(request: Request, connect: Callable[[], Api]) -> Fact[Unreviewed]:
    """Whether it may go without a review, also by what else would go that no plan names."""
    if not is_free(request):
        return Known(Unreviewed(False), timezone.now(), How.RECORDS)
    return learn(lambda: _with_what_goes_along(request, connect()))


def by_records(request: Request) -> Fact[Unreviewed]:
    """Whether this round was let go without a review, and still may be by its report.

    What else would go was looked at before that. Where people approved it, perhaps because of what else would go, it
    stands on their word alone.
    """
    return Known(Unreviewed(is_free(request) and _was_let_go(request)), timezone.now(), How.RECORDS)


def _was_let_go(request: Request) -> bool:
    given = AuditEntry.objects.filter(request_uid=str(request.uid), verb=f"request.{Event.APPROVE}")
    facts = given.order_by("number").values_list("facts", flat=True).last() or {}
    return (facts.get("why"), facts.get("subjectDigest")) == (WORDS, request.subject_digest)


def _with_what_goes_along(request: Request, api: Api) -> Unreviewed:
    planned = from_record(request.reports.get(round=request.round).body).plan
    words = _goes_along(request, api, planned)
    if not words:
        return Unreviewed(True)
    named = some_phrases(words, MAX_NAMED)
    return Unreviewed(False, f"a review is needed, because no plan lists what else is deleted: {named}")


def _goes_along(request: Request, api: Api, planned: Plan) -> list[str]:
    """What else a deletion would take that somebody may have put there, and what nobody could look at, in words."""
    going = [(one.ref, one.uid) for one in planned.actions if one.action is Action.DELETE and one.before is not None]
    return dependents(_readers(request, api), going)


def unseen(request: Request, api: Api, report: Report, kinds: Sequence[GroupKind] = (_DEFINITION,)) -> tuple[str, ...]:
    """In words, which objects go with a CRD that is deleted and were created since reviewers were shown the others.

    The API server takes them with it, whoever made them, and no plan names them. `kinds` are those of what is deleted.
    Raises TryLater where nobody can tell by now.
    """
    if not any(report.actions.get(action, 0) for action in _TAKING):
        return ()
    body = report.body
    going = [one for one in body["plan"]["actions"] if one["action"] in _TAKING and one["uid"]]
    shown = {_key(one["ref"]): one["evidence"] for one in body["findings"] if "counts" in one["evidence"]}
    found: list[str] = []
    for one in going:
        ref = ObjectRef(**one["ref"])
        if ref.group_kind in kinds and _key(one["ref"]) in shown:
            found += _late(_readers(request, api), ref, one["uid"], shown[_key(one["ref"])])
    return tuple(found)


def unseen_anywhere(request: Request, api: Api, report: Report) -> tuple[str, ...]:
    """The same, of namespaces as well. Once something has begun only of CRDs: what goes makes others tidy up."""
    return unseen(request, api, report, (_DEFINITION, _NAMESPACE))


def _late(readers: Sequence[Api], ref: ObjectRef, uid: str, shown: Mapping[str, Any]) -> Iterator[str]:
    if _uid_now(readers, ref) != uid:
        return  # with it what was in it went
    for kind, count in shown["counts"].items():
        if ref.group_kind == _NAMESPACE and kind not in _KEEPING:
            continue
        group, _, place = ("", "", ref.name) if ref.group_kind == _NAMESPACE else (ref.name.partition(".")[2], "", "")
        query = Query(group, "", kind, place, metadata_only=True)
        there = samples(readers, [query])[query]
        if there.problem:
            raise TryLater(f"the objects that are deleted with {ref} could not be read: {there.problem}")
        late = _since(there, count, (shown.get("newest") or {}).get(kind))
        if late > 0:
            yield f"{number(late, f'{kind} object')} created since then would be deleted with {ref}"


def _since(there: Sample, count: int, last: str | None) -> int:
    """How many of these were created after `count` were shown, of which the last had been created at `last`; None in
    a report of before that was kept.

    What a controller made of another object is none of them: it comes and goes with that one.
    """
    total = len(there.objects) if there.total is None else there.total
    if last is None:
        return total - count
    later = [one for one in there.objects if created_at(one) > last]
    made = [one for one in later if not _is_controlled(one)]
    is_whole = total == len(there.objects)
    more = total - len(later) - count if is_whole else total - count - len(made)
    return len(made) + max(0, more)


def _is_controlled(obj: JsonObject) -> bool:
    return any(one.get("controller") is True for one in obj["metadata"].get("ownerReferences") or [])


def _uid_now(readers: Sequence[Api], ref: ObjectRef) -> str:
    try:
        live = readers[-1].get(ref)
    except UnknownKind:
        return ""
    return uid_of(live) if live else ""


def _readers(request: Request, api: Api) -> tuple[Api, Api]:
    """As whom lists are read: as the service, else as the account by whose right the objects go."""
    return api, api.acting_as(installer_of(request.spec))


def _key(ref: Mapping[str, str]) -> tuple[str, ...]:
    return ref["group"], ref["kind"], ref["namespace"], ref["name"]
