"""The objects of one kind that say how requests of a cluster are decided, as we saw them last or as they are now, and
what their selectors and conditions look at of one request."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField, prefetch_related_objects
from django.db.models.functions import Cast

from approvals import access, policy
from approvals.access.caller import POLICY_PREFIX
from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy, read_document
from approvals.deciding.change_windows import ChangeWindow, SelectingWindow, Windows
from approvals.deciding.external_checks import ExternalCheck, SelectedCheck
from approvals.deciding.finding_exceptions import FindingException
from approvals.deciding.kinds import VERSION, DecidingKind, EarlierSpec, SeenObject
from approvals.deciding.selector import SelectedBy
from approvals.errors import TooManyRules
from approvals.gate.facts import ExceptionFacts
from approvals.gate.policies import facts_of, reviewed_report, worst_new_of
from approvals.ledger import labels
from approvals.ledger.deciding import check_runs, confirmations, policy_rows
from approvals.ledger.pivots import has_requested
from approvals.models import Cluster, Confirmation, DecidingObject, Policy, Report, Request
from approvals.policy.built_in import BUILT_IN, UID_PREFIX, BuiltInGuard
from approvals.policy.document import COLUMNS, LoadedPolicy, PolicyDocument, PolicyEffect, Validation
from approvals.policy.expression import ExpressionResult
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource
from provisioner.errors import TryLater
from provisioner.expressions.evaluator import ask

K = TypeVar("K", bound=DecidingKind)
# Of one kind and cluster. Where there are more, nobody can tell what they say.
MOST_OBJECTS = 1000
# So many specs, of at most so many characters, are remembered with what they say: 10 KiB each where all are that long.
REMEMBERED, MOST_REMEMBERED = 2048, 2000
# Of processor time, for what the windows of a cluster say. What was worked out is remembered, so the next look goes on.
WINDOWS_SECONDS = 0.7
TOO_SLOW = "to work out the windows before it took too long, and it is read when the request is looked at again"
# Of an image whose reference names no host, and what else Docker Hub is called.
DEFAULT_HOST, HUB_NAMES = "docker.io", ("index.docker.io", "registry-1.docker.io")
# API servers of one cluster do not begin to serve a kind at the same moment, and a CRD that is replaced is away for a
# while. After that there are none where the kind is not served.
LEAST_AWAY = timedelta(minutes=5)


class _PolicyRow(NamedTuple):
    """The row that stands for an object."""

    pk: int
    version: int
    name: str


class _PolicyRows(NamedTuple):
    """Policies of the service and built-in guards, and what stands for each object, by its uid."""

    own: list[Policy]
    of_objects: dict[str, _PolicyRow]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Our rows of one cluster, as objects by kind; the rows themselves of those that need people, with these.

    `policies` were read before the objects: what an earlier spec approves must not get the version of a later one.
    """

    policies: _PolicyRows | None
    seen: Mapping[str, list[SeenObject]]
    confirmed: Sequence[DecidingObject]


def kept_rows(cluster: Cluster, kinds: Collection[type[DecidingKind]]) -> KeptRows:
    """Our rows of several kinds by one query; of a kind that needs people those that somebody has confirmed."""
    of_all, of_confirmed = ([kind.kind for kind in kinds if kind.needs_people is needs] for needs in (False, True))
    is_confirmed = Q(Exists(Confirmation.objects.filter(object=OuterRef("pk"))), kind__in=of_confirmed, gone_at=None)
    policies = _policy_rows(cluster) if ApprovalPolicy in kinds else None
    rows = DecidingObject.objects.filter(cluster=cluster).order_by("name", "uid")
    seen = _list_seen(rows.filter(Q(kind__in=of_all) | is_confirmed), kinds)
    uids = [each.uid for kind in of_confirmed for each in seen[kind]]
    confirmed = rows.filter(uid__in=uids, gone_at=None).prefetch_related("confirmations") if uids else ()
    return KeptRows(policies, seen, tuple(confirmed))


