"""JSON, packed: the column of a report before 0019, and what is encrypted since (approvals.encryption.fields)."""

from __future__ import annotations

import gc
import json
import zlib
from typing import TYPE_CHECKING, Any

import orjson
from django.db import models

# The fastest: texts that repeat, as those of a report do, get little smaller with more.
LEVEL = 1
# From so many bytes of text on, memory counts more than time: a report of a bundle of 100 MB has four times as many.
LARGE = 32 * 1024 * 1024

if TYPE_CHECKING:
    Base = models.BinaryField[Any, Any]
else:
    Base = models.BinaryField


class PackedJSONField(Base):
    """A JSON value that is only read and written as a whole, as zlib's bytes of its UTF-8.

    A report holds both states of every object of a bundle: as a column of JSON it would take ten times the room, and
    several copies of that in a worker's memory, and could hold no NUL, which objects of a cluster may.
    """

    description = "JSON, packed"

    def get_prep_value(self, value: Any) -> bytes | None:
        return None if value is None else pack(value)

    def from_db_value(self, value: bytes | memoryview | None, *_: object) -> Any:
        return None if value is None else unpack(value)

    def to_python(self, value: Any) -> Any:
        """A fixture holds the text that `value_to_string` wrote."""
        return _loads(value) if isinstance(value, str) else value

    def value_to_string(self, obj: models.Model) -> str:
        return _written(self.value_from_object(obj)).decode()


def pack(value: Any) -> bytes:
    return zlib.compress(_written(value), LEVEL)


def unpack(packed: bytes | memoryview) -> Any:
    text = zlib.decompress(packed)
    del packed
    if len(text) < LARGE:
        return _loads(text)
    # What orjson works in holds the text twice more, and what is not used of it is still taken from the machine.
    decoded = text.decode()
    del text
    return json.loads(decoded)


def _written(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # whole numbers past 64 bits, as PostgreSQL's jsonb makes of 1e20, and what is nested past 254
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _loads(text: str | bytes) -> Any:
    """What is made has no cycles, and to look for some while a large report is read takes longer than to read it."""
    gc.disable()
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # the same
        return json.loads(text)
    finally:
        gc.enable()  # whatever other threads do: what they read, they read with it for a moment
