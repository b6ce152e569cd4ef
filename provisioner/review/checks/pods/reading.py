"""Secrets that pods did not read before and that the bundle neither brings nor makes: those of somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import SECRET, Check, Facts, Reads, ReviewRule
from provisioner.review.rights.accounts import Makers
from provisioner.review.workloads.pod_specs import Mention, PodSpec, mentions, pod_specs
from provisioner.review.workloads.workload_changes import of_containers, pod_changes
from provisioner.values import Action, Finding, ObjectIdentity, ObjectRef, Section, Severity

_FOREIGN = ReviewRule("POD-30", Section.PODS, Severity.DANGEROUS)
_PERHAPS_OWN = ReviewRule("POD-30", Section.PODS, Severity.NOTABLE)


@dataclass(frozen=True, slots=True)
class _Secrets:
    """Whose Secrets are: what the bundle brings, and what pods of it read before."""

    facts: Facts
    own: frozenset[ObjectIdentity]
    makers: Makers

    @classmethod
    def of(cls, facts: Facts) -> _Secrets:
        brought = {one.ref.identity for one in facts.content.manifests}
        read = {one.ref.identity for pod in pod_specs(facts.previous_state().objects) for one in _read(pod)}
        return cls(facts, frozenset(brought | read), Makers(facts))

    def others(self, pod: PodSpec) -> list[Mention]:
        """The Secrets that a pod reads and that are not the bundle's."""
        return [one for one in _read(pod) if one.ref.identity not in self.own and not self.makers.with_result(one.ref)]

    def may_be_made(self, one: Mention) -> bool:
        """Whether pods of the bundle may make it; what is in the cluster already nobody makes."""
        return not self.facts.around.exists.get(one.ref.identity) and bool(self.makers.able(one))


def _changes(facts: Facts) -> Iterator[Finding]:
    secrets = _Secrets.of(facts)
    for change in pod_changes(facts.plan):
        before = {one.ref.identity for one in _read(change.before)}
        yield from _of_pod(change.after, secrets, before)
    new = {one.ref.identity for one in facts.plan.actions if one.action is Action.CREATE}
    for pod in pod_specs(facts.state().objects):
        if pod.ref.identity in new:
            yield from _of_pod(pod, secrets, set())


def _read(pod: PodSpec) -> list[Mention]:
    """The Secrets that the containers of a pod see, each once."""
    found = (one for one in mentions(pod) if one.is_read and one.ref.group_kind == SECRET)
    return list({one.ref.identity: one for one in found}.values())


def _of_pod(pod: PodSpec, secrets: _Secrets, known: set[ObjectIdentity]) -> Iterator[Finding]:
    """In a first request nothing was read before, and people may have made what its pods need."""
    found = [one for one in secrets.others(pod) if one.ref.identity not in known]
    made = sorted(one.ref.name for one in found if secrets.may_be_made(one))
    foreign = sorted(one.ref.name for one in found if one.ref.name not in made)
    if variant := "-and-".join([*(["foreign"] if foreign else []), *(["perhaps-made"] if made else [])]):
        rule = _FOREIGN if foreign and secrets.facts.previous is not None else _PERHAPS_OWN
        both = sorted({*foreign, *made})
        yield rule.finding(variant, pod.ref, key=[foreign, made], secrets=both, foreign=foreign, made=made)


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    """Whether a Secret that the bundle does not bring is in the cluster already says whose it is."""
    brought = {one.ref.identity for one in facts.content.manifests}
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        yield from (one.ref for one in _read(pod) if pod.ref.namespace and one.ref.identity not in brought)


_CLAIMS = (
    Claim("POD-30", PODS, ("{pod}.volumes.*.secret", "{pod}.volumes.*.projected.sources.*.secret")),
    of_containers("POD-30", "env.*.valueFrom.secretKeyRef", "envFrom.*.secretRef"),
)
CHECK = Check("reading", changes=_changes, mentions=_mentions, claims=_CLAIMS, reads=frozenset({Reads.ROLES}))
