"""What the API server wrote down of who wrote a spec: the annotation of deploy/admission. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.values import Identity

ANNOTATION = f"{OWN_GROUP}/written-by"
# Who tries, in a dry-run, whether a forged stamp is refused: the webhook leaves that as it comes.
PROBE = "pratique-probe"
# As the columns that keep them; a longer name is nobody's that we could record.
MAX_NAME = 253
_LENGTH = re.compile(r"(0|[1-9][0-9]{0,6}):", re.ASCII)


def stamp_of(obj: Mapping[str, Any]) -> str:
    """The stamp of an object, "" where it has none."""
    return str((obj["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


def identity_in(stamp: str) -> Identity | None:
    """Whom a stamp names; None where it is none, or names somebody who cannot be recorded."""
    parts, at = [], 0
    while at < len(stamp):
        length = _LENGTH.match(stamp, at)
        if length is None:
            return None
        end = length.end() + int(length[1])
        if stamp[end : end + 1] != ",":
            return None
        parts.append(stamp[length.end() : end])
        at = end + 1
    if len(parts) < 2 or not parts[0]:
        return None
    if "\0" in stamp or len(parts[0]) > MAX_NAME or len(parts[1]) > MAX_NAME:
        return None
    return Identity(parts[0], tuple(parts[2:]), parts[1])


def stamp_for(parts: Iterable[str]) -> str:
    """As the policy writes it: user name, uid and groups, each with its length in characters before it."""
    return "".join(f"{len(part)}:{part}," for part in parts)
