"""Pods of objects that stay, as they were and as they will be, and what of them is stated at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.masking import masked_value
from provisioner.review.base.changes import ABSENT, MAX_VALUE_CHARACTERS, FieldChange, changed_paths
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.places import path_text
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.sentences import some_phrases
from provisioner.values import Action, ObjectRef, Plan

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
MAX_TOLD = 3
MAX_SAID = 60
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


def changes_words(changes: Sequence[FieldChange]) -> str:
    """The first of several changes, their values cut, as part of a sentence."""
    return some_phrases([change_words(one, MAX_SAID) for one in changes[:MAX_TOLD]], MAX_TOLD, total=len(changes))


def change_words(change: FieldChange, most: int = MAX_VALUE_CHARACTERS) -> str:
    """`limits.memory 1Gi → 512Mi`, without what is named or written like a credential."""
    name = str(change.path[-1]) if change.path else ""
    before, after = (_value_words(masked_value(one, name)) for one in (change.before, change.after))
    sides = (one if len(one) <= most else f"{one[:most]}…" for one in (before, after))
    return f"{path_text(change.path)} {' → '.join(sides)}"


def _value_words(value: object) -> str:
    """A value as people write it in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value_words(inner)}" for key, inner in value.items()) or "{}"
    if isinstance(value, list):
        return "; ".join(map(_value_words, value)) or "[]"
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value == ABSENT else str(value)


def _stated(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _stated(inner) for key, inner in value.items() if inner is not None}
    return [_stated(one) for one in value] if isinstance(value, list) else value
