"""The ApprovalRules that select a request, or did while it was open, with all that judging them needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

from django.conf import settings

from approvals import access
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.kinds import SeenObject
from approvals.gate.deciding_objects import list_selecting
from approvals.gate.facts import EarlierRule, RuleFacts
from approvals.gate.live_spec import learn
from approvals.models import Cluster, KubernetesIdentity, Report, Request
from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import UnknownKind


def rules_of(request: Request, report: Report, objects: Iterable[SeenObject], api: Api | None) -> tuple[RuleFacts, ...]:
    """Where a rule names ClusterRoles, who holds them is read in the cluster, which is connected to without `api`."""
    since = min(request.created_at, oldest_carried(request))
    selecting = list_selecting(ApprovalRule, request, report, objects, since=since)
    waited, found = database_now() - report.computed_at, list[RuleFacts]()
    for _, group in groupby(selecting, key=lambda each: each.seen.uid):
        specs = [(each, each.parsed.after(waited) if each.parsed else None) for each in group]
        seen, past = specs[0][0].seen, [EarlierRule(rule, each.until) for each, rule in specs if each.until]
        facts = RuleFacts(
            seen.name,
            earlier=tuple(one for one in past if one.until > request.created_at),
            changes=(seen.changed_at, *(one.until for one in past)),
            is_seen=seen.is_seen,
        )
        for each, rule in specs:
            if each.until is None:
                facts = replace(facts, rule=rule, problem=each.problem, note=each.doubt, is_sure=each.is_sure)
        found.append(facts)
    return _with_people(request, found, api)


def oldest_carried(request: Request) -> datetime:
    """When an approval has to be younger than that is carried over: as old as a request may grow, and waiting for a
    window does not age it, nor does what is left to create once the request was applied."""
    at = request.without_hold(request.settled_at or database_now())
    return at - timedelta(hours=settings.PRATIQUE["REQUEST_HOURS"])


def _with_people(request: Request, found: list[RuleFacts], api: Api | None) -> tuple[RuleFacts, ...]:
    """With who holds the ClusterRoles that they name, and the groups of which nobody is known to be a member."""
    parts = [part for facts in found for rule in facts.rules for part in rule.require]
    groups, roles = (
        {it for part in parts for it in (*part.groups, *part.escalate_to)},
        {it for part in parts for it in part.cluster_roles},
    )
    known = KubernetesIdentity.objects.filter(cluster=request.cluster_id, user__is_active=True)
    unknown = groups - {group for has in known.values_list("groups", flat=True) for group in has} if groups else groups
    holders = learn(partial(_holders_of, request.deployment.cluster, api, roles)) if roles else None

    def about(facts: RuleFacts) -> RuleFacts:
        parts = facts.rule.require if facts.rule else ()
        own = {it for part in parts for it in (*part.groups, *part.escalate_to)}
        names_roles = any(part.cluster_roles for rule in facts.rules for part in rule.require)
        return replace(facts, nobody=tuple(sorted(own & unknown)), holders=holders if names_roles else None)

    return tuple(map(about, found))


def _holders_of(cluster: Cluster, api: Api | None, roles: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Who holds each of these ClusterRoles in the whole cluster, as `User NAME` and `Group NAME`; a deputy until the
    end."""
    api = api or connect(cluster)
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
