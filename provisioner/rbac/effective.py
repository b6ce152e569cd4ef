"""What a subject may do after all bindings, roles, groups and aggregation are followed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest
from provisioner.rbac.policy import PolicyRule
from provisioner.rbac.rules import allows_by
from provisioner.selectors import selects
from provisioner.values import AccessRequest, Identity, JsonObject, ObjectRef, object_in

CLUSTER = ""
KINDS = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
# How the problem of a binding ends that names a role which is not there: it grants nothing.
NO_SUCH_ROLE = "which does not exist"


@dataclass(frozen=True, slots=True)
class RbacSubject:
    """Who a binding names. `namespace` is set for ServiceAccounts only, and already defaulted."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def identity(self) -> Identity:
        """The identity to ask for when this subject's own rights are wanted; a group is an unnamed member of itself."""
        if self.kind == "ServiceAccount":
            return Identity.of_service_account(self.namespace, self.name)
        if self.kind == "Group":
            return Identity("", (self.name,))
        return Identity(self.name, ("system:authenticated",))

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.kind == "ServiceAccount" else self.name
        return f"{self.kind} {name}"


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule that a subject holds, with the way by which it holds it.

    `scope` is "" for the whole cluster, else a namespace. `role` is what the binding names, `origin` the role in which
    the rule stands (another one where `role` is aggregated), `rule_index` its place there.
    """

    rule: PolicyRule
    scope: str
    subject: RbacSubject
    binding: ObjectRef
    role: ObjectRef
    origin: ObjectRef
    rule_index: int


@dataclass(frozen=True, slots=True)
class EffectiveRules:
    """All grants of one identity. `problems` says what could not be read or found; then grants may be missing."""

    identity: Identity
    grants: tuple[Grant, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def scopes(self) -> list[str]:
        """The places with grants, the whole cluster ("") first."""
        return sorted({grant.scope for grant in self.grants})

    def at(self, scope: str) -> list[PolicyRule]:
        """The rules granted exactly at `scope`."""
        return [grant.rule for grant in self.grants if grant.scope == scope]

    def rules_in(self, namespace: str) -> list[PolicyRule]:
        """The rules that count for a request in `namespace`: the cluster-wide ones and those of the namespace."""
        return [grant.rule for grant in self.grants_in(namespace)]

    def grants_in(self, namespace: str) -> list[Grant]:
        return [grant for grant in self.grants if grant.scope in (CLUSTER, namespace)]


@dataclass(frozen=True, slots=True)
class _RoleRule:
    rule: PolicyRule
    origin: ObjectRef
    index: int


@dataclass(slots=True)
class RbacObjects:
    """Roles and bindings by name. Of two objects with the same name the later one counts."""

    roles: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    bindings: dict[tuple[str, str, str], JsonObject] = field(default_factory=dict)
    # For many identities: a cluster has thousands of bindings, and few name any one of them.
    _naming: _NamedBy | None = field(default=None, repr=False, compare=False)
    _rules: dict[tuple[str, str], tuple[list[_RoleRule], list[str]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, objects: Iterable[JsonObject] | RbacObjects) -> RbacObjects:
        """Sort out the RBAC objects among `objects`; other kinds are ignored.

        Raises InvalidManifest for what is no object with metadata: what it grants cannot be told.
        """
        if isinstance(objects, RbacObjects):
            return objects
        if not isinstance(objects, Iterable):
            raise InvalidManifest(f"roles and bindings: expected a list of objects, found {type(objects).__name__}")
        found = cls()
        for obj in objects:
            ref = ObjectRef.of(obj)
            if ref.group != RBAC_GROUP or ref.kind not in KINDS:
                continue
            if ref.kind.endswith("Binding"):
                namespace = CLUSTER if ref.kind == "ClusterRoleBinding" else ref.namespace
                found.bindings[(ref.kind, namespace, ref.name)] = obj
            else:
                found.roles[(CLUSTER if ref.kind == "ClusterRole" else ref.namespace, ref.name)] = obj
        return found

    def add(self, others: RbacObjects) -> None:
        """Have `others` as well; they count where something of the same name is there."""
        self.roles.update(others.roles)
        self.bindings.update(others.bindings)
        self._naming, self._rules = None, {}

    def bindings_of(self, identity: Identity) -> list[tuple[JsonObject, RbacSubject]]:
        """The bindings that name `identity`, sorted, each with the first subject by which it does."""
        if self._naming is None:
            self._naming = _named_by(self.bindings)
        first: dict[tuple[str, str, str], tuple[int, RbacSubject]] = {}
        for name in _names_of(identity):
            for key, position, subject in self._naming.get(name, ()):
                if key not in first or position < first[key][0]:
                    first[key] = (position, subject)
        return [(self.bindings[key], first[key][1]) for key in sorted(first)]

    def rules_of(self, role: JsonObject) -> tuple[list[_RoleRule], list[str]]:
        """The rules of one of `roles`, aggregated or not, and what could not be read."""
        ref = ObjectRef.of(role)
        key = (CLUSTER if ref.kind == "ClusterRole" else ref.namespace, ref.name)
        if key not in self._rules:
            problems: list[str] = []
            self._rules[key] = (_rules_of(self, role, problems), problems)
        return self._rules[key]

    def role_of(self, binding: JsonObject) -> JsonObject | None:
        """The role that `binding` names, or None where there is none."""
        wanted = _mapping(binding.get("roleRef"))
        name = str(wanted.get("name", ""))
        if wanted.get("kind") == "ClusterRole":
            return self.roles.get((CLUSTER, name))
        namespace = ObjectRef.of(binding).namespace
        return self.roles.get((namespace, name)) if wanted.get("kind") == "Role" and namespace else None


# Of a kind of subject and its name, a ServiceAccount's as users have it: the bindings that name it, and at which place.
_Name = tuple[str, str]
_NamedBy = dict[_Name, list[tuple[tuple[str, str, str], int, RbacSubject]]]


def _named_by(bindings: Mapping[tuple[str, str, str], JsonObject]) -> _NamedBy:
    found: _NamedBy = {}
    for key, binding in bindings.items():
        for position, subject in enumerate(binding_subjects(binding)):
            name = subject.name
            if subject.kind == "ServiceAccount":
                if not subject.namespace:
                    continue
                name = f"system:serviceaccount:{subject.namespace}:{subject.name}"
            found.setdefault((subject.kind, name), []).append((key, position, subject))
    return found


def _names_of(identity: Identity) -> list[_Name]:
    """What a binding calls this identity."""
    groups = [("Group", name) for name in identity.groups]
    return list(dict.fromkeys([("User", identity.username), ("ServiceAccount", identity.username), *groups]))


def effective_rules(subject: Identity, objects: Iterable[JsonObject] | RbacObjects) -> EffectiveRules:
    """Every rule that `subject` holds by the (Cluster)Roles and (Cluster)RoleBindings among `objects`.

    A RoleBinding grants inside its namespace only, also where it names a ClusterRole. Aggregated ClusterRoles have the
    union of the rules of those they select, whatever their own `.rules` say. A role that is missing grants nothing.
    """
    known = RbacObjects.of(objects)
    grants: list[Grant] = []
    problems: list[str] = []
    for binding, matched in known.bindings_of(subject):
        grants += _granted_by(known, binding, matched, problems)
    return EffectiveRules(subject, tuple(grants), tuple(problems))


def subjects(objects: Iterable[JsonObject] | RbacObjects) -> list[RbacSubject]:
    """Everybody whom a binding among `objects` names, sorted."""
    known = RbacObjects.of(objects)
    found = {named for binding in known.bindings.values() for named in binding_subjects(binding)}
    return sorted(found, key=lambda it: (it.kind, it.namespace, it.name))


def binding_subjects(binding: JsonObject) -> list[RbacSubject]:
    """The subjects of a binding; a ServiceAccount without a namespace is one of the RoleBinding's namespace."""
    is_cluster_wide = object_in(binding, "the binding").get("kind") == "ClusterRoleBinding"
    own = CLUSTER if is_cluster_wide else ObjectRef.of(binding).namespace
    listed = binding.get("subjects")
    named = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list | tuple) else []
    return [
        RbacSubject(
            kind=str(entry.get("kind", "")),
            name=str(entry.get("name", "")),
            namespace=str(entry.get("namespace") or own) if entry.get("kind") == "ServiceAccount" else "",
        )
        for entry in named
    ]


