"""Whether the installing ServiceAccount may do all that a bundle needs, before anything is touched. Pure.

The objects are gone through in the order of apply. What earlier ones grant counts for later ones, and so does what was
found missing before: the missing rules are those with which everything would pass. Writing is server-side apply, which
asks for `patch`, and for `create` with the object's name where the object is new (seen on 1.36.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import AlreadyExists, InvalidManifest, InvalidObject
from provisioner.rbac import BUILT_IN_RESOURCES, EffectiveRules, Grant, PolicyRule, RbacObjects, RbacSubject, plural_of
from provisioner.review.base.facts import Gap, ReviewRule, RolesRead, mapping, maps, said
from provisioner.sentences import some
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

# Each missing rule is supposed to be there from then on, and looked at for every later object.
MAX_MISSING = 10_000
_NAMESPACE = GroupKind("", "Namespace")
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_NO_VERB = ReviewRule("PRE-01", Section.PREFLIGHT, Severity.BREAKING)
_NO_OWNER = ReviewRule("PRE-06", Section.PREFLIGHT, Severity.DANGEROUS)
_GRANTS = ReviewRule("PRE-02", Section.PREFLIGHT, Severity.BREAKING)
_BINDS = ReviewRule("PRE-03", Section.PREFLIGHT, Severity.BREAKING)
_AGGREGATES = ReviewRule("PRE-04", Section.PREFLIGHT, Severity.BREAKING)
_NO_NAMESPACE = ReviewRule("PRE-05", Section.PREFLIGHT, Severity.BREAKING)
_NO_KIND = ReviewRule("PRE-07", Section.PREFLIGHT, Severity.BREAKING)
_TOO_EARLY = ReviewRule("PRE-08", Section.PREFLIGHT, Severity.BREAKING)
_REFUSED = ReviewRule("PRE-09", Section.PREFLIGHT, Severity.BREAKING)
_UNKNOWN = ReviewRule("PRE-12", Section.PREFLIGHT, Severity.UNKNOWN)
_NOT_OURS = AlreadyExists.code
_INVALID = InvalidObject.code


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
    `with_deletion`: what is written shall be deleted one day, too.
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

    @property
    def known(self) -> RbacObjects:
        """The roles, sorted out; none where nobody could be asked."""
        return self.roles.known if isinstance(self.roles, RolesRead) else RbacObjects.of(self.roles or ())


@dataclass(frozen=True, slots=True)
class Missing:
    """A rule that the account lacks: where, and what for."""

    scope: str
    rule: PolicyRule
    reason: str


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
        return {one.ref.name for one in self.facts.manifests if one.ref.group_kind == _NAMESPACE}

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

    def lacks(self, scope: str, rule: PolicyRule, reason: str) -> None:
        """`rule` is missing; from here on it is supposed to be there.

        In a namespace that the bundle itself makes nothing can be granted before, but for the whole cluster.
        """
        if scope and scope not in (self.facts.namespaces or ()) and scope in self._made:
            scope, reason = "", f"{reason} (in the whole cluster, for its namespace comes with the bundle)"
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


def walk(facts: PreflightFacts) -> Walk:
    """Go through everything that apply will do, in its order."""
    found = Walk(facts, facts.known.copy())
    seen: dict[ObjectIdentity, Manifest] = {}
    coming = {manifest.ref.identity for manifest in facts.manifests}
    for manifest in facts.manifests:
        found.findings += _of_object(found, manifest, seen, coming)
        seen[manifest.ref.identity] = manifest
        if manifest.ref.group == RBAC_GROUP:
            found.now_holds(manifest.body)
    for planned in facts.actions.values():
        if planned.action is Action.DELETE:
            kind = _kind(facts, planned.ref, {})
            if kind is not None:
                found.findings += _of_verbs(found, planned.ref, kind, ("get", "delete"))
    found.findings += [_of_gap(gap) for gap in facts.gaps]
    return found


def who(account: RbacSubject) -> str:
    return f"`{account.namespace}/{account.name}`"


def _of_object(
    found: Walk, manifest: Manifest, seen: Mapping[ObjectIdentity, Manifest], coming: set[ObjectIdentity]
) -> Iterator[Finding]:
    ref, facts = manifest.ref, found.facts
    kind = _kind(facts, ref, seen)
    if kind is None:
        yield _of_no_kind(facts, ref)
        return
    planned = facts.actions.get(ref.identity)
    verbs = _verbs(manifest, planned)
    verbs = tuple(dict.fromkeys((*verbs, "delete"))) if facts.with_deletion else verbs
    findings = [*_of_place(facts, ref, seen, coming), *_of_verbs(found, ref, kind, verbs)]
    findings += _of_owners(found, manifest)
    if ref.group == RBAC_GROUP and (planned is None or planned.action is not Action.NONE):
        findings += _of_grants(found, manifest, planned.before if planned else None)
    yield from findings
    if planned is not None and not findings and _is_refused(planned):
        message = f"The API server refuses {said(ref)}: {planned.problem}"
        found_by = _REFUSED.at(ref, message, evidence={"code": planned.problem_code}, key=planned.problem_code)
        yield replace(found_by, server_words=planned.server_words)


def _is_refused(planned: PlannedAction) -> bool:
    """Whether the dry-run was refused for something else than rights, on which what comes before it may decide."""
    if not planned.problem or planned.problem_code == _NOT_OURS:
        return False
    is_unbound = planned.ref.group == RBAC_GROUP and planned.problem_code != _INVALID
    return not is_unbound and not ('User "' in planned.problem and " cannot " in planned.problem)


def _verbs(manifest: Manifest, planned: PlannedAction | None) -> tuple[str, ...]:
    action = planned.action if planned else Action.CREATE
    if action not in (Action.CREATE, Action.REPLACE, Action.RERUN):
        return ("get", "patch")
    is_deleted = action is not Action.CREATE or (manifest.hook is not None and manifest.hook.is_cleared)
    return ("get", "create", "patch", "delete") if is_deleted else ("get", "create", "patch")


def _of_verbs(found: Walk, ref: ObjectRef, kind: ResourceWord, verbs: tuple[str, ...]) -> Iterator[Finding]:
    requests = [AccessRequest(verb, ref.group, kind.plural, "", ref.namespace, ref.name) for verb in verbs]
    denied = [request for request in requests if not found.may(request, ref)]
    if not denied:
        return
    purpose = next((verb for verb in ("create", "delete") if verb in verbs), "update")
    for request in denied:
        found.lacks(ref.namespace, rule_of(request), f"needed to {purpose} {said(ref)}")
    lacking = [request.verb for request in denied]
    is_known = found.facts.roles is not None or any(request in found.facts.answers for request in denied)
    rule = _NO_VERB if is_known else replace(_NO_VERB, severity=Severity.UNKNOWN)
    lack = f"may not {_listed(lacking, 'or')}" if is_known else f"has to be allowed to {_listed(lacking, 'and')}"
    message = f"{who(found.facts.account)} {lack} {said(ref)}"
    evidence = {"verbs": lacking, "said": [_answer(found.facts, request) for request in denied]}
    yield rule.at(ref, message, evidence=evidence, key=lacking)


def _of_owners(found: Walk, manifest: Manifest) -> Iterator[Finding]:
    """To block an owner's deletion is a right, where the admission plug-in for it is on."""
    ref = manifest.ref
    for owner in maps(mapping(manifest.body.get("metadata")).get("ownerReferences")):
        if owner.get("blockOwnerDeletion") is not True:
            continue
        group, _, version = str(owner.get("apiVersion") or "").rpartition("/")
        kind = _kind(found.facts, ObjectRef(group, version, str(owner.get("kind")), ref.namespace, ""), {})
        if kind is None:
            continue
        place = ref.namespace if kind.is_namespaced else ""
        request = AccessRequest("update", group, kind.plural, "finalizers", place, str(owner.get("name")))
        if not found.may(request, ref):
            found.lacks(place, rule_of(request), f"needed for blockOwnerDeletion of {said(ref)}")
            words = f"where owner references are checked, {said(ref)} is refused"
            message = f"{who(found.facts.account)} may not {request}: {words}"
            yield _NO_OWNER.at(ref, message, path=("metadata", "ownerReferences"), key=str(request))


