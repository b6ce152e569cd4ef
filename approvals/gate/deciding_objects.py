"""The objects of one kind that say how requests of a cluster are decided, as we saw them last or as they are now, and
what their selectors and conditions look at of one request."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Q, prefetch_related_objects

from approvals import access, policy
from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy, read_document
from approvals.deciding.change_windows import ChangeWindow, SelectingWindow, Windows
from approvals.deciding.external_checks import ExternalCheck, SelectedCheck
from approvals.deciding.finding_exceptions import FindingException
from approvals.deciding.kinds import VERSION, DecidingKind, EarlierSpec, SeenObject
from approvals.deciding.selector import SelectedBy, Selector
from approvals.deciding.spec_fields import SpecFields, UnreadableObject
from approvals.errors import TooManyRules
from approvals.gate.facts import ExceptionFacts
from approvals.gate.policies import facts_of, reviewed_report, worst_new_of
from approvals.ledger import labels
from approvals.ledger.deciding import check_runs, confirmations
from approvals.ledger.pivots import has_requested
from approvals.models import Cluster, DecidingObject, Policy, Report, Request
from approvals.policy.built_in import BUILT_IN
from approvals.policy.document import LoadedPolicy, PolicyDocument
from approvals.policy.expression import ExpressionResult
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource
from provisioner.errors import TryLater
from provisioner.expressions.evaluator import ask

# Of one kind and cluster. Where there are more, nobody can tell what they say.
MOST_OBJECTS = 1000
# Of processor time, for what the windows of a cluster say. What was worked out is remembered, so the next look goes on.
WINDOWS_SECONDS = 0.7
TOO_SLOW = "to work out the windows before it took too long, and it is read when the request is looked at again"
# Of an image whose reference names no host, and what else Docker Hub is called.
DEFAULT_HOST, HUB_NAMES = "docker.io", ("index.docker.io", "registry-1.docker.io")
# API servers of one cluster do not begin to serve a kind at the same moment, and a CRD that is replaced is away for a
# while. After that there are none where the kind is not served.
LEAST_AWAY = timedelta(minutes=5)


def seen_objects(cluster: Cluster, kind: type[DecidingKind]) -> tuple[SeenObject, ...]:
    """As the watch saw them last, with those that are gone and may still matter. Raises TooManyRules."""
    return tuple(_seen(row) for row in _rows(cluster, kind))


def live_objects(cluster: Cluster, kind: type[DecidingKind], api: Api) -> tuple[SeenObject, ...]:
    """As they are in the cluster, with what we know of them from before; none where the kind is not served.

    Raises TooManyRules, and PratiqueError where the cluster does not answer.
    """
    resource = _resource_of(cluster, kind, api)
    live = {obj["metadata"]["uid"]: obj for obj in api.snapshot(resource).objects} if resource else {}
    if len(live) > MOST_OBJECTS:
        raise _too_many(kind)
    now, found = database_now(), list[SeenObject]()
    for row in _rows(cluster, kind):
        obj, known = live.pop(row.uid, None), _seen(row)
        spec = dict(obj.get("spec") or {}) if obj else None
        if spec != known.spec:  # the watch has not seen that yet
            before = (*known.earlier, EarlierSpec(known.spec, now)) if known.spec is not None else known.earlier
            known = SeenObject(known.name, known.uid, spec, now, before, is_seen=False)
        found.append(known)
    new = [(obj["metadata"], dict(obj.get("spec") or {})) for obj in live.values()]
    found += [SeenObject(meta["name"], meta["uid"], spec, now, is_seen=False) for meta, spec in new]
    return tuple(sorted(found, key=lambda one: (one.name, one.uid)))


def _resource_of(cluster: Cluster, kind: type[DecidingKind], api: Api) -> ServedResource | None:
    """None where the kind is not served; raises TryLater where it was until now, and had objects."""
    resource = api.resource_of(OWN_GROUP, VERSION, kind.kind)
    if resource is None:
        rows = DecidingObject.objects.filter(cluster=cluster, kind=kind.kind)
        if rows.filter(Q(gone_at=None) | Q(gone_at__gt=database_now() - LEAST_AWAY)).exists():
            raise TryLater(f"the cluster does not serve {kind.kind} at the moment, and had some until now")
    return resource


def _rows(cluster: Cluster, kind: type[DecidingKind]) -> list[DecidingObject]:
    found = DecidingObject.objects.filter(cluster=cluster, kind=kind.kind).defer("status", "labels", "writers")
    rows = list(found.order_by("name", "uid"))
    if sum(row.gone_at is None for row in rows) > MOST_OBJECTS:
        raise _too_many(kind)
    return rows


def _seen(row: DecidingObject) -> SeenObject:
    earlier = tuple(EarlierSpec(one["spec"], datetime.fromisoformat(one["until"])) for one in row.earlier_specs)
    if row.gone_at is None:
        return SeenObject(row.name, row.uid, row.spec, row.changed_at, earlier, tuple(row.authors))
    return SeenObject(row.name, row.uid, None, row.gone_at, (*earlier, EarlierSpec(row.spec, row.gone_at)))


def _too_many(kind: type[DecidingKind]) -> TooManyRules:
    return TooManyRules(f"the cluster has more than {MOST_OBJECTS} objects of kind {kind.kind}: delete some")


def load_policies(request: Request, api: Api | None = None) -> tuple[LoadedPolicy, ...]:
    """Every policy that may judge a request: those of the service, built-in guards, and those of its cluster as the
    watch saw them last, or with `api` as they are now. Raises as `live_objects`."""
    cluster = request.deployment.cluster
    here = Q(cluster=None) | Q(cluster=cluster)
    rows = list(Policy.objects.filter(here, is_active=True).order_by("name"))
    by_uid = {row.uid: row for row in rows if row.uid}
    objects = live_objects(cluster, ApprovalPolicy, api) if api else seen_objects(cluster, ApprovalPolicy)
    of_cluster = [_policy_of_seen(one, by_uid.get(one.uid)) for one in objects]
    in_force = settings.PRATIQUE["BUILT_IN_GUARDS"]
    built_in = [(by_uid.get(guard.uid), guard) for guard in BUILT_IN if guard.name in in_force]
    found = [
        *(policy_of_row(row) for row in rows if not row.uid),
        *(LoadedPolicy(row.pk, row.version, "", guard.document) for row, guard in built_in if row),
        *filter(None, of_cluster),
    ]
    return tuple(sorted(found, key=lambda loaded: (loaded.document.name, loaded.key)))


def _policy_of_seen(seen: SeenObject, row: Policy | None) -> LoadedPolicy | None:
    """None of one that is gone. One of which the watch has not seen that it was deleted is there, and not in force."""
    spec = seen.spec if seen.spec is not None or row is None else seen.earlier[-1].spec
    if spec is None:
        return None
    document, problem = read_document(seen.name, spec)
    document = document if seen.spec is not None else replace(document, is_enforced=False)
    key, identity = (row.pk, access.policy_identity(row).username) if row else (0, "")
    version = row.version if row and seen.is_seen else 0
    is_known = seen.is_seen and bool(seen.authors) and all(seen.authors)
    return LoadedPolicy(key, version, identity, document, seen.authors, (), is_known, problem)


def policy_of_object(seen: DecidingObject, row: Policy) -> LoadedPolicy | None:
    """An ApprovalPolicy as it was seen last, with the row that stands for it; None where it is gone."""
    return _policy_of_seen(_seen(seen), row)


def policy_of_row(row: Policy) -> LoadedPolicy:
    """A policy of the service, wherever it is in force. Who saved it is known by name, and by their account."""
    columns = ("name", "kind", "mode", "names", "labels", "expression", "message", "allows_known_powers")
    said = {column: getattr(row, column) for column in columns}
    document = PolicyDocument.of_columns({**said, "cluster": ""})
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
    sets = [dict(one) for one in (request.labels, *request.earlier_labels, request.deployment.labels)]
    sets = [one for at, one in enumerate(sets) if one not in sets[:at]]
    said: dict[str, list[ExpressionResult]] = {text: [] for text in wanted}
    for own in sets:
        asked = [text for text in wanted if own == sets[0] or "labels" in text]
        about = {**facts, "labels": {str(key): str(value) for key, value in own.items()}}
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


def read_windows(request: Request, api: Api) -> Windows:
    """The change windows that select a request, as the cluster has them: a copy of ours may be late.

    There are none where the kind is not served. Raises PratiqueError where the cluster does not answer.

    One that cannot be read holds whatever its selector can still be read to select; one whose `when` cannot be
    evaluated selects. Rare recurrences take long to work out: those are not read for which no time is left.
    """
    resource = _resource_of(request.deployment.cluster, ChangeWindow, api)
    objects = api.snapshot(resource).objects if resource else []
    if not objects:
        return Windows()
    if len(objects) > MOST_OBJECTS:
        return Windows((), (f"the cluster has {len(objects)} ChangeWindows, and at most {MOST_OBJECTS} are read",))
    report = reviewed_report(request)
    about = selected_by(request, report)
    fitting, unread, until = list[tuple[str, ChangeWindow]](), [], time.thread_time() + WINDOWS_SECONDS
    for obj in objects:
        name, spec = str(obj["metadata"]["name"]), dict(obj.get("spec") or {})
        try:
            if time.thread_time() > until:
                raise UnreadableObject(TOO_SLOW)
            window = ChangeWindow.parse(spec)
            if window.selector.selects(about):
                window.active_until(database_now())  # which remembers when it begins
                fitting.append((name, window))
        except UnreadableObject as exc:
            if _may_select(spec, about):
                unread.append(f"change window {name} cannot be read, so it holds what it might select: {exc}")
    conditions = conditions_of(request, report, [window.when for _, window in fitting])
    selecting = []
    for name, window in fitting:
        doubt = conditions[window.when]
        if doubt is not None:
            is_sure = not doubt and window.selector.selects(about, by_every_label_set=True)
            selecting.append(SelectingWindow(name, window, is_sure))
    return Windows(tuple(selecting), tuple(unread))


def read_exceptions(request: Request, report: Report, api: Api | None) -> tuple[ExceptionFacts, ...]:
    """The FindingExceptions that are about findings of the report, each finding with the first one that counts.

    One counts that two people stand behind, of whom not all asked for the change; with `api` only as the cluster has it
    now. One that ended after the report was made is there with that it did. Raises TooManyRules, and PratiqueError
    where the cluster does not answer.
    """
    cluster, now = request.deployment.cluster, database_now()
    rows = confirmations.confirmed_objects(cluster, FindingException)
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
        try:
            known = FindingException.parse(row.spec)
        except UnreadableObject:
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
        why_not = why_not or ("everybody who stands behind it requested this change" if is_own else "")
        names = tuple(person.username for person in people)
        facts = ExceptionFacts(row.name, known.reason, known.ticket, known.expires, names, fingerprints, why_not)
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


def read_checks(request: Request, report: Report, objects: Iterable[SeenObject]) -> tuple[SelectedCheck, ...]:
    """The external checks that select a request, with what they said of its present subject.

    One that cannot be read holds whatever its selector can still be read to select; one whose `when` cannot be
    evaluated selects.
    """
    present = [(one, one.spec) for one in objects if one.spec is not None]
    if not present:
        return ()
    about = selected_by(request, report)
    fitting, found = list[tuple[SeenObject, ExternalCheck]](), list[SelectedCheck]()
    for one, spec in present:
        try:
            check = ExternalCheck.parse(spec)
        except UnreadableObject as exc:
            if _may_select(spec, about):
                found.append(SelectedCheck(one.name, one.uid, problem=str(exc)))
            continue
        if check.selector.selects(about):
            fitting.append((one, check))
    conditions = conditions_of(request, report, [check.when for _, check in fitting])
    runs, secrets = check_runs.newest_runs(request), check_runs.known_secrets(request.cluster_id)
    for one, check in fitting:
        doubt, run = conditions[check.when], runs.get(one.uid)
        if doubt is not None:
            facts = check_runs.facts_of(run) if run else None
            found.append(SelectedCheck(one.name, one.uid, check, "", doubt, one.uid in secrets, facts))
    return tuple(sorted(found, key=lambda selected: selected.name))


def _may_select(spec: Mapping[str, Any], about: SelectedBy) -> bool:
    try:
        return Selector.read(SpecFields(spec).inner("selector")).selects(about)
    except UnreadableObject:
        return True
