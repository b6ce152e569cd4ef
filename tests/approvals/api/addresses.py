"""Every route of the API by name, with an address under it."""

from __future__ import annotations

from typing import Any

# Every route of the router by name, with an address under it; lists are open to everybody and filtered.
LISTS = {
    "api-cluster-list": "clusters",
    "api-deployment-list": "deployments",
    "api-request-list": "requests",
    "api-set-list": "sets",
    "api-policy-list": "policies",
    "api-notification-target-list": "notification-targets",
    "api-audit-list": "audit",
    "api-catalog-list": "catalogs",
}
CLOSED = {
    "api-cluster-detail": "clusters/prod",
    "api-cluster-calendar": "clusters/prod/change-windows.ics",
    "api-cluster-guard": "clusters/prod/built-in-guards/hold-unknown",
    "api-deployment-detail": "deployments/{deployment}",
    "api-deployment-pause": "deployments/{deployment}/pause",
    "api-deployment-windows": "deployments/{deployment}/windows",
    "api-deployment-ask-again": "deployments/{deployment}/ask-again",
    "api-deployment-rollback": "deployments/{deployment}/rollback",
    "api-deployment-rotate": "deployments/{deployment}/rotate",
    "api-deployment-revoke": "deployments/{deployment}/revoke",
    "api-deployment-reinstate": "deployments/{deployment}/reinstate",
    "api-deployment-revisions": "deployments/{deployment}/revisions",
    "api-deployment-kept-values": "deployments/{deployment}/made-values",
    "api-deployment-drift": "deployments/{deployment}/drift",
    "api-request-detail": "requests/{request}",
    "api-request-report": "requests/{request}/report",
    "api-request-planned": "requests/{request}/report/objects/0",
    "api-request-changes": "requests/{request}/report/objects/0/changes",
    "api-request-outcomes": "requests/{request}/outcomes",
    "api-request-reviews": "requests/{request}/reviews",
    "api-request-dismiss": "requests/{request}/reviews/1/dismiss",
    "api-request-apply-at": "requests/{request}/apply-at",
    "api-request-run-check": "requests/{request}/external-checks/tickets/run",
    "api-request-withdraw": "requests/{request}/withdraw",
    "api-request-dependencies": "requests/{request}/dependencies",
    "api-set-detail": "sets/spring",
    "api-set-review": "sets/spring/review",
    "api-set-order": "sets/spring/order",
    "api-set-order-approve": "sets/spring/order/approve",
    "api-set-order-take-out": "sets/spring/order/take-out",
    "api-set-order-end": "sets/spring/order/end",
    "api-policy-detail": "policies/routine",
    "api-policy-tests": "policy-tests",
    "api-notification-target-detail": "notification-targets/hook",
    "api-notification-target-stop": "notification-targets/hook/stop",
    "api-notification-target-secret": "notification-targets/hook/secret",
    "api-notification-target-test": "notification-targets/hook/test",
    "api-notification-target-deliveries": "notification-targets/hook/deliveries",
    "api-notification-target-send-again": "notification-targets/hook/deliveries/1/send-again",
    "api-audit-detail": "audit/1",
    "api-catalog-detail": "catalogs/prod/port",
    "api-catalog-packages": "catalogs/prod/port/packages",
    "api-catalog-package": "catalogs/prod/port/packages/harbour",
    "api-catalog-changes": "catalogs/prod/port/packages/harbour/changes",
    "api-change-windows-list": "clusters/prod/change-windows",
    "api-change-windows-detail": "clusters/prod/change-windows/weekend",
    "api-finding-exceptions-list": "clusters/prod/finding-exceptions",
    "api-finding-exceptions-detail": "clusters/prod/finding-exceptions/web",
    "api-finding-exceptions-confirm": "clusters/prod/finding-exceptions/web/confirm",
    "api-external-checks-list": "clusters/prod/external-checks",
    "api-external-checks-detail": "clusters/prod/external-checks/tickets",
    "api-external-checks-secret": "clusters/prod/external-checks/tickets/secret",
    "api-approval-policies-list": "clusters/prod/approval-policies",
    "api-approval-policies-detail": "clusters/prod/approval-policies/nights",
    "api-deputies-list": "clusters/prod/deputies",
    "api-deputies-detail": "clusters/prod/deputies/dora",
    "api-approval-rules-list": "clusters/prod/approval-rules",
    "api-approval-rules-detail": "clusters/prod/approval-rules/four-eyes",
    "api-catalog-lines": "catalogs/prod/port/packages/harbour/changes/objects/0",
}


def path_of(name: str, afternoon: dict[str, Any]) -> str:
    template = {**LISTS, **CLOSED}[name]
    return template.format(deployment=afternoon["deployment"].uid, request=afternoon["serious"].uid)
