"""Bindings for groups that everybody is in, whatever their roles hold."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.api_groups import RBAC_GROUP
from provisioner.pipeline import look_offline
from provisioner.values import Finding
from tests.support.provisioner.contents import an_object, content_with

RULES = frozenset({"RB-40", "RB-41", "RB-42", "RB-43"})


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return an_object(f"{RBAC_GROUP}/v1", "ClusterRole", name, rules=list(rules))


def bound(name: str, kind: str, subject: str) -> dict[str, Any]:
    wanted = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
    subjects = [{"apiGroup": RBAC_GROUP, "kind": kind, "name": subject}]
    return an_object(f"{RBAC_GROUP}/v1", "ClusterRoleBinding", "all", roleRef=wanted, subjects=subjects)


def found_by(*objects: dict[str, Any], old: list[dict[str, Any]] | None = None) -> list[Finding]:
    found = look_offline(content_with(*objects), content_with(*old) if old else None).findings
    return [one for one in found if one.rule in RULES]


def said_of(*objects: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.rule, str(one.severity)) for one in found_by(*objects)]


@pytest.mark.parametrize(
    ("kind", "subject", "expected"),
    [
        ("Group", "system:unauthenticated", ("RB-40", "critical")),
        ("User", "system:anonymous", ("RB-40", "critical")),
        ("Group", "system:authenticated", ("RB-41", "dangerous")),
        ("Group", "system:serviceaccounts", ("RB-41", "dangerous")),
        ("Group", "system:masters", ("RB-42", "critical")),
        ("Group", "system:serviceaccounts:shop", ("RB-43", "dangerous")),
        ("Group", "developers", None),
    ],
)
def test_a_role_that_nobody_can_look_up_counts_by_whom_it_is_given_to(
    kind: str, subject: str, expected: tuple[str, str] | None
) -> None:
    assert said_of(bound("view", kind, subject)) == ([expected] if expected else [])


def test_a_role_that_holds_nothing_yet_counts_too() -> None:
    assert said_of(role("empty"), bound("empty", "Group", "system:unauthenticated")) == [("RB-40", "critical")]


READS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def test_a_known_role_is_said_once() -> None:
    assert said_of(role("reader", READS), bound("reader", "Group", "system:unauthenticated")) == [("RB-40", "critical")]


def test_the_discovery_that_every_cluster_has_is_nobodys_risk() -> None:
    assert said_of(bound("system:discovery", "Group", "system:authenticated")) == []
    own = {"nonResourceURLs": ["/healthz", "/version"], "verbs": ["get"]}
    assert said_of(role("system:discovery", own), bound("system:discovery", "Group", "system:authenticated")) == []


@pytest.mark.parametrize(
    "more",
    [
        READS,
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
        {"nonResourceURLs": ["/healthz"], "verbs": ["post"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["*"]},
    ],
    ids=lambda more: str([*more.values()]),
)
def test_a_role_of_that_name_with_more_in_it_is_one(more: dict[str, Any]) -> None:
    found = said_of(role("system:discovery", more), bound("system:discovery", "Group", "system:unauthenticated"))
    assert found == [("RB-40", "critical")]


@pytest.mark.parametrize("name", ["unauthenticated", "authenticated", "masters", "serviceaccounts:shop"])
def test_a_binding_that_was_there_is_no_longer_new(name: str) -> None:
    binding = bound("view", "Group", f"system:{name}")
    assert [(one.is_new, one.variant) for one in found_by(binding, old=[binding])] == [(False, "bound")]
    other = bound("edit", "Group", f"system:{name}")
    assert [(one.is_new, one.variant) for one in found_by(other, old=[binding])] == [(True, "bound-newly")]


def test_a_known_role_that_was_bound_is_held_as_before() -> None:
    both = [role("reader", READS), bound("reader", "Group", "system:authenticated")]
    assert [(one.is_new, one.variant) for one in found_by(*both, old=both)] == [(False, "holds")]
