"""Objects that the control plane and all nodes go by, which a bundle creates, changes or deletes (SYS-01)."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, what_it_says
from provisioner.review.checks.governance.well_known_table import WellKnown, well_known
from provisioner.review.checks.own.own import part_of_cluster
from provisioner.values import Action, Finding, ObjectIdentity, ObjectRef, PlannedAction, Section

_ACTIONS = {Action.CREATE, Action.UPDATE, Action.REPLACE, Action.RERUN, Action.ADOPT, Action.DELETE}
_SLICE = "EndpointSlice"
_OF_SERVICE = "kubernetes.io/service-name"


def _changes(facts: Facts) -> Iterator[Finding]:
    contents = (facts.previous.manifests if facts.previous else ()), facts.content.manifests
    old, new = ({one.ref.identity: what_it_says(one.body) for one in side} for side in contents)
    told = {identity for identity, held in new.items() if held != old.get(identity)}
    for planned in facts.plan.actions:
        known = _known(planned)
        if known is None or planned.action not in _ACTIONS or _is_said(planned, told, facts):
            continue
        rule, action = ReviewRule("SYS-01", Section.OBJECTS, known.severity), str(planned.action)
        yield rule.finding("control-plane", planned.ref, key=action, action=action, why=known.why)


def _known(planned: PlannedAction) -> WellKnown | None:
    """Of a slice with whatever name the Service counts that it belongs to."""
    known = well_known(planned.ref)
    if known is None and planned.ref.kind == _SLICE:
        labels = mapping(mapping((planned.after or planned.before or {}).get("metadata")).get("labels"))
        service = ObjectRef("", "v1", "Service", planned.ref.namespace, str(labels.get(_OF_SERVICE) or ""))
        known = well_known(service)
    return known


def _is_said(planned: PlannedAction, told: set[ObjectIdentity], facts: Facts) -> bool:
    """Whether OWN-PRATIQUE-02 says it: of what goes, and of what is `told` for the first time, as it is now."""
    obj = planned.after or planned.before or {}
    is_own = bool(part_of_cluster(planned.ref, obj, facts.around.own_namespace))
    return is_own and (planned.action is Action.DELETE or planned.ref.identity in told)


CHECK = Check("objects of the control plane", changes=_changes)
