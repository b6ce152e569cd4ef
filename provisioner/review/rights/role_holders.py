"""What everybody with a role gains and loses who has it by bindings that are not the bundle's: said once for all.

What an account gets only together with what it holds beside the role is not seen in the role: those are named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import TooManyRights
from provisioner.json_values import items, mapping, maps
from provisioner.rbac import (
    CLUSTER,
    HELD,
    BindingKey,
    Comparisons,
    EffectiveRules,
    Grant,
    PermissionDiff,
    RbacObjects,
    RbacSubject,
    Risk,
    RoleKey,
    RoleProblem,
    RoleRule,
)
from provisioner.review.base.facts import Facts, ReviewRule
from provisioner.review.rights.accounts import pods_by_account
from provisioner.review.rights.permission_words import about, ref_of, rights_in, rules_record, ways_of, words_of
from provisioner.review.rights.renamed_roles import RbacBeforeAfter, rbac_before_after_of
from provisioner.review.rules import Phrase
from provisioner.review.rules.files import power_of
from provisioner.review.workloads.pod_specs import PodSpec
from provisioner.values import (
    AccessRequest,
    Finding,
    GroupKind,
    Identity,
    JsonObject,
    ObjectIdentity,
    ObjectRef,
    Section,
    Severity,
)

_READS, _WRITES = ("get", "list", "watch"), ("update", "patch")
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_LEASES = ("coordination.k8s.io", "leases")


def pods_of(facts: Facts, subject: RbacSubject) -> list[PodSpec]:
    """The pods of the bundle that run as an account, as it will be."""
    return pods_by_account(facts).get(subject, [])


def lost_though_used(facts: Facts, subject: RbacSubject, old: EffectiveRules, new: EffectiveRules) -> list[str]:
    """What an account can no longer do, although its pods have to: read or write kinds that the bundle defines, and
    Leases where a container elects a leader. Only what a rule named: of `*` nobody knows what was used."""
    used = []
    for manifest in facts.content.manifests:
        if manifest.ref.group_kind == _CRD:
            spec = mapping(manifest.body.get("spec"))
            used.append((str(spec.get("group")), str(mapping(spec.get("names")).get("plural"))))
    # A container is told to elect a leader as controllers of the usual frameworks are.
    words: list[str] = []
    for container in (container for pod in pods_of(facts, subject) for container in pod.containers()):
        words += [str(word) for key in ("command", "args") for word in items(container.body.get(key))]
        words += [f"{variable.get('name')}={variable.get('value')}" for variable in maps(container.body.get("env"))]
    told = [word.lower().replace("_", "-") for word in words]
    if any("leader-elect" in word and "=false" not in word for word in told):
        used.append(_LEASES)
    found = []
    for group, resource in used:
        asked = [AccessRequest(verb, group, resource, namespace=subject.namespace) for verb in (*_READS, *_WRITES)]
        had = [any(group in grant.rule.api_groups for grant in rbac.grants(old, request)) for request in asked]
        has = [rbac.allows_in(new, request) for request in asked]
        reads = any(before and not after for before, after in zip(had[:3], has[:3], strict=True))
        how = [*(["read"] if reads else []), *(["write"] if any(had[3:]) and not any(has[3:]) else [])]
        if how:
            found.append(f"{' and '.join(how)} {resource}.{group}")
    return found


# So many who hold a role that changes are told by name.
FEW = 5
BUILT_IN = {"admin": ("admin", "edit", "view"), "edit": ("edit", "view"), "view": ("view",)}
_AGGREGATE_TO = f"{RBAC_GROUP}/aggregate-to-"
_NOBODY = RbacSubject("", "")
_Roles = set[RoleKey]


@dataclass(frozen=True, slots=True)
class RoleChange:
    """A role that grants something else than before to `holders`, who have it at `scopes` by bindings of others.

    The roles of Kubernetes that collect others (`is_built_in`) are looked at as if somebody had them everywhere.
    """

    ref: ObjectRef
    before: tuple[RoleRule, ...]
    after: tuple[RoleRule, ...]
    scopes: tuple[str, ...]
    holders: tuple[RbacSubject, ...] = ()
    is_built_in: bool = False

    @property
    def home(self) -> str:
        """Where the role can be held at most: "" for the whole cluster."""
        return CLUSTER if self.ref.kind == "ClusterRole" else self.ref.namespace

    def held(self, scope: str) -> tuple[EffectiveRules, EffectiveRules]:
        """What somebody has who holds this role at `scope` and nothing else, before and after."""
        old, new = (
            EffectiveRules(
                Identity(""),
                tuple(Grant(rule.rule, scope, _NOBODY, self.ref, self.ref, rule.origin, rule.index) for rule in rules),
            )
            for rules in (self.before, self.after)
        )
        return old, new


@dataclass(frozen=True, slots=True)
class AlteredRights:
    """`accounts` are told one by one, sorted; `roles` tell of all who hold them by bindings of others."""

    accounts: tuple[RbacSubject, ...]
    roles: tuple[RoleChange, ...]


def altered_by(facts: Facts) -> AlteredRights:
    """Whose rights may differ between the two states, and everybody whom the bundle binds."""
    return facts.once("altered", lambda given: _altered(rbac_before_after_of(given)))


def _altered(states: RbacBeforeAfter) -> AlteredRights:
    touched = states.touched_bindings
    bound = {
        subject
        for side in (states.before, states.after)
        for key in touched & side.bindings.keys()
        for subject in rbac.binding_subjects(side.bindings[key])
    }
    candidates = _candidates(states)
    changed = sorted(key for key in candidates if _rules(states.before, key) != _rules(states.after, key))
    others = {key: [binding for binding in states.after.bindings_to(key) if binding not in touched] for key in changed}
    named = {subject for bindings in others.values() for subject in _subjects(states.after, bindings)}
    accounts = bound | (named & states.accounts)
    built_in = list(_built_in(states, candidates, others, accounts))
    known = {rbac.role_key_of(change.ref) for change in built_in}
    rest = {key: bindings for key, bindings in others.items() if key not in known}
    few = (_holders(states.after, bindings, accounts) for bindings in rest.values())
    accounts = accounts.union(*(holders for holders in few if len(holders) <= FEW))
    roles = built_in
    for key, bindings in rest.items():
        holders = _holders(states.after, bindings, accounts)
        role = states.after.roles.get(key) or states.before.roles.get(key)
        if holders and role is not None:
            old, new = (_told(side, key) for side in (states.before, states.after))
            scopes = tuple(sorted({binding[1] for binding in bindings}))
            roles.append(RoleChange(ObjectRef.of(role), old, new, scopes, holders))
    return AlteredRights(tuple(sorted(accounts, key=_by_name)), tuple(roles))


def is_given_by_bundle(grant: Grant, states: RbacBeforeAfter) -> bool:
    """Whether a binding or a role of the bundle has a part in a grant."""
    return any(ref.identity in states.own for ref in (grant.binding, grant.role, grant.origin))


def holders_alike(
    states: RbacBeforeAfter, subjects: Iterable[RbacSubject], apart: Collection[str]
) -> list[list[RbacSubject]]:
    """`subjects` in groups that hold the same roles in the same combinations, in whichever namespaces.

    Only namespaces in `apart` are told from others. So of hundreds of teams with one role each, one is looked at.
    """
    found: dict[object, list[RbacSubject]] = {}
    for subject in subjects:
        sides = []
        for known in (states.before, states.after):
            roles: dict[str, set[RoleKey]] = {}
            for place, role in known.roles_held(subject.identity):
                roles.setdefault(place, set()).add(role)
            sides.append(frozenset((place if place in apart else None, frozenset(roles[place])) for place in roles))
        # What the account itself is called weighs, too.
        kind = subject.name if subject.kind == "Group" and subject.name.startswith("system:") else subject.kind
        found.setdefault((kind, subject.name == "default", *sides), []).append(subject)
    return list(found.values())


def _by_name(subject: RbacSubject) -> tuple[str, str, str]:
    return (subject.kind, subject.namespace, subject.name)


def _candidates(states: RbacBeforeAfter) -> _Roles:
    """The roles that the bundle writes otherwise, and those that collect one of them, through others too."""
    found = {
        key
        for key in states.touched_roles
        if _rights(states.before.roles.get(key)) != _rights(states.after.roles.get(key))
    }
    if not found:
        return found
    collecting = {
        key
        for side in (states.before, states.after)
        for key, role in side.roles.items()
        if role.get("aggregationRule") is not None
    }
    more = found
    while more:
        changed = list(_versions(states, (key for key in found if key[0] == CLUSTER)))
        more = {
            key
            for key in collecting - found
            if any(rbac.collects(collector, role) for collector in _versions(states, [key]) for role in changed)
        }
        found |= more
    return found


def _versions(states: RbacBeforeAfter, keys: Iterable[RoleKey]) -> Iterator[JsonObject]:
    found = (side.roles.get(key) for key in keys for side in (states.before, states.after))
    return (role for role in found if role is not None)


def _rights(role: JsonObject | None) -> tuple[object, ...]:
    """What of a role says who may do what."""
    if role is None:
        return ()
    labels = dict(mapping(mapping(role.get("metadata")).get("labels")))
    return (role.get("rules"), role.get("aggregationRule"), labels)


def _rules(side: RbacObjects, key: RoleKey) -> tuple[frozenset[object], tuple[RoleProblem, ...]]:
    role = side.roles.get(key)
    rules, problems = side.rules_of(role) if role is not None else ([], [])
    return frozenset(rule.rule for rule in rules), tuple(problems)


def _subjects(known: RbacObjects, bindings: Iterable[BindingKey]) -> Iterator[RbacSubject]:
    for key in bindings:
        yield from rbac.binding_subjects(known.bindings[key])


def _holders(
    known: RbacObjects, bindings: Iterable[BindingKey], told: Collection[RbacSubject]
) -> tuple[RbacSubject, ...]:
    found = {subject for subject in _subjects(known, bindings) if subject not in told}
    return tuple(sorted(found, key=_by_name))


def _built_in(
    states: RbacBeforeAfter, candidates: _Roles, others: dict[RoleKey, list[BindingKey]], told: Collection[RbacSubject]
) -> Iterator[RoleChange]:
    """admin, edit and view, by the labels of what they collect: they are the same everywhere, known or not."""
    labels = (mapping(mapping(role.get("metadata")).get("labels")) for role in _versions(states, candidates))
    if not any(str(label).startswith(_AGGREGATE_TO) for found in labels for label in found):
        return
    for name, targets in BUILT_IN.items():
        old, new = (_collected(side, (CLUSTER, name), targets) for side in (states.before, states.after))
        if {rule.rule for rule in old} != {rule.rule for rule in new}:
            ref = ObjectRef(RBAC_GROUP, "v1", "ClusterRole", "", name)
            holders = _holders(states.after, others.get((CLUSTER, name), ()), told)
            yield RoleChange(ref, old, new, (CLUSTER,), holders, is_built_in=True)


def _collected(side: RbacObjects, key: RoleKey, targets: tuple[str, ...]) -> tuple[RoleRule, ...]:
    """What a built-in role grants where it is known, and what ClusterRoles that are labelled for it give to it."""
    found = list(_told(side, key))
    for (namespace, _), role in side.roles.items():
        labels = mapping(mapping(role.get("metadata")).get("labels"))
        if namespace == CLUSTER and any(labels.get(_AGGREGATE_TO + word) == "true" for word in targets):
            rules, problems = side.rules_of(role)
            found += [] if problems else rules  # the server refuses such a role
    return tuple(dict.fromkeys(found))


def _told(side: RbacObjects, key: RoleKey) -> tuple[RoleRule, ...]:
    role = side.roles.get(key)
    return tuple(side.rules_of(role)[0]) if role is not None else ()


_WIDENS = ReviewRule("RB-09", Section.PERMISSIONS, Severity.DANGEROUS)
_GAINED = ReviewRule("RB-DIFF", Section.PERMISSIONS, Severity.NOTABLE)
_LOST = ReviewRule("RB-LESS", Section.PERMISSIONS, Severity.SAFE)
_UNREADABLE = ReviewRule("RB-00", Section.PERMISSIONS, Severity.UNKNOWN)


@dataclass(frozen=True, slots=True)
class RoleEffect:
    """Roles that change alike: what all who have one of them gain and lose (None: too many rights), and newly risk."""

    roles: tuple[RoleChange, ...]
    delta: PermissionDiff | None
    risks: tuple[Risk, ...]
    problem: str = ""

    @property
    def holders(self) -> dict[str, Any]:
        """For messages: the built-in roles that change alike, or the one role."""
        if self.roles[0].is_built_in:
            return {"holders": "built-in", "roles": [role.ref.name for role in self.roles]}
        return {"holders": "bound", "role": self.roles[0].ref}

    @property
    def who(self) -> Phrase:
        return Phrase.of(_GAINED.id, "holders.subject", **self.holders)

    @property
    def is_empty(self) -> bool:
        return not self.problem and self.delta == PermissionDiff() and not self.risks


def effects(changes: Iterable[RoleChange], sensitive: Iterable[str]) -> list[RoleEffect]:
    """What each of these roles does to those who have it, built-in roles that change alike together."""
    comparisons, places = Comparisons(), tuple(sensitive)
    found: dict[object, RoleEffect] = {}
    for change in changes:
        risks = tuple(_new_risks(change, places))
        try:
            effect = RoleEffect((change,), comparisons.diff(*change.held(change.home)), risks)
        except TooManyRights as exc:
            effect = RoleEffect((change,), None, risks, str(exc))
        alike = (effect.delta, [(risk.id, risk.severity, risk.sense) for risk in risks], effect.problem)
        key = str(alike) if change.is_built_in else change.ref.identity
        known = found.get(key)
        found[key] = replace(known, roles=(*known.roles, change)) if known else effect
    return [effect for effect in found.values() if not effect.is_empty]


def _new_risks(change: RoleChange, sensitive: tuple[str, ...]) -> Iterator[Risk]:
    """The risks that are new where the role is held, each as bad as it is anywhere; one place stands for all alike."""
    worst: dict[tuple[object, ...], Risk] = {}
    special = {*rbac.SENSITIVE_NAMESPACES, *sensitive}
    plain = [scope for scope in change.scopes if scope not in special]
    scopes = (
        [CLUSTER] if CLUSTER in change.scopes else [*plain[:1], *(scope for scope in change.scopes if scope in special)]
    )
    for scope in scopes:
        old, new = (rbac.risks(side, sensitive=sensitive) for side in change.held(scope))
        known = {(risk.id, risk.sense) for risk in old}
        for risk in new:
            if risk.implied_by or risk.what == HELD or (risk.id, risk.sense) in known:
                continue
            anywhere = replace(risk, place=None)
            kept = worst.setdefault((anywhere.id, anywhere.sense), anywhere)
            if anywhere.severity.rank < kept.severity.rank:
                worst[anywhere.id, anywhere.sense] = anywhere
    yield from sorted(worst.values(), key=lambda risk: (risk.severity.rank, risk.id, risk.what, str(risk.details)))


def of_everybody(found: Iterable[RoleEffect], files: Mapping[ObjectIdentity, str]) -> Iterator[Finding]:
    """The findings on roles: what all who have one gain, lose and newly risk."""
    for effect in found:
        for risk in effect.risks:
            finding = ReviewRule(risk.id, Section.PERMISSIONS, risk.severity).finding(
                "everybody-can",
                effect.roles[-1].ref,
                key=[*risk.sense, *(str(role.ref) for role in effect.roles)],
                power=power_of(risk, "wherever"),
                by=[{name: way[name] for name in way if name != "binding"} for way in ways_of(risk.evidence, files)],
                **effect.holders,
            )
            yield about(finding, effect.who)
        yield from _of_difference(effect)


def _of_difference(effect: RoleEffect) -> Iterator[Finding]:
    change, problem = effect.roles[-1], effect.problem
    if effect.delta is None:
        found = _UNREADABLE.finding("everybody-undecided", change.ref, key=problem, problem=problem, **effect.holders)
        yield about(found, effect.who)
        return
    for name, rules in (("added", effect.delta.added), ("removed", effect.delta.removed)):
        if not rules:
            continue
        record, words = rules_record(rules), words_of(rules)
        rule = _LOST if name == "removed" else _GAINED
        shown: dict[str, Any] = {name: record, "rights": rights_in(rules), "rules": words}
        if name == "added" and change.is_built_in:
            rule = _WIDENS
            shown = {name: record, "power": Phrase.of(rule.id, "power.every-namespace", rules=words)}
        found = rule.finding("everybody", change.ref, key=record, **shown, **effect.holders)
        yield about(found, effect.who)


def of_combinations(
    states: RbacBeforeAfter, found: Iterable[RoleEffect], sensitive: Iterable[str]
) -> Iterator[Finding]:
    """What holders of a role newly can by it and by what they hold beside it, for which the role alone does not do.

    Those who can the same are named together, all of them, in whichever namespaces; the sensitive ones are told apart.
    """
    places, special = tuple(sensitive), {CLUSTER, *rbac.SENSITIVE_NAMESPACES, *sensitive}
    told: dict[RbacSubject, list[RoleEffect]] = {}
    for effect in found:
        for subject in (holder for change in effect.roles for holder in change.holders):
            told.setdefault(subject, []).append(effect)
    groups: dict[tuple[Risk, ObjectRef], dict[RbacSubject, Risk]] = {}
    for alike in holders_alike(states, told, special):
        if _untold(states, alike[0], told[alike[0]], places):
            for subject in alike:
                for risk in _untold(states, subject, told[subject], places):
                    ref = told[subject][0].roles[-1].ref
                    alone = replace(risk, scope="", evidence=())  # the same for all in whichever namespaces
                    common = alone if risk.scope in special else replace(alone, place=None)
                    groups.setdefault((common, ref), {})[subject] = alone
    for (common, ref), those in groups.items():
        subjects = [*those]
        only = subjects[0] if len(subjects) == 1 else None
        risk = those[only] if only else common
        finding = ReviewRule(risk.id, Section.PERMISSIONS, risk.severity).finding(
            "together-hold" if risk.what == HELD else "together-can",
            ref_of(only) if only else ref,
            key=[*risk.sense, *map(str, subjects)],
            accounts=subjects,
            gained=power_of(risk),
            role=ref,
        )
        yield about(finding, only) if only else finding


def _untold(
    states: RbacBeforeAfter, subject: RbacSubject, told: list[RoleEffect], sensitive: tuple[str, ...]
) -> list[Risk]:
    """The new risks of an account that no role with which it is told says as badly."""
    said = {(risk.id, risk.severity) for effect in told for risk in effect.risks}
    old, new = (
        rbac.risks(rbac.effective_rules(subject.identity, side), sensitive=sensitive)
        for side in (states.before, states.after)
    )
    known = {(risk.id, risk.scope, risk.sense) for risk in old}
    fresh = (risk for risk in new if not risk.is_among(known))
    return [
        risk
        for risk in fresh
        if not risk.implied_by
        and risk.severity is not Severity.SAFE
        and not any(rule == risk.id and severity.rank <= risk.severity.rank for rule, severity in said)
    ]
