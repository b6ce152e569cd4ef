"""Each risky permission of the catalogue as a finding: for the whole cluster, for names, and in one namespace."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.rbac.catalogue import PATTERNS, RiskPattern
from provisioner.review.checks.rights import permissions
from provisioner.values import Action, Finding, JsonObject, Severity
from tests.support.provisioner.contents import content_with, facts, planned
from tests.support.provisioner.roles import account, bound, cluster_role, group, rule

STEPS = (Severity.CRITICAL, Severity.DANGEROUS, Severity.NOTABLE, Severity.SAFE)
# Requests of these verbs carry no name, but for those about a subresource, so a rule that has names grants nothing.
NAMELESS = {"create", "deletecollection"}
# Whoever rules there rules the cluster, so nothing weighs less.
SENSITIVE = {"kube-system"}


def named(pattern: RiskPattern) -> bool:
    """Whether the pattern can be held for named objects only."""
    return all(set(one.verbs) - NAMELESS or "/" in one.resources[0] for one in pattern.powers)


def words(pattern: RiskPattern) -> str:
    return f"{pattern.id} {pattern.what}"


EVERY = pytest.mark.parametrize("pattern", PATTERNS, ids=words)
NAMED = pytest.mark.parametrize("pattern", [one for one in PATTERNS if named(one)], ids=words)


def lower(severity: Severity) -> Severity:
    return STEPS[min(STEPS.index(severity) + 1, len(STEPS) - 1)]


def severities(pattern: RiskPattern, *, names: str = "", namespace: str = "") -> set[Severity]:
    """Of the findings of the pattern's rule about an account that may do exactly what the pattern says."""
    rules = [_rule(one.verbs, one.group, one.resources, names) for one in pattern.powers]
    return {one.severity for one in found(rules, namespace) if one.rule == pattern.id}


def found(rules: list[dict[str, Any]], namespace: str = "") -> tuple[Finding, ...]:
    objects = (cluster_role("r", *rules), bound("r", account("robot", "shop"), namespace=namespace))
    return tuple(look_offline(content_with(*objects), None).findings)


def _rule(verbs: tuple[str, ...], in_group: str, resources: tuple[str, ...], names: str) -> dict[str, Any]:
    return rule(" ".join(verbs), " ".join(resources), group=in_group, names=names)


@EVERY
def test_a_permission_on_the_whole_cluster_weighs_what_the_catalogue_says(pattern: RiskPattern) -> None:
    assert pattern.severity in severities(pattern)


@NAMED
def test_a_permission_on_named_objects_weighs_less(pattern: RiskPattern) -> None:
    assert (pattern.named or lower(pattern.severity)) in severities(pattern, names="one")


@EVERY
def test_a_permission_in_a_namespace_that_is_not_the_bundle_s_weighs_less(pattern: RiskPattern) -> None:
    namespace = pattern.namespaces[0] if pattern.namespaces else "elsewhere"
    weight = pattern.severity if namespace in SENSITIVE else lower(pattern.severity)
    assert severities(pattern, namespace=namespace) == (set() if pattern.is_cluster_only else {weight})


@NAMED
def test_a_permission_on_named_objects_in_such_a_namespace_weighs_least(pattern: RiskPattern) -> None:
    namespace = pattern.namespaces[0] if pattern.namespaces else "elsewhere"
    weight = pattern.named or lower(pattern.severity)
    expected = weight if namespace in SENSITIVE else lower(weight)
    assert severities(pattern, names="one", namespace=namespace) == (set() if pattern.is_cluster_only else {expected})


def test_everything_in_one_namespace_has_a_rule_of_its_own() -> None:
    (everything,) = (one for one in PATTERNS if one.id == "RB-01" and not one.is_part)
    rules = [_rule(one.verbs, one.group, one.resources, "") for one in everything.powers]
    assert [one.severity for one in found(rules, "elsewhere") if one.rule == "RB-02"] == [Severity.DANGEROUS]
    assert [one.severity for one in found(rules, "shop") if one.rule == "RB-02"] == [Severity.CRITICAL]


@pytest.mark.parametrize(
    ("name", "severity"),
    [("cluster-admin", Severity.CRITICAL), ("admin", Severity.DANGEROUS), ("edit", Severity.DANGEROUS)],
)
def test_a_broad_role_of_kubernetes_weighs_as_much_as_it_grants(name: str, severity: Severity) -> None:
    objects = (cluster_role(name, rule("get")), bound(name, account("robot", "shop")))
    report = look_offline(content_with(*objects), None)
    assert [one.severity for one in report.findings if one.rule == "RB-03"] == [severity]


@pytest.mark.parametrize(
    ("subject", "resources", "rule_id", "severity"),
    [
        (group("system:unauthenticated"), "pods", "RB-40", Severity.CRITICAL),
        (group("system:authenticated"), "pods", "RB-41", Severity.DANGEROUS),
        (group("system:authenticated"), "secrets", "RB-41", Severity.CRITICAL),
        (group("system:serviceaccounts"), "pods", "RB-41", Severity.DANGEROUS),
        (group("system:masters"), "pods", "RB-42", Severity.CRITICAL),
    ],
    ids=str,
)
def test_rights_of_many_weigh_more_where_they_read_secrets(
    subject: JsonObject, resources: str, rule_id: str, severity: Severity
) -> None:
    objects = (cluster_role("r", rule("get", resources)), bound("r", subject))
    report = look_offline(content_with(*objects), None)
    assert {one.severity for one in report.findings if one.rule == rule_id} == {severity}


@pytest.mark.parametrize(
    ("live", "severity"), [((), Severity.NOTABLE), (None, Severity.UNKNOWN)], ids=["roles were read", "nobody knows"]
)
def test_a_binding_to_a_role_that_does_not_exist_grants_nothing_yet(
    live: tuple[JsonObject, ...] | None, severity: Severity
) -> None:
    given = facts(planned(bound("later", account("robot", "shop")), Action.CREATE), live_rbac=live)
    assert [one.severity for one in permissions.PERMISSIONS_CHECK.changes(given) if one.rule == "RB-45"] == [severity]


def test_a_role_that_cannot_be_read_is_unknown() -> None:
    broken = {**cluster_role("r"), "rules": [{"verbs": "get"}]}
    changes = facts(*(planned(one, Action.CREATE) for one in (broken, bound("r", account("robot", "shop")))))
    unknown = [one for one in permissions.PERMISSIONS_CHECK.changes(changes) if one.rule == "RB-00"]
    assert [(one.severity, one.variant) for one in unknown] == [(Severity.UNKNOWN, "partly-known")]
