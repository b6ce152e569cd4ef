"""What keeps containers apart, from each other and from their node: shared processes, files of the image
that become writable, a runtime that goes, the user that they run as, and other limits that Pod Security allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping
from provisioner.review.workloads.pod_changes import PodChange, of_containers, pod_changes, sides
from provisioner.review.workloads.pod_security import APPARMOR_ANNOTATION, TABLE, added_capabilities, selinux_words
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.values import Finding, Section, Severity

_READ_ONLY = "readOnlyRootFilesystem"
_WEAKER = ReviewRule("POD-38", Section.PODS, Severity.NOTABLE)
_ADDS = ReviewRule("POD-04", Section.PODS, Severity.NOTABLE)
_USER = "runAsUser"
# Of the others POD-39 says what they give up.
_ENDS_UNTOLD = "POD-16"
_ROWS = {row.id: row for row in TABLE}
_Limit = Callable[[PodSpec, Container], object]


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        if pod.body.get("shareProcessNamespace") is True:
            yield _WEAKER.finding("shared-processes", pod.ref, where=(*pod.path, "shareProcessNamespace"))


def _changes(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        writable = [new.name for old, new in change.kept() if _is_read_only(old) and not _is_read_only(new)]
        if writable:
            yield _WEAKER.finding("writable", change.ref, key=["writable", *writable], containers=writable)
        kept = {new.name: sorted(_dropped(old) - _dropped(new)) for old, new in change.kept()}
        if kept := {name: given for name, given in kept.items() if given and "ALL" not in given}:
            capabilities = sorted({one for given in kept.values() for one in given})
            told: dict[str, Any] = {"containers": [*kept], "capabilities": capabilities}
            yield _WEAKER.finding("capabilities", change.ref, key=["capabilities", kept], **told)
        yield from _of_runtime(change)
        for rule, limit_of in _LIMITS:
            yield from _of_limits(change, rule, limit_of)
        yield from _of_capabilities(change)


def _of_runtime(change: PodChange) -> Iterator[Finding]:
    old, new = (str(one.body.get("runtimeClassName") or "") for one in (change.before, change.after))
    if old and old != new:
        where, key = (*change.after.path, "runtimeClassName"), [old, new] if new else old
        yield _WEAKER.finding("other-runtime", change.ref, where=where, key=key, before=old, after=new or None)


def _of_limits(change: PodChange, rule: ReviewRule, limit_of: _Limit) -> Iterator[Finding]:
    """Containers that run as another user or by another profile than before, unless Pod Security speaks of the one or
    the other. What it forbids a container may now have from its pod, which had it before."""
    were, are = _failures(change, rule)
    told = are - were if rule.id == _ENDS_UNTOLD else are ^ were
    found = []
    for old, new in change.kept():
        before, after = limit_of(change.before, old), limit_of(change.after, new)
        names = {f"{of}{limit}" for of in ("", f"{new.name} ") for limit in (before, after)}
        if before != after and names.isdisjoint(told):
            found.append({"container": new.name, **sides(before, after)})
    is_forbidden = any(str(one.get("after")) in are for one in found)
    if found:
        yield (rule if is_forbidden else _milder(rule)).finding("other", change.ref, key=found, changes=found)


def _milder(rule: ReviewRule) -> ReviewRule:
    return ReviewRule(rule.id, rule.section, Severity.NOTABLE)


def _failures(change: PodChange, rule: ReviewRule) -> tuple[set[str], set[str]]:
    """What Pod Security says by this rule of the pods before and after."""
    failures = _ROWS[rule.id].failures
    return {what for _, what in failures(change.before)}, {what for _, what in failures(change.after)}


def _of_capabilities(change: PodChange) -> Iterator[Finding]:
    """Capabilities that the baseline allows, where they are added."""
    were, are = _failures(change, _ADDS)
    gained = {new.name: sorted(_added(new) - _added(old)) for old, new in change.kept()}
    found = [
        {"container": name, "capabilities": left}
        for name, added in gained.items()
        if (left := [one for one in added if f"{name} {one}" not in are - were])
    ]
    if found:
        yield _ADDS.finding("adds", change.ref, key=["adds", found], changes=found)


def _added(container: Container) -> set[str]:
    return set(added_capabilities(container))


def _apparmor(pod: PodSpec, container: Container) -> object:
    own, default = (mapping(one.get("appArmorProfile")).get("type") for one in (container.security, pod.security))
    return own or pod.annotations.get(f"{APPARMOR_ANNOTATION}{container.name}") or default or None


def _selinux(pod: PodSpec, container: Container) -> object:
    options = mapping(container.security.get("seLinuxOptions") or pod.security.get("seLinuxOptions"))
    return selinux_words(options) or None


def _seccomp(pod: PodSpec, container: Container) -> object:
    own, default = (mapping(one.get("seccompProfile")).get("type") for one in (container.security, pod.security))
    return own or default or None


def _user(pod: PodSpec, container: Container) -> object:
    own = container.security.get(_USER)
    return own if own is not None else pod.security.get(_USER)


_LIMITS = (
    (ReviewRule("POD-08", Section.PODS, Severity.DANGEROUS), _apparmor),
    (ReviewRule("POD-09", Section.PODS, Severity.DANGEROUS), _selinux),
    (ReviewRule("POD-11", Section.PODS, Severity.DANGEROUS), _seccomp),
    (ReviewRule("POD-16", Section.PODS, Severity.NOTABLE), _user),
)


def _dropped(container: Container) -> set[str]:
    """Capabilities that it drops; where ALL goes, POD-18 says so."""
    dropped = {str(one).upper() for one in items(mapping(container.security.get("capabilities")).get("drop"))}
    return {"ALL"} if "ALL" in dropped else dropped


def _is_read_only(container: Container) -> bool:
    return container.security.get(_READ_ONLY) is True


_CLAIMS = (
    Claim("POD-38", PODS, ("{pod}.shareProcessNamespace",), is_of_new=True),
    Claim("POD-38", PODS, ("{pod}.runtimeClassName",)),
    of_containers("POD-38", f"securityContext.{_READ_ONLY}"),
)
CHECK = Check("isolation", changes=_changes, standing=_standing, claims=_CLAIMS)
