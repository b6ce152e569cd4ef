"""What keeps containers apart, from each other and from their node: shared processes, files of the image
that become writable, a runtime that goes, and the user that they run as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import PodChange, of_containers, pod_changes, sides
from provisioner.values import Finding, Section, Severity

_READ_ONLY = "readOnlyRootFilesystem"
_WEAKER = ReviewRule("POD-38", Section.PODS, Severity.NOTABLE)
_OTHER_USER = ReviewRule("POD-16", Section.PODS, Severity.NOTABLE)
_USER = "runAsUser"


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
        yield from _of_users(change)


def _of_runtime(change: PodChange) -> Iterator[Finding]:
    old, new = (str(one.body.get("runtimeClassName") or "") for one in (change.before, change.after))
    if old and old != new:
        where, key = (*change.after.path, "runtimeClassName"), [old, new] if new else old
        yield _WEAKER.finding("other-runtime", change.ref, where=where, key=key, before=old, after=new or None)


def _of_users(change: PodChange) -> Iterator[Finding]:
    """Containers whose processes have another owner; of user 0 POD-16 says it whatever was before."""
    found = []
    for old, new in change.kept():
        before, after = _user(change.before, old), _user(change.after, new)
        if after not in (before, 0):
            found.append({"container": new.name, **sides(before, after)})
    if found:
        yield _OTHER_USER.finding("other-user", change.ref, key=found, users=found)


def _user(pod: PodSpec, container: Container) -> object:
    own = container.security.get(_USER)
    return own if own is not None else pod.security.get(_USER)


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
