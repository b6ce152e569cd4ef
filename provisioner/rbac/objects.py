"""The roles and bindings of a cluster, found by whom a binding names and by which role; what each role grants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest
from provisioner.json_values import mapping, value_at
from provisioner.rbac.rules import PolicyRule
from provisioner.selectors import selects
from provisioner.values import Identity, JsonObject, ObjectIdentity, ObjectRef, object_in

CLUSTER = ""
KINDS = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding")
BINDINGS = ("ClusterRoleBinding", "RoleBinding")
# (namespace or "", name), and (kind, namespace or "", name).
RoleKey = tuple[str, str]
BindingKey = tuple[str, str, str]


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
class RoleProblem:
    """Why rules may be missing: those of the role `ref` cannot be read, or just the one at `index`.

    Where the role `is_missing`, `ref` is the binding that names it, and so grants nothing.
    """

    ref: ObjectRef
    words: str
    index: int | None = None
    is_missing: bool = False

    def __str__(self) -> str:
        if self.is_missing:
            return f"{self.ref} {self.words}"
        return f"{self.ref}: {self.words}" if self.index is None else f"{self.ref}: rule {self.index}: {self.words}"


@dataclass(frozen=True, slots=True)
class RoleRule:
    """A rule that a role grants; it stands at `index` in `origin`, which is another role where that one collects it."""

    rule: PolicyRule
    origin: ObjectRef
    index: int


# Of a kind of subject and its name, a ServiceAccount's as users have it: the bindings that name it, and at which place.
_Name = tuple[str, str]
_Naming = tuple[BindingKey, int]
# The rules of a role, and why others may be missing.
_ReadRules = tuple[list[RoleRule], list[RoleProblem]]


@dataclass(slots=True)
class _Index:
    """The bindings by the names in them and by their roles: a cluster has thousands, and few concern any one question.

    Values are replaced and never changed, so that a copy of the dictionaries is a copy of it all.
    """

    names: dict[_Name, tuple[_Naming, ...]] = field(default_factory=dict)
    roles: dict[RoleKey, tuple[BindingKey, ...]] = field(default_factory=dict)
    targets: dict[BindingKey, RoleKey] = field(default_factory=dict)

    @classmethod
    def of(cls, bindings: Mapping[BindingKey, JsonObject]) -> _Index:
        names: dict[_Name, list[_Naming]] = {}
        roles: dict[RoleKey, list[BindingKey]] = {}
        targets = {key: _role_key(key, binding) for key, binding in bindings.items()}
        for key, binding in bindings.items():
            roles.setdefault(targets[key], []).append(key)
            for name, one in _namings(key, binding):
                names.setdefault(name, []).append(one)
        return cls(
            {name: tuple(found) for name, found in names.items()},
            {role: tuple(keys) for role, keys in roles.items()},
            targets,
        )

    def copy(self) -> _Index:
        return _Index(dict(self.names), dict(self.roles), dict(self.targets))

    def add(self, key: BindingKey, binding: JsonObject) -> None:
        role = self.targets[key] = _role_key(key, binding)
        self.roles[role] = (*self.roles.get(role, ()), key)
        for name, one in _namings(key, binding):
            self.names[name] = (*self.names.get(name, ()), one)

    def drop(self, key: BindingKey, binding: JsonObject) -> None:
        role = self.targets.pop(key)
        self.roles[role] = tuple(one for one in self.roles.get(role, ()) if one != key)
        for name, _ in _namings(key, binding):
            self.names[name] = tuple(one for one in self.names.get(name, ()) if one[0] != key)


@dataclass(slots=True)
class RbacObjects:
    """Roles and bindings by name. Of two objects with the same name the later one counts."""

    roles: dict[RoleKey, JsonObject] = field(default_factory=dict)
    bindings: dict[BindingKey, JsonObject] = field(default_factory=dict)
    _index: _Index | None = field(default=None, repr=False, compare=False)
    _rules: dict[RoleKey, tuple[list[RoleRule], list[RoleProblem]]] = field(
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
            place = _binding_key(obj)
            if place is None:
                continue
            kind, namespace, name = place
            if kind in BINDINGS:
                found.bindings[kind, namespace, name] = obj
            else:
                found.roles[namespace, name] = obj
        return found

    def copy(self) -> RbacObjects:
        """The same, to be added to; what was sorted out once is not sorted out again."""
        index = self._indexed().copy()
        return RbacObjects(dict(self.roles), dict(self.bindings), index, dict(self._rules))

    def changed(self, *, gone: Collection[ObjectIdentity], others: RbacObjects) -> RbacObjects:
        """Another one, without what is `gone` and with `others`."""
        made = self.copy()
        for group, kind, namespace, name in gone:
            ref = ObjectRef(group, "", kind, namespace, name)
            if group == RBAC_GROUP and kind.endswith("Binding"):
                made._drop_binding(binding_key_of(ref))
            elif group == RBAC_GROUP and kind in KINDS:
                made._forget([role_key_of(ref)])
                made.roles.pop(role_key_of(ref), None)
        made.add(others)
        return made

    def add(self, others: RbacObjects) -> None:
        """Have `others` as well; they count where something of the same name is there."""
        self._forget(others.roles)
        self.roles.update(others.roles)
        for key, binding in others.bindings.items():
            self._drop_binding(key)
            self.bindings[key] = binding
            if self._index is not None:
                self._index.add(key, binding)

    def bindings_of(self, identity: Identity) -> list[tuple[JsonObject, RbacSubject]]:
        """The bindings that name `identity`, sorted, each with the first subject by which it does."""
        index = self._indexed()
        first: dict[BindingKey, int] = {}
        for name in _names_of(identity):
            for key, position in index.names.get(name, ()):
                first[key] = min(position, first.get(key, position))
        found = ((self.bindings[key], first[key]) for key in sorted(first))
        return [(binding, binding_subjects(binding)[position]) for binding, position in found]

    def roles_held(self, identity: Identity, places: Collection[str] | None = None) -> frozenset[tuple[str, RoleKey]]:
        """Which roles `identity` holds at which of these places, by default at all, whether they are there or not."""
        index, found = self._indexed(), set()
        # Asked for each of thousands of subjects: loops are quicker than what generators would say shorter.
        for name in _names_of(identity):
            for key, _ in index.names.get(name, ()):
                if places is None or key[1] in places:
                    found.add((key[1], index.targets[key]))
        return frozenset(found)

    def bound(self) -> Mapping[RoleKey, tuple[BindingKey, ...]]:
        """The bindings by the role that they name, whether it is there or not."""
        return self._indexed().roles

    def bindings_to(self, role: RoleKey) -> tuple[BindingKey, ...]:
        """The bindings that name a role, whether it is there or not."""
        return self._indexed().roles.get(role, ())

    def rules_of(self, role: JsonObject) -> _ReadRules:
        """The rules of one of `roles`, aggregated or not, and what could not be read."""
        key = role_key_of(ObjectRef.of(role))
        if key not in self._rules:
            problems: list[RoleProblem] = []
            self._rules[key] = (_rules_of(self, role, problems), problems)
        return self._rules[key]

    def role_of(self, binding: JsonObject) -> JsonObject | None:
        """The role that `binding` names, or None where there is none."""
        wanted = mapping(binding.get("roleRef"))
        name = str(wanted.get("name", ""))
        if wanted.get("kind") == "ClusterRole":
            return self.roles.get((CLUSTER, name))
        namespace = ObjectRef.of(binding).namespace
        return self.roles.get((namespace, name)) if wanted.get("kind") == "Role" and namespace else None

    def _indexed(self) -> _Index:
        if self._index is None:
            self._index = _Index.of(self.bindings)
        return self._index

    def _forget(self, roles: Collection[RoleKey]) -> None:
        """The rules of these roles may be others from now on, and so may those of each role that collects others."""
        is_collected = any(namespace == CLUSTER for namespace, _ in roles)
        for key in [*roles, *(role for role in self._rules if is_collected and is_aggregated(self.roles[role]))]:
            self._rules.pop(key, None)

    def _drop_binding(self, key: BindingKey) -> None:
        binding = self.bindings.pop(key, None)
        if binding is not None and self._index is not None:
            self._index.drop(key, binding)


def _binding_key(obj: JsonObject) -> BindingKey | None:
    """(kind, namespace or "", name) of a role or binding, None for another object; a cluster has thousands."""
    kind = obj.get("kind") if type(obj) is dict else None
    meta = obj.get("metadata") if kind in KINDS else None
    if type(meta) is not dict or str(obj.get("apiVersion", "")).rpartition("/")[0] != RBAC_GROUP:
        ref = ObjectRef.of(obj)
        if ref.group != RBAC_GROUP or ref.kind not in KINDS:
            return None
        return binding_key_of(ref) if ref.kind in BINDINGS else (ref.kind, *role_key_of(ref))
    is_cluster_wide = kind in CLUSTER_WIDE
    return str(kind), CLUSTER if is_cluster_wide else str(meta.get("namespace") or ""), str(meta.get("name", ""))


def role_key_of(ref: ObjectRef) -> RoleKey:
    return (CLUSTER if ref.kind == "ClusterRole" else ref.namespace, ref.name)


def binding_key_of(ref: ObjectRef) -> BindingKey:
    return (ref.kind, CLUSTER if ref.kind == "ClusterRoleBinding" else ref.namespace, ref.name)


def _role_key(key: BindingKey, binding: JsonObject) -> RoleKey:
    """The key of the role that a binding names, whether it is there or not."""
    wanted = mapping(binding.get("roleRef"))
    return (CLUSTER if wanted.get("kind") == "ClusterRole" else key[1], str(wanted.get("name", "")))


def _namings(key: BindingKey, binding: JsonObject) -> Iterator[tuple[_Name, _Naming]]:
    for position, entry in enumerate(_subject_entries(binding)):
        kind, name = str(entry.get("kind", "")), str(entry.get("name", ""))
        if kind == "ServiceAccount":
            namespace = entry.get("namespace") or key[1]
            if not namespace:
                continue
            name = f"system:serviceaccount:{namespace}:{name}"
        yield (kind, name), (key, position)


def _subject_entries(binding: JsonObject) -> list[Mapping[str, Any]]:
    """Asked of every binding, some times: a plain dict is known without asking what a mapping is."""
    listed = binding.get("subjects")
    if not isinstance(listed, list | tuple):
        return []
    return [entry for entry in listed if type(entry) is dict or isinstance(entry, Mapping)]


def _names_of(identity: Identity) -> list[_Name]:
    """What a binding calls this identity."""
    username = identity.username
    return [
        ("User", username),
        ("ServiceAccount", username),
        *[("Group", name) for name in dict.fromkeys(identity.groups)],
    ]


def subjects(objects: Iterable[JsonObject] | RbacObjects) -> list[RbacSubject]:
    """Everybody whom a binding among `objects` names, sorted."""
    known = RbacObjects.of(objects)
    found = {named for binding in known.bindings.values() for named in binding_subjects(binding)}
    return sorted(found, key=lambda subject: (subject.kind, subject.namespace, subject.name))


def binding_subjects(binding: JsonObject) -> list[RbacSubject]:
    """The subjects of a binding; a ServiceAccount without a namespace is one of the RoleBinding's namespace."""
    is_cluster_wide = object_in(binding, "the binding").get("kind") == "ClusterRoleBinding"
    found = []
    for entry in _subject_entries(binding):
        kind, namespace = str(entry.get("kind", "")), ""
        if kind == "ServiceAccount":
            given = entry.get("namespace")
            namespace = str(given or (CLUSTER if is_cluster_wide else ObjectRef.of(binding).namespace))
        found.append(RbacSubject(kind, str(entry.get("name", "")), namespace))
    return found


