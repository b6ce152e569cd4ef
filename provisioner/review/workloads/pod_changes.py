"""Pods of objects that stay, as they were and as they will be, and what of them is stated at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.masking import masked_value
from provisioner.review.base.changes import ABSENT, FieldChange, changed_paths
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.places import path_text
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.values import Action, ObjectRef, Plan

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
STAYING = frozenset({Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})


def of_containers(rule: str, *fields: str) -> Claim:
    """The claim of a rule to fields of all containers of pods."""
    return Claim(rule, PODS, tuple(f"{{pod}}.{name}.*.{field}" for name in CONTAINER_LISTS for field in fields))


@dataclass(frozen=True, slots=True)
class PodChange:
    """The pods of one object that stays, before and after; they may be the same."""

    before: PodSpec
    after: PodSpec

    @property
    def ref(self) -> ObjectRef:
        return self.after.ref

    def kept(self) -> Iterator[tuple[Container, Container]]:
        """The containers that both sides have, by their names."""
        old = containers_by_name(self.before)
        for key, container in containers_by_name(self.after).items():
            if key in old:
                yield old[key], container


def pod_changes(plan: Plan) -> Iterator[PodChange]:
    """The pods of every object that stays, in the order of the plan."""
    for planned in plan.actions:
        if planned.action in STAYING and planned.before is not None and planned.after is not None:
            for old, new in zip(pod_specs((planned.before,)), pod_specs((planned.after,)), strict=False):
                yield PodChange(old, new)


def containers_by_name(pod: PodSpec) -> dict[tuple[str, str], Container]:
    """By the list in which each stands and its name."""
    return {(one.list_name, one.name): one for one in pod.containers()}


def field_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldChange]:
    """The smallest fields that differ. What is null counts as absent, as the API server has it."""
    return changed_paths(_stated(old), _stated(new))


def change_record(change: FieldChange) -> dict[str, str]:
    """Path, `before` and `after`, as far as there are values, without what is named or written like a credential."""
    name, both = str(change.path[-1]) if change.path else "", (change.before, change.after)
    before, after = (None if one == ABSENT else _in_one_line(masked_value(one, name)) for one in both)
    return {"path": path_text(change.path), **sides(before, after)}


def sides(before: Any, after: Any) -> dict[str, Any]:
    """`before` and `after`, as far as there is one."""
    return {side: one for side, one in (("before", before), ("after", after)) if one is not None}


def _in_one_line(value: object) -> str:
    """A value as people write it in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_in_one_line(inner)}" for key, inner in value.items()) or "{}"
    if isinstance(value, list):
        return "; ".join(map(_in_one_line, value)) or "[]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _stated(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _stated(inner) for key, inner in value.items() if inner is not None}
    return [_stated(one) for one in value] if isinstance(value, list) else value
