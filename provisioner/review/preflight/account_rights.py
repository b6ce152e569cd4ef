"""What a preflight is decided from, what the account holds at each object of the walk, and what it may grant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest
from provisioner.json_values import mapping
from provisioner.rbac import EffectiveRules, Grant, PolicyRule, RbacObjects, RbacSubject
from provisioner.review.base.facts import Gap, ReviewRule, RolesRead
from provisioner.review.rules import Phrase
from provisioner.values import (
    AccessAnswer,
    AccessRequest,
    Action,
    Finding,
    GroupKind,
    JsonObject,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    PlannedAction,
    Section,
    Severity,
)

NAMESPACE = GroupKind("", "Namespace")
TOO_EARLY = ReviewRule("PRE-08", Section.PREFLIGHT, Severity.BREAKING)
UNKNOWN = ReviewRule("PRE-12", Section.PREFLIGHT, Severity.UNKNOWN)
REMEDY = ReviewRule("PRE-RULES", Section.PREFLIGHT, Severity.NOTABLE)


@dataclass(frozen=True, slots=True)
class ResourceWord:
    """`plural` is the word for a kind in RBAC rules."""

    plural: str
    is_namespaced: bool


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    """What a preflight is decided from. None means that nobody could be asked.

    `manifests` stand in the order of apply. `kinds` is what the cluster serves, by group, version and kind. `actions`
    is what apply is planned to do, by identity; without a plan everything counts as new. `answers` are the API server's
    to `questions`, which see other authorizers than RBAC, too. `unanswered` are groups whose own servers are down.
    `with_deletion`: what is written shall be deleted one day, too. `release` is the cluster's version, "" if unknown.
    """

    account: RbacSubject
    manifests: tuple[Manifest, ...]
    roles: tuple[JsonObject, ...] | None = None
    kinds: Mapping[tuple[str, str, str], ResourceWord] | None = None
    namespaces: frozenset[str] | None = None
    actions: Mapping[ObjectIdentity, PlannedAction] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    answers: Mapping[AccessRequest, AccessAnswer] = field(default_factory=dict)
    unanswered: frozenset[str] = frozenset()
    with_deletion: bool = False
    release: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.roles, RolesRead | None):
            object.__setattr__(self, "roles", RolesRead(self.roles))

    @property
    def known(self) -> RbacObjects:
        """The roles, sorted out once; none where nobody could be asked."""
        return self.roles.known if isinstance(self.roles, RolesRead) else RbacObjects()


@dataclass(frozen=True, slots=True)
class Missing:
    """A rule that the account lacks: where, and what for."""

    scope: str
    rule: PolicyRule
    reason: Phrase


@dataclass(frozen=True, slots=True)
class RightsStep:
    """One thing that the account has to be allowed, whether it is, and by what: the grants, or `words`."""

    request: AccessRequest
    ref: ObjectRef
    is_allowed: bool
    grants: tuple[Grant, ...] = ()
    words: str = ""


@dataclass(slots=True)
class Walk:
    """What going through the objects of `facts` found; `made` are the namespaces among them."""

    facts: PreflightFacts
    roles: RbacObjects
    made: frozenset[str]
    findings: list[Finding] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    steps: list[RightsStep] = field(default_factory=list)
    questions: dict[AccessRequest, None] = field(default_factory=dict)
    used: list[tuple[str, PolicyRule]] = field(default_factory=list)
    _held: EffectiveRules | None = None
    _supposed: list[Grant] = field(default_factory=list)

    @property
    def held(self) -> EffectiveRules:
        """What the account holds here: by the cluster, by earlier objects, by the rules that were missing so far."""
        if self._held is None:
            self._held = rbac.effective_rules(self.facts.account.identity, self.roles)
        return replace(self._held, grants=(*self._held.grants, *self._supposed))

    def now_holds(self, role_or_binding: JsonObject) -> None:
        """`role_or_binding` has been applied."""
        self.roles.add(RbacObjects.of([role_or_binding]))
        self._held = None

    def lacks(self, scope: str, rule: PolicyRule, why: str, ref: ObjectRef, **params: str) -> None:
        """`rule` is missing, for the object `ref` and the reason `why`; from here on it is supposed to be there.

        In a namespace that the bundle itself makes nothing can be granted before, but for the whole cluster.
        """
        reason = Phrase.of(REMEDY.id, f"reason.{why}", object=ref, **params)
        if scope and scope not in (self.facts.namespaces or ()) and scope in self.made:
            scope, reason = "", Phrase.of(REMEDY.id, "reason.in-whole-cluster", reason=reason)
        self.missing.append(Missing(scope, rule, reason))
        missing = ObjectRef(RBAC_GROUP, "v1", "RoleBinding" if scope else "ClusterRoleBinding", scope, "(missing)")
        self._supposed.append(Grant(rule, scope, self.facts.account, missing, missing, missing, 0))

    def may(self, request: AccessRequest, ref: ObjectRef) -> bool:
        """Whether the account may do `request`, by RBAC or else by the API server's own word."""
        grants = tuple(rbac.grants(self.held, request))
        answer = self.facts.answers.get(request)
        words = "" if grants or answer is None else (answer.reason or "the API server says so")
        is_allowed = bool(grants) or (answer is not None and answer.allowed)
        if not grants:
            self.questions[request] = None
        self.steps.append(RightsStep(request, ref, is_allowed, grants, words))
        self.used.append((request.namespace, rule_of(request)))
        return is_allowed


def rule_of(request: AccessRequest) -> PolicyRule:
    """The narrowest rule that permits `request`."""
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    names = (request.name,) if request.name else ()
    return PolicyRule((request.verb,), (request.group,), (resource,), names)


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
        # The first rule of a role of the bundle that itself lets write this one, such as all verbs on all roles: it is
        # needed for its own role, and whoever holds it needs nothing else that these roles grant.
        actions = found.facts.actions
        written = (
            other.body
            for other in found.facts.manifests
            if other.ref.group == RBAC_GROUP and other.ref.namespace in ("", ref.namespace)
            if other.ref.identity not in actions or actions[other.ref.identity].action is not Action.NONE
        )
        enough = rbac.escalating_rule(written, escalate)
        for holder, rule in [enough] if enough else [(ref, rule) for rule in check.missing]:
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
