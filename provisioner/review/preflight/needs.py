"""Whether the installing ServiceAccount may do all that a bundle needs, before anything is touched. Pure.

The objects are gone through in the order of apply. What earlier ones grant counts for later ones, and so does what was
found missing before: the missing rules are those with which everything would pass. Writing is server-side apply, which
asks for `patch`, and for `create` with the object's name where the object is new (seen on 1.36.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import AlreadyExists, InvalidObject
from provisioner.json_values import mapping, maps
from provisioner.missing_kinds import Absence, Lack, absence_of
from provisioner.rbac import BUILT_IN_RESOURCES, CLUSTER, EffectiveRules, RbacObjects, RbacSubject, RoleKey, plural_of
from provisioner.retention import may_be_remade
from provisioner.review.base.facts import ReviewRule
from provisioner.review.preflight.account_rights import (
    NAMESPACE,
    TOO_EARLY,
    UNKNOWN,
    PreflightFacts,
    ResourceWord,
    Walk,
    of_grants,
    rule_of,
)
from provisioner.review.rules import Phrase
from provisioner.values import (
    AccessRequest,
    Action,
    Finding,
    GroupKind,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    PlannedAction,
    Section,
    Severity,
)

_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_NO_NAMESPACE = ReviewRule("PRE-05", Section.PREFLIGHT, Severity.BREAKING)
_NO_KIND = ReviewRule("PRE-07", Section.PREFLIGHT, Severity.BREAKING)
_VARIANTS = {Lack.REMOVED: "PRE-07a", Lack.NOT_IN_RELEASE: "PRE-07b", Lack.OTHER_VERSION: "PRE-07c"}


def of_place(
    facts: PreflightFacts, ref: ObjectRef, seen: Mapping[ObjectIdentity, Manifest], coming: set[ObjectIdentity]
) -> Iterator[Finding]:
    namespace = (NAMESPACE.group, NAMESPACE.kind, "", ref.namespace)
    if not ref.namespace or facts.namespaces is None or ref.namespace in facts.namespaces or namespace in seen:
        return
    where = ("metadata", "namespace")
    if namespace in coming:
        yield TOO_EARLY.finding("before-namespace", ref, where=where)
    else:
        yield _NO_NAMESPACE.finding("not-there", ref, where=where, key=ref.namespace, namespace=ref.namespace)


def of_no_kind(facts: PreflightFacts, ref: ObjectRef) -> Finding:
    if _definition(facts.manifests, ref) is not None:
        return TOO_EARLY.finding("before-definition", ref, where=("kind",))
    if facts.kinds is None:
        return UNKNOWN.finding("kind-unknown", ref, where=("kind",))
    if ref.group in facts.unanswered:
        return UNKNOWN.finding("server-silent", ref, where=("kind",), group=ref.group)
    absence = absence_of(ref.group, ref.version, ref.kind, facts.kinds, release=facts.release)
    found = _NO_KIND.finding(
        str(absence.lack),
        ref,
        where=("kind",),
        key=ref.api_version,
        kind=ref.kind,
        api=ref.api_version,
        removedIn=absence.removed_in or None,
        servedIn=list(absence.served) or None,
        instead=absence.instead or None,
    )
    return replace(found, evidence={**found.evidence, **evidence_of(absence)})


def evidence_of(absence: Absence) -> dict[str, Any]:
    """Why nothing serves a kind, as a finding of PRE-07 has it: with the variant that says what to do about that."""
    told = {"variant": _VARIANTS.get(absence.lack), "removedIn": absence.removed_in, "servedIn": list(absence.served)}
    return {name: value for name, value in told.items() if value}


def kind_of(facts: PreflightFacts, ref: ObjectRef, seen: Mapping[ObjectIdentity, Manifest]) -> ResourceWord | None:
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
        if any(version.get("name") == ref.version and version.get("served") for version in maps(spec.get("versions"))):
            return ResourceWord(str(names.get("plural")), spec.get("scope") == "Namespaced")
    return None


_NO_VERB = ReviewRule("PRE-01", Section.PREFLIGHT, Severity.BREAKING)
_NO_OWNER = ReviewRule("PRE-06", Section.PREFLIGHT, Severity.DANGEROUS)
_REFUSED = ReviewRule("PRE-09", Section.PREFLIGHT, Severity.BREAKING)
_NOT_OURS = AlreadyExists.code
_INVALID = InvalidObject.code


def walk(facts: PreflightFacts) -> Walk:
    """Go through everything that apply will do, in its order."""
    made = frozenset(manifest.ref.name for manifest in facts.manifests if manifest.ref.group_kind == NAMESPACE)
    found = Walk(facts, facts.known.copy(), made)
    seen: dict[ObjectIdentity, Manifest] = {}
    coming = {manifest.ref.identity for manifest in facts.manifests}
    for manifest in facts.manifests:
        found.findings += _of_object(found, manifest, seen, coming)
        seen[manifest.ref.identity] = manifest
        if manifest.ref.group == RBAC_GROUP:
            found.now_holds(manifest.body)
    for planned in facts.actions.values():
        if planned.action is Action.DELETE:
            kind = kind_of(facts, planned.ref, {})
            if kind is not None:
                found.findings += _of_verbs(found, planned.ref, kind, ("get", "delete"))
    found.findings += [UNKNOWN.finding("gap", None, key=gap.what, what=gap.what, why=gap.why) for gap in facts.gaps]
    return found


def _of_object(
    found: Walk, manifest: Manifest, seen: Mapping[ObjectIdentity, Manifest], coming: set[ObjectIdentity]
) -> Iterator[Finding]:
    ref, facts = manifest.ref, found.facts
    kind = kind_of(facts, ref, seen)
    if kind is None:
        yield of_no_kind(facts, ref)
        return
    planned = facts.actions.get(ref.identity)
    action = Action.CREATE if planned is None else Action.REPLACE if may_be_remade(planned) else planned.action
    is_written_anew = action in (Action.CREATE, Action.REPLACE, Action.RERUN)
    is_cleared = manifest.hook is not None and manifest.hook.is_cleared
    verbs = ("get", "create", "patch") if is_written_anew else ("get", "patch")
    if facts.with_deletion or (is_written_anew and (action is not Action.CREATE or is_cleared)):
        verbs = (*verbs, "delete")
    findings = [*of_place(facts, ref, seen, coming), *_of_verbs(found, ref, kind, verbs)]
    findings += _of_owners(found, manifest)
    if ref.group == RBAC_GROUP and (planned is None or planned.action is not Action.NONE):
        findings += of_grants(found, manifest, planned.before if planned else None)
    yield from findings
    if planned is not None and not findings and _is_refused(planned):
        code, problem = planned.problem_code, planned.problem
        found_by = _REFUSED.finding("refused", ref, key=code, code=code, problem=problem)
        yield replace(found_by, server_words=planned.server_words)


def _is_refused(planned: PlannedAction) -> bool:
    """Whether the dry-run was refused for something else than rights, on which what comes before it may decide."""
    if not planned.problem or planned.problem_code == _NOT_OURS:
        return False
    is_unbound = planned.ref.group == RBAC_GROUP and planned.problem_code != _INVALID
    return not is_unbound and not ('User "' in planned.problem and " cannot " in planned.problem)


def _of_verbs(found: Walk, ref: ObjectRef, kind: ResourceWord, verbs: tuple[str, ...]) -> Iterator[Finding]:
    requests = [AccessRequest(verb, ref.group, kind.plural, "", ref.namespace, ref.name) for verb in verbs]
    denied = [request for request in requests if not found.may(request, ref)]
    if not denied:
        return
    purpose = next((verb for verb in ("create", "delete") if verb in verbs), "update")
    answers: list[Phrase] = []
    for request in denied:
        found.lacks(ref.namespace, rule_of(request), purpose, ref)
        answer = found.facts.answers.get(request)
        variant, params = ("said.no", {"reason": answer.reason}) if answer else ("said.not-asked", {})
        answers.append(Phrase.of(_NO_VERB.id, variant, request=request, **params))
    lacking = [request.verb for request in denied]
    is_known = found.facts.roles is not None or any(request in found.facts.answers for request in denied)
    rule = _NO_VERB if is_known else replace(_NO_VERB, severity=Severity.UNKNOWN)
    variant, account = "may-not" if is_known else "has-to-be-allowed", found.facts.account
    yield rule.finding(variant, ref, key=lacking, account=account, verbs=lacking, said=answers)


def _of_owners(found: Walk, manifest: Manifest) -> Iterator[Finding]:
    """To block an owner's deletion is a right, where the admission plug-in for it is on."""
    ref = manifest.ref
    for owner in maps(mapping(manifest.body.get("metadata")).get("ownerReferences")):
        if owner.get("blockOwnerDeletion") is not True:
            continue
        group, _, version = str(owner.get("apiVersion") or "").rpartition("/")
        kind = kind_of(found.facts, ObjectRef(group, version, str(owner.get("kind")), ref.namespace, ""), {})
        if kind is None:
            continue
        place = ref.namespace if kind.is_namespaced else ""
        request = AccessRequest("update", group, kind.plural, "finalizers", place, str(owner.get("name")))
        if not found.may(request, ref):
            found.lacks(place, rule_of(request), "block-owner", ref)
            where, account = ("metadata", "ownerReferences"), found.facts.account
            yield _NO_OWNER.finding("blocks", ref, where=where, key=str(request), account=account, request=str(request))


