"""One rule of a Role or ClusterRole as a manifest writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.values import object_in

ANY = "*"
FIELDS = {
    "api_groups": "apiGroups",
    "resources": "resources",
    "non_resource_urls": "nonResourceURLs",
    "resource_names": "resourceNames",
    "verbs": "verbs",
}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a Role or ClusterRole; an empty tuple means what an absent list means to Kubernetes."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()

    @classmethod
    def from_object(cls, obj: Mapping[str, Any]) -> PolicyRule:
        """The rule as a manifest writes it.

        Raises InvalidManifest where a list of strings is something else: what such a rule grants cannot be told.
        """
        rule = object_in(obj, "a rule")
        return cls(**{name: _strings(rule, key) for name, key in FIELDS.items()})

    def to_object(self) -> dict[str, list[str]]:
        """The rule as a manifest writes it, empty lists left out but for `verbs`."""
        lists = {key: list(getattr(self, name)) for name, key in FIELDS.items()}
        return {key: values for key, values in lists.items() if values or key == "verbs"}

    def __str__(self) -> str:
        """The form of the API server's escalation messages."""
        parts = [
            f"{name}:[{' '.join(json.dumps(value, ensure_ascii=False) for value in values)}]"
            for name, values in (
                ("APIGroups", self.api_groups),
                ("Resources", self.resources),
                ("NonResourceURLs", self.non_resource_urls),
                ("ResourceNames", self.resource_names),
                ("Verbs", self.verbs),
            )
            if values
        ]
        return "{" + ", ".join(parts) + "}"


@dataclass(frozen=True, slots=True)
class OwnRules:
    """What somebody holds at one place, as the API server says. Where it is not `is_complete`, an authorizer could not
    list what it allows; `problem` says which."""

    rules: tuple[PolicyRule, ...]
    is_complete: bool = True
    problem: str = ""


FULL_AUTHORITY = (
    PolicyRule(verbs=(ANY,), api_groups=(ANY,), resources=(ANY,)),
    PolicyRule(verbs=(ANY,), non_resource_urls=(ANY,)),
)


def _strings(obj: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = obj.get(key)
    if values is None:
        return ()
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise InvalidManifest(f"{key} of a rule must be a list of strings, found {values!r}")
    return tuple(values)