def _policy_rows(cluster: Cluster) -> _PolicyRows:
    in_use = Q(cluster=None) | Q(cluster=cluster), Q(is_active=True) | Q(uid__startswith=UID_PREFIX)
    found, own = _PolicyRows([], {}), list[int]()
    for pk, uid, version, name in Policy.objects.filter(*in_use).values_list("pk", "uid", "version", "name"):
        if uid and not uid.startswith(UID_PREFIX):
            found.of_objects[uid] = _PolicyRow(pk, version, name)
        else:
            own.append(pk)
    return found._replace(own=list(Policy.objects.filter(*in_use, pk__in=own).order_by("name"))) if own else found


def _list_seen(rows: QuerySet[DecidingObject], kinds: Iterable[type[DecidingKind]]) -> dict[str, list[SeenObject]]:
    """There may be thousands, so that they are not made into instances: that takes longer than to judge them."""
    found: dict[str, list[SeenObject]] = {kind.kind: [] for kind in kinds}
    texts = {f"{column}_text": Cast(column, TextField()) for column in ("spec", "authors", "earlier_specs")}
    for kind, *values in rows.annotate(**texts).values_list("kind", "name", "uid", "changed_at", "gone_at", *texts):
        found[kind].append(_seen_of(*values))
    return found


def _seen_of(
    name: str, uid: str, changed_at: datetime, gone_at: datetime | None, text: str, authors: str, earlier: str
) -> SeenObject:
    spec = _decode(text)
    past = tuple(EarlierSpec(one["spec"], datetime.fromisoformat(one["until"])) for one in _decode(earlier))
    if gone_at is not None:
        return SeenObject(name, uid, None, gone_at, (*past, EarlierSpec(spec, gone_at)))
    known = text if len(text) <= MOST_REMEMBERED else ""
    return SeenObject(name, uid, spec, changed_at, past, tuple(_decode(authors)), text=known)


def _decode(text: str) -> Any:
    return _decoded(text) if len(text) <= MOST_REMEMBERED else json.loads(text)


_decoded = lru_cache(maxsize=REMEMBERED)(json.loads)


@lru_cache(maxsize=REMEMBERED)
def _read_policy(name: str, text: str) -> tuple[PolicyDocument, str]:
    return read_document(name, _decode(text))


@lru_cache(maxsize=REMEMBERED)
def _read_kind(kind: type[DecidingKind], text: str) -> tuple[Any, str]:
    return kind.read(_decode(text))


def read_objects(
    cluster: Cluster, kind: type[DecidingKind], api: Api | None = None, rows: KeptRows | None = None
) -> tuple[SeenObject, ...]:
    """As they are in the cluster now; without `api` as the watch saw them last, which `rows` may hold already."""
    return live_objects(cluster, kind, api) if api else seen_objects(cluster, kind, rows)


def seen_objects(cluster: Cluster, kind: type[DecidingKind], rows: KeptRows | None = None) -> tuple[SeenObject, ...]:
    """As the watch saw them last, with those that are gone and may still matter. Raises TooManyRules."""
    return tuple(_rows(cluster, kind, rows))


def live_objects(cluster: Cluster, kind: type[DecidingKind], api: Api) -> tuple[SeenObject, ...]:
    """As they are in the cluster, with what we know of them from before; none where the kind is not served.

    Raises TooManyRules, and PratiqueError where the cluster does not answer.
    """
    resource = _resource_of(cluster, kind, api)
    live = {obj["metadata"]["uid"]: obj for obj in api.snapshot(resource).objects} if resource else {}
    if len(live) > MOST_OBJECTS:
        raise _too_many(kind)
    now, found = database_now(), list[SeenObject]()
    for known in _rows(cluster, kind):
        obj = live.pop(known.uid, None)
        spec = dict(obj.get("spec") or {}) if obj else None
        if spec == known.spec:
            found.append(known)
        else:  # the watch has not seen that yet
            before = (*known.earlier, EarlierSpec(known.spec, now)) if known.spec is not None else known.earlier
            found.append(SeenObject(known.name, known.uid, spec, now, before, is_seen=False))
    found += [_live(obj, now) for obj in live.values()]
    return tuple(sorted(found, key=lambda one: (one.name, one.uid)))


