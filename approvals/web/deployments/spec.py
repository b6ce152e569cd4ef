"""What a spec asks for beyond the fields that have a line of their own on the page. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import template

from approvals.source_refs import UpgradePolicy, catalogs_named, upgrade_policy
from provisioner.masking import masked_states
from provisioner.render import write

# Filters of the templates of these pages.
register = template.Library()

DEFAULT_FORMAT = "plain"
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


def format_of(spec: Mapping[str, Any]) -> str:
    return str(spec.get("format") or DEFAULT_FORMAT)


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


DRIFT_WORDS = {"going": "is being deleted", "gone": "is gone", "remade": "was recreated by someone else"}
ASKS = {"condition": "condition", "fieldValue": "field", "cel": "CEL"}


@register.filter
def upgrade_words(spec: Mapping[str, Any]) -> tuple[str, str] | None:
    """The `upgradePolicy` that counts and what it means; None for a spec that names no catalog."""
    policy = upgrade_policy(spec)
    return (policy, UPGRADE_WORDS[policy]) if catalogs_named(spec) else None


@register.filter
def drift_words(kind: str) -> str:
    """What happened to an object, for people."""
    return DRIFT_WORDS.get(kind, "was changed" if kind == "changed" else "got fields from other managers")


@register.filter
def check_words(entry: object) -> str:
    """What one entry of `spec.healthChecks` asks, whatever its shape."""
    if not isinstance(entry, Mapping):
        return str(entry)
    place = "/".join(str(entry[key]) for key in ("namespace", "name") if entry.get(key))
    asked = next((name for name in ASKS if isinstance(entry.get(name), Mapping)), "")
    what = ", ".join(f"{key}: {value}" for key, value in entry[asked].items()) if asked else "nothing"
    return f"{entry.get('kind')} {place}".strip() + f": {ASKS.get(asked, 'asks for')} {what}"