def role_rules(objects: Iterable[JsonObject] | RbacObjects, role: JsonObject) -> list[PolicyRule]:
    """The rules that `role` has once aggregation has run over `objects`; unreadable rules raise InvalidManifest."""
    problems: list[RoleProblem] = []
    found = [entry.rule for entry in _rules_of(RbacObjects.of(objects), role, problems)]
    if problems:
        raise InvalidManifest("; ".join(map(str, problems)))
    return found


def written_rules(role: JsonObject) -> list[PolicyRule]:
    """The rules as they stand in `role`, aggregated or not; unreadable ones raise InvalidManifest."""
    problems: list[RoleProblem] = []
    found = [entry.rule for entry in _own_rules(role, problems)]
    if problems:
        raise InvalidManifest("; ".join(map(str, problems)))
    return found


def role_ref(binding: JsonObject) -> tuple[str, str]:
    """The kind and the name of the role that `binding` names, "" where it names none."""
    wanted = mapping(object_in(binding, "the binding").get("roleRef"))
    return str(wanted.get("kind", "")), str(wanted.get("name", ""))


def is_aggregated(role: JsonObject) -> bool:
    return object_in(role, "the role").get("aggregationRule") is not None


def collects(aggregated: JsonObject, role: JsonObject) -> bool:
    """Whether the ClusterRole `aggregated` takes the rules of the ClusterRole `role` by its labels."""
    labels = _labels(object_in(role, "the role"))
    return any(selects(selector, labels) for selector in _selectors(object_in(aggregated, "the role")))


