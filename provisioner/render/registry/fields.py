"""Fields of untrusted YAML, each with its type; the kinds that a bundle may hold, and the names that OLM would give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from provisioner.errors import InvalidManifest


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping, and the words for where it stands. Every method raises InvalidManifest for a value of another type.

    null is as good as no value, as in Go.
    """

    value: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, value: object, where: str) -> Fields:
        if not isinstance(value, Mapping):
            raise InvalidManifest(f"{where}: expected a mapping, found {_kind(value)}")
        return cls(value, where)

    def mapping(self, name: str) -> Fields:
        """The mapping at `name`; an empty one where there is none."""
        found = self.value.get(name)
        return Fields.of({} if found is None else found, f"{self.where}.{name}")

    def mappings(self, name: str) -> list[Fields]:
        """The members of the list at `name`, mappings all; none where there is none."""
        return [Fields.of(one, f"{self.where}.{name}[{number}]") for number, one in enumerate(self._list(name))]

    def text(self, name: str) -> str:
        """The text at `name`; "" where there is none."""
        found = self.value.get(name)
        if found is not None and not isinstance(found, str):
            raise InvalidManifest(f"{self.where}.{name}: expected text, found {_kind(found)}")
        return found or ""

    def texts(self, name: str) -> list[str]:
        found = self._list(name)
        if not all(isinstance(one, str) for one in found):
            raise InvalidManifest(f"{self.where}.{name}: expected a list of texts")
        return found

    def text_map(self, name: str) -> dict[str, str]:
        """Such as annotations: text by text. Go's types have "" for a value that is nothing."""
        found = {key: "" if value is None else value for key, value in self.mapping(name).value.items()}
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in found.items()):
            raise InvalidManifest(f"{self.where}.{name}: expected texts only")
        return found

    def whole_number(self, name: str) -> int:
        """The integer at `name`; 0 where there is none."""
        found = self.value.get(name)
        if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
            raise InvalidManifest(f"{self.where}.{name}: expected an integer, found {_kind(found)}")
        return found or 0

    def is_true(self, name: str) -> bool:
        found = self.value.get(name)
        if found is not None and not isinstance(found, bool):
            raise InvalidManifest(f"{self.where}.{name}: expected true or false, found {_kind(found)}")
        return bool(found)

    def _list(self, name: str) -> list[Any]:
        found = self.value.get(name)
        if found is not None and not isinstance(found, list):
            raise InvalidManifest(f"{self.where}.{name}: expected a list, found {_kind(found)}")
        return found or []


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


MAX_NAME_LENGTH = 63
# What Go's encoder writes as an escape though JSON does not ask for it.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def service_name(deployment: str) -> str:
    """The Service before the webhooks of a deployment."""
    return suffixed(deployment.replace(".", "-"), "service")


def certificate_name(deployment: str) -> str:
    """The Certificate of that Service, and the Secret that it is kept in."""
    return suffixed(service_name(deployment), "cert")


def suffixed(base: str, suffix: str) -> str:
    """`base-suffix`, with the end of `base` cut off where it would be longer than a label may be."""
    if len(base) + len(suffix) > MAX_NAME_LENGTH:
        base = base[: MAX_NAME_LENGTH - len(suffix) - 1]
    return f"{base}-{suffix}"


def go_json(value: Any) -> str:
    """JSON as Go writes it, for a value whose keys stand in Go's order."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign, escape in _ESCAPED.items():
        text = text.replace(sign, escape)
    return text


def ordered(value: Any) -> Any:
    """The value with its keys in Go's order."""
    if isinstance(value, Mapping):
        return {str(key): ordered(value[key]) for key in sorted(value, key=str)}
    return [ordered(one) for one in value] if isinstance(value, list) else value


SUPPORTED = MappingProxyType(
    {
        "ClusterRole": False,
        "ClusterRoleBinding": False,
        "ConfigMap": True,
        "ConsoleCLIDownload": False,
        "ConsoleLink": False,
        "ConsolePlugin": False,
        "ConsoleQuickStart": False,
        "ConsoleYAMLSample": False,
        "NetworkPolicy": True,
        "PodDisruptionBudget": True,
        "PriorityClass": False,
        "PrometheusRule": True,
        "Role": True,
        "RoleBinding": True,
        "Secret": True,
        "Service": True,
        "ServiceAccount": True,
        "ServiceMonitor": True,
        "VerticalPodAutoscaler": True,
    }
)
