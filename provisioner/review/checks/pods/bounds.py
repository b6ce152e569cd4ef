"""What watches and bounds containers that stay: probes that change or go, requests and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.difference import FieldChange
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, maps
from provisioner.review.base.sizes import amount_of
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.pod_specs import Container, PodSpec
from provisioner.review.workloads.workload_changes import (
    PROBES,
    PodChange,
    change_record,
    field_changes,
    of_containers,
    pod_changes,
    sides,
)
from provisioner.values import Finding, Section, Severity

_CHANGED = ReviewRule("POD-34", Section.PODS, Severity.NOTABLE)
# What the API server puts where nothing, or zero, is said.
_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def _changes(facts: Facts) -> Iterator[Finding]:
    for change in pod_changes(facts.plan):
        if found := list(_of_pod(change)):
            yield _CHANGED.finding("changed", change.ref, key=found, changes=found)


def _of_pod(change: PodChange) -> Iterator[dict[str, Any]]:
    for old, new in change.kept():
        yield from _of_probes(old, new)
        yield from ({"container": new.name, **found} for found in _of_resources(old.body, new.body))
    yield from _of_resources(change.before.body, change.after.body)
    before, after = (_empty_volumes(one) for one in (change.before, change.after))
    for name in (one for one in after if one in before):
        for one in field_changes(before[name], after[name]):
            if not _is_same_amount(one):
                yield {VARIANT: "volume", "volume": name, **change_record(one)}


def _empty_volumes(pod: PodSpec) -> dict[str, Mapping[str, Any]]:
    volumes = maps(pod.body.get("volumes"))
    return {str(one.get("name")): mapping(one["emptyDir"]) for one in volumes if one.get("emptyDir") is not None}


def _is_same_amount(change: FieldChange) -> bool:
    before, after = amount_of(change.before), amount_of(change.after)
    return before is not None and before == after


def _of_probes(old: Container, new: Container) -> Iterator[dict[str, Any]]:
    for key in PROBES:
        before, after = (_probe(mapping(one.body.get(key))) for one in (old, new))
        of, changes = {"container": new.name, "probe": key}, list(map(change_record, field_changes(before, after)))
        if before and not after:
            yield {VARIANT: "no-probe", **of}
        elif after and not before:
            yield {VARIANT: "new-probe", **of, "fields": changes}
        else:
            yield from ({VARIANT: "probe", **of, **one} for one in changes)


def _probe(probe: Mapping[str, Any]) -> dict[str, Any]:
    """A probe without what says the same as its absence."""
    stated = {key: value for key, value in probe.items() if value and _DEFAULTS.get(key) != value}
    if request := mapping(stated.get("httpGet")):
        usual = {"scheme": "HTTP", "path": "/"}
        stated["httpGet"] = {key: value for key, value in request.items() if value and usual.get(key) != value}
    return stated


def _of_resources(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Requests and limits whose amounts differ, however they are written."""
    for part in ("limits", "requests"):
        before, after = (mapping(mapping(one.get("resources")).get(part)) for one in (old, new))
        for name in sorted({*before, *after}, key=str):
            was, shall = before.get(name), after.get(name)
            if was != shall and (amount_of(was) is None or amount_of(was) != amount_of(shall)):
                yield {VARIANT: "resource", "resource": name, "part": part, **sides(was, shall)}


_CLAIMS = (
    of_containers("POD-34", *PROBES, "resources.limits", "resources.requests"),
    Claim("POD-34", PODS, ("{pod}.resources.limits", "{pod}.resources.requests", "{pod}.volumes.*.emptyDir")),
)
CHECK = Check("bounds", changes=_changes, claims=_CLAIMS)
