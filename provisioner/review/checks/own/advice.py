"""What to do about power over Pratique: once for all findings that say the same, so it stands in their evidence."""

from __future__ import annotations

ADVICE = "advice"  # in a finding's evidence
LIMIT_RIGHTS = "Limit these rights to the namespaces that the program works in, or have a person approve them"
EXCLUDE_NAMESPACES = (
    "Exclude these namespaces by a namespaceSelector (kubernetes.io/metadata.name NotIn), or have a person approve it"
)
BRING_THEM = "Put what it creates into the bundle itself, or have a person approve it who knows what it names"
OWN_ACCOUNT = "Give the program an account of its own with only the rights that it needs"
