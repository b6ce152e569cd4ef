"""What is judged is what will be in the cluster: our fields merged with those that others put beside them (S11)."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import Check
from provisioner.review.checks.network import webhooks
from provisioner.review.checks.pods import security
from provisioner.review.checks.rights import permissions
from provisioner.values import Action
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned


def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "x"}, *containers]}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": pod}})


def role(*rules: dict[str, Any]) -> list[dict[str, Any]]:
    harmless = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    about = "rbac.authorization.k8s.io/v1"
    bound = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "web"},
        "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "shop"}],
    }
    return [
        an_object(about, "ClusterRole", "web", rules=[harmless, *rules]),
        an_object(about, "ClusterRoleBinding", "web", **bound),
    ]


def hooks(*more: dict[str, Any]) -> dict[str, Any]:
    narrow = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["boats"]}
    own = {"name": "own.example.com", "failurePolicy": "Ignore", "rules": [narrow], "sideEffects": "None"}
    return an_object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "web", webhooks=[own, *more])


PRIVILEGED = {"name": "foreign", "image": "x", "securityContext": {"privileged": True}}
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}
EVERYTHING = {
    "name": "foreign.example.com",
    "failurePolicy": "Fail",
    "sideEffects": "None",
    "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}],
}
ROWS: dict[str, tuple[Check, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "pods": (security.PODS_CHECK, [deployment()], [deployment(PRIVILEGED)]),
    "permissions": (permissions.PERMISSIONS_CHECK, role(), role(SECRETS)),
    "webhooks": (webhooks.CHECK, [hooks()], [hooks(EVERYTHING)]),
}


def found(check: Check, wished: list[dict[str, Any]], results: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Rules and severities for this content, where the API server would make these objects of it."""
    actions = [planned(after, Action.UPDATE, before=before) for before, after in zip(wished, results, strict=True)]
    told = judged_by(facts(*actions, content=content_with(*wished)), [check])
    return {(one.rule, str(one.severity)) for one in told}


@pytest.mark.parametrize(("check", "wished", "results"), ROWS.values(), ids=ROWS)
def test_S11_checks_run_on_the_merged_result(
    check: Check, wished: list[dict[str, Any]], results: list[dict[str, Any]]
) -> None:
    merged = found(check, wished, results)
    assert merged == found(check, results, results)
    assert merged - found(check, wished, wished)
