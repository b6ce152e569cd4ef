"""Bindings for groups that everybody is in, whatever the role holds: also one that nobody can look up (RB-40 to 43).

What a known role gives them is said where rights are compared (permissions). This is the rest: a role that is not in
the bundle and not known, that does not exist, or that holds nothing yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import PUBLIC_ROLES_OF_KUBERNETES, WIDE_SUBJECTS, RbacSubject
from provisioner.review.base.facts import Check, Facts, Reads, ReviewRule, StateFacts, mapping
from provisioner.review.rights.permission_words import about, ref_of
from provisioner.review.rights.renamed_roles import RbacBeforeAfter, rbac_before_after_of
from provisioner.values import Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_BINDINGS = frozenset(GroupKind(RBAC_GROUP, kind) for kind in ("RoleBinding", "ClusterRoleBinding"))
_OF_A_NAMESPACE = "system:serviceaccounts:"


def _changes(facts: Facts) -> Iterator[Finding]:
    bound = list(_bound(facts.state()))
    if not bound:
        return
    states = rbac_before_after_of(facts)
    known = {(binding, subject, _role(body)) for binding, body, subject, _, _ in _bound(facts.previous_state())}
    for ref, body, subject, rule, whose in bound:
        if _is_said(states, body, subject, ref):
            continue
        is_known = (ref, subject, _role(body)) in known
        kind, name = _role(body)
        named = subject.name.removeprefix(_OF_A_NAMESPACE) if whose == "namespace" else None
        found = rule.finding(
            "bound" if is_known else "bound-newly",
            ref_of(subject),
            key=[str(ref), kind, name],
            kind=kind,
            role=name,
            binding=ref,
            whose=whose,
            namespace=named,
        )
        yield replace(about(found, subject), is_new=not is_known)


def _bound(state: StateFacts) -> Iterator[tuple[ObjectRef, JsonObject, RbacSubject, ReviewRule, str]]:
    """Each binding of a wide subject, with the rule about it and whom it stands for."""
    for ref, body in state.named:
        if ref.group_kind in _BINDINGS:
            for subject in dict.fromkeys(rbac.binding_subjects(body)):
                wide = _wide(subject)
                if wide is not None:
                    yield ref, body, subject, *wide


def _wide(subject: RbacSubject) -> tuple[ReviewRule, str] | None:
    if found := WIDE_SUBJECTS.get((subject.kind, subject.name)):
        rule, _, severity, whose = found
        return ReviewRule(rule, Section.PERMISSIONS, severity), whose
    if subject.kind == "Group" and subject.name.startswith(_OF_A_NAMESPACE):
        return ReviewRule("RB-43", Section.PERMISSIONS, Severity.DANGEROUS), "namespace"
    return None


def _is_said(states: RbacBeforeAfter, binding: JsonObject, subject: RbacSubject, ref: ObjectRef) -> bool:
    """Whether the comparison of rights speaks of it, as it does of all that a known role gives."""
    role = mapping(binding.get("roleRef"))
    if states.after.role_of(binding) is None:
        # Of Kubernetes itself, and made anew by it as they should be.
        return role.get("kind") == "ClusterRole" and role.get("name") in PUBLIC_ROLES_OF_KUBERNETES
    held = rbac.effective_rules(subject.identity, states.after).grants
    return any(grant.binding.identity == ref.identity for grant in held)


def _role(binding: JsonObject) -> tuple[str, str]:
    wanted = mapping(binding.get("roleRef"))
    return str(wanted.get("kind")), str(wanted.get("name"))


CHECK = Check("groups that everybody is in", changes=_changes, reads=frozenset({Reads.ROLES}))
