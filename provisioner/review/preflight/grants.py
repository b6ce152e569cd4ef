"""Whether the account may write a role or a binding: nobody may grant what they do not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest
from provisioner.rbac import PolicyRule
from provisioner.review.base.facts import ReviewRule, mapping
from provisioner.review.preflight.facts import TOO_EARLY, UNKNOWN
from provisioner.review.preflight.held import Walk, rule_of
from provisioner.values import AccessRequest, Action, Finding, JsonObject, Manifest, ObjectRef, Section, Severity

# Each missing rule is supposed to be there from then on, and looked at for every later object.
MAX_MISSING = 10_000
MAX_SHOWN = 3
_GRANTS = ReviewRule("PRE-02", Section.PREFLIGHT, Severity.BREAKING)
_BINDS = ReviewRule("PRE-03", Section.PREFLIGHT, Severity.BREAKING)
_AGGREGATES = ReviewRule("PRE-04", Section.PREFLIGHT, Severity.BREAKING)


def of_grants(found: Walk, manifest: Manifest, old: JsonObject | None) -> Iterator[Finding]:
    if manifest.ref.kind.endswith("Binding"):
        yield from _of_binding(found, manifest)
    else:
        yield from _of_role(found, manifest, old)


def _of_role(found: Walk, manifest: Manifest, old: JsonObject | None) -> Iterator[Finding]:
    ref, account = manifest.ref, found.facts.account
    check = rbac.may_write_role(found.held, manifest.body, old=old)
    resource = "clusterroles" if ref.kind == "ClusterRole" else "roles"
    escalate = AccessRequest("escalate", RBAC_GROUP, resource, "", ref.namespace, ref.name)
    if check.allowed:
        _count_as_used(found, ref, manifest.body, escalate)
        return
    if found.may(escalate, ref):
        return
    count = len(found.missing) + len(check.missing)
    if not check.missing:
        yield UNKNOWN.finding("cannot-tell", ref, account=account, problem=check.reason)
    elif count > MAX_MISSING:
        yield UNKNOWN.finding("too-many-missing", ref, account=account, count=count, most=MAX_MISSING)
    elif check.missing == rbac.FULL_AUTHORITY:
        found.lacks(ref.namespace, rule_of(escalate), "aggregate", ref)
        yield _AGGREGATES.finding("aggregates", ref, where=("aggregationRule",), account=account)
    else:
        for holder, rule in _escalating(found, ref, escalate) or [(ref, rule) for rule in check.missing]:
            found.lacks(holder.namespace, rule, "grant", holder)
        rules, shown = _rules(check.missing), check.missing[:MAX_SHOWN]
        yield _GRANTS.finding(
            "exceeds" if found.facts.roles is not None else "may-exceed",
            ref,
            key=rules,
            account=account,
            rights=[f"{'/'.join(rule.verbs)} {'/'.join(rule.resources or rule.non_resource_urls)}" for rule in shown],
            more=len(check.missing) - len(shown) or None,
            **rules,
        )


def _escalating(found: Walk, ref: ObjectRef, escalate: AccessRequest) -> list[tuple[ObjectRef, PolicyRule]]:
    """The first rule of a role of the bundle that itself lets write the role `ref`, such as all verbs on all roles.

    It is needed for its own role, and whoever holds it needs nothing else that these roles grant.
    """
    actions = found.facts.actions
    written = (
        one.body
        for one in found.facts.manifests
        if one.ref.group == RBAC_GROUP and one.ref.namespace in ("", ref.namespace)
        if one.ref.identity not in actions or actions[one.ref.identity].action is not Action.NONE
    )
    enough = rbac.escalating_rule(written, escalate)
    return [enough] if enough else []


def _of_binding(found: Walk, manifest: Manifest) -> Iterator[Finding]:
    ref, account, is_known = manifest.ref, found.facts.account, found.facts.roles is not None
    check = rbac.may_write_binding(found.held, manifest.body, found.roles)
    wanted = mapping(manifest.body.get("roleRef"))
    resource = "clusterroles" if wanted.get("kind") == "ClusterRole" else "roles"
    bind = AccessRequest("bind", RBAC_GROUP, resource, "", ref.namespace, str(wanted.get("name")))
    role = found.roles.role_of(manifest.body)
    if check.allowed:
        _count_as_used(found, ref, role or {}, bind)
        return
    if found.may(bind, ref):
        return
    named = f"{wanted.get('kind')} {wanted.get('name')}"
    if role is None:
        rule, variant = (TOO_EARLY, "before-role") if is_known else (UNKNOWN, "role-unknown")
        found.lacks(ref.namespace, rule_of(bind), "bind-unknown", ref)
        yield rule.finding(variant, ref, where=("roleRef",), key=named, role=named)
        return
    if not check.missing:
        yield UNKNOWN.finding("cannot-tell", ref, account=account, problem=check.reason)
        return
    found.lacks(ref.namespace, rule_of(bind), "bind", ref, role=named)
    yield _BINDS.finding(
        "may-not-bind" if is_known else "has-to-bind",
        ref,
        where=("roleRef",),
        key=named,
        account=account,
        role=named,
        **_rules(check.missing),
    )


def _count_as_used(found: Walk, ref: ObjectRef, role: JsonObject, by_right: AccessRequest) -> None:
    """What lets the account write this: escalate or bind where it has that, else everything that the role grants."""
    if rbac.allows_in(found.held, by_right):
        found.used.append((ref.namespace, rule_of(by_right)))
        return
    try:
        found.used += [(ref.namespace, rule) for rule in rbac.role_rules(found.roles, role)]
    except InvalidManifest:
        return  # an aggregated role that collects a broken one: its own rules were what counted


def _rules(rules: tuple[PolicyRule, ...]) -> dict[str, Any]:
    return {"missing": [rule.to_object() for rule in rbac.minimal(rules)]}
