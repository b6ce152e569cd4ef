"""Who may do what in a whole cluster: what a report would say of its roles and bindings if a bundle held them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import CONTROL_PLANE, RbacObjects, RbacSubject
from provisioner.review.base.facts import OWN_NAMESPACE, Check, ClusterSurroundings, Facts, Gap
from provisioner.review.checks.own.power import judge_powers
from provisioner.review.checks.rights.permissions import PERMISSIONS_CHECK
from provisioner.review.frame import report
from provisioner.review.output.headline import headline
from provisioner.review.preflight.needs import EVERYBODY
from provisioner.review.rights.accounts import of_wildcards
from provisioner.sentences import number
from provisioner.values import Action, Content, Finding, JsonObject, Manifest, ObjectRef, Plan, PlannedAction, Report

_ACCOUNTS = ("User", "Group", "ServiceAccount")
_OF_KUBERNETES = "system:"


@dataclass(frozen=True, slots=True)
class ChosenAccounts:
    """Which accounts to tell of; empty sets choose all.

    `namespaces`: ServiceAccounts of these, and everybody whom a RoleBinding there names. `with_kubernetes`: those of
    Kubernetes itself, too (`system:...` and the ServiceAccounts of kube-system).
    """

    subjects: frozenset[RbacSubject] = frozenset()
    namespaces: frozenset[str] = frozenset()
    with_kubernetes: bool = True

    def of(self, known: RbacObjects) -> frozenset[RbacSubject]:
        found = set(rbac.subjects(known))
        if self.subjects:
            found &= self.subjects
        if self.namespaces:
            there = (one for key, one in known.bindings.items() if key[1] in self.namespaces)
            named = {subject for binding in there for subject in rbac.binding_subjects(binding)}
            found = {subject for subject in found if subject in named or subject.namespace in self.namespaces}
        return frozenset(subject for subject in found if self.with_kubernetes or not _is_of_kubernetes(subject))


ALL = ChosenAccounts()


def cluster_rights(
    objects: Iterable[JsonObject] | RbacObjects,
    *,
    gaps: Sequence[Gap] = (),
    own_namespace: str = OWN_NAMESPACE,
    chosen: ChosenAccounts = ALL,
) -> Report:
    """What is risky in all roles and bindings of a cluster, by the checks of a report. Its plan is empty.

    `gaps` say what of them could not be read. Raises InvalidManifest for what is no object.
    """
    known = RbacObjects.of(objects)
    told = _Told.of(known, chosen)
    rights = Check(
        "rights",
        changes=lambda facts: (
            finding for finding in chain(PERMISSIONS_CHECK.changes(facts), judge_powers(facts)) if told.has(finding)
        ),
        standing=lambda state: (wildcard for wildcard in of_wildcards(state) if told.has(wildcard)),
        claims=PERMISSIONS_CHECK.claims,
    )
    # A bundle that holds all of it and changes nothing.
    bodies = (*known.roles.values(), *known.bindings.values())
    content = Content(tuple(map(Manifest, bodies)), CONTROL_PLANE, "", (), "")
    actions = tuple(PlannedAction(ObjectRef.of(body), Action.NONE, before=body, after=body) for body in bodies)
    around = ClusterSurroundings(own_namespace=own_namespace)
    facts = Facts(content, Plan(actions, ""), content, live_rbac=bodies, gaps=tuple(gaps), around=around)
    found = report(facts, [rights])
    # Nothing is compared with anything: what stands in the cluster is what was asked for.
    findings = tuple(replace(finding, is_new=True) for finding in found.findings)
    return Report(headline(findings, Plan((), ""), about=told.words), findings, Plan((), ""))


@dataclass(frozen=True, slots=True)
class _Told:
    """The accounts that findings are about, and those that are left out of `known`."""

    known: RbacObjects
    accounts: frozenset[RbacSubject]
    left_out: int
    is_whole: bool

    @classmethod
    def of(cls, known: RbacObjects, chosen: ChosenAccounts) -> _Told:
        accounts = chosen.of(known)
        return cls(known, accounts, len(rbac.subjects(known)) - len(accounts), chosen == ALL)

    @property
    def words(self) -> str:
        objects = f"{number(len(self.known.roles), 'role')} and {number(len(self.known.bindings), 'binding')}"
        left = f" {number(self.left_out, 'other account')} left out." if self.left_out else ""
        return f"{number(len(self.accounts), 'account')} looked at, by {objects}.{left}"

    def has(self, finding: Finding) -> bool:
        """Of a role or binding: whether somebody has it of whom is told; of a role also where nobody has it."""
        ref = finding.ref
        if self.is_whole or ref is None:
            return True
        if ref.kind in _ACCOUNTS:
            return RbacSubject(ref.kind, ref.name, ref.namespace) in self.accounts
        if ref.group != RBAC_GROUP:
            return False
        is_binding = ref.kind.endswith("Binding")
        keys = [rbac.binding_key_of(ref)] if is_binding else self.known.bindings_to(rbac.role_key_of(ref))
        return any(not self.accounts.isdisjoint(rbac.binding_subjects(self.known.bindings[key])) for key in keys)


def _is_of_kubernetes(subject: RbacSubject) -> bool:
    if subject.kind == "ServiceAccount":
        return subject.namespace == CONTROL_PLANE
    is_wide = subject.kind == "Group" and subject.name.startswith(EVERYBODY)
    return subject.name.startswith(_OF_KUBERNETES) and not is_wide