def _resource_of(cluster: Cluster, kind: type[DecidingKind], api: Api) -> ServedResource | None:
    """None where the kind is not served; raises TryLater where it was until now, and had objects."""
    resource = api.resource_of(OWN_GROUP, VERSION, kind.kind)
    if resource is None:
        rows = DecidingObject.objects.filter(cluster=cluster, kind=kind.kind)
        if rows.filter(Q(gone_at=None) | Q(gone_at__gt=database_now() - LEAST_AWAY)).exists():
            raise TryLater(f"the cluster does not serve {kind.kind} at the moment, and had some until now")
    return resource


def _rows(cluster: Cluster, kind: type[DecidingKind], rows: KeptRows | None = None) -> list[SeenObject]:
    ours = DecidingObject.objects.filter(cluster=cluster, kind=kind.kind).order_by("name", "uid")
    found = (rows.seen if rows else _list_seen(ours, [kind]))[kind.kind]
    if sum(seen.spec is not None for seen in found) > MOST_OBJECTS:
        raise _too_many(kind)
    return found


def _live(obj: Mapping[str, Any], now: datetime) -> SeenObject:
    """As the cluster has it; nothing is known of it from before."""
    meta = obj["metadata"]
    return SeenObject(str(meta["name"]), str(meta.get("uid", "")), dict(obj.get("spec") or {}), now, is_seen=False)


def _too_many(kind: type[DecidingKind]) -> TooManyRules:
    return TooManyRules(f"the cluster has more than {MOST_OBJECTS} objects of kind {kind.kind}: delete some")


def load_policies(request: Request, api: Api | None = None, rows: KeptRows | None = None) -> tuple[LoadedPolicy, ...]:
    """Every policy that may judge a request: those of the service, built-in guards, and those of its cluster as the
    watch saw them last, or with `api` as they are now. Raises as `live_objects`.

    A rule that lists a policy by its name means the object: a grant of the service that has its name is left out, also
    once the object is gone.
    """
    cluster = request.deployment.cluster
    own, row_of = (rows and rows.policies) or _policy_rows(cluster)
    by_uid = {row.uid: row for row in own if row.uid}
    objects = read_objects(cluster, ApprovalPolicy, api, rows)
    of_cluster = [_policy_of_seen(one, row_of.get(one.uid)) for one in objects]
    in_force = settings.PRATIQUE["BUILT_IN_GUARDS"]
    built_in = [(by_uid.get(guard.uid), guard) for guard in BUILT_IN if guard.name in in_force]
    of_service = [policy_of_row(row) for row in own if not row.uid]
    grants = [loaded.document.name for loaded in of_service if loaded.document.is_grant]
    taken = {loaded.document.name for loaded in of_cluster if loaded}
    taken |= policy_rows.names_of_objects(cluster, grants) if grants else set()
    found = [
        *(loaded for loaded in of_service if not (loaded.document.is_grant and loaded.document.name in taken)),
        *filter(None, (_built_in_policy(row, guard, request) for row, guard in built_in if row)),
        *filter(None, of_cluster),
    ]
    return tuple(sorted(found, key=lambda loaded: (loaded.document.name, loaded.key)))


def _built_in_policy(row: Policy, guard: BuiltInGuard, request: Request) -> LoadedPolicy | None:
    """None of one that is switched off. Whoever asked for a change cannot switch off what holds it (S05)."""
    document = guard.document
    if not row.is_active:
        editor = access.person_recorded(row.editor_known_as)
        if settings.PRATIQUE["SELF_APPROVAL"] or not has_requested(request, editor):
            return None
        who = f"{editor.username} requested this change and switched the guard off"
        document = PolicyDocument(
            guard.name,
            PolicyEffect.GUARD,
            (Validation(document.expression, f"{document.message} ({who})"),),
            is_enforced=True,
        )
    return LoadedPolicy(row.pk, row.version, "", document)


