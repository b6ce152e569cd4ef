"""Which parts of a report a caller may see: live values only of objects that Kubernetes lets them get (S09)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User

from approvals import access
from approvals.models import Cluster, InventoryItem, Report, Request
from provisioner.review.difference import mask_secret
from provisioner.values import Action, ObjectRef

# Kubernetes is asked at most this often for one report; what is left after that is hidden.
MAX_ASKED = 300
EXISTS = "exists, hidden from you"
Record = Mapping[str, Any]


def visible_report(user: User, request: Request, report: Report) -> dict[str, Any]:
    """The report's record without the live values that this user may not see.

    A hidden object keeps its name and what is planned, without the words of the API server, which quote live values.
    Of a hidden Secret not even that: "update" and "none" would tell whether it equals the bundle's.
    """
    sight = Sight(user, request.deployment.cluster)
    body: dict[str, Any] = report.body
    planned = body["plan"]["actions"]
    hidden = {_key(it["ref"]) for it in planned if it.get("before") is not None and not sight.may_see(it["ref"])}
    actions = [_hidden_action(it) if _key(it["ref"]) in hidden else _masked(it) for it in planned]
    findings = [_hidden_finding(it) if it["ref"] and _key(it["ref"]) in hidden else it for it in body["findings"]]
    return {**body, "findings": findings, "plan": {**body["plan"], "actions": actions}}


class Sight:
    """One user's sight of one cluster. The widest question is asked first, so that most people cost a few."""

    def __init__(self, user: User, cluster: Cluster) -> None:
        self._user, self._cluster = user, cluster
        self._answers: dict[ObjectRef, bool] = {}

    def may_see(self, record: Record) -> bool:
        ref = ObjectRef(record["group"], record["version"], record["kind"], record["namespace"], record["name"])
        return self._may_see(ref)

    def may_see_item(self, item: InventoryItem) -> bool:
        return self._may_see(ObjectRef(item.group, item.version, item.kind, item.namespace, item.name))

    def _may_see(self, ref: ObjectRef) -> bool:
        wider = (replace(ref, namespace="", name=""), replace(ref, name=""), ref)
        return any(self._ask(each) for each in dict.fromkeys(wider))

    def _ask(self, ref: ObjectRef) -> bool:
        if ref not in self._answers and len(self._answers) < MAX_ASKED:
            self._answers[ref] = access.may_see_object(self._user, self._cluster, ref).allowed
        return self._answers.get(ref, False)


def _hidden_action(planned: Record) -> dict[str, Any]:
    kept = {"ref": planned["ref"], "action": planned["action"], "hidden": EXISTS, "before": None, "after": None}
    is_telling = _is_secret(planned["ref"]) and planned["action"] in (Action.UPDATE, Action.NONE)
    return {**kept, "action": "hidden"} if is_telling else kept


def _hidden_finding(finding: Record) -> dict[str, Any]:
    hidden = {**finding, "evidence": {"hidden": EXISTS}}
    return {**hidden, "rule": "", "message": EXISTS, "path": []} if _is_secret(finding["ref"]) else hidden


def _masked(planned: Record) -> dict[str, Any]:
    """Secrets are masked once more, whatever the writer of the report did."""
    states = {name: planned.get(name) for name in ("before", "after")}
    return {**planned, **{name: mask_secret(obj) if obj else obj for name, obj in states.items()}}


def _is_secret(ref: Record) -> bool:
    return (ref["group"], ref["kind"]) == ("", "Secret")


def _key(ref: Record) -> tuple[str, ...]:
    return (ref["group"], ref["kind"], ref["namespace"], ref["name"])
