"""Packs by hand: what git would never send, and how much of it is unpacked before we stop."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.errors import BundleTooLarge, InvalidArchive
from provisioner.source.pack import objects_of

BLOB, OFFSET_DELTA, REF_DELTA = 3, 6, 7
MIB = 1024 * 1024


def number(size: int) -> bytes:
    out = bytearray()
    while True:
        out.append(size & 0x7F | (0x80 if size >> 7 else 0))
        size >>= 7
        if not size:
            return bytes(out)


def entry(kind: int, data: bytes, *, base: bytes = b"", claimed: int | None = None) -> bytes:
    size = len(data) if claimed is None else claimed
    more = size >> 4
    head = bytes([kind << 4 | size & 15 | (0x80 if more else 0)]) + (number(more) if more else b"")
    return head + base + zlib.compress(data, 9)


def pack(*entries: bytes, count: int | None = None) -> bytes:
    body = b"PACK\0\0\0\2" + (len(entries) if count is None else count).to_bytes(4, "big") + b"".join(entries)
    return body + hashlib.sha1(body).digest()


def copy(offset: int, size: int) -> bytes:
    """The instruction that copies a piece of the base."""
    return bytes([0xFF]) + offset.to_bytes(4, "little") + size.to_bytes(3, "little")


def delta(base: bytes, result_size: int, *instructions: bytes) -> bytes:
    return number(len(base)) + number(result_size) + b"".join(instructions)


def distance(back: int) -> bytes:
    """How far back a base is, in git's way of counting, up to 16511."""
    return bytes([back]) if back < 128 else bytes([0x80 | (back - 128) >> 7, (back - 128) & 0x7F])


def name_of(data: bytes) -> bytes:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).digest()


def datas(packed: bytes, most: int = 10 * MIB) -> list[bytes]:
    return sorted(one.data for one in objects_of(packed, most).values())


BASE = bytes(range(256)) * 4


def test_objects_and_deltas_of_both_kinds_are_put_together() -> None:
    made = b"new" + BASE[:100]
    by_name = entry(REF_DELTA, delta(BASE, len(made), b"\x03new", copy(0, 100)), base=name_of(BASE))
    whole = entry(BLOB, BASE)
    assert datas(pack(whole, by_name)) == sorted([BASE, made])
    by_place = entry(OFFSET_DELTA, delta(BASE, 5, copy(0, 5)), base=distance(len(whole)))
    assert datas(pack(whole, by_place)) == sorted([BASE, BASE[:5]])


def test_a_delta_may_come_before_its_base() -> None:
    first = entry(REF_DELTA, delta(BASE, 5, copy(0, 5)), base=name_of(BASE))
    assert datas(pack(first, entry(BLOB, BASE))) == sorted([BASE, BASE[:5]])


def test_a_chain_of_ten_thousand_deltas_is_followed() -> None:
    entries, last = [entry(BLOB, b"0000")], b"0000"
    for count in range(1, 10_000):
        made = b"%04d" % count
        entries.append(entry(REF_DELTA, delta(last, 4, b"\x04" + made), base=name_of(last)))
        last = made
    assert len(objects_of(pack(*reversed(entries)), MIB)) == 10_000


DAMAGED = {
    "nothing": b"",
    "no pack": b"PACKAGE" + bytes(40),
    "a wrong checksum": pack(entry(BLOB, b"x"))[:-1] + b"?",
    "cut off": pack(entry(BLOB, BASE))[:-30],
    "too few objects": pack(entry(BLOB, b"x"), count=2),
    "too many objects": pack(entry(BLOB, b"x"), entry(BLOB, b"y"), count=1),
    "a type that does not exist": pack(entry(5, b"x")),
    "more bytes than claimed": pack(entry(BLOB, b"xxxx", claimed=3)),
    "fewer bytes than claimed": pack(entry(BLOB, b"xxxx", claimed=5)),
    "no zlib": pack(b"\x31" + b"garbage garbage garbage garbage"),
    "an endless number": pack(b"\xb0" + b"\x80" * 50),
    "an endless distance": pack(b"\x60" + b"\x80" * 50),
    "a delta of nothing": pack(entry(REF_DELTA, delta(BASE, 5, copy(0, 5)), base=bytes(20))),
    "a delta before the pack": pack(entry(OFFSET_DELTA, delta(BASE, 5, copy(0, 5)), base=b"\x7f")),
    "a delta of itself": pack(entry(OFFSET_DELTA, delta(BASE, 5, copy(0, 5)), base=b"\x00")),
    "a delta of another base": pack(entry(BLOB, BASE), entry(REF_DELTA, delta(b"x", 5, copy(0, 5)), base=name_of(BASE))),
    "a delta beyond its base": pack(entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, 9, copy(1020, 9)), base=name_of(BASE))),
    "a delta that makes less": pack(entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, 9, copy(0, 5)), base=name_of(BASE))),
    "a delta that makes more": pack(entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, 3, copy(0, 5)), base=name_of(BASE))),
    "a delta that is cut off": pack(entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, 5, b"\x05abc"), base=name_of(BASE))),
    "a copy that is cut off": pack(entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, 5, b"\xff\x00"), base=name_of(BASE))),
    "the reserved instruction": pack(entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, 5, b"\x00"), base=name_of(BASE))),
    "an empty delta": pack(entry(BLOB, BASE), entry(REF_DELTA, b"", base=name_of(BASE))),
}  # fmt: skip


@pytest.mark.parametrize("packed", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_pack_is_refused(packed: bytes) -> None:
    with pytest.raises(InvalidArchive, match="git pack"):
        objects_of(packed, MIB)


def _delta_bomb() -> bytes:
    base = os.urandom(64 * 1024)
    many = delta(base, 64 * 1024 * 5000, *[copy(0, 64 * 1024)] * 5000)
    return pack(entry(BLOB, base), entry(REF_DELTA, many, base=name_of(base)))


def _chain_bomb() -> bytes:
    """Each delta doubles its base."""
    entries, last = [entry(BLOB, bytes(65536))], bytes(65536)
    for _ in range(8):
        doubled = last + last
        entries.append(
            entry(REF_DELTA, delta(last, len(doubled), copy(0, len(last)), copy(0, len(last))), base=name_of(last))
        )
        last = doubled
    return pack(*entries)


BOMBS = {
    "an object of zeros": pack(entry(BLOB, bytes(100 * MIB))),
    "a delta that copies a lot": _delta_bomb(),
    "deltas that double": _chain_bomb(),
    "a delta that lies about its size": pack(
        entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, 2**40, copy(0, 1024)), base=name_of(BASE))
    ),
    "more objects than any repository has": pack(count=10_000_000),
}


@pytest.mark.parametrize("packed", BOMBS.values(), ids=BOMBS)
def test_a_pack_that_unpacks_to_too_much_stops_early(packed: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BundleTooLarge):
            objects_of(packed, 10 * MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * MIB


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_pack_with_flipped_bytes_is_refused_or_read_but_never_a_crash(data: st.DataObject) -> None:
    made = b"new" + BASE[:100]
    packed = bytearray(
        pack(entry(BLOB, BASE), entry(REF_DELTA, delta(BASE, len(made), b"\x03new", copy(0, 100)), base=name_of(BASE)))
    )
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(8, len(packed) - 21))] = data.draw(st.integers(0, 255))
    packed[-20:] = hashlib.sha1(packed[:-20]).digest()
    try:
        objects_of(bytes(packed), MIB)
    except (InvalidArchive, BundleTooLarge):
        return
