"""Which risky permissions somebody holds, where, and by which grants."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from provisioner.rbac.catalogue import (
    IMPERSONATE_ON,
    KNOWN_VERBS,
    PATTERNS,
    PUBLIC_REVIEWS,
    PUBLIC_ROLES,
    STRONG_ROLES,
    UNNAMED_VERBS,
    WIDE_SUBJECTS,
    RiskPattern,
    RulePower,
)
from provisioner.rbac.effective import EffectiveRules, Grant
from provisioner.rbac.objects import CLUSTER
from provisioner.rbac.rules import ANY, BUILT_IN_RESOURCES, CLUSTER_SCOPED, PolicyRule, nowhere
from provisioner.values import Severity, display_name

SENSITIVE_NAMESPACES = frozenset({"kube-system"})
STEPS = (Severity.CRITICAL, Severity.DANGEROUS, Severity.NOTABLE, Severity.SAFE)
URL_WRITE_VERBS = frozenset({ANY, "post", "put", "patch", "delete"})
NODE_URLS = ("/debug", "/logs")
# Many accounts hold the same few thousand rules at most, and each rule is judged once for all of them.
MAX_JUDGED_RULES = 16_384
_EVERYTHING = {"RB-01", "RB-02"}
_POWERS = tuple(dict.fromkeys(power for pattern in PATTERNS for power in pattern.powers))
_Holding = list[tuple[Grant, bool]]
_Details = tuple[tuple[str, Any], ...]
HELD = "role"  # what is risky because of whom a role is bound to, or in which it stands, and not by what it grants


@dataclass(frozen=True, slots=True)
class Risk:
    """One risky permission. `scope` is "" for the whole cluster, else a namespace; `evidence` are the grants behind it.

    `what` it is, with its `details`, is said in the file of the rule `id`. `place` is the scope where that is to be
    said with it, else None. `implied_by` is the id of a wider risk that contains this one, "" where there is none:
    pages may fold those.
    """

    id: str
    severity: Severity
    what: str
    scope: str
    evidence: tuple[Grant, ...]
    details: _Details = ()
    place: str | None = None
    implied_by: str = ""

    @property
    def sense(self) -> tuple[object, ...]:
        """What it says, beside its rule and its severity, JSON-ready."""
        return (self.what, self.place, self.details)

    def is_among(self, known: Collection[tuple[object, ...]]) -> bool:
        """Whether it says the same as one of `known`, each a rule, a scope and a sense, here or for the whole
        cluster."""
        return any((self.id, scope, self.sense) in known for scope in (self.scope, CLUSTER))


def names_of_risk(risk: str) -> frozenset[str]:
    """The verbs and resources that make a rule this risk; none for what is no pattern of the catalogue."""
    powers = [power for pattern in PATTERNS if pattern.id == risk for power in pattern.powers]
    return frozenset(word for power in powers for word in (*power.verbs, *power.resources))


def risks(effective: EffectiveRules, *, sensitive: Iterable[str] = ()) -> list[Risk]:
    """The risks of one identity's permissions, worst first.

    What is held for the whole cluster is not repeated for namespaces. In a namespace a risk weighs one step less, but
    for kube-system and the namespaces named in `sensitive`; so does one that is limited to named objects.
    """
    matcher = _Matcher(effective, SENSITIVE_NAMESPACES | set(sensitive), effective.scopes)
    by_role: dict[str, list[Grant]] = {}
    for grant in effective.grants:
        if grant.scope == CLUSTER and grant.role.kind == "ClusterRole" and grant.role.name in STRONG_ROLES:
            by_role.setdefault(grant.role.name, []).append(grant)
    found = matcher.patterns() + _find_impersonated_requests(effective)
    for name, grants in by_role.items():
        found.append(Risk("RB-03", STRONG_ROLES[name], HELD, CLUSTER, tuple(grants), (("role", name),)))
    found += _judge_urls(effective)
    found += _judge_wide_subjects(effective) + _find_dead_rules(effective)
    held = _merge_risks(found)
    everything = [risk for risk in held if risk.id in _EVERYTHING]
    marked = [_mark_implied(risk, everything) for risk in held]
    return sorted(marked, key=lambda it: (it.severity.rank, it.scope, it.id, it.what, str(it.details)))


@dataclass(frozen=True, slots=True)
class _Matcher:
    effective: EffectiveRules
    sensitive: frozenset[str]
    scopes: list[str]
    _held: dict[str, dict[RulePower, _Holding]] = field(default_factory=dict)

    def patterns(self) -> list[Risk]:
        found: list[Risk] = []
        for pattern in PATTERNS:
            cluster_wide = self._match(pattern, CLUSTER)
            matched = [cluster_wide] if cluster_wide is not None else []
            for scope in self.scopes:
                # A cluster-wide hold of named objects only is weaker, and a namespace's may be worse.
                if scope == CLUSTER or (cluster_wide is not None and cluster_wide.severity is pattern.severity):
                    continue
                if pattern.namespaces and scope not in pattern.namespaces:
                    continue
                near = pattern
                if pattern.id == "RB-01":  # everything in one namespace has an id of its own
                    near = RiskPattern("RB-02", pattern.severity, pattern.what, pattern.powers)
                inside = self._match(near, scope) if not near.is_cluster_only else None
                if inside is not None and any(grant.scope == scope for grant in inside.evidence):
                    matched.append(inside)
            if pattern.is_part:
                matched = [risk for risk in matched if not any(_contains(wider, risk) for wider in found)]
            found += matched
        return found

    def _match(self, pattern: RiskPattern, scope: str) -> Risk | None:
        held = [self._holding(scope).get(power, []) for power in pattern.powers]
        if not all(held):
            return None
        grants = tuple(dict.fromkeys(grant for powers in held for grant, _ in powers))
        # The names to which what is held is limited, none where it is not: one power that is limited limits all.
        limited = [powers for powers in held if all(is_named for _, is_named in powers)]
        names = sorted({name for powers in limited for grant, _ in powers for name in grant.rule.resource_names})
        severity, what = pattern.severity, pattern.what
        if names:
            what = pattern.of_named or what
            severity = severity if pattern.fatal & set(names) else pattern.named or _lower_severity(severity)
        if scope != CLUSTER and scope not in self.sensitive:
            severity = _lower_severity(severity)
        return Risk(pattern.id, severity, what, scope, grants, (("names", tuple(names)),), scope)

    def _holding(self, scope: str) -> dict[RulePower, _Holding]:
        """By each power that is held for requests in `scope` the grants, each with whether it is limited to names."""
        if scope not in self._held:
            found: dict[RulePower, _Holding] = {}
            for grant in self.effective.grants_in(scope):
                for power in _find_powers(grant.rule):
                    found.setdefault(power, []).append((grant, bool(grant.rule.resource_names)))
            self._held[scope] = found
        return self._held[scope]


def _contains(wider: Risk, risk: Risk) -> bool:
    """Whether `wider`, found by the pattern that `risk` is part of, says all that `risk` says."""
    same = {wider.id, risk.id} <= _EVERYTHING or wider.id == risk.id
    return same and wider.scope in (CLUSTER, risk.scope) and wider.severity.is_at_least(risk.severity)


@lru_cache(maxsize=MAX_JUDGED_RULES)
def _find_powers(rule: PolicyRule) -> tuple[RulePower, ...]:
    """The powers of the catalogue that the rule gives."""
    found = []
    acts_as_others = any(verb.startswith("impersonate") for verb in rule.verbs)
    for power in _POWERS:
        resources, verbs = _find_resources(rule, power), set(power.verbs)
        if ANY not in rule.verbs:
            verbs = {"impersonate"} if "impersonate" in verbs and acts_as_others else verbs & set(rule.verbs)
        if resources and verbs and not (rule.resource_names and _carry_no_name(verbs, resources)):
            found.append(power)
    return tuple(found)


def _carry_no_name(verbs: Iterable[str], resources: Iterable[str]) -> bool:
    """Whether requests of these kinds carry no name, so that a rule with names never permits them.

    To create a subresource (a token, an exec) names the object that it belongs to.
    """
    return set(verbs) <= UNNAMED_VERBS and not any("/" in resource or resource == ANY for resource in resources)


def _find_resources(rule: PolicyRule, power: RulePower) -> list[str]:
    """The resources of the power that the rule is about."""
    if ANY not in rule.api_groups and power.group not in rule.api_groups:
        return []
    if ANY in rule.resources:
        return list(power.resources)
    return [
        resource
        for resource in power.resources
        if resource in rule.resources
        or ("/" in resource and f"{ANY}/{resource.partition('/')[2]}" in rule.resources)
        or any(held.startswith(f"{resource}/") for held in rule.resources if resource == "userextras")
    ]


def _find_impersonated_requests(effective: EffectiveRules) -> list[Risk]:
    """The half of constrained impersonation that is about requests; who also may act as somebody has a risk of that."""
    found = []
    for grant in effective.grants:
        verbs = sorted({verb.rpartition(":")[2] for verb in grant.rule.verbs if verb.startswith(IMPERSONATE_ON)})
        if verbs and grant.rule.resources:
            details = (("verbs", tuple(verbs)), ("resources", tuple(sorted(grant.rule.resources))))
            scope = grant.scope
            found.append(Risk("RB-10", Severity.DANGEROUS, "request-as-others", scope, (grant,), details, scope))
    return found


def _judge_urls(effective: EffectiveRules) -> list[Risk]:
    found = []
    for grant in effective.grants:
        urls = grant.rule.non_resource_urls
        if grant.scope != CLUSTER or not urls:
            continue
        if ANY in urls and URL_WRITE_VERBS & set(grant.rule.verbs):
            found.append(Risk("RB-04", Severity.NOTABLE, "write-urls", CLUSTER, (grant,)))
        elif any(url.startswith(NODE_URLS) for url in urls):
            found.append(Risk("RB-04", Severity.NOTABLE, "read-debug", CLUSTER, (grant,)))
    return found


def _judge_wide_subjects(effective: EffectiveRules) -> list[Risk]:
    found = []
    for grant in effective.grants:
        known = WIDE_SUBJECTS.get((grant.subject.kind, grant.subject.name))
        if known is not None and not _is_public(grant):
            rule_id, strong, weak, whose = known
            severity = strong if _writes_or_reads_secrets(grant.rule) else weak
            details = (("role", grant.role.name), ("whose", whose))
            found.append(Risk(rule_id, severity, HELD, grant.scope, (grant,), details))
        elif _is_whole_namespace(grant):
            details = (("role", grant.role.name), ("how", "group" if grant.subject.kind == "Group" else "default"))
            found.append(Risk("RB-43", Severity.DANGEROUS, HELD, grant.scope, (grant,), details))
    return found


def _is_public(grant: Grant) -> bool:
    """Whether it is of the discovery that every cluster has: by the role's name, and by what the role really holds."""
    rule = grant.rule
    if grant.role.name not in PUBLIC_ROLES or ANY in rule.verbs:
        return False
    if not rule.resources:
        return ANY not in rule.non_resource_urls and set(rule.verbs) <= {"get", "head"}
    if set(rule.resources) <= PUBLIC_REVIEWS:
        return set(rule.verbs) <= {"create"}
    is_named = bool(rule.resource_names) and set(rule.resource_names) <= {"cluster-info"}
    return is_named and set(rule.resources) <= {"configmaps"} and set(rule.verbs) <= {"get"}


