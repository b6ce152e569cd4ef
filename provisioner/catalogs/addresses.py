"""The name of a package as one part of an address. PURE.

OLM refuses only an empty name, so a name can hold slashes, which servers take for the end of the part even where they
are percent-encoded, or be one or two dots, which browsers resolve. They are written as in a JSON Pointer (RFC 6901):
~1 is a slash, ~0 a tilde; and ~2 is a dot of a name that is nothing else.
"""

from __future__ import annotations

import re

_WRITTEN = {"~": "~0", "/": "~1"}
_MEANT = {"~0": "~", "~1": "/", "~2": "."}
_ESCAPE = re.compile("~[012]")
_FOLDERS = (".", "..")


def package_to_address(name: str) -> str:
    """What stands for the package in an address, before it is percent-encoded."""
    if name in _FOLDERS:
        return "~2" * len(name)
    return "".join(_WRITTEN.get(one, one) for one in name)


def package_of_address(part: str) -> str:
    """The name of the package that such a part stands for; a tilde that begins no escape is itself."""
    return _ESCAPE.sub(lambda found: _MEANT[found[0]], part)
