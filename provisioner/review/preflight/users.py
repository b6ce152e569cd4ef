"""Who else can act as the installing account: by pods that run as it, or by its token. Counted, in one finding.

Not by impersonation: Pratique asks that right of everybody who installs with the account (security-rules.md S07).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from provisioner import rbac
from provisioner.rbac import CLUSTER, EffectiveRules, RbacObjects, RbacSubject, RoleKey
from provisioner.review.base.facts import ReviewRule
from provisioner.review.rules import Phrase
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
    listed = {name: _phrase_of(way) for name, way in list(users.items())[:MAX_LISTED]}
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


def _phrase_of(way: AccessRequest) -> Phrase:
    if way.subresource == "token":
        return Phrase.of(_USABLE.id, "users.token")
    return Phrase.of(_USABLE.id, "users.pods", resource=way.resource, namespace=way.namespace)


def by_name(held: EffectiveRules, account: RbacSubject) -> EffectiveRules:
    """The grants to this account, and to those of its namespace; what everybody has is nobody's in particular."""
    groups = {name for name in account.identity.groups if name not in EVERYBODY}
    own = tuple(one for one in held.grants if one.subject.kind != "Group" or one.subject.name in groups)
    return replace(held, grants=own)


def _users(account: RbacSubject, roles: RbacObjects) -> dict[str, AccessRequest]:
    """The way of each, by name."""
    held = by_name(rbac.effective_rules(account.identity, roles), account)
    places = {CLUSTER, *held.scopes}
    known: dict[frozenset[tuple[str, RoleKey]], bool] = {}
    found: dict[str, AccessRequest] = {}
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


def _makers(account: RbacSubject, roles: RbacObjects) -> Mapping[RbacSubject, AccessRequest]:
    """Everybody whom a binding lets act as the account, each with the first way that there is."""
    place = account.namespace
    token = AccessRequest("create", "", "serviceaccounts", "token", place, account.name)
    ways = [token, *(AccessRequest("create", group, resource, "", place) for group, resource in _MAKES_PODS)]
    places = (CLUSTER, account.namespace)
    found: dict[RbacSubject, int] = {}
    for key, bindings in roles.bound().items():
        role = roles.roles.get(key)
        counting = [one for one in bindings if one[1] in places]
        if role is None or not counting:
            continue
        held = [one.rule for one in roles.rules_of(role)[0]]
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
