"""A git pack into objects in memory, every byte counted before it is unpacked.

dulwich speaks the protocol, but unpacks a pack as large as the pack says: an object of zeros or a delta that copies
the same megabyte ten thousand times would take the memory of the machine.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from dataclasses import dataclass, field

from provisioner.errors import BundleTooLarge, InvalidArchive

NAMES = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
OFFSET_DELTA, REF_DELTA = 6, 7
MAX_OBJECTS = 200_000
FEED_BYTES = 4096
HASH_BYTES = 20
LONGEST_NUMBER = 9


@dataclass(frozen=True, slots=True)
class GitObject:
    """`type` is commit, tree, blob or tag."""

    type: bytes
    data: bytes


@dataclass(slots=True)
class _Delta:
    place: int
    data: bytes


@dataclass(slots=True)
class _Unpacker:
    """The pack being read. `left` is how many bytes more its objects may have."""

    view: memoryview
    left: int
    objects: dict[str, GitObject] = field(default_factory=dict)
    by_place: dict[int, GitObject] = field(default_factory=dict)
    waiting: dict[int | str, list[_Delta]] = field(default_factory=lambda: defaultdict(list))

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise BundleTooLarge("its objects unpack to more than allowed (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)")


def objects_of(pack: bytes, max_bytes: int) -> dict[str, GitObject]:
    """The objects of a complete pack by their hash (40 hex digits).

    Raises InvalidArchive for a damaged pack, and BundleTooLarge when they are more than `max_bytes` together, deltas
    counted too.
    """
    body = memoryview(pack)[:-HASH_BYTES]
    if len(pack) < 32 or pack[:8] not in (b"PACK\0\0\0\2", b"PACK\0\0\0\3"):
        raise InvalidArchive("is no git pack")
    if hashlib.sha1(body, usedforsecurity=False).digest() != pack[-HASH_BYTES:]:
        raise InvalidArchive("the git pack is damaged: its checksum is wrong")
    count = int.from_bytes(pack[8:12], "big")
    if count > MAX_OBJECTS:
        raise BundleTooLarge(f"has {count} git objects; the limit is {MAX_OBJECTS}")
    unpacker = _Unpacker(body, max_bytes)
    try:
        at = 12
        for _ in range(count):
            at = _unpack_object(unpacker, at)
    except (IndexError, zlib.error) as exc:
        raise InvalidArchive(f"the git pack is damaged: {exc}") from exc
    if at != len(body) or any(unpacker.waiting.values()):
        raise InvalidArchive("the git pack is damaged: it is not complete")
    return unpacker.objects


def _unpack_object(unpacker: _Unpacker, at: int) -> int:
    """Unpack the object at `at`; returns where the next one begins."""
    view, place = unpacker.view, at
    first, at = view[at], at + 1
    kind, size = first >> 4 & 7, first & 15
    if first & 0x80:
        more, at = _size(view, at)
        size |= more << 4
    base: int | str | None = None
    if kind == OFFSET_DELTA:
        distance, end = -1, at + LONGEST_NUMBER
        while distance < 0 or view[at - 1] & 0x80:  # git's own way of counting
            if at == end:
                raise InvalidArchive("the git pack is damaged: a number is too long")
            distance, at = (distance + 1 << 7) | view[at] & 0x7F, at + 1
        base = place - distance
    elif kind == REF_DELTA:
        base, at = bytes(view[at : at + HASH_BYTES]).hex(), at + HASH_BYTES
    elif kind not in NAMES:
        raise InvalidArchive(f"the git pack is damaged: an object of type {kind}")
    unpacker.take(size)
    data, at = _inflated(view, at, size)
    if base is None:
        _add(unpacker, place, GitObject(NAMES[kind], data))
    else:
        delta = _Delta(place, data)
        known = unpacker.by_place.get(base) if isinstance(base, int) else unpacker.objects.get(base)
        if known is None:
            unpacker.waiting[base].append(delta)
        else:
            _add(unpacker, delta.place, _applied(unpacker, known, delta.data))
    return at


def _inflated(view: memoryview, at: int, size: int) -> tuple[bytes, int]:
    decoder = zlib.decompressobj()
    parts, found = [], 0
    while not decoder.eof:
        piece = view[at : at + FEED_BYTES]
        part = decoder.decompress(piece, size - found + 1)
        at += len(piece) - len(decoder.unconsumed_tail or decoder.unused_data)
        found += len(part)
        if found > size or (not piece and not decoder.eof):
            raise InvalidArchive(f"the git pack is damaged: an object has not the {size} bytes that it claims")
        parts.append(part)
    if found != size:
        raise InvalidArchive(f"the git pack is damaged: an object has {found} bytes and claims {size}")
    return b"".join(parts), at


def _add(unpacker: _Unpacker, place: int, added: GitObject) -> None:
    """Keep an object, and those that are made from it, however long the chain."""
    ready = [(place, added)]
    while ready:
        place, found = ready.pop()
        head = found.type + b" %d\0" % len(found.data)
        name = hashlib.sha1(head + found.data, usedforsecurity=False).hexdigest()
        unpacker.objects[name] = unpacker.by_place[place] = found
        waiting = (*unpacker.waiting.pop(place, ()), *unpacker.waiting.pop(name, ()))
        ready.extend((delta.place, _applied(unpacker, found, delta.data)) for delta in waiting)


def _applied(unpacker: _Unpacker, base: GitObject, delta: bytes) -> GitObject:
    base_size, at = _size(delta, 0)
    size, at = _size(delta, at)
    if base_size != len(base.data):
        raise InvalidArchive("the git pack is damaged: a delta has another base")
    unpacker.take(size)
    made = bytearray()
    while at < len(delta):
        part, at = _instruction(base.data, delta, at)
        made += part
        if len(made) > size:
            break
    if len(made) != size:
        raise InvalidArchive(f"the git pack is damaged: a delta does not make the {size} bytes that it claims")
    return GitObject(base.type, bytes(made))


def _instruction(base: bytes, delta: bytes, at: int) -> tuple[bytes, int]:
    """What one instruction of a delta gives: a piece of the base, or bytes of its own."""
    code = delta[at]
    at += 1
    if not code & 0x80:
        if code == 0 or at + code > len(delta):
            raise InvalidArchive("the git pack is damaged: a delta is cut off")
        return delta[at : at + code], at + code
    numbers = [0, 0]
    for bit in range(7):
        if code & 1 << bit:
            numbers[bit // 4] |= delta[at] << 8 * (bit % 4)
            at += 1
    start, size = numbers[0], numbers[1] or 0x10000
    if start + size > len(base):
        raise InvalidArchive("the git pack is damaged: a delta copies what its base does not have")
    return base[start : start + size], at


def _size(view: memoryview | bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first."""
    size = 0
    for shift in range(0, 7 * LONGEST_NUMBER, 7):
        size |= (view[at] & 0x7F) << shift
        at += 1
        if not view[at - 1] & 0x80:
            return size, at
    raise InvalidArchive("the git pack is damaged: a number is too long")
