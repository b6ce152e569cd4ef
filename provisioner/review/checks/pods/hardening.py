"""Security contexts that become stricter: what they forbid from now on can stop a program that did it so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.mounts import mounts_of
from provisioner.review.workloads.pod_security import TABLE
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import PodChange, pod_changes
from provisioner.values import Finding, Section, Severity

_STRICTER = ReviewRule("POD-39", Section.PODS, Severity.NOTABLE)
_HARDLY = ReviewRule("POD-39", Section.PODS, Severity.SAFE)
_CONTRADICTION = ReviewRule("POD-39", Section.PODS, Severity.BREAKING)
# Few programs of images use sudo or setuid.
_NO_ESCALATION = "no-escalation"
# Rows of Pod Security whose failures that go are told here; of the others commands, probes and mounts tell.
_GIVEN_UP = frozenset({"POD-01", "POD-02", "POD-03", "POD-06", "POD-08", "POD-09", "POD-10", "POD-11", "POD-12"})
# Kinds of volumes that stay read-only whatever their mount says.
_NEVER_WRITABLE = frozenset({"configMap", "secret", "projected", "downwardAPI", "image"})


def _standing(state: StateFacts) -> Iterator[Finding]:
    """Containers that must not run as root, and are told to."""
    for pod in pod_specs(state.objects):
        containers = [one.name for one in pod.containers() if _must_not_be_root(pod, one) and _user(pod, one) == 0]
        if containers:
            yield _CONTRADICTION.finding("root", pod.ref, where=pod.path, key=containers, containers=containers)


def _changes(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        if changes := list(_stricter(change)):
            rule = _STRICTER if any(one[VARIANT] != _NO_ESCALATION for one in changes) else _HARDLY
            yield rule.finding("stricter", change.ref, key=changes, changes=changes)


def _stricter(change: PodChange) -> Iterator[dict[str, Any]]:
    """What the containers that stay must not do any more, as POD-39 names it."""
    kept = list(change.kept())
    read_only: dict[tuple[str, ...], list[str]] = {}
    closed: dict[tuple[str, ...], list[str]] = {}
    lost: dict[tuple[str, ...], list[str]] = {}
    for old, new in kept:
        left = {one.path for one in mounts_of(change.after, new)} - set(_writable(change.after, new))
        if shut := left & set(_writable(change.before, old)):
            closed.setdefault(tuple(sorted(shut)), []).append(new.name)
        if _flag(new, "readOnlyRootFilesystem") is True and _flag(old, "readOnlyRootFilesystem") is not True:
            read_only.setdefault(tuple(_writable(change.after, new)), []).append(new.name)
        if gone := _lost(old, new):
            lost.setdefault(tuple(sorted(gone)), []).append(new.name)
    for paths, containers in read_only.items():
        yield {VARIANT: "read-only", "containers": containers, "paths": list(paths)}
    for paths, containers in closed.items():
        yield {VARIANT: "read-only-mounts", "containers": containers, "paths": list(paths)}
    unsure = [new.name for old, new in kept if _is_unsure(change.after, new) and not _is_unsure(change.before, old)]
    if unsure:
        yield {VARIANT: "non-root", "containers": unsure}
    for capabilities, containers in lost.items():
        yield {VARIANT: "capabilities", "containers": containers, "capabilities": list(capabilities)}
    for row in TABLE:
        were, are = ({what for _, what in row.failures(pod)} for pod in (change.before, change.after))
        if row.id in _GIVEN_UP and were - are:
            yield {VARIANT: "given-up", "check": row.check, "items": sorted(were - are)}
    if confined := [new.name for old, new in kept if _gains_nothing(new) and not _gains_nothing(old)]:
        yield {VARIANT: _NO_ESCALATION, "containers": confined}


def _flag(container: Container, field: str) -> object:
    return container.security.get(field)


def _gains_nothing(container: Container) -> bool:
    return _flag(container, "allowPrivilegeEscalation") is False


def _lost(old: Container, new: Container) -> set[str]:
    """The capabilities that it loses: added before and not now, or dropped now and not before; ALL is all of them."""
    before, after = _capabilities(old, "drop"), _capabilities(new, "drop")
    return (_capabilities(old, "add") - _capabilities(new, "add")) | (set() if "ALL" in before else after - before)


def _capabilities(container: Container, field: str) -> set[str]:
    """Without their prefix, and nothing beside ALL."""
    listed: Mapping[str, Any] = mapping(container.security.get("capabilities"))
    found = {str(one).upper().removeprefix("CAP_") for one in items(listed.get(field))}
    return {"ALL"} if "ALL" in found else found


def _writable(pod: PodSpec, container: Container) -> list[str]:
    """Where volumes stand that the container may write to."""
    found = (one for one in mounts_of(pod, container) if one.kind not in _NEVER_WRITABLE)
    return sorted(one.path for one in found if "read-only" not in one.how)


def _is_unsure(pod: PodSpec, container: Container) -> bool:
    """Whether only the image says as whom it runs, where it must not be root."""
    return _must_not_be_root(pod, container) and _user(pod, container) is None


def _must_not_be_root(pod: PodSpec, container: Container) -> bool:
    own = container.security.get("runAsNonRoot")
    return (pod.security.get("runAsNonRoot") if own is None else own) is True


def _user(pod: PodSpec, container: Container) -> object:
    own = container.security.get("runAsUser")
    return pod.security.get("runAsUser") if own is None else own


CHECK = Check("hardening", changes=_changes, standing=_standing)