def _policy_of_seen(seen: SeenObject, row: _PolicyRow | None) -> LoadedPolicy | None:
    """None of one that is gone. One of which the watch has not seen that it was deleted is there, and not in force."""
    spec = seen.spec if seen.spec is not None or row is None else seen.earlier[-1].spec
    if spec is None:
        return None
    document, problem = _read_policy(seen.name, seen.text) if seen.text else read_document(seen.name, spec)
    document = document if seen.spec is not None else replace(document, is_enforced=False)
    key, identity = (row.pk, f"{POLICY_PREFIX}{row.name}") if row else (0, "")
    version = row.version if row and seen.is_seen else 0
    is_known = seen.is_seen and bool(seen.authors) and all(seen.authors)
    return LoadedPolicy(key, version, identity, document, seen.authors, (), is_known, problem)


def policy_of_object(seen: DecidingObject, row: Policy) -> LoadedPolicy | None:
    """An ApprovalPolicy as it was seen last, with the row that stands for it; None where it is gone."""
    gone_at, texts = seen.gone_at, (json.dumps(value) for value in (seen.spec, seen.authors, seen.earlier_specs))
    known = _seen_of(seen.name, seen.uid, seen.changed_at, gone_at, *texts)
    return _policy_of_seen(known, _PolicyRow(row.pk, row.version, row.name))


def policy_of_row(row: Policy) -> LoadedPolicy:
    """A policy of the service, wherever it is in force. Who saved it is known by name, and by their account."""
    document = PolicyDocument.of_columns({"cluster": "", **{column: getattr(row, column) for column in COLUMNS}})
    authors = (*row.writers, row.author_known_as, row.editor_known_as)
    accounts = tuple(key for key in (row.author_id, row.editor_id) if key)
    return LoadedPolicy(row.pk, row.version, access.policy_identity(row).username, document, authors, accounts)


def selected_by(request: Request, report: Report) -> SelectedBy:
    """The labels of now are read anew, as for guards (S14)."""
    request.deployment.refresh_from_db(fields=["labels"])
    before = request.from_revision.request if request.from_revision else None
    return SelectedBy(
        name=request.deployment.name,
        labels=(*request.earlier_labels, request.labels, request.deployment.labels),
        format=request.format,
        hosts=_hosts_of(request),
        packages=_packages_of(request),
        hosts_before=_hosts_of(before) if before else (),
        packages_before=_packages_of(before) if before else (),
        format_before=before.format if before else "",
        worst_new=worst_new_of(report),
        are_labels_kept=labels.are_all_kept(request),
    )


def _hosts_of(request: Request) -> tuple[str, ...]:
    return tuple(sorted({host_of(pin["kind"], pin["reference"]) for pin in request.pins} - {""}))


def _packages_of(request: Request) -> tuple[str, ...]:
    return tuple(sorted({bundle["package"] for bundle in request.bundles}))


def host_of(kind: str, reference: str) -> str:
    """The host that a pinned source came from, by one name however it was written; "" where it came from none."""
    first, slash, _ = reference.partition("/")
    if "://" in reference:
        host = urlsplit(reference).hostname or ""
    elif kind == "git" and ":" in reference:  # git@example.com:team/repository
        host = reference.partition(":")[0].rpartition("@")[2]
    elif kind != "image":
        return ""
    elif slash and ("." in first or ":" in first or first == "localhost"):
        host = first.partition(":")[0]
    else:
        return DEFAULT_HOST
    host = host.lower().rstrip(".")
    return DEFAULT_HOST if host in HUB_NAMES else host


