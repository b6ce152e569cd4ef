"""All settings, read from the environment of the process."""

from __future__ import annotations

import os
from typing import Any

from approvals.buckets.location import check_location
from approvals.project.configuration.table import PREFIX, SETTINGS
from approvals.project.configuration.together import check_metrics, check_names_apart, check_people_join


def read(environ: dict[str, str] | None = None) -> dict[str, Any]:
    """All settings by name; raises ValueError naming the variable that cannot be read."""
    source = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        text = source.get(PREFIX + setting.name, setting.default)
        try:
            values[setting.name] = setting.parse(text)
        except ValueError as exc:
            raise ValueError(f"{PREFIX}{setting.name}: {exc}") from exc
    check_metrics(values)
    check_location(values)
    check_names_apart(values)
    check_people_join(values)
    return values