def _of_grants(found: Walk, manifest: Manifest, old: JsonObject | None) -> Iterator[Finding]:
    if manifest.ref.kind.endswith("Binding"):
        yield from _of_binding(found, manifest)
    else:
        yield from _of_role(found, manifest, old)


def _of_role(found: Walk, manifest: Manifest, old: JsonObject | None) -> Iterator[Finding]:
    ref, account = manifest.ref, who(found.facts.account)
    check = rbac.may_write_role(found.held, manifest.body, old=old)
    resource = "clusterroles" if ref.kind == "ClusterRole" else "roles"
    escalate = AccessRequest("escalate", RBAC_GROUP, resource, "", ref.namespace, ref.name)
    if check.allowed:
        _count_as_used(found, ref, manifest.body, escalate)
        return
    if found.may(escalate, ref):
        return
    if not check.missing:
        yield _UNKNOWN.at(ref, f"Whether {account} may write {said(ref)} cannot be told: {check.reason}")
    elif len(found.missing) + len(check.missing) > MAX_MISSING:
        count = len(found.missing) + len(check.missing)
        words = f"{count} missing rules were found so far, and no more than {MAX_MISSING} are gone through"
        yield _UNKNOWN.at(ref, f"Whether {account} may write {said(ref)} cannot be told: {words}")
    elif check.missing == rbac.FULL_AUTHORITY:
        found.lacks(ref.namespace, rule_of(escalate), f"needed to write {said(ref)}, which has an aggregationRule")
        message = (
            f"{said(ref)} collects the rules of other roles (aggregationRule), which only a cluster-admin may write, "
            f"or who may escalate it; {account} may neither"
        )
        yield _AGGREGATES.at(ref, message, path=("aggregationRule",))
    else:
        for holder, rule in _escalating(found, ref, escalate) or [(ref, rule) for rule in check.missing]:
            reason = f"held by {said(holder)}, and nobody may grant what they do not hold"
            found.lacks(holder.namespace, rule, reason)
        lack = "does not hold itself" if found.facts.roles is not None else "has to hold itself"
        message = f"{said(ref)} would grant rights that {account} {lack}: {_some(check.missing)}"
        yield _GRANTS.at(ref, message, evidence=_rules(check.missing), key=_rules(check.missing))


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
    ref, account = manifest.ref, who(found.facts.account)
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
        is_known = found.facts.roles is not None
        rule = _TOO_EARLY if is_known else _UNKNOWN
        words = "which does not exist when it is written" if is_known else "and nobody could say what that grants"
        found.lacks(ref.namespace, rule_of(bind), f"needed to write {said(ref)}, whose role is not there")
        yield rule.at(ref, f"{said(ref)} binds the {named}, {words}", path=("roleRef",), key=named)
        return
    if not check.missing:
        yield _UNKNOWN.at(ref, f"Whether {account} may write {said(ref)} cannot be told: {check.reason}")
        return
    found.lacks(ref.namespace, rule_of(bind), f"needed to write {said(ref)}; or to hold all that the {named} grants")
    message = f"{account} may not bind the {named} by {said(ref)}, nor does it hold what that grants"
    if found.facts.roles is None:
        message = f"{account} has to be allowed to bind the {named} by {said(ref)}, or to hold what that grants"
    evidence = {**_rules(check.missing), "reason": check.reason}
    yield _BINDS.at(ref, message, path=("roleRef",), evidence=evidence, key=named)


