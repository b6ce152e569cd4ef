"""The lines of roles that a finding about rights comes from: of a rule with forty resources the one that frightens.

Pure. What a finding is about itself is shown by `lines`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner import rbac

# So many rules of roles are shown with a finding; its evidence lists all of them.
MAX_RULES = 3
_NAMING = ("verbs", "resources", "resourceNames", "nonResourceURLs")
_MAX_NAME = 200


def rules_behind(evidence: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The role and the number of each rule by which the rights of a finding come, at most MAX_RULES."""
    ways = evidence.get("by")
    found = (
        (str(one["origin"]), int(one["rule"]))
        for one in (ways if isinstance(ways, list | tuple) else ())
        if isinstance(one, Mapping) and "origin" in one and "rule" in one
    )
    return list(dict.fromkeys(found))[:MAX_RULES]


def names_in(rule: str, evidence: Mapping[str, Any]) -> frozenset[str]:
    """What the lines of a finding have to name: of a risk what makes it one, else the words of its evidence."""
    return rbac.names_of_risk(rule) or frozenset(_words(evidence))


def _words(evidence: Mapping[str, Any]) -> Iterator[str]:
    for name, value in evidence.items():
        if isinstance(value, str):
            yield value[:_MAX_NAME]
        elif isinstance(value, list | tuple):
            yield from (one[:_MAX_NAME] for one in value if isinstance(one, str))
            gained = (one for one in value if name == "added" and isinstance(one, Mapping))
            yield from (str(word) for one in gained for part in _NAMING for word in one.get(part) or ())
