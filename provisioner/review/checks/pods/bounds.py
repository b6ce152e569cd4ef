"""What watches and bounds containers that stay: probes that change or go, requests and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.changes import FieldChange
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, maps, said
from provisioner.review.base.sizes import amount_of
from provisioner.review.workloads.pod_changes import PodChange, change_words, field_changes, of_containers, pod_changes
from provisioner.review.workloads.pod_specs import Container, PodSpec
from provisioner.sentences import some_phrases
from provisioner.values import Finding, Section, Severity

_CHANGED = ReviewRule("POD-34", Section.PODS, Severity.NOTABLE)
MAX_TOLD = 3
_PROBES = {"livenessProbe": "liveness probe", "readinessProbe": "readiness probe", "startupProbe": "startup probe"}
# What the API server puts where nothing, or zero, is said.
_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def _changes(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        told = list(_told(change))
        if told:
            message = f"{said(change.ref)} has other probes, requests or limits: {some_phrases(told, MAX_TOLD)}"
            yield _CHANGED.at(change.ref, message, evidence={"changes": told}, key=told)


def _told(change: PodChange) -> Iterator[str]:
    for old, new in change.kept():
        yield from _of_probes(old, new)
        yield from (f"{new.name}: {words}" for words in _of_resources(old.body, new.body))
    yield from (f"the pod: {words}" for words in _of_resources(change.before.body, change.after.body))
    before, after = (_empty_volumes(one) for one in (change.before, change.after))
    for name in (one for one in after if one in before):
        changes = field_changes(before[name], after[name])
        yield from (f"the volume {name}: {change_words(one)}" for one in changes if not _is_same_amount(one))


def _empty_volumes(pod: PodSpec) -> dict[str, Mapping[str, Any]]:
    volumes = maps(pod.body.get("volumes"))
    return {str(one.get("name")): mapping(one["emptyDir"]) for one in volumes if one.get("emptyDir") is not None}


def _is_same_amount(change: FieldChange) -> bool:
    before, after = amount_of(change.before), amount_of(change.after)
    return before is not None and before == after


def _of_probes(old: Container, new: Container) -> Iterator[str]:
    for key, word in _PROBES.items():
        before, after = (_probe(mapping(one.body.get(key))) for one in (old, new))
        if before and not after:
            yield f"{new.name} has no {word} any more"
        elif after and not before:
            yield f"{new.name} has a new {word}: {', '.join(change_words(one) for one in field_changes({}, after))}"
        else:
            yield from (f"{word} of {new.name}: {change_words(one)}" for one in field_changes(before, after))


def _probe(probe: Mapping[str, Any]) -> dict[str, Any]:
    """A probe without what says the same as its absence."""
    stated = {key: value for key, value in probe.items() if value and _DEFAULTS.get(key) != value}
    if request := mapping(stated.get("httpGet")):
        usual = {"scheme": "HTTP", "path": "/"}
        stated["httpGet"] = {key: value for key, value in request.items() if value and usual.get(key) != value}
    return stated


def _of_resources(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Requests and limits whose amounts differ, however they are written."""
    for part in ("limits", "requests"):
        before, after = (mapping(mapping(one.get("resources")).get(part)) for one in (old, new))
        for name in sorted({*before, *after}, key=str):
            was, shall = before.get(name), after.get(name)
            if was != shall and (amount_of(was) is None or amount_of(was) != amount_of(shall)):
                said_before, said_after = (str(one) if one is not None else "none" for one in (was, shall))
                yield f"{name} {part.removesuffix('s')} {said_before} → {said_after}"


_CLAIMS = (
    of_containers("POD-34", *_PROBES, "resources.limits", "resources.requests"),
    Claim("POD-34", PODS, ("{pod}.resources.limits", "{pod}.resources.requests", "{pod}.volumes.*.emptyDir")),
)
CHECK = Check("bounds", changes=_changes, claims=_CLAIMS)
