"""Whose power the workloads of a bundle get: the accounts that they run as, judged by what the cluster gives those."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.json_values import mapping, value_at
from provisioner.rbac import BUILT_IN_RESOURCES, CONTROL_PLANE, RbacSubject
from provisioner.review.base.facts import SECRET, Check, Facts, FieldPath, Reads, ReviewRule, StateFacts
from provisioner.review.checks.own.power import Judge, advice_of, describe_powers, find_judge, weigh
from provisioner.review.rights.permission_words import ways_of
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import Finding, GroupKind, ObjectRef, Section, Severity

_STRONG = ReviewRule("OWN-PRATIQUE-05", Section.PERMISSIONS, Severity.CRITICAL)
_UNKNOWN = ReviewRule("OWN-PRATIQUE-05", Section.PERMISSIONS, Severity.UNKNOWN)
_ACCOUNT = GroupKind("", "ServiceAccount")
_TOKEN_SECRET, _TOKEN_OF = "kubernetes.io/service-account-token", "kubernetes.io/service-account.name"
# serviceAccountName, operatorServiceAccount, serviceAccountRef, serviceAccounts ...
_NAMING = "serviceaccount"
_NOT_WISHED = frozenset({"apiVersion", "kind", "metadata", "status"})
_ACCOUNT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Use:
    """One place where the bundle takes a ServiceAccount: `how` it does, `path` leads there."""

    ref: ObjectRef
    path: FieldPath
    namespace: str
    name: str
    how: str

    @property
    def account(self) -> tuple[str, str]:
        return self.namespace, self.name

    def finding(self, rule: ReviewRule, variant: str, *key: str, **params: Any) -> Finding:
        params |= {"use": self.how, "account": f"{self.namespace}/{self.name}"}
        return rule.finding(variant, self.ref, where=self.path, key=[self.namespace, self.name, *key], **params)


def find_uses(state: StateFacts) -> Iterator[Use]:
    """Yield every account that pods, tokens and custom resources of a bundle take; each object takes one once."""
    for pod in pod_specs(state.objects):
        yield Use(pod.ref, pod.path, pod.ref.namespace or state.install_namespace, pod.account, "runs-as")
    for ref, obj in state.named:
        if ref.group_kind == SECRET and obj.get("type") == _TOKEN_SECRET:
            name = str(value_at(obj, "metadata", "annotations", _TOKEN_OF) or "")
            yield Use(ref, ("type",), ref.namespace, name, "holds-token")
        elif ref.group not in BUILT_IN_RESOURCES:
            # Operators make pods of custom resources, as the accounts that those name.
            places: dict[tuple[str, str], FieldPath] = {}
            wished = {key: value for key, value in obj.items() if key not in _NOT_WISHED}
            for path, namespace, name in _find_named_accounts(wished, ()):
                places.setdefault((namespace or ref.namespace or state.install_namespace, name), path)
            for (namespace, name), path in places.items():
                yield Use(ref, path, namespace, name, "names")


def _find_named_accounts(value: object, path: FieldPath) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield (path, namespace or "", name) of each account in a value; how deep it is, the loader has limited."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            found = _read_accounts(inner) if _NAMING in str(key).lower() else []
            if found:
                yield from (((*path, str(key)), *account) for account in found)
            else:
                yield from _find_named_accounts(inner, (*path, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_named_accounts(inner, (*path, index))


def _read_accounts(value: object) -> list[tuple[str, str]]:
    """Return (namespace or "", name) of each account: a name, an object with one, or a list of these."""
    found = []
    for entry in value if isinstance(value, list) else [value]:
        about = mapping(entry) if "name" in mapping(entry) else mapping(mapping(entry).get("metadata"))
        namespace, name = str(about.get("namespace") or ""), str(about.get("name") or "")
        if isinstance(entry, str):
            namespace, name = "", entry
        if _ACCOUNT_NAME.fullmatch(name):
            found.append((namespace, name))
    return found


def judge_named_accounts(state: StateFacts) -> Iterator[Finding]:
    """Find what runs as an account that is known by its name alone: installers, and those of the control plane."""
    for use in find_uses(state):
        if variant := _find_why_strong(state, use.account):
            yield use.finding(_STRONG, variant, advice=advice_of(_STRONG))


def _find_why_strong(state: StateFacts, account: tuple[str, str]) -> str:
    """Return why an account can get round approvals; "" where its name does not say that it can."""
    if account in state.installers:
        return "installer"
    namespace, name = account
    if namespace != CONTROL_PLANE or name == _DEFAULT:
        return ""
    own = {(ref.namespace, ref.name) for ref, _ in state.named if ref.group_kind == _ACCOUNT}
    return "" if account in own else "control-plane"


def compare_strong_accounts(facts: Facts) -> Iterator[Finding]:
    """Find what runs as an account to which roles and bindings that are not the bundle's give power over Pratique.

    Where nobody could read these, that is said of each account.
    """
    state, before = facts.state(), facts.previous_state()
    uses = list(find_uses(state))
    taken = {use.account for use in uses}
    for ref, _ in state.named:
        # An account that the bundle carries and that nothing in it takes: something else may.
        namespace = ref.namespace or state.install_namespace
        if ref.group_kind == _ACCOUNT and (namespace, ref.name) not in taken:
            uses.append(Use(ref, (), namespace, ref.name, "carried"))
    uses = [use for use in uses if not _find_why_strong(state, use.account)]
    if not uses or facts.is_offline:
        return
    if facts.live_rbac is None:
        first: dict[tuple[str, str], Use] = {}
        for use in uses:
            first.setdefault(use.account, use)
        yield from (use.finding(_UNKNOWN, "unread", "unknown") for use in first.values())
        return
    known = {(use.ref.identity, use.account) for use in find_uses(before)}
    judge, held = find_judge(facts), dict[tuple[str, str], list[tuple[ReviewRule, str, str, dict[str, Any]]]]()
    for use in uses:
        if use.account not in held:
            held[use.account] = _judge_account(judge, use.account)
        for rule, variant, key, params in held[use.account]:
            is_new = (use.ref.identity, use.account) not in known
            yield replace(use.finding(rule, variant, key, **params), is_new=is_new)


def _judge_account(judge: Judge, account: tuple[str, str]) -> list[tuple[ReviewRule, str, str, dict[str, Any]]]:
    """Return what one account holds by roles and bindings that are not the bundle's: (rule, variant, key, values)."""
    namespace, name = account
    grants, powers, unread = judge.held(RbacSubject("ServiceAccount", name, namespace))
    found: list[tuple[ReviewRule, str, str, dict[str, Any]]] = []
    if powers:
        by = ways_of(grants, judge.files)
        params = {**describe_powers(powers), "by": by, "advice": advice_of(_STRONG)}
        found.append((replace(_STRONG, severity=weigh(powers)), "strong", "live", params))
    if unread:
        found.append((_UNKNOWN, "partly-known", "unread", {"problems": tuple(unread)[:3]}))
    return found


CHECK = Check(
    "accounts of the bundle",
    changes=compare_strong_accounts,
    standing=judge_named_accounts,
    reads=frozenset({Reads.ROLES}),
)