def conditions_of(request: Request, report: Report, expressions: Sequence[str]) -> dict[str, str | None]:
    """Of each expression "" where it is true, None where it is false, else why nobody can tell.

    It is asked with each set of labels that the deployment had since (S14): one that is true with some of them and not
    with all is not sure.
    """
    wanted = list(dict.fromkeys(text for text in expressions if text))
    if not wanted:
        return {"": ""}
    prefetch_related_objects([report], "findings")
    facts, found = facts_of(request, report), dict[str, str | None]({"": ""})
    sets = labels.sets_of(request)
    said: dict[str, list[ExpressionResult]] = {text: [] for text in wanted}
    for own in sets:
        asked = [text for text in wanted if own == sets[0] or "labels" in text]
        about = {**facts, "labels": own}
        for text, answer in zip(asked, ask(policy.POLICY, asked, about), strict=True):
            said[text].append(policy.answer(text, about, policy.POLICY, answer))
    for text, answers in said.items():
        failed = [answer.words for answer in answers if answer.is_error]
        if all(answer.is_true for answer in answers):
            found[text] = ""
        elif any(answer.is_true for answer in answers):
            found[text] = "it is true with some of the labels that the deployment had since the request was made"
        else:
            found[text] = failed[0] if failed else None
        if found[text] is None and "labels" in text and not labels.are_all_kept(request):
            found[text] = "the deployment had more sets of labels than are kept"
    return found


@dataclass(frozen=True, slots=True)
class Selecting(Generic[K]):
    """A spec of an object that selects a request, or did `until` it was another one.

    `parsed` is None where it cannot be read, which `problem` says. `doubt` says why nobody can tell whether it selects.
    It `is_sure` if it selects by every set of labels that the deployment had.
    """

    seen: SeenObject
    parsed: K | None
    problem: str
    doubt: str
    is_sure: bool
    until: datetime | None


def list_selecting(
    kind: type[K], request: Request, report: Report, objects: Iterable[SeenObject], *, since: datetime | None = None
) -> list[Selecting[K]]:
    """What selects the request of what objects say, in their order, and of what each said before that `since` then.

    What cannot be read selects by what can be read of its selector, and what has a `when` that cannot be evaluated
    selects (S14).
    """
    specs = list[tuple[SeenObject, Mapping[str, Any], str, datetime | None]]()
    for seen in objects:
        specs += [(seen, one.spec, "", one.until) for one in seen.earlier if since and one.until > since]
        specs += [(seen, seen.spec, seen.text, None)] if seen.spec is not None else []
    if not specs:
        return []
    about, found = selected_by(request, report), list[Selecting[K]]()
    for seen, spec, text, until in specs:
        parsed, problem = _read_kind(kind, text) if text else kind.read(spec)
        selector = parsed.selector if parsed else kind.read_selector(spec)
        if selector.selects(about):
            is_sure = selector.selects(about, by_every_label_set=True)
            found.append(Selecting(seen, parsed, problem, "", is_sure, until))
    doubts = conditions_of(request, report, [each.parsed.when for each in found if each.parsed])
    told = [(each, doubts[each.parsed.when if each.parsed else ""]) for each in found]
    return [replace(each, doubt=doubt, is_sure=each.is_sure and not doubt) for each, doubt in told if doubt is not None]


def read_windows(request: Request, api: Api) -> Windows:
    """The change windows that select a request, as the cluster has them: a copy of ours may be late.

    There are none where the kind is not served. Raises PratiqueError where the cluster does not answer.

    Rare recurrences take long to work out: those are not read for which no time is left.
    """
    resource = _resource_of(request.deployment.cluster, ChangeWindow, api)
    objects, now = api.snapshot(resource).objects if resource else [], database_now()
    if len(objects) > MOST_OBJECTS:
        return Windows((), (f"the cluster has {len(objects)} ChangeWindows, and at most {MOST_OBJECTS} are read",))
    return windows_of(request, [_live(obj, now) for obj in objects])


def seen_windows(request: Request) -> Windows:
    """The same as the watch saw them last: for who wants to know, not for what is applied. Raises TooManyRules."""
    return windows_of(request, seen_objects(request.deployment.cluster, ChangeWindow))


def windows_of(request: Request, objects: Collection[SeenObject]) -> Windows:
    """Those of these change windows that select a request."""
    if not objects:
        return Windows()
    until, now, left = time.thread_time() + WINDOWS_SECONDS, database_now(), set[str]()
    for seen in objects:
        if time.thread_time() > until:
            left.add(seen.name)
        elif seen.spec is not None and (known := ChangeWindow.read(seen.spec)[0]):
            known.active_until(now)  # which remembers when it begins
    report, selecting, unread = reviewed_report(request), list[SelectingWindow](), list[str]()
    in_time = [seen for seen in objects if seen.name not in left]
    for each in list_selecting(ChangeWindow, request, report, in_time):
        if each.parsed:
            selecting.append(SelectingWindow(each.seen.name, each.parsed, each.is_sure))
        else:
            unread.append(_describe_unread(each.seen, each.problem))
    about = selected_by(request, report) if left else None
    for seen in objects:
        if about and seen.name in left and seen.spec and ChangeWindow.read_selector(seen.spec).selects(about):
            unread.append(_describe_unread(seen, TOO_SLOW))
    return Windows(tuple(selecting), tuple(unread))


