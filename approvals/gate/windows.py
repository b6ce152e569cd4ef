"""The change windows of a cluster that select a request, read from the cluster itself: a copy of ours may be late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.deciding.change_windows import ChangeWindow, SelectingWindow, Windows
from approvals.deciding.kinds import VERSION
from approvals.deciding.selector import SelectedBy, Selector
from approvals.deciding.spec_fields import SpecFields, UnreadableObject
from approvals.gate.deciding_objects import MOST_OBJECTS, conditions_of, selected_by
from approvals.gate.policies import reviewed_report
from approvals.models import Request
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api


def read_windows(request: Request, api: Api) -> Windows:
    """None where the kind is not served. Raises PratiqueError where the cluster does not answer.

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
