"""Kubernetes' order of version names."""

from __future__ import annotations

import re

NAME = re.compile(r"v([1-9][0-9]{0,62})(?:(alpha|beta)([1-9][0-9]{0,62}))?")
STAGES = {"alpha": 0, "beta": 1, "": 2}


def kube_order(name: str) -> tuple[int, ...]:
    """A sort key, the most preferred last: v1alpha1, v1beta1, v1, v2; names of another form first, from z to a."""
    found = NAME.fullmatch(name)
    if found is None:
        return (0, *(-ord(char) for char in name), 1)
    return (1, STAGES[found[2] or ""], int(found[1]), int(found[3] or 0))