def _is_whole_namespace(grant: Grant) -> bool:
    subject = grant.subject
    if subject.kind == "ServiceAccount":
        return subject.name == "default"
    return subject.kind == "Group" and subject.name.startswith("system:serviceaccounts:")


def _writes_or_reads_secrets(rule: PolicyRule) -> bool:
    reads = {"get", "list", "watch"}
    if ANY in rule.verbs or set(rule.verbs) - reads:
        return True
    return ANY in rule.resources or "secrets" in rule.resources


def _find_dead_rules(effective: EffectiveRules) -> list[Risk]:
    """Rules that grant nothing, which their author probably does not know."""
    found = []
    for grant in effective.grants:
        if reason := _explain_dead(grant.rule) or _explain_out_of_reach(grant):
            details = (("rule", grant.rule_index), ("role", display_name(grant.origin)), *reason)
            found.append(Risk("RB-47", Severity.SAFE, HELD, grant.scope, (grant,), details))
    return found


@lru_cache(maxsize=MAX_JUDGED_RULES)
def _explain_dead(rule: PolicyRule) -> _Details:
    if not rule.verbs:
        return (("reason", "no-verbs"),)
    if rule.non_resource_urls:
        return ()
    if not rule.api_groups or not rule.resources:
        return (("reason", "no-resources"),)
    if all(resource.endswith(f"/{ANY}") for resource in rule.resources):
        return (("reason", "no-match"), ("resource", rule.resources[0]))
    if rule.resource_names and _carry_no_name(rule.verbs, rule.resources):
        return (("reason", "no-name"),)
    if (absent := nowhere(rule)) and len(absent) == len(rule.resources):
        groups = tuple(group or None for group in rule.api_groups)
        return (("reason", "not-served"), ("resources", tuple(absent)), ("groups", groups))
    unknown = [verb for verb in rule.verbs if verb not in KNOWN_VERBS and verb != verb.lower()]
    return (("reason", "no-verb"), ("verb", unknown[0])) if len(unknown) == len(rule.verbs) else ()


