"""The ApprovalRules that select a request, or did while it was open, with all that judging them needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from approvals import access
from approvals.clock import database_now
from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.kinds import SeenObject
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import SpecFields, UnreadableObject
from approvals.gate.deciding_objects import conditions_of, selected_by
from approvals.gate.facts import EarlierRule, RuleFacts
from approvals.gate.live_spec import learn
from approvals.models import Cluster, KubernetesIdentity, Report, Request
from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import UnknownKind


@dataclass(frozen=True, slots=True)
class UnreadableRule:
    """`selector` is what can be read of it; where that cannot either, it selects everything."""

    problem: str
    selector: Selector
    when: str = ""


Read = ApprovalRule | UnreadableRule


def rules_of(
    request: Request, report: Report, objects: Collection[SeenObject], reach: Callable[[], Api]
) -> tuple[RuleFacts, ...]:
    """`reach` is called where a rule names ClusterRoles: who holds them is read in the cluster."""
    if not objects:
        return ()
    about, waited = selected_by(request, report), database_now() - report.computed_at
    fitting, parsed = list[Read](), list[tuple[SeenObject, list[tuple[Read, datetime | None]]]]()
    for one in objects:
        specs = [(old.spec, old.until) for old in one.earlier if old.until > request.created_at]
        now = [(one.spec, None)] if one.spec is not None else []
        rules = [(_read(spec, waited), until) for spec, until in (*specs, *now)]
        parsed.append((one, [(rule, until) for rule, until in rules if rule.selector.selects(about)]))
        fitting += [rule for rule, _ in parsed[-1][1]]
    conditions = conditions_of(request, report, [rule.when for rule in fitting])
    # By rule: why it is not sure that it selects the request, None where it does not.
    doubts = {id(rule): conditions[rule.when] for rule in fitting}
    found = []
    for one, rules in parsed:
        holding = [(rule, until) for rule, until in rules if doubts[id(rule)] is not None]
        earlier = [EarlierRule(rule if isinstance(rule, ApprovalRule) else None, at) for rule, at in holding if at]
        current = next((rule for rule, until in holding if until is None), None)
        facts = RuleFacts(one.name, earlier=tuple(earlier))
        if isinstance(current, UnreadableRule):
            facts = replace(facts, problem=current.problem)
        elif current:
            facts = replace(facts, rule=current, note=doubts[id(current)] or "")
        if holding:
            found.append(facts)
    return _with_people(request, found, reach)


def _read(spec: Mapping[str, Any], waited: timedelta) -> Read:
    try:
        return ApprovalRule.parse(spec).after(waited)
    except UnreadableObject as exc:
        try:
            return UnreadableRule(str(exc), Selector.read(SpecFields(spec).inner("selector")))
        except UnreadableObject:
            return UnreadableRule(str(exc), Selector())


def _with_people(request: Request, found: list[RuleFacts], reach: Callable[[], Api]) -> tuple[RuleFacts, ...]:
    """With who holds the ClusterRoles that they name, and the groups of which nobody is known to be a member."""
    parts = [part for facts in found for rule in facts.rules for part in rule.require]
    groups, roles = (
        {it for part in parts for it in (*part.groups, *part.escalate_to)},
        {it for part in parts for it in part.cluster_roles},
    )
    known = KubernetesIdentity.objects.filter(cluster=request.cluster_id, user__is_active=True)
    unknown = groups - {group for has in known.values_list("groups", flat=True) for group in has} if groups else groups
    holders = learn(partial(_holders_of, request.deployment.cluster, reach, roles)) if roles else None

    def about(facts: RuleFacts) -> RuleFacts:
        parts = facts.rule.require if facts.rule else ()
        own = {it for part in parts for it in (*part.groups, *part.escalate_to)}
        names_roles = any(part.cluster_roles for rule in facts.rules for part in rule.require)
        return replace(facts, nobody=tuple(sorted(own & unknown)), holders=holders if names_roles else None)

    return tuple(map(about, found))


def _holders_of(cluster: Cluster, reach: Callable[[], Api], roles: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Who holds each of these ClusterRoles in the whole cluster, as `User NAME` and `Group NAME`; a deputy until the
    end."""
    api = reach()
    resource = api.resource_of(RBAC_GROUP, "v1", "ClusterRoleBinding")
    if resource is None:
        raise UnknownKind("the cluster serves no ClusterRoleBinding")
    found: dict[str, frozenset[str]] = {role: frozenset() for role in roles}
    bindings = api.snapshot(resource).objects
    ended = access.ended_bindings(cluster, [str(binding["metadata"]["name"]) for binding in bindings])
    for binding in bindings:
        if binding["metadata"]["name"] in ended:
            continue
        role = binding["roleRef"]["name"]
        if role in found and binding["roleRef"]["kind"] == "ClusterRole":
            found[role] |= {f"{subject['kind']} {subject['name']}" for subject in binding.get("subjects") or ()}
    return found