def role_rules(objects: Iterable[JsonObject] | RbacObjects, role: JsonObject) -> list[PolicyRule]:
    """The rules that `role` has once aggregation has run over `objects`; unreadable rules raise InvalidManifest."""
    problems: list[str] = []
    found = [entry.rule for entry in _rules_of(RbacObjects.of(objects), role, problems)]
    if problems:
        raise InvalidManifest("; ".join(problems))
    return found


def written_rules(role: JsonObject) -> list[PolicyRule]:
    """The rules as they stand in `role`, aggregated or not; unreadable ones raise InvalidManifest."""
    problems: list[str] = []
    found = [entry.rule for entry in _own_rules(role, problems)]
    if problems:
        raise InvalidManifest("; ".join(problems))
    return found


def role_ref(binding: JsonObject) -> tuple[str, str]:
    """The kind and the name of the role that `binding` names, "" where it names none."""
    wanted = _mapping(object_in(binding, "the binding").get("roleRef"))
    return str(wanted.get("kind", "")), str(wanted.get("name", ""))


def allows_in(effective: EffectiveRules, request: AccessRequest) -> bool:
    """Whether the identity may do what `request` asks, by RBAC alone."""
    return any(allows_by(grant.rule, request) for grant in _that_count(effective, request))


def grants(effective: EffectiveRules, request: AccessRequest) -> list[Grant]:
    """The grants that permit `request`, each enough by itself; empty where it is not permitted."""
    return [grant for grant in _that_count(effective, request) if allows_by(grant.rule, request)]


