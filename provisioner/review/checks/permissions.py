"""Who may do what afterwards that they could not do before, whatever roles are called and however they are cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from provisioner import rbac
from provisioner.errors import InvalidManifest
from provisioner.rbac import EffectiveRules, Grant, PermissionDiff, PolicyRule, RbacObjects, ScopedRule, Subject
from provisioner.review.accounts import account_ref, bound_accounts, exposed_accounts, moved_bindings, of_accounts
from provisioner.review.facts import Check, Facts, Rule, mapping, said
from provisioner.review.pods_of import runs_pods
from provisioner.review.sides import GROUP, Sides, sides_of
from provisioner.values import Action, Content, Finding, ObjectRef, Plan, PlannedAction, Section, Severity

_GAINED = Rule("RB-DIFF", Section.PERMISSIONS, Severity.NOTABLE)
_LOST = Rule("RB-LESS", Section.PERMISSIONS, Severity.SAFE)
_SAME = Rule("RB-SAME", Section.PERMISSIONS, Severity.SAFE)
_WIDENS = Rule("RB-09", Section.PERMISSIONS, Severity.DANGEROUS)
_NO_ROLE = Rule("RB-45", Section.PERMISSIONS, Severity.NOTABLE)
_ROLE_UNKNOWN = Rule("RB-45", Section.PERMISSIONS, Severity.UNKNOWN)
_UNREADABLE = Rule("RB-00", Section.PERMISSIONS, Severity.UNKNOWN)

_AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"
_BUILT_IN = ("admin", "edit", "view")
_READ, _WRITE, _DELETE = {"get", "list", "watch"}, {"create", "update", "patch"}, {"delete", "deletecollection"}
MAX_RULES = 60


def _changes(facts: Facts) -> Iterator[Finding]:
    yield from moved_bindings(facts)
    yield from _of_exposed_accounts(facts)
    if not _is_concerned(facts):
        return
    sides = sides_of(facts)
    missing = list(_of_missing_roles(facts, sides))
    yield from missing
    widened = list(_of_aggregation(sides))
    yield from widened
    differs = bool(widened or missing)
    for subject in sides.affected():
        old, new = (rbac.effective_rules(subject.identity, side) for side in (sides.before, sides.after))
        delta = rbac.diff(old, new)
        differs = differs or not delta.is_empty or bool(new.problems)
        yield from _of_risks(subject, old, new, facts.content.install_namespace)
        yield from _of_difference(subject, delta, new)
        yield from _of_problems(subject, new)
    if not differs and _touches_roles(facts):
        yield _SAME.at(None, "Roles or bindings are written anew, and nobody may do anything else than before")


def _of_exposed_accounts(facts: Facts) -> Iterator[Finding]:
    if not any(runs_pods(one.ref.group_kind) for one in facts.plan.actions):
        return
    sides = sides_of(facts)
    known = {one.fingerprint for one in exposed_accounts(facts.previous_state(), sides.before)}
    for one in exposed_accounts(facts.state(), sides.after):
        yield replace(one, is_new=one.fingerprint not in known)


def _wants(content: Content, _: Plan) -> Iterator[ObjectRef]:
    bodies = tuple(one.body for one in content.manifests)
    own = {ObjectRef.of(body) for body in bodies}
    yield from sorted({account_ref(subject) for _, subject in bound_accounts(bodies)} - own)


def _is_concerned(facts: Facts) -> bool:
    refs = [one.ref for one in facts.plan.actions]
    return any(ref.group == GROUP for ref in refs)


def _touches_roles(facts: Facts) -> bool:
    return any(one.ref.group == GROUP and one.action is not Action.NONE for one in facts.plan.actions)


def _of_difference(subject: Subject, delta: PermissionDiff, new: EffectiveRules) -> Iterator[Finding]:
    """All rights gained and lost, in minimal rules; the risky ones among them have findings of their own."""
    evidence = {"subject": str(subject), "table": _table(delta)}
    if delta.added:
        message = f"{_who(subject)} gains {_count(delta.added)}: {_words(delta.added)}"
        rules = _rules(delta.added)
        found = evidence | {"added": rules, "by": _ways(new, delta.added)}
        yield _GAINED.at(_ref_of(subject), message, evidence=found, key=rules)
    if delta.removed:
        message = f"{_who(subject)} loses {_count(delta.removed)}: {_words(delta.removed)}"
        rules = _rules(delta.removed)
        yield _LOST.at(_ref_of(subject), message, evidence=evidence | {"removed": rules}, key=rules)


def _of_problems(subject: Subject, new: EffectiveRules) -> Iterator[Finding]:
    for problem in new.problems:
        if not problem.endswith("which does not exist"):
            message = f"What {subject} may do is not wholly known: {problem}"
            yield _UNREADABLE.at(_ref_of(subject), message, key=problem)


def _of_missing_roles(facts: Facts, sides: Sides) -> Iterator[Finding]:
    """Bindings of the bundle to roles that nobody has, or that nobody could look up."""
    for binding in sides.after.bindings.values():
        ref = ObjectRef.of(binding)
        if ref.identity not in sides.own or sides.after.role_of(binding) is not None:
            continue
        wanted = mapping(binding.get("roleRef"))
        role = f"{wanted.get('kind')} {wanted.get('name')}"
        is_new = not any(ref.identity == ObjectRef.of(obj).identity for obj in facts.previous_state().objects)
        if sides.is_whole:
            message = f"{said(ref)} binds the {role}, which does not exist: whoever creates it decides what it grants"
            found = _NO_ROLE.at(ref, message, path=("roleRef",), key=role)
        else:
            message = f"{said(ref)} binds the {role}, which is not in the bundle: only the cluster knows what it grants"
            found = _ROLE_UNKNOWN.at(ref, message, path=("roleRef",), key=role)
        yield replace(found, is_new=is_new)


def _of_aggregation(sides: Sides) -> Iterator[Finding]:
    """Roles of the bundle that widen what everybody with admin, edit or view may do."""
    for name in _BUILT_IN:
        old, new = (_rules_for_all(side, name) for side in (sides.before, sides.after))
        gained = [ScopedRule("", rule) for rule in rbac.compact(rbac.covers(old, new).missing)]
        if not gained:
            continue
        power = f"{_words(gained)} in every namespace where they have it"
        message = f"Everybody with the role {name} will newly be able to {power}"
        evidence = {"subject": f"everybody with {name}", "power": power, "added": _rules(gained)}
        role = ObjectRef(GROUP, "v1", "ClusterRole", "", name)
        yield _WIDENS.at(role, message, evidence=evidence, key=_rules(gained))


def _rules_for_all(side: RbacObjects, name: str) -> list[PolicyRule]:
    """What ClusterRoles labelled for a built-in role give to it; the rest of the built-in role does not change."""
    found: list[PolicyRule] = []
    for role in side.roles.values():
        labels = mapping(mapping(role.get("metadata")).get("labels"))
        targets = {"view": ("view", "edit", "admin"), "edit": ("edit", "admin"), "admin": ("admin",)}
        if any(labels.get(_AGGREGATE_TO + word) == "true" and name in targets[word] for word in _BUILT_IN):
            try:
                found += rbac.role_rules(side, role)
            except InvalidManifest:
                continue  # the server refuses such a role
    return found


def _of_risks(subject: Subject, old: EffectiveRules, new: EffectiveRules, sensitive: str) -> Iterator[Finding]:
    """A sentence for each risky power; what everything implies stands under the power over everything."""
    known = {(risk.id, risk.scope, risk.sentence) for risk in rbac.risks(old, sensitive=[sensitive])}
    found = rbac.risks(new, sensitive=[sensitive])
    for risk in found:
        if risk.implied_by:
            continue
        is_known = any((risk.id, scope, risk.sentence) in known for scope in (risk.scope, ""))
        implied = sorted({f"{one.id} {one.sentence}" for one in found if one.implied_by == risk.id})
        evidence = {"subject": str(subject), "scope": risk.scope, "by": _ways_of(risk.evidence), "implies": implied}
        power = risk.sentence.removeprefix("can ")
        if power != risk.sentence:
            evidence["power"] = power
            message = f"{_who(subject)} {'can' if is_known else 'will newly be able to'} {power}"
        else:
            message = f"{_who(subject)} {'' if is_known else 'newly '}{risk.sentence}"
        rule = Rule(risk.id, Section.PERMISSIONS, risk.severity)
        key = [risk.scope, risk.sentence]
        yield replace(rule.at(_ref_of(subject), message, evidence=evidence, key=key), is_new=not is_known)


def _who(subject: Subject) -> str:
    return (
        f"`{subject.namespace}/{subject.name}`"
        if subject.kind == "ServiceAccount"
        else f"{subject.kind} `{subject.name}`"
    )


def _ref_of(subject: Subject) -> ObjectRef:
    group = "" if subject.kind == "ServiceAccount" else GROUP
    return ObjectRef(group, "v1", subject.kind, subject.namespace, subject.name)


def _count(rules: tuple[ScopedRule, ...]) -> str:
    count = sum(len(one.rule.verbs) for one in rules)
    return f"{count} right{'' if count == 1 else 's'}"


def _words(rules: tuple[ScopedRule, ...] | list[ScopedRule]) -> str:
    """The first rules in words: get, list pods in the namespace a."""
    shown = [_rule_words(one) for one in rules[:3]]
    return "; ".join(shown) + (f"; and {len(rules) - 3} more" if len(rules) > 3 else "")


def _rule_words(one: ScopedRule) -> str:
    rule = one.rule
    verbs = "do anything with" if "*" in rule.verbs else ", ".join(rule.verbs)
    if rule.non_resource_urls:
        return f"{verbs} {', '.join('every URL' if url == '*' else url for url in rule.non_resource_urls)}"
    what = ", ".join(_resource_words(rule))
    named = f" named {', '.join(rule.resource_names)}" if rule.resource_names else ""
    return f"{verbs} {what}{named}{f' in {one.scope}' if one.scope else ''}"


def _resource_words(rule: PolicyRule) -> list[str]:
    words = []
    for group in rule.api_groups:
        for resource in rule.resources:
            name = "everything" if resource == "*" else resource
            words.append(f"{name} of all groups" if group == "*" else f"{name}.{group}" if group else name)
    return words


def _rules(rules: tuple[ScopedRule, ...] | list[ScopedRule]) -> list[dict[str, Any]]:
    return [{"scope": one.scope, **one.rule.to_object()} for one in rules[:MAX_RULES]]


def _ways(new: EffectiveRules, added: tuple[ScopedRule, ...]) -> list[dict[str, Any]]:
    return _ways_of(grant for grant in new.grants if any(_gives(grant, one) for one in added))


def _ways_of(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """By which binding, role and rule rights come, each once."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for grant in grants:
        key = (str(grant.binding), str(grant.origin), grant.rule_index)
        found[key] = {"binding": key[0], "role": str(grant.role), "origin": key[1], "rule": key[2]}
    return [found[key] for key in sorted(found)][:MAX_RULES]


def _gives(grant: Grant, one: ScopedRule) -> bool:
    return grant.scope == one.scope and any(
        rbac.covers([grant.rule], [atom]).covered for atom in rbac.breakdown(one.rule)
    )


def _table(delta: PermissionDiff) -> dict[str, dict[str, dict[str, int]]]:
    """Capability by reach: how many rights come and go at each place, verbs folded as people think of them."""
    table: dict[str, dict[str, dict[str, int]]] = {}
    for sign, rules in (("added", delta.added), ("removed", delta.removed)):
        for one in rules:
            for verb in one.rule.verbs:
                row = table.setdefault(_capability(verb), {})
                cell = row.setdefault(one.scope or "whole cluster", {"added": 0, "removed": 0})
                cell[sign] += 1
    return table


def _capability(verb: str) -> str:
    named = (("Read", _READ), ("Write", _WRITE), ("Delete", _DELETE))
    return next((word for word, verbs in named if verb in verbs), "Everything" if verb == "*" else "Special")


def _claims(planned: PlannedAction) -> bool:
    return planned.ref.group == GROUP or planned.ref.kind == "ServiceAccount"


CHECK = Check("permissions", changes=_changes, standing=of_accounts, claims=_claims, wants=_wants)
