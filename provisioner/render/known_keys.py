"""Keys of `spec.config` and of what is in it: those that nobody knows are refused, with the one that is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from provisioner.errors import BadConfig
from provisioner.escaping import visible
from provisioner.sentences import some

# What every format takes, beside its own keys.
PATCH_KEYS = ("patches", "namespace", "namePrefix", "commonLabels", "images")
MAX_NAME, SHOWN = 80, 3


def check_keys(value: Mapping[str, Any], known: Sequence[str], where: str, taker: str) -> None:
    """Raise BadConfig unless each key of `value`, which stands at `where`, is a known one."""
    if unknown := sorted(set(map(str, value)) - set(known)):
        raise BadConfig(f"{where} has {_name_with_meant(unknown, known)}; {taker} takes {', '.join(known)}")


def check_config_keys(config: Mapping[str, Any], known: Sequence[str], taker: str) -> None:
    """The same for `spec.config` of a format, whose own keys are `known`."""
    if unknown := sorted(set(map(str, config)) - {*known, *PATCH_KEYS}):
        names, own = _name_with_meant(unknown, [*known, *PATCH_KEYS]), ", ".join(known)
        raise BadConfig(f"config has {names}; {taker} takes {own}, and every format {', '.join(PATCH_KEYS)}")


def _name_with_meant(unknown: Sequence[str], known: Sequence[str]) -> str:
    """The first of these, each with what is probably meant: a hostile config has thousands."""
    lower = {name.lower(): name for name in known}
    found = []
    for name in unknown[:SHOWN]:
        meant = get_close_matches(name[:MAX_NAME].lower(), lower, 1)
        found.append(visible(name[:MAX_NAME]) + (f" (did you mean {lower[meant[0]]}?)" if meant else ""))
    return some(found, SHOWN, total=len(unknown))
