"""Which risky permissions somebody holds, where, and by which grants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

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
from provisioner.rbac.policy import ANY, PolicyRule
from provisioner.rbac.resources import BUILT_IN_RESOURCES, CLUSTER_SCOPED, nowhere
from provisioner.sentences import some
from provisioner.values import Severity

SENSITIVE_NAMESPACES = frozenset({"kube-system"})
STEPS = (Severity.CRITICAL, Severity.DANGEROUS, Severity.NOTABLE, Severity.SAFE)
URL_WRITE_VERBS = frozenset({ANY, "post", "put", "patch", "delete"})
NODE_URLS = ("/debug", "/logs")
# Many accounts hold the same few thousand rules at most, and each rule is judged once for all of them.
MAX_JUDGED_RULES = 16_384
_EVERYTHING = {"RB-01", "RB-02"}
_POWERS = tuple(dict.fromkeys(power for pattern in PATTERNS for power in pattern.powers))
_Holding = list[tuple[Grant, bool]]
_WHOSE = {
    "Group": "as every pod of that namespace then does",
    "ServiceAccount": "and every pod there that names no account runs as this one",
}


@dataclass(frozen=True, slots=True)
class Risk:
    """One risky permission. `scope` is "" for the whole cluster, else a namespace; `evidence` are the grants behind it.

    `implied_by` is the id of a wider risk that contains this one, "" where there is none: pages may fold those.
    """

    id: str
    severity: Severity
    sentence: str
    scope: str
    evidence: tuple[Grant, ...]
    implied_by: str = ""


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
    found = matcher.patterns() + _impersonated_requests(effective) + _strong_roles(effective) + _urls(effective)
    found += _wide_subjects(effective) + _dead_rules(effective)
    held = _merged(found)
    everything = [risk for risk in held if risk.id in _EVERYTHING]
    marked = [_marked(risk, everything) for risk in held]
    return sorted(marked, key=lambda it: (it.severity.rank, it.scope, it.id, it.sentence))


@dataclass(frozen=True, slots=True)
class _Matcher:
    effective: EffectiveRules
    sensitive: frozenset[str]
    scopes: list[str]
    _held: dict[str, dict[RulePower, _Holding]] = field(default_factory=dict)

    def patterns(self) -> list[Risk]:
        found: list[Risk] = []
        for pattern in PATTERNS:
            matched = self._everywhere(pattern)
            if pattern.is_part:
                matched = [risk for risk in matched if not any(_contains(wider, risk) for wider in found)]
            found += matched
        return found

    def _everywhere(self, pattern: RiskPattern) -> list[Risk]:
        cluster_wide = self._match(pattern, CLUSTER)
        found = [cluster_wide] if cluster_wide is not None else []
        for scope in self.scopes:
            if scope == CLUSTER or (cluster_wide is not None and not _is_lower(cluster_wide, pattern)):
                continue
            if pattern.namespaces and scope not in pattern.namespaces:
                continue
            inside = self._match(_namespaced(pattern), scope) if _counts_inside(pattern) else None
            if inside is not None and any(grant.scope == scope for grant in inside.evidence):
                found.append(inside)
        return found

    def _match(self, pattern: RiskPattern, scope: str) -> Risk | None:
        held = [self._holding(scope).get(power, []) for power in pattern.powers]
        if not all(held):
            return None
        grants = tuple(dict.fromkeys(grant for powers in held for grant, _ in powers))
        names = _names(held)
        severity, sentence = pattern.severity, pattern.sentence
        if names:
            sentence = pattern.sentence_of(some(names))
            severity = severity if pattern.fatal & set(names) else pattern.named or _lowered(severity)
        if scope != CLUSTER and scope not in self.sensitive:
            severity = _lowered(severity)
        reach = "in the whole cluster" if scope == CLUSTER else f"in namespace {scope}"
        return Risk(pattern.id, severity, f"can {sentence} {reach}", scope, grants)

    def _holding(self, scope: str) -> dict[RulePower, _Holding]:
        """By each power that is held for requests in `scope` the grants, each with whether it is limited to names."""
        if scope not in self._held:
            found: dict[RulePower, _Holding] = {}
            for grant in self.effective.grants_in(scope):
                for power in _powers_in(grant.rule):
                    found.setdefault(power, []).append((grant, bool(grant.rule.resource_names)))
            self._held[scope] = found
        return self._held[scope]


def _names(held: list[_Holding]) -> list[str]:
    """The names to which what is held is limited, none where it is not: one power that is limited limits all."""
    limited = [powers for powers in held if all(is_named for _, is_named in powers)]
    return sorted({name for powers in limited for grant, _ in powers for name in grant.rule.resource_names})


def _contains(wider: Risk, risk: Risk) -> bool:
    """Whether `wider`, found by the pattern that `risk` is part of, says all that `risk` says."""
    same = {wider.id, risk.id} <= _EVERYTHING or wider.id == risk.id
    return same and wider.scope in (CLUSTER, risk.scope) and wider.severity.is_at_least(risk.severity)


def _is_lower(risk: Risk, pattern: RiskPattern) -> bool:
    """Whether the cluster-wide hold is a weaker one, of named objects only, so that a namespace's may be worse."""
    return risk.severity is not pattern.severity


