"""How a parent and its child speak over their pipes: a length, a JSON text, and what bytes it says follow."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

HEAD = struct.Struct("!QQ")  # how many bytes the JSON text has, and those that follow it


def packed_frame(message: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> bytes:
    """One message; the contents of `files` are sent as they are, after their paths and sizes."""
    files = files or {}
    text = json.dumps({**message, "files": [(path, len(data)) for path, data in files.items()]}).encode()
    return b"".join([HEAD.pack(len(text), sum(map(len, files.values()))), text, *files.values()])


def read_frame(read_bytes: Callable[[int], bytes]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The next message with its files; raises what `read_bytes` raises, which has to give exactly so many bytes."""
    size, following = HEAD.unpack(read_bytes(HEAD.size))
    message = json.loads(read_bytes(size))
    data, files, start = read_bytes(following), {}, 0
    for path, length in message.pop("files"):
        files[path] = data[start : start + length]
        start += length
    return message, files
