"""The objects of one kind that say how requests of a cluster are decided, as we saw them last or as they are now, and
what their selectors and conditions look at of one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Q, prefetch_related_objects

from approvals import access, policy
from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy, read_document
from approvals.deciding.change_windows import ChangeWindow, SelectingWindow, Windows
from approvals.deciding.kinds import VERSION, DecidingKind, EarlierSpec, SeenObject
from approvals.deciding.selector import SelectedBy, Selector
from approvals.deciding.spec_fields import SpecFields, UnreadableObject
from approvals.errors import TooManyRules
from approvals.gate.policies import facts_of, reviewed_report
from approvals.ledger import labels
from approvals.models import Cluster, DecidingObject, Policy, Report, Request
from approvals.policy.built_in import BUILT_IN
from approvals.policy.document import LoadedPolicy, PolicyDocument
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.expressions.evaluator import ask

# Of one kind and cluster. Where there are more, nobody can tell what they say.
MOST_OBJECTS = 1000
# Of an image whose reference names no host.
DEFAULT_HOST = "docker.io"


def seen_objects(cluster: Cluster, kind: type[DecidingKind]) -> tuple[SeenObject, ...]:
    """As the watch saw them last, with those that are gone and may still matter. Raises TooManyRules."""
    return tuple(_seen(row) for row in _rows(cluster, kind))


def live_objects(cluster: Cluster, kind: type[DecidingKind], api: Api) -> tuple[SeenObject, ...]:
    """As they are in the cluster, with what we know of them from before; none where the kind is not served.

    Raises TooManyRules, and PratiqueError where the cluster does not answer.
    """
    resource = api.resource_of(OWN_GROUP, VERSION, kind.kind)
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


def _rows(cluster: Cluster, kind: type[DecidingKind]) -> list[DecidingObject]:
    rows = list(DecidingObject.objects.filter(cluster=cluster, kind=kind.kind).order_by("name", "uid"))
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
    return SelectedBy(
        name=request.deployment.name,
        labels=(*request.earlier_labels, request.labels, request.deployment.labels),
        format=request.format,
        hosts=tuple(sorted({host_of(pin["kind"], pin["reference"]) for pin in request.pins} - {""})),
        packages=tuple(sorted({bundle["package"] for bundle in request.bundles})),
        worst_new=report.worst,
        are_labels_kept=labels.are_all_kept(request),
    )


def host_of(kind: str, reference: str) -> str:
    """The host that a pinned source came from; "" where it came from none."""
    if "://" in reference:
        return urlsplit(reference).hostname or ""
    if kind == "git" and ":" in reference:  # git@example.com:team/repository
        return reference.partition(":")[0].rpartition("@")[2]
    if kind != "image":
        return ""
    first, slash, _ = reference.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first.partition(":")[0] if is_host else DEFAULT_HOST


def conditions_of(request: Request, report: Report, expressions: Sequence[str]) -> dict[str, str | None]:
    """Of each expression "" where it is true, None where it is false, else why nobody can tell. All are asked at
    once."""
    wanted = list(dict.fromkeys(text for text in expressions if text))
    if not wanted:
        return {"": ""}
    prefetch_related_objects([report], "findings")
    facts, found = facts_of(request, report), dict[str, str | None]({"": ""})
    for text, answer in zip(wanted, ask(policy.POLICY, wanted, facts), strict=True):
        said = policy.answer(text, facts, policy.POLICY, answer)
        found[text] = said.words if said.is_error else "" if said.is_true else None
    return found


def read_windows(request: Request, api: Api) -> Windows:
    """The change windows that select a request, as the cluster has them: a copy of ours may be late.

    None where the kind is not served. Raises PratiqueError where the cluster does not answer.

    One that cannot be read holds whatever its selector can still be read to select; one whose `when` cannot be
    evaluated selects.
    """
    resource = api.resource_of(OWN_GROUP, VERSION, ChangeWindow.kind)
    objects = api.snapshot(resource).objects if resource else []
    if not objects:
        return Windows()
    if len(objects) > MOST_OBJECTS:
        return Windows((), (f"the cluster has {len(objects)} ChangeWindows, and at most {MOST_OBJECTS} are read",))
    report = reviewed_report(request)
    about = selected_by(request, report)
    fitting, unread = list[tuple[str, ChangeWindow]](), []
    for obj in objects:
        name, spec = str(obj["metadata"]["name"]), dict(obj.get("spec") or {})
        try:
            window = ChangeWindow.parse(spec)
        except UnreadableObject as exc:
            if _may_select(spec, about):
                unread.append(f"change window {name} cannot be read, so it holds what it might select: {exc}")
            continue
        if window.selector.selects(about):
            fitting.append((name, window))
    conditions = conditions_of(request, report, [window.when for _, window in fitting])
    selecting = []
    for name, window in fitting:
        doubt = conditions[window.when]
        if doubt is not None:
            is_sure = not doubt and window.selector.selects(about, by_every_label_set=True)
            selecting.append(SelectingWindow(name, window, is_sure))
    return Windows(tuple(selecting), tuple(unread))


def _may_select(spec: Mapping[str, Any], about: SelectedBy) -> bool:
    try:
        return Selector.read(SpecFields(spec).inner("selector")).selects(about)
    except UnreadableObject:
        return True
