"""Whether rights are power over Pratique: judged of what somebody really holds, by name, wildcard or aggregation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from provisioner.api_groups import OWN_GROUP
from provisioner.errors import InvalidManifest
from provisioner.rbac.catalogue import CORE, IMPERSONATE_ON
from provisioner.rbac.effective import Grant
from provisioner.rbac.guarded_rights import (
    CONTROL_PLANE,
    GUARDED,
    IN_NAMESPACE,
    OWN_RESOURCES,
    OWN_SUBRESOURCES,
    READING,
    STRONG_NAMES,
    Guarded,
    Means,
    NameLimit,
    Reach,
)
from provisioner.rbac.objects import CLUSTER, RbacObjects, role_rules
from provisioner.rbac.rules import ANY, BUILT_IN_RESOURCES, HeldRules, PolicyRule

OWN_NAME = "pratique"
_ORDER = tuple(Means)
_DECISIONS = frozenset({"approve", "override", "break-glass", "decide", "submit-review-for"})
_NO_NAME = frozenset({"create", "deletecollection"})
_SUPPLIED_BY_KUBERNETES = "system:"


@dataclass(frozen=True, slots=True)
class Ours:
    """What of a cluster is Pratique's: the namespace it runs in, and the installers, each (namespace, name).

    An installer is a ServiceAccount by which bundles are applied. Who can be one applies without a review. Those that
    are `strong` hold power over Pratique themselves.
    """

    namespace: str
    installers: frozenset[tuple[str, str]] = frozenset()
    strong: frozenset[tuple[str, str]] = frozenset()

    @property
    def places(self) -> frozenset[str]:
        """The namespaces whose accounts can get round every approval."""
        return frozenset({self.namespace, CONTROL_PLANE})

    @property
    def homes(self) -> frozenset[str]:
        return frozenset(namespace for namespace, _ in self.installers)

    @property
    def strong_homes(self) -> frozenset[str]:
        """The namespaces in which a pod can run as a strong installer."""
        return frozenset(namespace for namespace, _ in self.strong)


@dataclass(frozen=True, slots=True)
class BypassPower:
    """A means to bypass the approvals of Pratique: `what` it is, in the namespace `place` where it is about one.

    `scope` is the namespace in which it is held, where that is not said by `place`; `installers` are those that live
    there, where that is why it counts. `names` are those to which it is limited.
    """

    means: Means
    what: str
    place: str = ""
    scope: str = ""
    installers: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, tuple[str, ...], tuple[str, ...]]:
        """What it is beside its means, JSON-ready."""
        return (self.what, self.place, self.scope, self.installers or (), self.names)


@dataclass(frozen=True, slots=True)
class _At:
    """Where a rule counts, and what else is known: `seen` are the roles whose binding is being judged."""

    scope: str
    ours: Ours
    known: RbacObjects
    seen: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PowerJudge:
    """Judges rules of one cluster; a rule that many accounts hold is judged once.

    `known` are all roles, so that a right to bind a role by name is judged by what that role grants.
    """

    ours: Ours
    known: RbacObjects
    _judged: dict[tuple[PolicyRule, str], tuple[BypassPower, ...]] = field(default_factory=dict)

    def powers(self, held: Iterable[tuple[PolicyRule, str]]) -> list[BypassPower]:
        """The powers over Pratique in rules, each with its scope ("" is the whole cluster); the worst means first."""
        everything = list(dict.fromkeys(held))
        found = {power for rule, scope in everything for power in self._find_powers(rule, scope)}
        found |= set(_find_filled_secrets(everything, self.ours))
        return sorted(found, key=lambda power: (_ORDER.index(power.means), power.key))

    def powers_of(self, grants: Iterable[Grant]) -> list[BypassPower]:
        """`powers` of grants."""
        return self.powers((grant.rule, grant.scope) for grant in grants)

    def _find_powers(self, rule: PolicyRule, scope: str) -> tuple[BypassPower, ...]:
        key = (rule, scope)
        if key not in self._judged:
            self._judged[key] = tuple(_find_powers_of_rule(rule, _At(scope, self.ours, self.known)))
        return self._judged[key]


def _find_filled_secrets(held: Iterable[tuple[PolicyRule, str]], ours: Ours) -> Iterator[BypassPower]:
    """Kubernetes fills a Secret of the type service-account-token: whoever makes one and reads it has the token."""
    everything = list(held)
    for home in sorted(ours.strong_homes - ours.places):
        rules = [rule for rule, scope in everything if scope in (CLUSTER, home)]
        making = HeldRules(rules).covering(_secrets("create"))
        named = HeldRules(replace(rule, resource_names=()) for rule in rules)
        if making and any(named.covering(_secrets(verb)) for verb in READING):
            yield BypassPower(Means.BE_ANOTHER, "make-token-secrets", home, installers=_list_installers(home, ours))


def _secrets(verb: str) -> PolicyRule:
    return PolicyRule((verb,), (CORE,), ("secrets",))


def _list_installers(home: str, ours: Ours) -> tuple[str, ...]:
    return tuple(sorted(name for namespace, name in ours.strong if namespace == home))


def _find_powers_of_rule(rule: PolicyRule, at: _At) -> Iterator[BypassPower]:
    if not rule.verbs or not rule.api_groups or not rule.resources:
        return
    is_any = all(ANY in wanted for wanted in (rule.verbs, rule.api_groups, rule.resources))
    if at.scope == CLUSTER and is_any and not rule.resource_names:
        yield BypassPower(Means.EVERYTHING, "do-everything")
    if at.scope == CLUSTER and _has_own_objects(rule):
        # Any verb but reading: whatever the verbs of our objects are called later, they count.
        verbs = set(rule.verbs) - READING
        is_review = bool({ANY, "bundledeploymentreviews"} & set(rule.resources))
        if verbs & {ANY, *_DECISIONS} or ("create" in verbs and is_review):
            yield BypassPower(Means.DECIDE, "approve")
        if ANY in verbs or verbs - _DECISIONS:
            yield BypassPower(Means.FORGE, "write-objects")
    if any(verb.startswith(IMPERSONATE_ON) for verb in rule.verbs):
        yield BypassPower(Means.BE_ANOTHER, "do-as-others")
    for row in GUARDED:
        if _matches_row(rule, row, at):
            is_home = at.scope != CLUSTER and at.scope not in at.ours.places
            place = (at.scope or at.ours.namespace) if row.what in IN_NAMESPACE else ""
            scope = at.scope if is_home and not place else ""
            installers = _list_installers(at.scope, at.ours) if is_home and row.reach is not Reach.ANYWHERE else None
            yield BypassPower(row.means, row.what, place, scope, installers, tuple(sorted(rule.resource_names)))


def _has_own_objects(rule: PolicyRule) -> bool:
    """Whether a rule is about objects of our API group."""
    split = [resource.partition("/") for resource in rule.resources] if ANY in rule.api_groups else []
    return OWN_GROUP in rule.api_groups or any(
        name in OWN_RESOURCES or (name == ANY and (not slash or subresource in OWN_SUBRESOURCES))
        for name, slash, subresource in split
    )


def _matches_row(rule: PolicyRule, row: Guarded, at: _At) -> bool:
    # `*` in a namespace says nothing of deployers: nobody knows whether there are any.
    is_named = bool(set(row.groups) & set(rule.api_groups))
    if not is_named and (ANY not in rule.api_groups or (row.reach is Reach.ANYWHERE and at.scope != CLUSTER)):
        return False
    resources = [resource for resource in row.resources if _has_resource(rule, resource)]
    # All verbs of the row for `*`.
    prefixes = tuple(verb for verb in row.verbs if verb.endswith(":"))
    verbs = {verb for verb in rule.verbs if verb in row.verbs or verb.startswith(prefixes)}
    verbs = set(row.verbs) if ANY in rule.verbs else verbs
    if not resources or not verbs or not _has_reach(row.reach, at):
        return False
    if not rule.resource_names:
        return True
    carries_a_name = bool(verbs - _NO_NAME) or any("/" in resource for resource in resources)
    return carries_a_name and any(_counts_by_name(name, row, at) for name in rule.resource_names)


def _has_resource(rule: PolicyRule, wanted: str) -> bool:
    if ANY in rule.resources or wanted in rule.resources:
        return True
    _, slash, subresource = wanted.partition("/")
    if slash:
        return f"{ANY}/{subresource}" in rule.resources
    # The key of an extra is its subresource: userextras/scopes, or any key by userextras/* or */scopes.
    return wanted == "userextras" and any(
        resource.startswith(("userextras/", f"{ANY}/")) for resource in rule.resources
    )


def _has_reach(reach: Reach, at: _At) -> bool:
    if at.scope == CLUSTER:
        return True
    if reach is Reach.CLUSTER:
        return False
    if reach is Reach.ANYWHERE or at.scope in at.ours.places:
        return True
    homes = {Reach.ACCOUNTS: at.ours.homes, Reach.HOMES: at.ours.homes, Reach.STRONG: at.ours.strong_homes}
    return at.scope in homes.get(reach, ())


def _counts_by_name(name: str, row: Guarded, at: _At) -> bool:
    if row.reach is Reach.ACCOUNTS and at.scope not in (CLUSTER, *at.ours.places):
        return (at.scope, name) in at.ours.installers
    if row.named is NameLimit.ROLE:
        # A role gives power over Pratique where it is bound; one that nobody knows is judged by its name.
        roles = [(key, role) for key, role in at.known.roles.items() if key[1] == name and key not in at.seen]
        if not roles:
            return _is_own_name(name, at.ours)
        for key, role in roles:
            inside = _At(at.scope, at.ours, at.known, at.seen | {key})
            try:
                rules = role_rules(at.known, role)
            except InvalidManifest:
                return True
            if any(True for rule in rules for _ in _find_powers_of_rule(rule, inside)):
                return True
        return False
    return _NAMES[row.named](name, at.ours)


def is_strong_name(name: str) -> bool:
    """Whether a ClusterRole of this name is one of Pratique's, or one by which Kubernetes gives away everything."""
    is_own = name == OWN_NAME or name.startswith((f"{OWN_NAME}-", f"{OWN_NAME}.", f"{OWN_NAME}:"))
    return is_own or name in STRONG_NAMES


def _is_own_name(name: str, _: Ours) -> bool:
    return is_strong_name(name) or name.startswith(_SUPPLIED_BY_KUBERNETES)


def _is_guarded_api(name: str, _: Ours) -> bool:
    """`plural.group` of a definition or `version.group` of an API service: ours, or of Kubernetes itself."""
    group = name.partition(".")[2]
    return group == OWN_GROUP or group in BUILT_IN_RESOURCES


_NAMES: Mapping[NameLimit, Callable[[str, Ours], bool]] = {
    NameLimit.ALL: lambda _name, _ours: True,
    NameLimit.OWN: _is_own_name,
    NameLimit.NAMESPACE: lambda name, ours: name in ours.places,
    NameLimit.API: _is_guarded_api,
    NameLimit.SIGNER: lambda name, _ours: name.startswith("kubernetes.io/"),
}