def _explain_out_of_reach(grant: Grant) -> _Details:
    """A RoleBinding reaches into its namespace, and what belongs to no namespace is not there."""
    rule = grant.rule
    if grant.scope == CLUSTER or not rule.resources or not set(rule.api_groups) <= set(BUILT_IN_RESOURCES):
        return ()
    plurals = [resource.partition("/")[0] for resource in rule.resources]
    if not set(plurals) <= CLUSTER_SCOPED:
        return ()
    return (("reason", "not-here"), ("resource", plurals[0]))


def _merge_risks(found: list[Risk]) -> list[Risk]:
    """The same risk at the same place once, with all its grants."""
    merged: dict[Risk, dict[Grant, None]] = {}
    for risk in found:
        merged.setdefault(replace(risk, evidence=()), {}).update(dict.fromkeys(risk.evidence))
    return [replace(risk, evidence=tuple(grants)) for risk, grants in merged.items()]


def _mark_implied(risk: Risk, everything: list[Risk]) -> Risk:
    wider = [other for other in everything if other.id != risk.id and other.scope in (CLUSTER, risk.scope)]
    return replace(risk, implied_by=wider[0].id) if wider and risk.what != HELD else risk


def _lower_severity(severity: Severity) -> Severity:
    return STEPS[min(STEPS.index(severity) + 1, len(STEPS) - 1)]
