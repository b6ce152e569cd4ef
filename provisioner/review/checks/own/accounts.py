"""Whose power the workloads of a bundle get: the accounts that they run as, judged by what the cluster gives those."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.rbac import BUILT_IN_RESOURCES, CONTROL_PLANE, Means, RbacSubject, RoleProblem
from provisioner.review.base.facts import SECRET, Facts, ReviewRule, StateFacts, mapping
from provisioner.review.checks.own.advice import advice_of
from provisioner.review.checks.own.power import Judge, judge_of, told
from provisioner.review.rights.permission_words import ways_of
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

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
    path: tuple[str | int, ...]
    namespace: str
    name: str
    how: str

    @property
    def account(self) -> tuple[str, str]:
        return self.namespace, self.name

    def finding(self, rule: ReviewRule, variant: str, *key: str, **params: Any) -> Finding:
        params |= {"use": self.how, "account": f"{self.namespace}/{self.name}"}
        return rule.finding(variant, self.ref, where=self.path, key=[self.namespace, self.name, *key], **params)


def uses_of(state: StateFacts) -> Iterator[Use]:
    """Every account that pods, tokens and custom resources of a bundle take; each object takes one once."""
    for pod in pod_specs(state.objects):
        yield Use(pod.ref, pod.path, pod.ref.namespace or state.install_namespace, pod.account, "runs-as")
    for ref, obj in state.named:
        if ref.group_kind == SECRET and obj.get("type") == _TOKEN_SECRET:
            name = str(mapping(mapping(obj.get("metadata")).get("annotations")).get(_TOKEN_OF) or "")
            yield Use(ref, ("type",), ref.namespace, name, "holds-token")
        elif ref.group not in BUILT_IN_RESOURCES:
            yield from _of_custom_resource(ref, obj, state.install_namespace)


def _of_custom_resource(ref: ObjectRef, obj: JsonObject, install_namespace: str) -> Iterator[Use]:
    """Operators make pods of custom resources, as the accounts that those name."""
    places: dict[tuple[str, str], tuple[str | int, ...]] = {}
    for path, namespace, name in _named({key: value for key, value in obj.items() if key not in _NOT_WISHED}, ()):
        places.setdefault((namespace or ref.namespace or install_namespace, name), path)
    for (namespace, name), path in places.items():
        yield Use(ref, path, namespace, name, "names")


def _named(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """(path, namespace or "", name) of each account that stands in a value; how deep it is, the loader has limited."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            found = _references(inner) if _NAMING in str(key).lower() else []
            if found:
                yield from (((*path, str(key)), *one) for one in found)
            else:
                yield from _named(inner, (*path, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _named(inner, (*path, index))


def _references(value: object) -> list[tuple[str, str]]:
    """(namespace or "", name) of each account: a name, an object with one, or a list of these."""
    given = value if isinstance(value, list) else [value]
    return [found for one in given if (found := _reference(one))]


def _reference(value: object) -> tuple[str, str] | None:
    if isinstance(value, str):
        namespace, name = "", value
    else:
        about = mapping(value)
        about = about if "name" in about else mapping(about.get("metadata"))
        namespace, name = str(about.get("namespace") or ""), str(about.get("name") or "")
    return (namespace, name) if _ACCOUNT_NAME.fullmatch(name) else None


def of_named_accounts(state: StateFacts) -> Iterator[Finding]:
    """What runs as an account that is known by its name alone: installers, and those of the control plane."""
    for use in uses_of(state):
        if variant := _why_strong(state, use.account):
            yield use.finding(_STRONG, variant, advice=advice_of(_STRONG))


def _why_strong(state: StateFacts, account: tuple[str, str]) -> str:
    """Why an account can get round approvals; "" where its name does not say that it can."""
    if account in state.installers:
        return "installer"
    namespace, name = account
    own = {(ref.namespace, ref.name) for ref, _ in state.named if ref.group_kind == _ACCOUNT}
    if namespace == CONTROL_PLANE and name != _DEFAULT and account not in own:
        return "control-plane"
    return ""


def of_strong_accounts(facts: Facts) -> Iterator[Finding]:
    """What runs as an account to which roles and bindings that are not the bundle's give power over Pratique.

    Where nobody could read these, that is said of each account.
    """
    state, before = facts.state(), facts.previous_state()
    known = {(use.ref.identity, use.account) for use in uses_of(before)}
    uses = [use for use in _all_uses(state) if not _why_strong(state, use.account)]
    if not uses or facts.is_offline:
        return
    if facts.live_rbac is None:
        yield from _of_unread(uses)
        return
    judge = judge_of(facts)
    accounts = {account: _Held.of(judge, account) for account in dict.fromkeys(use.account for use in uses)}
    for use in uses:
        is_new = (use.ref.identity, use.account) not in known
        for found in accounts[use.account].findings(use):
            yield replace(found, is_new=is_new)


def _all_uses(state: StateFacts) -> Iterator[Use]:
    """With the accounts that the bundle carries and that nothing in it takes: something else may."""
    taken = set()
    for use in uses_of(state):
        taken.add(use.account)
        yield use
    for ref, _ in state.named:
        namespace = ref.namespace or state.install_namespace
        if ref.group_kind == _ACCOUNT and (namespace, ref.name) not in taken:
            yield Use(ref, (), namespace, ref.name, "carried")


@dataclass(frozen=True, slots=True)
class _Held:
    """What one account holds by roles and bindings that are not the bundle's."""

    powers: Mapping[str, Any]
    unread: tuple[RoleProblem, ...]
    severity: Severity

    @classmethod
    def of(cls, judge: Judge, account: tuple[str, str]) -> _Held:
        namespace, name = account
        grants, powers, unread = judge.held(RbacSubject("ServiceAccount", name, namespace))
        by = ways_of(grants, judge.files)
        held = {**told(powers), "by": by, "advice": advice_of(_STRONG)} if powers else {}
        only_destroys = all(one.means is Means.DESTROY for one in powers)
        severity = Severity.DANGEROUS if only_destroys else Severity.CRITICAL
        return cls(held, tuple(unread), severity)

    def findings(self, use: Use) -> Iterator[Finding]:
        if self.powers:
            yield replace(use.finding(_STRONG, "strong", "live", **self.powers), severity=self.severity)
        if self.unread:
            yield use.finding(_UNKNOWN, "partly-known", "unread", problems=self.unread[:3])


def _of_unread(uses: list[Use]) -> Iterator[Finding]:
    for namespace, name in dict.fromkeys(use.account for use in uses):
        use = next(one for one in uses if one.account == (namespace, name))
        yield use.finding(_UNKNOWN, "unread", "unknown")