def _count_as_used(found: Walk, ref: ObjectRef, role: JsonObject, by_right: AccessRequest) -> None:
    """What lets the account write this: escalate or bind where it has that, else everything that the role grants."""
    if rbac.allows_in(found.held, by_right):
        found.used.append((ref.namespace, rule_of(by_right)))
        return
    try:
        found.used += [(ref.namespace, rule) for rule in rbac.role_rules(found.roles, role)]
    except InvalidManifest:
        return  # an aggregated role that collects a broken one: its own rules were what counted


def _of_place(
    facts: PreflightFacts, ref: ObjectRef, seen: Mapping[ObjectIdentity, Manifest], coming: set[ObjectIdentity]
) -> Iterator[Finding]:
    namespace = (_NAMESPACE.group, _NAMESPACE.kind, "", ref.namespace)
    if not ref.namespace or facts.namespaces is None or ref.namespace in facts.namespaces or namespace in seen:
        return
    if namespace in coming:
        yield _TOO_EARLY.at(ref, f"{said(ref)} comes before its namespace", path=("metadata", "namespace"))
    else:
        message = f"{said(ref)} needs the namespace {ref.namespace}, which neither exists nor comes with the bundle"
        yield _NO_NAMESPACE.at(ref, message, path=("metadata", "namespace"), key=ref.namespace)


