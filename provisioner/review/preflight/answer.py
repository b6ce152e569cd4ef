"""The answer of a preflight: what stands in the way, the fewest rules that clear it, what is held in excess."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from provisioner import rbac
from provisioner.errors import TooManyRights
from provisioner.rbac import PolicyRule, RbacSubject, ScopedRule
from provisioner.review.base.facts import ReviewRule
from provisioner.review.preflight.account_rights import UNKNOWN, Missing, PreflightFacts, RightsStep, Walk
from provisioner.review.preflight.needs import by_name, of_users, walk
from provisioner.review.rules.files import sentence_of
from provisioner.values import AccessRequest, Finding, ObjectRef, Section, Severity, worst_first

_EXCESS = ReviewRule("PRE-10", Section.PREFLIGHT, Severity.DANGEROUS)
_LITTLE_EXCESS = ReviewRule("PRE-10", Section.PREFLIGHT, Severity.NOTABLE)
_BY_ROLES = frozenset({"PRE-02", "PRE-03", "PRE-04", "PRE-06"})


@dataclass(frozen=True, slots=True)
class MissingRule:
    """A rule to be granted to the account at `scope` ("" for the whole cluster), with all that it is needed for."""

    scope: str
    rule: PolicyRule
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preflight:
    """`missing` is minimal: with these rules every object passes. `excess` are rights held that nothing needs."""

    account: RbacSubject
    findings: tuple[Finding, ...]
    missing: tuple[MissingRule, ...]
    excess: tuple[ScopedRule, ...]
    steps: tuple[RightsStep, ...]

    @property
    def verdict(self) -> Severity:
        """safe, breaking (the installation would fail), or unknown."""
        severities = {finding.severity for finding in self.findings}
        if Severity.BREAKING in severities:
            return Severity.BREAKING
        return Severity.UNKNOWN if Severity.UNKNOWN in severities else Severity.SAFE


def questions(facts: PreflightFacts) -> list[AccessRequest]:
    """What to ask the API server before `preflight`: all that RBAC does not permit. Ask again until nothing is left."""
    return [request for request in walk(facts).questions if request not in facts.answers]


def preflight(facts: PreflightFacts) -> Preflight:
    """Whether the account may install the bundle, by `facts`."""
    found = walk(facts)
    # Without the roles of the cluster nothing is proved that only they can tell.
    unproved = frozenset() if facts.roles is not None else _BY_ROLES
    findings = [
        replace(finding, severity=Severity.UNKNOWN) if finding.rule in unproved else finding
        for finding in found.findings
    ]
    excess: tuple[ScopedRule, ...] = ()
    if facts.roles is None:
        variant = "roles-not-read" if facts.answers else "roles-not-asked"
        findings.append(UNKNOWN.finding(variant, None, key="roles", account=facts.account))
    else:
        try:
            excess = tuple(_excess(found))
            findings += _of_excess(facts, excess)
        except TooManyRights as exc:
            findings.append(_undecided(facts, "excess-undecided", exc))
        try:
            findings += of_users(facts.account, found.roles)
        except TooManyRights as exc:
            findings.append(_undecided(facts, "users-undecided", exc))
    missing: tuple[MissingRule, ...] = ()
    try:
        missing = _minimal(found.missing)
    except TooManyRights as exc:
        findings.append(_undecided(facts, "missing-undecided", exc))
    return Preflight(facts.account, worst_first(findings), missing, excess, tuple(found.steps))


def _undecided(facts: PreflightFacts, variant: str, exc: TooManyRights) -> Finding:
    return UNKNOWN.finding(variant, _ref(facts.account), key=variant, problem=str(exc))


def _minimal(missing: Iterable[Missing]) -> tuple[MissingRule, ...]:
    by_scope: dict[str, list[Missing]] = {}
    for lack in missing:
        by_scope.setdefault(lack.scope, []).append(lack)
    everywhere = rbac.HeldRules(lack.rule for lack in by_scope.get("", ()))
    found: list[MissingRule] = []
    for scope in sorted(by_scope):
        lacking = [
            lack for lack in by_scope[scope] if not scope or rbac.remainder(everywhere, [lack.rule], is_cut=True)
        ]
        for rule in rbac.minimal(lack.rule for lack in lacking):
            held = rbac.HeldRules([rule])
            reasons = dict.fromkeys(lack.reason for lack in lacking if held.sharing(lack.rule))
            found.append(MissingRule(scope, rule, tuple(reasons)))
    return tuple(found)


def _excess(found: Walk) -> Iterator[ScopedRule]:
    """What is granted to the account by name and is not needed, names of objects aside."""
    facts = found.facts
    held = by_name(rbac.effective_rules(facts.account.identity, facts.known), facts.account)
    for scope in held.scopes:
        needed = [replace(rule, resource_names=()) for place, rule in found.used if scope in ("", place)]
        for rule in rbac.minimal(rbac.covers(needed, held.at(scope)).missing):
            yield ScopedRule(scope, rule)


def _of_excess(facts: PreflightFacts, excess: tuple[ScopedRule, ...]) -> Iterator[Finding]:
    if not excess:
        return
    held = by_name(rbac.effective_rules(facts.account.identity, facts.known), facts.account)
    places = {scope: [right.rule for right in excess if right.scope == scope] for scope in held.scopes}
    grants = tuple(grant for grant in held.grants if any(_overlap(grant.rule, rule) for rule in places[grant.scope]))
    powers = [
        sentence_of(risk)
        for risk in rbac.risks(replace(held, grants=grants))
        if risk.severity.is_at_least(Severity.DANGEROUS) and not risk.implied_by
    ]
    rules = [{"scope": right.scope, **right.rule.to_object()} for right in excess]
    yield (_EXCESS if powers else _LITTLE_EXCESS).finding(
        "excess",
        _ref(facts.account),
        key=rules,
        worst=powers[0] if powers else None,
        powers=powers,
        bindings=sorted({str(grant.binding) for grant in grants}),
        rules=rules,
    )


def _overlap(one: PolicyRule, other: PolicyRule) -> bool:
    """Whether the two name an atom that is literally the same; a wildcard is the same as a wildcard only."""
    if set(one.verbs).isdisjoint(other.verbs):
        return False
    if not set(one.non_resource_urls).isdisjoint(other.non_resource_urls):
        return True
    if set(one.api_groups).isdisjoint(other.api_groups) or set(one.resources).isdisjoint(other.resources):
        return False
    is_unnamed = not one.resource_names and not other.resource_names
    return is_unnamed or not set(one.resource_names).isdisjoint(other.resource_names)


def _ref(account: RbacSubject) -> ObjectRef:
    return ObjectRef.of_service_account(account.namespace, account.name)


# Of these a rule may be missing; all others are told of with the rule that clears them.
_INCOMPLETE = frozenset({"PRE-07", "PRE-12"})
_IN_THE_WAY = frozenset({"PRE-05", "PRE-08", "PRE-09"})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What else has to be done. `is_incomplete`: a rule may be missing, or could not be found out."""

    words: str
    is_incomplete: bool = False


def obstacles(found: Preflight) -> Iterator[Obstacle]:
    """What stands between the least rights and an installation."""
    for finding in found.findings:
        if finding.rule in _INCOMPLETE or (finding.severity is Severity.UNKNOWN and finding.rule not in _IN_THE_WAY):
            yield Obstacle(finding.message, is_incomplete=True)
        elif finding.rule in _IN_THE_WAY:
            yield Obstacle(finding.message)