EVERYBODY = ("system:authenticated", "system:unauthenticated", "system:serviceaccounts")
MAX_NAMED = 3
MAX_LISTED = 20
_USABLE = ReviewRule("PRE-11", Section.PREFLIGHT, Severity.DANGEROUS)
_MAKES_PODS = (
    ("", "pods"),
    ("", "replicationcontrollers"),
    ("apps", "deployments"),
    ("apps", "daemonsets"),
    ("apps", "statefulsets"),
    ("apps", "replicasets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
)


def of_users(account: RbacSubject, roles: RbacObjects) -> Iterator[Finding]:
    """Who can act as the account without holding what it holds: how many, and the first of them.

    Whoever joins them does not make it another finding: what others may do is no part of a bundle. Who can do so as a
    member of a wide group is counted with the group. Raises TooManyRights.
    """
    ref = ObjectRef.of_service_account(account.namespace, account.name)
    users = _users(account, roles)
    if not users:
        return
    listed = {}
    for name, way in list(users.items())[:MAX_LISTED]:
        if way.subresource == "token":
            listed[name] = Phrase.of(_USABLE.id, "users.token")
        else:
            listed[name] = Phrase.of(_USABLE.id, "users.pods", resource=way.resource, namespace=way.namespace)
    wide = [name for name in users if name.removeprefix("Group ").startswith(EVERYBODY)]
    yield _USABLE.finding(
        "usable",
        ref,
        key=[sorted(set(map(str, users.values()))), wide],
        users=listed,
        count=len(users),
        left_out=len(users) - len(listed),
        first=list(listed)[:MAX_NAMED],
        more=max(0, len(users) - MAX_NAMED) or None,
    )


def by_name(held: EffectiveRules, account: RbacSubject) -> EffectiveRules:
    """The grants to this account, and to those of its namespace; what everybody has is nobody's in particular."""
    groups = {name for name in account.identity.groups if name not in EVERYBODY}
    own = tuple(grant for grant in held.grants if grant.subject.kind != "Group" or grant.subject.name in groups)
    return replace(held, grants=own)


def _users(account: RbacSubject, roles: RbacObjects) -> dict[str, AccessRequest]:
    """The way of each, by name."""
    held = by_name(rbac.effective_rules(account.identity, roles), account)
    if not held.scopes:  # everybody holds that
        return {}
    places = {CLUSTER, *held.scopes}
    # Whether who has the same roles holds as much as the account: of hundreds of teams few differ.
    known: dict[frozenset[tuple[str, RoleKey]], bool] = {}
    found: dict[str, AccessRequest] = {}
    for subject, way in _makers(account, roles).items():
        if subject == account or not _is_somebody(subject):
            continue
        same = roles.roles_held(subject.identity, places)
        if same not in known:
            other = rbac.effective_rules(subject.identity, roles)
            known[same] = all(rbac.holds(other.rules_in(scope), held.at(scope)) for scope in held.scopes)
        if not known[same]:
            found[str(subject)] = way
    return dict(sorted(found.items()))


def _makers(account: RbacSubject, roles: RbacObjects) -> Mapping[RbacSubject, AccessRequest]:
    """Everybody whom a binding lets act as the account, each with the first way that there is."""
    place = account.namespace
    token = AccessRequest("create", "", "serviceaccounts", "token", place, account.name)
    ways = [token, *(AccessRequest("create", group, resource, "", place) for group, resource in _MAKES_PODS)]
    places = (CLUSTER, account.namespace)
    found: dict[RbacSubject, int] = {}
    for key, bindings in roles.bound().items():
        role = roles.roles.get(key)
        counting = [binding for binding in bindings if binding[1] in places]
        if role is None or not counting:
            continue
        held = [granted.rule for granted in roles.rules_of(role)[0]]
        way = next((number for number, request in enumerate(ways) if rbac.allows(held, request)), None)
        for subject in (it for one in counting if way is not None for it in rbac.binding_subjects(roles.bindings[one])):
            found[subject] = min(way or 0, found.get(subject, len(ways)))
    return {subject: ways[way] for subject, way in found.items()}


def _is_somebody(subject: RbacSubject) -> bool:
    """Not a part of Kubernetes itself."""
    if subject.kind == "ServiceAccount":
        return subject.namespace != "kube-system"
    if not subject.name.startswith("system:"):
        return True
    return subject.kind == "Group" and subject.name.startswith(EVERYBODY)