def _counts_inside(pattern: RiskPattern) -> bool:
    return not pattern.is_cluster_only or pattern.id == "RB-01"


def _namespaced(pattern: RiskPattern) -> RiskPattern:
    """Everything in one namespace has an id of its own."""
    if pattern.id != "RB-01":
        return pattern
    return RiskPattern("RB-02", pattern.severity, pattern.sentence, pattern.powers)


@lru_cache(maxsize=MAX_JUDGED_RULES)
def _powers_in(rule: PolicyRule) -> tuple[RulePower, ...]:
    """The powers of the catalogue that the rule gives."""
    return tuple(power for power in _POWERS if _gives(rule, power))


def _gives(rule: PolicyRule, power: RulePower) -> bool:
    resources = _resources(rule, power)
    if not resources:
        return False
    verbs = _verbs(rule, power.verbs)
    return bool(verbs) and not (rule.resource_names and _carry_no_name(verbs, resources))


def _carry_no_name(verbs: Iterable[str], resources: Iterable[str]) -> bool:
    """Whether requests of these kinds carry no name, so that a rule with names never permits them.

    To create a subresource (a token, an exec) names the object that it belongs to.
    """
    return set(verbs) <= UNNAMED_VERBS and not any("/" in resource or resource == ANY for resource in resources)


def _verbs(rule: PolicyRule, wanted: tuple[str, ...]) -> set[str]:
    if ANY in rule.verbs:
        return set(wanted)
    if "impersonate" in wanted and any(verb.startswith("impersonate") for verb in rule.verbs):
        return {"impersonate"}
    return set(wanted) & set(rule.verbs)


def _resources(rule: PolicyRule, power: RulePower) -> list[str]:
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


def _impersonated_requests(effective: EffectiveRules) -> list[Risk]:
    """The half of constrained impersonation that is about requests; who also may act as somebody has a risk of that."""
    found = []
    for grant in effective.grants:
        verbs = sorted({verb.rpartition(":")[2] for verb in grant.rule.verbs if verb.startswith(IMPERSONATE_ON)})
        if verbs and grant.rule.resources:
            reach = "in the whole cluster" if grant.scope == CLUSTER else f"in namespace {grant.scope}"
            what = f"{', '.join(verbs)} {some(sorted(grant.rule.resources))}"
            words = f"can {what} as somebody else whom it may impersonate (impersonate-on) {reach}"
            found.append(Risk("RB-10", Severity.DANGEROUS, words, grant.scope, (grant,)))
    return found


def _strong_roles(effective: EffectiveRules) -> list[Risk]:
    by_role: dict[str, list[Grant]] = {}
    for grant in effective.grants:
        if grant.scope == CLUSTER and grant.role.kind == "ClusterRole" and grant.role.name in STRONG_ROLES:
            by_role.setdefault(grant.role.name, []).append(grant)
    return [
        Risk("RB-03", STRONG_ROLES[name], f"holds {name} in the whole cluster", CLUSTER, tuple(grants))
        for name, grants in by_role.items()
    ]


def _urls(effective: EffectiveRules) -> list[Risk]:
    found = []
    for grant in effective.grants:
        urls = grant.rule.non_resource_urls
        if grant.scope != CLUSTER or not urls:
            continue
        if ANY in urls and URL_WRITE_VERBS & set(grant.rule.verbs):
            words = "can write to every URL of the API server that is no resource"
            found.append(Risk("RB-04", Severity.NOTABLE, words, CLUSTER, (grant,)))
        elif any(url.startswith(NODE_URLS) for url in urls):
            found.append(
                Risk("RB-04", Severity.NOTABLE, "can read the API server's debug pages or logs", CLUSTER, (grant,))
            )
    return found


