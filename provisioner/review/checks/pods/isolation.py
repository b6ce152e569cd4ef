"""What keeps containers apart, from each other and from their node: shared processes, files of the image
that become writable, and a runtime that goes."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, said
from provisioner.review.workloads.pod_changes import of_containers, pod_changes
from provisioner.review.workloads.pod_specs import Container, pod_specs
from provisioner.sentences import some
from provisioner.values import Finding, Section, Severity

_READ_ONLY = "readOnlyRootFilesystem"
_WEAKER = ReviewRule("POD-38", Section.PODS, Severity.NOTABLE)


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        if pod.body.get("shareProcessNamespace") is True:
            message = f"{said(pod.ref)} lets its containers see each other's processes, with their files and variables"
            yield _WEAKER.at(pod.ref, message, path=(*pod.path, "shareProcessNamespace"))


def _changes(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        writable = [new.name for old, new in change.kept() if _is_read_only(old) and not _is_read_only(new)]
        if writable:
            message = (
                f"{said(change.ref)} may newly write to the files of its image, its programs too ({some(writable)})"
            )
            yield _WEAKER.at(change.ref, message, evidence={"containers": writable}, key=["writable", *writable])
        old = str(change.before.body.get("runtimeClassName") or "")
        if old and not change.after.body.get("runtimeClassName"):
            message = (
                f"{said(change.ref)} runs in the usual runtime and no longer in {old}, which may have kept it apart"
            )
            path = (*change.after.path, "runtimeClassName")
            yield _WEAKER.at(change.ref, message, path=path, evidence={"before": old}, key=old)


def _is_read_only(container: Container) -> bool:
    return container.security.get(_READ_ONLY) is True


_CLAIMS = (
    Claim("POD-38", PODS, ("{pod}.shareProcessNamespace", "{pod}.runtimeClassName")),
    of_containers("POD-38", f"securityContext.{_READ_ONLY}"),
)
CHECK = Check("isolation", changes=_changes, standing=_standing, claims=_CLAIMS)
