"""How reports are written as JSON: indented down to the entries of their lists, and each of these on one line.

A schema lies forty levels deep, so that indenting all of it makes several times as much of a report about CRDs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def as_json(record: Any) -> str:
    """One JSON document with sorted keys, as text that ends with a newline."""
    return "".join(_written(record, "\n")) + "\n"


def _written(value: Any, line: str) -> Iterator[str]:
    """`line` ends a line and begins the next one."""
    deeper = f"{line}  "
    if isinstance(value, dict) and value:
        for number, key in enumerate(sorted(value)):
            yield f"{',' if number else '{'}{deeper}{json.dumps(key)}: "
            yield from _written(value[key], deeper)
        yield f"{line}}}"
    elif isinstance(value, list) and value:
        for number, entry in enumerate(value):
            yield f"{',' if number else '['}{deeper}{json.dumps(entry, sort_keys=True)}"
        yield f"{line}]"
    else:
        yield json.dumps(value)
