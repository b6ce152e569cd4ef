from __future__ import annotations

from typing import Any

import pytest

from provisioner.rbac import effective_rules, is_escalation, may_write_binding, may_write_role
from provisioner.rbac.effective import EffectiveRules
from provisioner.values import Identity
from tests.support.provisioner.roles import API, account, bound, cluster_role, role, rule, user

ANN = Identity("ann")
SECRETS = rule("get", "secrets")


def ann(*entries: dict[str, Any], namespace: str = "") -> EffectiveRules:
    """What Ann may do when she holds these rules."""
    return effective_rules(ANN, (cluster_role("hers", *entries), bound("hers", user("ann"), namespace=namespace)))


@pytest.mark.parametrize(
    ("holder", "target", "expected"),
    [
        pytest.param(ann(SECRETS), cluster_role("x", SECRETS), True, id="she holds what it grants"),
        pytest.param(ann(rule("get")), cluster_role("x", SECRETS), False, id="she does not"),
        pytest.param(ann(SECRETS, namespace="app"), role("app", "x", SECRETS), True, id="in that namespace"),
        pytest.param(ann(SECRETS, namespace="app"), role("other", "x", SECRETS), False, id="in another namespace"),
        pytest.param(ann(SECRETS, namespace="app"), cluster_role("x", SECRETS), False, id="for the whole cluster"),
        pytest.param(ann(rule("escalate", "clusterroles", group=API)), cluster_role("x", SECRETS), True, id="escalate"),
        pytest.param(
            ann(rule("escalate", "clusterroles", group=API, names="x")),
            cluster_role("x", SECRETS),
            True,
            id="escalate x",
        ),
        pytest.param(
            ann(rule("escalate", "clusterroles", group=API, names="y")),
            cluster_role("x", SECRETS),
            False,
            id="escalate y",
        ),
        pytest.param(
            ann(rule("escalate", "roles", group=API)), cluster_role("x", SECRETS), False, id="escalate other kind"
        ),
        pytest.param(
            ann(rule("bind", "clusterroles", group=API)), cluster_role("x", SECRETS), False, id="bind is no escalate"
        ),
        pytest.param(ann(rule("get")), cluster_role("x"), True, id="a role without rules"),
    ],
)
def test_nobody_writes_a_role_that_grants_more_than_they_hold(
    holder: EffectiveRules, target: dict[str, Any], expected: bool
) -> None:
    check = may_write_role(holder, target)
    assert check.allowed is expected
    assert is_escalation(holder, target) is not expected
    assert bool(check.missing) is not expected


def test_aggregation_takes_the_rights_of_an_administrator() -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    aggregated = cluster_role("x", aggregationRule=selector)
    assert not may_write_role(ann(rule("*", "*", group="apps")), aggregated)
    assert may_write_role(ann(rule("*", "*", group="*"), rule("*", urls="*")), aggregated)
    assert not may_write_role(ann(SECRETS), cluster_role("x"), old=aggregated)


@pytest.mark.parametrize(
    ("holder", "binding", "expected"),
    [
        pytest.param(ann(SECRETS), bound("x", account("a", "b")), True, id="she holds what the role grants"),
        pytest.param(ann(rule("get")), bound("x", account("a", "b")), False, id="she does not"),
        pytest.param(ann(rule("bind", "clusterroles", group=API)), bound("x"), True, id="bind"),
        pytest.param(ann(rule("bind", "clusterroles", group=API, names="x")), bound("x"), True, id="bind x"),
        pytest.param(ann(rule("bind", "clusterroles", group=API, names="y")), bound("x"), False, id="bind y"),
        pytest.param(
            ann(rule("bind", "clusterrolebindings", group=API)), bound("x"), False, id="bind on bindings grants nothing"
        ),
        pytest.param(
            ann(rule("bind", "clusterroles", group=API), namespace="app"),
            bound("x", namespace="app"),
            True,
            id="bind there",
        ),
        pytest.param(
            ann(rule("bind", "clusterroles", group=API), namespace="app"),
            bound("x"),
            False,
            id="bind there is not everywhere",
        ),
        pytest.param(ann(SECRETS), bound("gone"), False, id="the role is not there yet"),
        pytest.param(ann(rule("bind", "clusterroles", group=API)), bound("gone"), True, id="bind does not ask for it"),
    ],
)
def test_nobody_binds_a_role_that_grants_more_than_they_hold(
    holder: EffectiveRules, binding: dict[str, Any], expected: bool
) -> None:
    there = (cluster_role("x", SECRETS),)
    assert may_write_binding(holder, binding, there).allowed is expected
    assert is_escalation(holder, binding, there) is not expected


def test_the_superusers_group_is_never_asked() -> None:
    root = effective_rules(Identity("root", ("system:masters",)), ())
    assert may_write_role(root, cluster_role("x", rule("*", "*", group="*")))
    assert may_write_binding(root, bound("gone"), ())


def test_a_role_that_cannot_be_read_is_refused_and_not_taken_for_empty() -> None:
    broken = cluster_role("x", {"verbs": "get"})
    assert not may_write_role(ann(SECRETS), broken)
    assert not may_write_binding(ann(SECRETS), bound("x"), (broken,))
