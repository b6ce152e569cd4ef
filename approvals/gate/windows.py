"""The change windows of a cluster that select a request, read from the cluster itself: a copy of ours may be late."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.db.models import prefetch_related_objects

from approvals import policy
from approvals.deciding.change_windows import ChangeWindow, SelectingWindow, Windows
from approvals.deciding.kinds import VERSION
from approvals.deciding.selector import SelectedBy
from approvals.deciding.spec_fields import UnreadableObject
from approvals.gate.deciding_objects import MOST_OBJECTS
from approvals.gate.policies import facts_of, reviewed_report
from approvals.ledger import labels
from approvals.models import Request
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.expressions.evaluator import ask


def read_windows(request: Request, api: Api) -> Windows:
    """What cannot be read is told of as such; a window whose `when` cannot be evaluated selects (fail closed).

    Raises PratiqueError where the cluster does not answer.
    """
    resource = api.resource_of(OWN_GROUP, VERSION, ChangeWindow.kind)
    objects = api.snapshot(resource).objects if resource else []
    if len(objects) > MOST_OBJECTS:
        return Windows((), (f"the cluster has {len(objects)} ChangeWindows, and at most {MOST_OBJECTS} are read",))
    parsed, unread = list[tuple[str, ChangeWindow]](), []
    for obj in objects:
        name = str(obj["metadata"]["name"])
        try:
            parsed.append((name, ChangeWindow.parse(obj.get("spec") or {})))
        except UnreadableObject as exc:
            unread.append(f"change window {name} cannot be read, so it holds every request: {exc}")
    if not parsed:
        return Windows((), tuple(unread))
    request.deployment.refresh_from_db(fields=["labels"])
    report = reviewed_report(request)
    about = selected_by(request, report.worst)
    selecting = [(name, window) for name, window in parsed if window.selector.selects(about)]
    facts: policy.Facts | None = None
    windows = []
    for name, window in selecting:
        is_sure = window.selector.selects(about, by_every_label_set=True)
        if window.when:
            if facts is None:
                prefetch_related_objects([report], "findings")
                facts = facts_of(request, report)
            answer = policy.answer(window.when, facts, policy.POLICY, ask(policy.POLICY, [window.when], facts)[0])
            if not (answer.is_true or answer.is_error):
                continue
            is_sure = is_sure and answer.is_true
        windows.append(SelectingWindow(name, window, is_sure))
    return Windows(tuple(windows), tuple(unread))


def selected_by(request: Request, worst_new: str) -> SelectedBy:
    """What selectors look at."""
    references = [str(pin["reference"]) for pin in request.pins]
    hosts = {urlsplit(each if "://" in each else f"//{each}").hostname or "" for each in references}
    return SelectedBy(
        name=request.deployment.name,
        labels=(*request.earlier_labels, request.labels, request.deployment.labels),
        format=request.format,
        hosts=tuple(sorted(hosts - {""})),
        packages=tuple(sorted({str(bundle["package"]) for bundle in request.bundles})),
        worst_new=worst_new,
        are_labels_kept=labels.are_all_kept(request),
    )
