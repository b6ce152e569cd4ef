"""Which of the settings are secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from approvals.project.configuration.table import PREFIX, SETTINGS
from approvals.project.configuration.texts import words

# Settings whose whole value is a secret; of every other one that is an address, its password is.
SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|KEY|DSN|WEBHOOK_URL")


def secrets_of(values: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Iterator[str]:
    """What no log line may hold: secrets, keys and tokens, as given and as read, and the passwords of addresses."""
    source = os.environ if environ is None else environ
    for setting in SETTINGS:
        if SECRET.search(setting.name):
            yield from words(source.get(PREFIX + setting.name, ""))
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            if SECRET.search(name):
                yield text
            elif "://" in text and (password := urlsplit(text).password):
                yield from (password, unquote(password))