def is_aggregated(role: JsonObject) -> bool:
    return object_in(role, "the role").get("aggregationRule") is not None


def collects(aggregated: JsonObject, role: JsonObject) -> bool:
    """Whether the ClusterRole `aggregated` takes the rules of the ClusterRole `role` by its labels."""
    labels = _labels(object_in(role, "the role"))
    return any(selects(selector, labels) for selector in _selectors(object_in(aggregated, "the role")))


def _that_count(effective: EffectiveRules, request: AccessRequest) -> list[Grant]:
    return effective.grants_in(CLUSTER if request.path else request.namespace)


def _granted_by(known: RbacObjects, binding: JsonObject, matched: RbacSubject, problems: list[str]) -> list[Grant]:
    ref = ObjectRef.of(binding)
    role = known.role_of(binding)
    if role is None:
        wanted = _mapping(binding.get("roleRef"))
        problems.append(f"{ref} names {wanted.get('kind', 'no kind')} {wanted.get('name', '')}, {NO_SUCH_ROLE}")
        return []
    scope = CLUSTER if ref.kind == "ClusterRoleBinding" else ref.namespace
    rules, unreadable = known.rules_of(role)
    problems += unreadable
    named = ObjectRef.of(role)
    return [Grant(entry.rule, scope, matched, ref, named, entry.origin, entry.index) for entry in rules]


def _rules_of(known: RbacObjects, role: JsonObject, problems: list[str]) -> list[_RoleRule]:
    """The rules of `role`; of an aggregated one those of all it selects, directly or through other aggregated ones.

    One that selects no rule keeps those that were written in it: the controller applies none in their place.
    """
    if not is_aggregated(role):
        return _own_rules(role, problems)
    found: list[_RoleRule] = []
    waiting, seen = [role], {ObjectRef.of(role).name}
    while waiting:
        current = waiting.pop()
        selected = _selected_by(known, current)
        if not any(is_aggregated(it) or it.get("rules") for _, it in selected):
            found += _own_rules(current, problems)
        for name, one in selected:
            if name in seen:
                continue
            seen.add(name)
            if is_aggregated(one):
                waiting.append(one)
            else:
                found += _own_rules(one, problems)
    return found


def _own_rules(role: JsonObject, problems: list[str]) -> list[_RoleRule]:
    ref = ObjectRef.of(role)
    listed = role.get("rules")
    if not isinstance(listed, list | tuple):
        if listed is not None:
            problems.append(f"{ref}: rules must be a list")
        return []
    found = []
    for index, entry in enumerate(listed):
        try:
            found.append(_RoleRule(PolicyRule.from_object(entry), ref, index))
        except InvalidManifest as exc:
            problems.append(f"{ref}: rule {index}: {exc}")
    return found


def _selected_by(known: RbacObjects, role: JsonObject) -> list[tuple[str, JsonObject]]:
    selectors = _selectors(role)
    return [
        (name, candidate)
        for (namespace, name), candidate in sorted(known.roles.items())
        if namespace == CLUSTER and any(selects(selector, _labels(candidate)) for selector in selectors)
    ]


def _selectors(role: JsonObject) -> list[Mapping[str, Any]]:
    listed = _mapping(role.get("aggregationRule")).get("clusterRoleSelectors")
    return [_mapping(entry) for entry in listed] if isinstance(listed, list | tuple) else []


def _labels(role: JsonObject) -> Mapping[str, Any]:
    return _mapping(_mapping(role.get("metadata")).get("labels"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
