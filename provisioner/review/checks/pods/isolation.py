"""What keeps containers apart, from each other and from their node: shared processes, and a runtime that goes."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, said
from provisioner.review.workloads.pod_changes import pod_changes
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import Finding, Section, Severity

_WEAKER = ReviewRule("POD-38", Section.PODS, Severity.NOTABLE)


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        if pod.body.get("shareProcessNamespace") is True:
            message = f"{said(pod.ref)} lets its containers see each other's processes, with their files and variables"
            yield _WEAKER.at(pod.ref, message, path=(*pod.path, "shareProcessNamespace"))


def _changes(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        old = str(change.before.body.get("runtimeClassName") or "")
        if old and not change.after.body.get("runtimeClassName"):
            message = (
                f"{said(change.ref)} runs in the usual runtime and no longer in {old}, which may have kept it apart"
            )
            path = (*change.after.path, "runtimeClassName")
            yield _WEAKER.at(change.ref, message, path=path, evidence={"before": old}, key=old)


_CLAIMS = (Claim("POD-38", PODS, ("{pod}.shareProcessNamespace", "{pod}.runtimeClassName")),)
CHECK = Check("isolation", changes=_changes, standing=_standing, claims=_CLAIMS)