def _wide_subjects(effective: EffectiveRules) -> list[Risk]:
    found = []
    for grant in effective.grants:
        known = WIDE_SUBJECTS.get((grant.subject.kind, grant.subject.name))
        if known is not None and not _is_public(grant):
            rule_id, strong, weak, whose = known
            severity = strong if _writes_or_reads_secrets(grant.rule) else weak
            words = f"holds {grant.role.name}, and stands for {whose}"
            found.append(Risk(rule_id, severity, words, grant.scope, (grant,)))
        elif _is_whole_namespace(grant):
            words = f"holds {grant.role.name}, {_WHOSE[grant.subject.kind]}"
            found.append(Risk("RB-43", Severity.DANGEROUS, words, grant.scope, (grant,)))
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


def _dead_rules(effective: EffectiveRules) -> list[Risk]:
    """Rules that grant nothing, which their author probably does not know."""
    found = []
    for grant in effective.grants:
        if reason := _why_dead(grant.rule) or _why_not_here(grant):
            origin = grant.origin
            role = (
                f"{origin.kind} {origin.namespace}/{origin.name}"
                if origin.namespace
                else f"{origin.kind} {origin.name}"
            )
            words = f"holds rule {grant.rule_index} of {role}, which grants nothing: {reason}"
            found.append(Risk("RB-47", Severity.SAFE, words, grant.scope, (grant,)))
    return found


@lru_cache(maxsize=MAX_JUDGED_RULES)
def _why_dead(rule: PolicyRule) -> str:
    if not rule.verbs:
        return "it has no verbs"
    if rule.non_resource_urls:
        return ""
    if not rule.api_groups or not rule.resources:
        return "it has no API groups or no resources"
    if all(resource.endswith(f"/{ANY}") for resource in rule.resources):
        return f"{rule.resources[0]} matches no resource"
    if rule.resource_names and _carry_no_name(rule.verbs, rule.resources):
        return "requests of these verbs carry no name, but for a server-side apply, which needs patch as well"
    if (absent := nowhere(rule)) and len(absent) == len(rule.resources):
        groups = " or ".join(group or "the core group" for group in rule.api_groups)
        return f"Kubernetes has no {', '.join(absent)} in {groups}"
    unknown = [verb for verb in rule.verbs if verb not in KNOWN_VERBS and verb != verb.lower()]
    return f"{unknown[0]} is no verb" if len(unknown) == len(rule.verbs) else ""


def _why_not_here(grant: Grant) -> str:
    """A RoleBinding reaches into its namespace, and what belongs to no namespace is not there."""
    rule = grant.rule
    if grant.scope == CLUSTER or not rule.resources or not set(rule.api_groups) <= set(BUILT_IN_RESOURCES):
        return ""
    plurals = [resource.partition("/")[0] for resource in rule.resources]
    if not set(plurals) <= CLUSTER_SCOPED:
        return ""
    return f"{plurals[0]} belong to no namespace, and a RoleBinding grants nothing outside of its own"


def _merged(found: list[Risk]) -> list[Risk]:
    """The same risk at the same place once, with all its grants."""
    merged: dict[tuple[str, str, str, Severity], dict[Grant, None]] = {}
    for risk in found:
        key = (risk.id, risk.scope, risk.sentence, risk.severity)
        merged.setdefault(key, {}).update(dict.fromkeys(risk.evidence))
    return [
        Risk(rule_id, severity, sentence, scope, tuple(grants))
        for (rule_id, scope, sentence, severity), grants in merged.items()
    ]


def _marked(risk: Risk, everything: list[Risk]) -> Risk:
    wider = [it for it in everything if it.id != risk.id and it.scope in (CLUSTER, risk.scope)]
    is_subject = risk.id in ("RB-03", "RB-40", "RB-41", "RB-42", "RB-43", "RB-47")
    if not wider or is_subject:
        return risk
    return Risk(risk.id, risk.severity, risk.sentence, risk.scope, risk.evidence, implied_by=wider[0].id)


def _lowered(severity: Severity) -> Severity:
    return STEPS[min(STEPS.index(severity) + 1, len(STEPS) - 1)]
