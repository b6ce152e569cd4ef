"""Who else can act as the installing account: by pods that run as it, or by its token. Counted, in one finding.

Not by impersonation: Pratique asks that right of everybody who installs with the account (security-rules.md S07).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from provisioner import rbac
from provisioner.rbac import CLUSTER, EffectiveRules, PolicyRule, RbacObjects, RbacSubject, RoleKey
from provisioner.review.base.facts import ReviewRule
from provisioner.review.preflight.facts import who
from provisioner.sentences import number, some_phrases
from provisioner.values import AccessRequest, Finding, ObjectRef, Section, Severity

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
    shown = [f"{name} {way}" for name, way in users.items()]
    them = number(len(users), "other")
    message = f"{them} can get the permissions of {who(account)} without an approval: {some_phrases(shown, MAX_NAMED)}"
    listed = dict(list(users.items())[:MAX_LISTED])
    evidence = {"users": listed, "count": len(users), "left_out": len(users) - len(listed)}
    wide = [name for name in users if name.removeprefix("Group ").startswith(EVERYBODY)]
    yield _USABLE.at(ref, message, evidence=evidence, key=[sorted(set(users.values())), wide])


def by_name(held: EffectiveRules, account: RbacSubject) -> EffectiveRules:
    """The grants to this account, and to those of its namespace; what everybody has is nobody's in particular."""
    groups = {name for name in account.identity.groups if name not in EVERYBODY}
    own = tuple(one for one in held.grants if one.subject.kind != "Group" or one.subject.name in groups)
    return replace(held, grants=own)


def _users(account: RbacSubject, roles: RbacObjects) -> dict[str, str]:
    """The way of each, by name."""
    held = by_name(rbac.effective_rules(account.identity, roles), account)
    places = {CLUSTER, *held.scopes}
    known: dict[frozenset[tuple[str, RoleKey]], bool] = {}
    found: dict[str, str] = {}
    for subject, way in _makers(account, roles).items():
        if subject == account or not _is_somebody(subject):
            continue
        same = frozenset(one for one in roles.roles_held(subject.identity) if one[0] in places)
        if same not in known:
            known[same] = _holds_as_much(rbac.effective_rules(subject.identity, roles), held)
        if not known[same]:
            found[str(subject)] = way
    return dict(sorted(found.items()))


def _holds_as_much(other: EffectiveRules, held: EffectiveRules) -> bool:
    return all(rbac.holds(other.rules_in(scope), held.at(scope)) for scope in held.scopes)


def _makers(account: RbacSubject, roles: RbacObjects) -> Mapping[RbacSubject, str]:
    """Everybody whom a binding lets act as the account, each with the first way that there is."""
    ways = _ways(account)
    places = (CLUSTER, account.namespace)
    found: dict[RbacSubject, int] = {}
    for key, bindings in roles.bound().items():
        role = roles.roles.get(key)
        counting = [one for one in bindings if one[1] in places]
        if role is None or not counting:
            continue
        way = _first(ways, (one.rule for one in roles.rules_of(role)[0]))
        for subject in (it for one in counting if way is not None for it in rbac.binding_subjects(roles.bindings[one])):
            found[subject] = min(way or 0, found.get(subject, len(ways)))
    return {subject: ways[way][1] for subject, way in found.items()}


def _ways(account: RbacSubject) -> list[tuple[AccessRequest, str]]:
    place = account.namespace
    token = AccessRequest("create", "", "serviceaccounts", "token", place, account.name)
    pods = [
        (AccessRequest("create", group, resource, "", place), f"can create {resource} in {place}")
        for group, resource in _MAKES_PODS
    ]
    return [(token, "can request its token"), *pods]


def _first(ways: list[tuple[AccessRequest, str]], rules: Iterable[PolicyRule]) -> int | None:
    held = list(rules)
    return next((place for place, (request, _) in enumerate(ways) if rbac.allows(held, request)), None)


def _is_somebody(subject: RbacSubject) -> bool:
    """Not a part of Kubernetes itself."""
    if subject.kind == "ServiceAccount":
        return subject.namespace != "kube-system"
    if not subject.name.startswith("system:"):
        return True
    return subject.kind == "Group" and subject.name.startswith(EVERYBODY)
