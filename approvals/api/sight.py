"""A report as a caller may see it: live values only of objects that Kubernetes lets them get (S09)."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from approvals.access.sight import EXISTS, Record, Sight, is_secret, key_of, reference, withheld
from approvals.models import Report, Request
from provisioner.review.difference import mask_secret
from provisioner.values import Action

# Kubernetes is asked at most this often for one report.
MAX_ASKED = 300


def visible_report(user: User, request: Request, report: Report) -> dict[str, Any]:
    """The report's record without the live values that this user may not see.

    A hidden object keeps its name and what is planned, without the words of the API server, which quote live values.
    Of a hidden Secret not even that: "update" and "none" would tell whether it equals the bundle's.
    """
    sight = Sight(user, request.deployment.cluster, limit=MAX_ASKED)
    body: dict[str, Any] = report.body
    planned = body["plan"]["actions"]
    live = (it["ref"] for it in planned if it.get("before") is not None)
    hidden = {key_of(ref) for ref in live if not sight.may_see(reference(ref))}
    actions = [_hidden_action(it) if key_of(it["ref"]) in hidden else _masked(it) for it in planned]
    findings = [withheld(it) if it["ref"] and key_of(it["ref"]) in hidden else it for it in body["findings"]]
    return {**body, "findings": findings, "plan": {**body["plan"], "actions": actions}}


def _hidden_action(planned: Record) -> dict[str, Any]:
    kept = {"ref": planned["ref"], "action": planned["action"], "hidden": EXISTS, "before": None, "after": None}
    is_telling = is_secret(planned["ref"]) and planned["action"] in (Action.UPDATE, Action.NONE)
    return {**kept, "action": "hidden"} if is_telling else kept


def _masked(planned: Record) -> dict[str, Any]:
    """Secrets are masked once more, whatever the writer of the report did."""
    states = {name: planned.get(name) for name in ("before", "after")}
    return {**planned, **{name: mask_secret(obj) if obj else obj for name, obj in states.items()}}
