"""Policies as ada saves them, what makes them count, and what they said."""

from __future__ import annotations

from typing import Any

from approvals import policy, services
from approvals.models import Policy, PolicyEvaluation, Request
from approvals.steps import evaluate
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

FACTS: policy.Facts = {
    "worst": "notable",
    "worst_new": "safe",
    "severities": {"critical": 0, "notable": 2},
    "new_severities": {"critical": 0, "notable": 0},
    "worst_new_proved": "safe",
    "depends_on_objects": {"critical": 0, "breaking": 0},
    "new_depends_on_objects": {"critical": 0, "breaking": 0},
    "rules": ["IMG-01"],
    "new_rules": [],
    "unjudged": 1,
    "unjudged_paths": ["Deployment.apps:spec.template.spec.dnsPolicy"],
    "written_secrets": 0,
    "approvals": 0,
    "change_reason": "",
    "change_ticket": "",
    "waived": 0,
    "waived_severities": {"critical": 0},
    "waived_rules": [],
    "actions": {"create": 2, "delete": 0},
    "kinds": ["Deployment.apps"],
    "namespaces": ["harbour"],
    "purpose": "deploy",
    "name": "strimzi",
    "labels": {"team": "kafka"},
    "cluster": "prod",
    "is_first": False,
    "requester_known": True,
    "requesters": ["rita"],
    "sources": [],
}

HARMLESS = 'worst == "safe"'


def save(env: World, **changes: Any) -> Policy:
    wish = {
        "by": acting(env.ada),
        "name": "routine",
        "kind": "grant",
        "mode": "enforce",
        "cluster": env.cluster,
        "names": [],
        "labels": {},
        "expression": HARMLESS,
        "message": "",
        "is_active": True,
        "via": "browser",
        **changes,
    }
    return services.save_policy(**wish)


def allow(env: World, policy: Policy) -> None:
    env.kubernetes.allow(f"pratique:policy:{policy.pk}", "approve")


def look(request: Request) -> Request:
    evaluate.run(Request.objects.select_related("deployment__cluster").get(pk=request.pk), "test")
    request.refresh_from_db()
    return request


def words_of(policy: Policy) -> tuple[str, str]:
    found = PolicyEvaluation.objects.get(policy=policy)
    return found.result, found.words