def _describe_unread(window: SeenObject, problem: str) -> str:
    return f"change window {window.name} cannot be read, so the requests that it might select wait: {problem}"


def read_exceptions(
    request: Request, report: Report, api: Api | None, kept: KeptRows | None = None
) -> tuple[ExceptionFacts, ...]:
    """The FindingExceptions that are about findings of the report, each finding with the first one that counts.

    One counts that two people stand behind, of whom not all asked for the change; with `api` only as the cluster has it
    now. One that ended after the report was made is there with that it did. Raises TooManyRules, and PratiqueError
    where the cluster does not answer.
    """
    cluster, now = request.deployment.cluster, database_now()
    confirmed = (kept or kept_rows(cluster, [FindingException])).confirmed
    rows = [row for row in confirmed if row.kind == FindingException.kind]
    if rows and api:
        live = {one.uid: one.spec for one in live_objects(cluster, FindingException, api)}
        rows = [row for row in rows if live.get(row.uid) == row.spec]
    if not rows:
        return ()
    if len(rows) > MOST_OBJECTS:
        raise _too_many(FindingException)
    findings = defaultdict[str, list[Mapping[str, Any]]](list)
    for record in report.body["findings"]:
        findings[record["rule"]].append(record)
    about, fitting = selected_by(request, report), list[tuple[ExceptionFacts, FindingException]]()
    for row in rows:
        known, _ = FindingException.read(row.spec)
        if known is None:
            continue
        people = confirmations.people_behind(row)
        ready = known.ready([person.username for person in people], now)
        if not ready.is_ready and (known.expires > now or known.expires <= report.computed_at):
            continue
        fingerprints = frozenset(one["fingerprint"] for one in findings[known.rule] if known.accepts(one))
        if not fingerprints or not known.selector.selects(about, by_every_label_set=True):
            continue
        is_own = all(has_requested(request, person) for person in people) and not settings.PRATIQUE["SELF_APPROVAL"]
        why_not = "" if ready.is_ready else ready.words
        why_not = why_not or ("everyone who agreed to it requested this change" if is_own else "")
        names = tuple(person.username for person in people)
        facts = ExceptionFacts(row.name, known.description, known.ticket, known.expires, names, fingerprints, why_not)
        fitting.append((facts, known))
    conditions = conditions_of(request, report, [known.when for _, known in fitting])
    found, taken = list[ExceptionFacts](), set[str]()
    for facts, known in fitting:
        if (doubt := conditions[known.when]) is None:
            continue
        told = replace(facts, why_not=facts.why_not or doubt, fingerprints=facts.fingerprints - taken)
        if told.why_not or told.fingerprints:
            found.append(told)
        taken |= frozenset() if told.why_not else told.fingerprints
    return tuple(found)


def checks_of(request: Request, report: Report, objects: Iterable[SeenObject]) -> tuple[SelectedCheck, ...]:
    """The external checks that select a request, with what they said of its present subject."""
    selecting = list_selecting(ExternalCheck, request, report, objects)
    if not selecting:
        return ()
    runs, secrets = check_runs.newest_runs(request), check_runs.known_secrets(request.cluster_id)
    found = list[SelectedCheck]()
    for each in selecting:
        name, uid = each.seen.name, each.seen.uid
        facts = check_runs.facts_of(runs[uid]) if uid in runs else None
        found.append(SelectedCheck(name, uid, each.parsed, each.problem, each.doubt, uid in secrets, facts))
    return tuple(sorted(found, key=lambda selected: selected.name))
