"""Whom each process acts as, and what it does then, as RBAC rules and as the roles that `kubectl apply` takes. Pure.

What a process does as itself stands in deploy/rbac.yaml. Here is only impersonation, because that depends on who is
registered. Legacy impersonation lets a process do everything that somebody may; constrained impersonation (Kubernetes
1.36) has two halves: who one may be, and which requests one may make then. The halves are not bound to each other: any
of these people with any of these requests. So each half is as narrow as it can be.

A rule without names is one for all names. Where nobody is registered, there is no rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from approvals.deciding.table import KINDS
from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.rbac import plural_of
from provisioner.values import ObjectRef

AUTHENTICATION = "authentication.k8s.io"
WRITTEN_BY_PEOPLE = ("bundledeployments", *(kind.plural for kind in KINDS))
# What the pages and the REST API write as the people who use them.
WRITES_OF_PEOPLE = ("create", "delete", "update")
# What the page of a request lists as who looks at it, to name who can approve (access.approvers).
LISTED_BY_PEOPLE = ("clusterrolebindings", "clusterroles")
# What planning, applying, health and drift send as the installing account; a server-side apply is a patch.
REQUESTS_OF_INSTALLERS = ("delete", "get", "list", "patch", "watch")
SEEN_AS_INSTALLERS = ("list", "watch")
_ACCOUNT, _SYSTEM = "system:serviceaccount:", "system:"

Account = tuple[str, str]


class Process(StrEnum):
    """The processes that meet a cluster. Beat and migrations meet none."""

    WEB = "web"
    WORKER = "worker"
    WATCH = "watch"


class ImpersonationForm(StrEnum):
    CONSTRAINED = "constrained"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True, order=True)
class NeededRule:
    """As in RBAC: without `names` it is for all of them."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Role:
    """What one process may do in a namespace, or with "" in the whole cluster."""

    process: Process
    namespace: str
    rules: tuple[NeededRule, ...]