def _rules_of(known: RbacObjects, role: JsonObject, problems: list[RoleProblem]) -> list[RoleRule]:
    """The rules of `role`; of an aggregated one those of all it selects, directly or through other aggregated ones.

    One that selects no rule keeps those that were written in it: the controller applies none in their place.
    """
    if not is_aggregated(role):
        return _own_rules(role, problems)
    found: list[RoleRule] = []
    waiting, seen = [role], {ObjectRef.of(role).name}
    while waiting:
        current = waiting.pop()
        selectors = _selectors(current)
        selected = [
            (name, candidate)
            for (namespace, name), candidate in sorted(known.roles.items())
            if namespace == CLUSTER and any(selects(selector, _labels(candidate)) for selector in selectors)
        ]
        if not any(is_aggregated(other) or other.get("rules") for _, other in selected):
            found += _own_rules(current, problems)
        for name, other in selected:
            if name in seen:
                continue
            seen.add(name)
            if is_aggregated(other):
                waiting.append(other)
            else:
                found += _own_rules(other, problems)
    return found


def _own_rules(role: JsonObject, problems: list[RoleProblem]) -> list[RoleRule]:
    ref = ObjectRef.of(role)
    listed = role.get("rules")
    if not isinstance(listed, list | tuple):
        if listed is not None:
            problems.append(RoleProblem(ref, "rules must be a list"))
        return []
    found = []
    for index, entry in enumerate(listed):
        try:
            found.append(RoleRule(PolicyRule.from_object(entry), ref, index))
        except InvalidManifest as exc:
            problems.append(RoleProblem(ref, str(exc), index))
    return found


def _selectors(role: JsonObject) -> list[Mapping[str, Any]]:
    listed = value_at(role, "aggregationRule", "clusterRoleSelectors")
    return [mapping(entry) for entry in listed] if isinstance(listed, list | tuple) else []


def _labels(role: JsonObject) -> Mapping[str, Any]:
    return mapping(value_at(role, "metadata", "labels"))
