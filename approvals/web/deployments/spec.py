"""What a spec asks for beyond the fields that have a line of their own on the page. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from approvals.bundle_spec import UpgradePolicy
from provisioner.masking import masked_states
from provisioner.render import write

SHORT_LINES = 12
# What follows where a catalog offers something newer, the default first.
UPGRADE_WORDS = {
    UpgradePolicy.REQUEST: "a newer version makes a request that people decide on",
    UpgradePolicy.MANUAL: "a newer version is only shown, and taken when somebody asks for it",
    UpgradePolicy.AUTOMATIC: "a newer version makes a request that grants may approve, too",
}
OWN_LINES = frozenset(
    {
        "paused",
        "format",
        "config",
        "sources",
        "installNamespace",
        "serviceAccountName",
        "healthChecks",
        "progressDeadlineMinutes",
        "onFailure",
        "drift",
        "collisionProtection",
        "constraints",
        "upgradePolicy",
    }
)


@dataclass(frozen=True, slots=True)
class FoldedYaml:
    """A part of a spec as YAML, which stands folded where it is long. Values that look like credentials are hidden."""

    title: str
    text: str

    @property
    def is_short(self) -> bool:
        return self.text.count("\n") <= SHORT_LINES


def folded_yaml(spec: Mapping[str, Any]) -> list[FoldedYaml]:
    """The config of the format, and the fields that few specs have."""
    parts = {
        "Config": spec.get("config"),
        "Other fields": {key: value for key, value in sorted(spec.items()) if key not in OWN_LINES},
    }
    return [FoldedYaml(title, write(_masked(part))) for title, part in parts.items() if part]


def _masked(part: Any) -> Any:
    shown, _ = masked_states(part, part)
    return shown