@dataclass(frozen=True, slots=True)
class Registered:
    """Who and what Pratique knows of one cluster.

    `people` and `groups` are who signs in, `readers` who asked for an open request that reads `sources` (objects that
    sources or lookups of charts name), `for_accounts` those of them that are read for a ServiceAccount, `installers`
    are accounts as (namespace, name), `watched` the (group, plural) of what bundles have brought. Names of
    ServiceAccounts stand among `people` and `readers` with their full user names. What is `unproved` is only named by
    somebody's wish: nothing is given for it.
    """

    people: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()
    installers: frozenset[Account] = frozenset()
    sources: frozenset[ObjectRef] = frozenset()
    for_accounts: frozenset[ObjectRef] = frozenset()
    watched: frozenset[tuple[str, str]] = frozenset()
    unproved_installers: frozenset[Account] = frozenset()
    unproved_sources: frozenset[ObjectRef] = frozenset()

    @property
    def unproved(self) -> tuple[str, ...]:
        """What only a wish names, in words."""
        return _protected_names(self.unproved_installers - self.installers, self.unproved_sources - self.sources)

    @property
    def beyond(self) -> tuple[Account, ...]:
        """Accounts that sign in and install nothing. One account for all processes could be them, with all that
        installers are asked to do: the halves of constrained impersonation are not bound to each other."""
        return tuple(sorted(_accounts(self.people) - self.installers))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Who is never acted as: `system:` names and groups carry rights that nobody grants by RBAC (S01)."""
        names = (*self.people, *self.groups)
        return tuple(sorted(name for name in names if name.startswith(_SYSTEM) and account_of(name) is None))

    def without(self, namespaces: Collection[str], *, kept: Collection[str]) -> tuple[Registered, tuple[str, ...]]:
        """This without installers and sources of these namespaces, but for those that are `kept`; and what that was."""
        out = frozenset(namespaces) - frozenset(kept)
        installers = frozenset(one for one in self.installers if one[0] in out)
        sources = frozenset(one for one in self.sources if one.namespace in out)
        rest = replace(
            self,
            installers=self.installers - installers,
            sources=self.sources - sources,
            for_accounts=self.for_accounts - sources,
        )
        return rest, _protected_names(installers, sources)


@dataclass
class _Rules:
    """Rules as they are gathered, by namespace."""

    found: defaultdict[str, list[NeededRule]] = field(default_factory=lambda: defaultdict(list))

    def add(self, group: str, resources: Iterable[str], verbs: Iterable[str], *, namespace: str = "") -> None:
        self.found[namespace].append(NeededRule(group, tuple(resources), tuple(verbs)))

    def add_named(
        self, group: str, resource: str, verbs: Iterable[str], names: Collection[str], *, namespace: str = ""
    ) -> None:
        """Nothing where there are no names: RBAC takes an empty list for all names."""
        if names:
            self.found[namespace].append(NeededRule(group, (resource,), tuple(verbs), tuple(sorted(names))))

    def add_accounts(self, form: ImpersonationForm, accounts: Iterable[Account]) -> None:
        """That one may be these accounts."""
        group, verb = (
            (AUTHENTICATION, "impersonate:serviceaccount")
            if form is ImpersonationForm.CONSTRAINED
            else ("", "impersonate")
        )
        by_namespace: defaultdict[str, set[str]] = defaultdict(set)
        for namespace, name in accounts:
            by_namespace[namespace].add(name)
        for namespace, names in by_namespace.items():
            self.add_named(group, "serviceaccounts", [verb], names, namespace=namespace)

    def add_people(self, form: ImpersonationForm, people: Iterable[str], groups: Iterable[str]) -> None:
        group, verb = (
            (AUTHENTICATION, "impersonate:user-info") if form is ImpersonationForm.CONSTRAINED else ("", "impersonate")
        )
        self.add_named(group, "users", [verb], _plain(people))
        self.add_named(group, "groups", [verb], _plain(groups))


def roles(
    known: Registered, form: ImpersonationForm, processes: Iterable[Process] = tuple(Process), *, is_named: bool = False
) -> tuple[Role, ...]:
    """What these processes need to act as others; `is_named` names the people also where constraint alone would do."""
    made = []
    for process in processes:
        rules = _Rules()
        if process is Process.WEB:
            _add_web(rules, known, form, is_named=is_named)
        elif process is Process.WORKER:
            _add_worker(rules, known, form)
        else:
            _add_watch(rules, known, form)
        made += [Role(process, namespace, tuple(sorted(some))) for namespace, some in sorted(rules.found.items())]
    return tuple(made)


def _add_web(rules: _Rules, known: Registered, form: ImpersonationForm, *, is_named: bool) -> None:
    """Writes of BundleDeployments and of what says how requests are decided, and lists of roles, as those who sign in.

    In the constrained form anybody's name will do: the API server lets it be used for these requests alone, refuses
    `system:masters`, and a person who signs in for the first time can write at once. Accounts list no roles: beside
    the verbs of installers that would count for all that these may.
    """
    accounts = _accounts(known.people)
    rules.add_accounts(form, accounts)
    if form is ImpersonationForm.LEGACY or is_named:
        rules.add_people(form, known.people, known.groups)
    else:
        rules.add(AUTHENTICATION, ("groups", "users"), ["impersonate:user-info"])
    if form is ImpersonationForm.CONSTRAINED:
        rules.add(OWN_GROUP, WRITTEN_BY_PEOPLE, _on("user-info", WRITES_OF_PEOPLE))
        rules.add(RBAC_GROUP, LISTED_BY_PEOPLE, _on("user-info", ["list"]))
        if accounts:
            rules.add(OWN_GROUP, WRITTEN_BY_PEOPLE, _on("serviceaccount", WRITES_OF_PEOPLE))


def _add_worker(rules: _Rules, known: Registered, form: ImpersonationForm) -> None:
    """What bundles need, as their installers; and to read what sources name, as a person or for an account."""
    rules.add_accounts(form, known.installers)
    if known.installers and form is ImpersonationForm.CONSTRAINED:
        rules.add("*", ["*"], _on("serviceaccount", REQUESTS_OF_INSTALLERS))
    if not known.sources:
        return
    rules.add_people(form, known.people | known.readers, known.groups)
    if form is ImpersonationForm.CONSTRAINED:
        for (namespace, group, plural), names in sorted(_by_place(known.sources).items()):
            rules.add_named(group, plural, _on("user-info", ["get"]), names, namespace=namespace)
    # Not as the account that asked: with the verbs of installers that would be all that the account may.
    for (namespace, group, plural), names in sorted(_by_place(known.for_accounts & known.sources).items()):
        rules.add_named(group, plural, ["get"], names, namespace=namespace)


def _add_watch(rules: _Rules, known: Registered, form: ImpersonationForm) -> None:
    """To see what happens to the objects of bundles, of the kinds that they have brought."""
    rules.add_accounts(form, known.installers)
    if form is ImpersonationForm.CONSTRAINED and known.installers:
        by_group: defaultdict[str, set[str]] = defaultdict(set)
        for group, plural in known.watched:
            by_group[group].add(plural)
        for group, plurals in sorted(by_group.items()):
            rules.add(group, sorted(plurals), _on("serviceaccount", SEEN_AS_INSTALLERS))


def _on(mode: str, verbs: Iterable[str]) -> Iterator[str]:
    return (f"impersonate-on:{mode}:{verb}" for verb in verbs)


def _by_place(sources: Iterable[ObjectRef]) -> Mapping[tuple[str, str, str], set[str]]:
    found: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for ref in sources:
        found[ref.namespace, ref.group, plural_of(ref.kind)].add(ref.name)
    return found


def _plain(names: Iterable[str]) -> set[str]:
    return {name for name in names if not name.startswith(_SYSTEM)}


def _accounts(names: Iterable[str]) -> set[Account]:
    return {account for name in names if (account := account_of(name))}


def _protected_names(installers: Iterable[Account], sources: Iterable[ObjectRef]) -> tuple[str, ...]:
    names = [f"{namespace}/{name}" for namespace, name in installers]
    return tuple(sorted([*names, *(f"{one.kind} {one.namespace}/{one.name}" for one in sources)]))


def account_of(username: str) -> Account | None:
    if not username.startswith(_ACCOUNT):
        return None
    namespace, _, name = username.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if namespace and name else None


# Whatever has this label came from this command, so that what is no longer printed can be pruned.
MANAGED_BY = {"app.kubernetes.io/managed-by": "pratique-rights"}


def manifests(roles: Iterable[Role], holders: Mapping[Process, Account | str]) -> list[dict[str, Any]]:
    """Each role, followed by its binding to the account of its process, or to the user of this name."""
    objects: list[dict[str, Any]] = []
    for role in roles:
        kind = "Role" if role.namespace else "ClusterRole"
        name = f"pratique-{role.process}-impersonates"
        place = {"namespace": role.namespace} if role.namespace else {}
        about = {"apiVersion": f"{RBAC_GROUP}/v1", "metadata": {"name": name, **place, "labels": MANAGED_BY}}
        holder = holders[role.process]
        if isinstance(holder, str):
            subject = {"apiGroup": RBAC_GROUP, "kind": "User", "name": holder}
        else:
            subject = {"kind": "ServiceAccount", "name": holder[1], "namespace": holder[0]}
        rules = []
        for rule in role.rules:
            named = {"resourceNames": [*rule.names]} if rule.names else {}
            rules.append({"apiGroups": [rule.group], "resources": [*rule.resources], "verbs": [*rule.verbs], **named})
        reference = {"apiGroup": RBAC_GROUP, "kind": kind, "name": name}
        objects.append({"kind": kind, **about, "rules": rules})
        objects.append({"kind": f"{kind}Binding", **about, "roleRef": reference, "subjects": [subject]})
    return objects