def _of_no_kind(facts: PreflightFacts, ref: ObjectRef) -> Finding:
    if _definition(facts.manifests, ref) is not None:
        return _TOO_EARLY.at(ref, f"{said(ref)} comes before the CRD that defines its kind", path=("kind",))
    if facts.kinds is None:
        message = (
            f"Which rights {said(ref)} needs is not known: its kind is not Kubernetes' own, and no cluster was asked"
        )
        return _UNKNOWN.at(ref, message, path=("kind",))
    if ref.group in facts.unanswered:
        words = f"the server of {ref.group} does not answer"
        return _UNKNOWN.at(ref, f"Which rights {said(ref)} needs is not known: {words}", path=("kind",))
    message = f"Nobody serves {ref.kind} in {ref.api_version}, which {said(ref)} needs, nor does the bundle define it"
    return _NO_KIND.at(ref, message, path=("kind",), key=ref.api_version)


def _kind(facts: PreflightFacts, ref: ObjectRef, seen: Mapping[ObjectIdentity, Manifest]) -> ResourceWord | None:
    """What the cluster serves, or an earlier CRD defines; without a cluster what Kubernetes itself has."""
    served = (facts.kinds or {}).get((ref.group, ref.version, ref.kind))
    if served is not None:
        return served
    defined = _definition(seen.values(), ref)
    if defined is not None or facts.kinds is not None:
        return defined
    plural = plural_of(ref.kind)
    return ResourceWord(plural, bool(ref.namespace)) if plural in BUILT_IN_RESOURCES.get(ref.group, ()) else None


def _definition(manifests: Any, ref: ObjectRef) -> ResourceWord | None:
    for manifest in manifests:
        spec = mapping(manifest.body.get("spec"))
        names = mapping(spec.get("names"))
        if manifest.ref.group_kind != _CRD or (spec.get("group"), names.get("kind")) != (ref.group, ref.kind):
            continue
        if any(one.get("name") == ref.version and one.get("served") for one in maps(spec.get("versions"))):
            return ResourceWord(str(names.get("plural")), spec.get("scope") == "Namespaced")
    return None


def _of_gap(gap: Gap) -> Finding:
    return _UNKNOWN.at(None, f"Could not find out {gap.what}: {gap.why}", key=gap.what)


def _answer(facts: PreflightFacts, request: AccessRequest) -> str:
    answer = facts.answers.get(request)
    if answer is None:
        return f"{request}: by the roles and bindings; the API server was not asked"
    return f"{request}: the API server says no{f' ({answer.reason})' if answer.reason else ''}"


def _listed(words: list[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _some(rules: tuple[PolicyRule, ...]) -> str:
    shown = [f"{'/'.join(rule.verbs)} {'/'.join(rule.resources or rule.non_resource_urls)}" for rule in rules[:3]]
    return some(shown, total=len(rules))


def _rules(rules: tuple[PolicyRule, ...]) -> dict[str, Any]:
    return {"missing": [rule.to_object() for rule in rbac.minimal(rules)]}
