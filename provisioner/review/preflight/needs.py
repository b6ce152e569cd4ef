"""Whether the installing ServiceAccount may do all that a bundle needs, before anything is touched. Pure.

The objects are gone through in the order of apply. What earlier ones grant counts for later ones, and so does what was
found missing before: the missing rules are those with which everything would pass. Writing is server-side apply, which
asks for `patch`, and for `create` with the object's name where the object is new (seen on 1.36.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import AlreadyExists, InvalidObject
from provisioner.retention import may_be_remade
from provisioner.review.base.facts import ReviewRule, mapping, maps
from provisioner.review.preflight.facts import UNKNOWN, PreflightFacts, ResourceWord
from provisioner.review.preflight.grants import of_grants
from provisioner.review.preflight.held import Walk, rule_of
from provisioner.review.preflight.places import kind_of, of_no_kind, of_place
from provisioner.review.rules import Phrase
from provisioner.values import (
    AccessRequest,
    Action,
    Finding,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    PlannedAction,
    Section,
    Severity,
)

_NO_VERB = ReviewRule("PRE-01", Section.PREFLIGHT, Severity.BREAKING)
_NO_OWNER = ReviewRule("PRE-06", Section.PREFLIGHT, Severity.DANGEROUS)
_REFUSED = ReviewRule("PRE-09", Section.PREFLIGHT, Severity.BREAKING)
_NOT_OURS = AlreadyExists.code
_INVALID = InvalidObject.code


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
    verbs = _verbs(manifest, planned)
    verbs = tuple(dict.fromkeys((*verbs, "delete"))) if facts.with_deletion else verbs
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


def _verbs(manifest: Manifest, planned: PlannedAction | None) -> tuple[str, ...]:
    action = planned.action if planned else Action.CREATE
    action = Action.REPLACE if planned and may_be_remade(planned) else action
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
        found.lacks(ref.namespace, rule_of(request), purpose, ref)
    lacking = [request.verb for request in denied]
    is_known = found.facts.roles is not None or any(request in found.facts.answers for request in denied)
    rule = _NO_VERB if is_known else replace(_NO_VERB, severity=Severity.UNKNOWN)
    answers = [_answer(found.facts, request) for request in denied]
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


def _answer(facts: PreflightFacts, request: AccessRequest) -> Phrase:
    answer = facts.answers.get(request)
    if answer is None:
        return Phrase.of(_NO_VERB.id, "said.not-asked", request=request)
    return Phrase.of(_NO_VERB.id, "said.no", request=request, reason=answer.reason)
