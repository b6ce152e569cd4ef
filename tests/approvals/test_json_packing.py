"""A JSON value that is packed is the same when it is read again, and the collector of cycles goes on after that."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from approvals.json_packing import pack, unpack

DEEP: list[Any] = []
for _ in range(300):
    DEEP = [DEEP]


@pytest.mark.parametrize("value", [{"a": [1, "\0", None]}, 10**20, DEEP], ids=["usual", "past 64 bits", "nested"])
def test_what_is_packed_is_read_again(value: Any) -> None:
    assert unpack(pack(value)) == value
    assert gc.isenabled()


def test_what_cannot_be_read_leaves_the_collector_on() -> None:
    with pytest.raises(json.JSONDecodeError):
        unpack(b"x\x9c\x8b\x06\x00\x00\\\x00\\")  # a bracket that nobody closes
    assert gc.isenabled()
