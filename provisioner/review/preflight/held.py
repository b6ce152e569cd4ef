"""What the account holds at each object of the walk, and what it was asked and found to lack so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import EffectiveRules, Grant, PolicyRule, RbacObjects
from provisioner.review.preflight.facts import NAMESPACE, REMEDY, PreflightFacts
from provisioner.review.rules import Phrase
from provisioner.values import AccessRequest, Finding, JsonObject, ObjectRef


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
    """What going through the objects of `facts` found."""

    facts: PreflightFacts
    roles: RbacObjects
    findings: list[Finding] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    steps: list[RightsStep] = field(default_factory=list)
    questions: dict[AccessRequest, None] = field(default_factory=dict)
    used: list[tuple[str, PolicyRule]] = field(default_factory=list)
    _held: EffectiveRules | None = None
    _supposed: list[Grant] = field(default_factory=list)

    @property
    def _made(self) -> set[str]:
        return {one.ref.name for one in self.facts.manifests if one.ref.group_kind == NAMESPACE}

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
        if scope and scope not in (self.facts.namespaces or ()) and scope in self._made:
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
