"""A strict tar reader: regular files and folders only, every header bounded before it is read.

The standard library's reader takes a damaged header for the end of the archive, and reads an extended header of any
size into memory; both are the wrong answer for content that somebody is about to approve. Formats: v7, ustar, GNU
(long names) and pax.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from provisioner.errors import InvalidArchive, UnsafePath
from provisioner.unpack.meter import CHUNK_BYTES, Keeper, Metered, UnpackMeter

T = TypeVar("T")
BLOCK = 512
LARGEST_HEADER_BYTES = 1024 * 1024
REGULAR = frozenset({b"0", b"\0", b"7"})
FOLDER = b"5"
PAX = frozenset({b"x", b"X"})
PAX_GLOBAL = b"g"
LONG_NAME, LONG_LINK = b"L", b"K"
REFUSED = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a pipe",
    b"S": "a sparse file",
}


@dataclass(frozen=True, slots=True)
class _Header:
    name: bytes
    size: int
    type: bytes


def is_tar(block: bytes) -> bool:
    """Whether `block`, the first 512 bytes, is a tar header by its checksum, or the end mark of an empty archive."""
    if len(block) < BLOCK:
        return False
    return not any(block[:BLOCK]) or _has_checksum(block[:BLOCK])


def tar_entries(stream: Metered, meter: UnpackMeter, keeper: Keeper[T]) -> Iterator[tuple[str, T | None]]:
    """(path, what was kept) of every file and (path, None) of every folder, in the archive's order.

    What the keeper does not want is passed over, whatever it is.
    Raises UnsafePath, InvalidArchive and BundleTooLarge, naming the entry.
    """
    extended: dict[str, bytes] = {}
    while True:
        header = _next_header(stream)
        if header is None:
            return
        if header.type in PAX or header.type in (PAX_GLOBAL, LONG_NAME, LONG_LINK):
            extended |= _extension(header, stream)
            continue
        name = extended.get("path") or header.name
        size = header.size
        if words := extended.get("size"):
            if not words.isdigit() or len(words) > 20:
                raise InvalidArchive(f"{_quoted(name)}: its size is no number")
            size = int(words)
        header = _Header(name, size, header.type)
        extended = {}
        if keeper.wants(header.name.decode("utf-8", "backslashreplace").removeprefix("./").strip("/")):
            yield _entry(header, stream, meter, keeper)
        else:
            meter.count(_quoted(header.name))
            if header.type in REGULAR or header.type == b"S":
                for _ in _pieces(header, stream):
                    pass


def _next_header(stream: Metered) -> _Header | None:
    """The next header; None at the end mark, after which nothing but zeros may come."""
    block = stream.read(BLOCK)
    if len(block) < BLOCK:
        raise InvalidArchive("it is cut off: it ends without tar's end mark")
    if any(block):
        if not _has_checksum(block):
            raise InvalidArchive("it is damaged: a tar header has the wrong checksum")
        name = _until_nul(block[:100])
        if block[257:263] == b"ustar\0" and (prefix := _until_nul(block[345:500])):
            name = prefix + b"/" + name
        octal = block[124:136].strip(b" \0")
        if block[124] == 0x80:  # GNU's base 256
            return _Header(name, int.from_bytes(block[125:136], "big"), block[156:157])
        if any(digit not in b"01234567" for digit in octal):
            raise InvalidArchive(f"{_quoted(name)}: its size is no number")
        return _Header(name, int(octal or b"0", 8), block[156:157])
    while rest := stream.read(CHUNK_BYTES):
        if any(rest):
            raise InvalidArchive("something follows the end of the tar archive")
    return None


def _has_checksum(block: bytes) -> bool:
    words = block[148:156].strip(b" \0")
    if not words or any(digit not in b"01234567" for digit in words):
        return False
    return int(words, 8) == sum(block) - sum(block[148:156]) + 8 * ord(" ")


def _until_nul(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _extension(header: _Header, stream: Metered) -> dict[str, bytes]:
    """What an extended header says of the entry that follows it."""
    if header.size > LARGEST_HEADER_BYTES:
        raise InvalidArchive(
            f"{_quoted(header.name)}: an extended header has {header.size} bytes; the most is {LARGEST_HEADER_BYTES}"
        )
    data = b"".join(_pieces(header, stream))
    if header.type == LONG_NAME:
        return {"path": _until_nul(data)}
    if header.type == LONG_LINK:
        return {}
    records: dict[str, bytes] = {}
    at = 0
    while at < len(data) and data[at] != 0:  # each record of pax is `length key=value\n`
        length, space, _ = data[at : at + 20].partition(b" ")
        end = at + int(length) if space and length.isdigit() else 0
        key, equals, value = data[at + len(length) + 1 : end].partition(b"=")
        if not equals or end > len(data) or not value.endswith(b"\n"):
            raise InvalidArchive(f"{_quoted(header.name)}: an extended header is damaged")
        records[key.decode("utf-8", "replace")] = value[:-1]
        at = end
    if header.type == PAX_GLOBAL:
        if records.keys() & {"path", "size"}:
            raise InvalidArchive(f"{_quoted(header.name)}: a global header gives every entry the same name or size")
        return {}
    if sparse := next((key for key in records if key.startswith("GNU.sparse")), None):
        raise UnsafePath(
            f"{_quoted(records.get('path', b''))} is a sparse file ({sparse}); expected regular files only"
        )
    return records


def _entry(header: _Header, stream: Metered, meter: UnpackMeter, keeper: Keeper[T]) -> tuple[str, T | None]:
    try:
        name = header.name.decode("utf-8")
    except UnicodeDecodeError:
        raise UnsafePath(f"{_quoted(header.name)}: its name is not UTF-8") from None
    path = meter.path_of(name)
    meter.count(path)
    is_folder = header.type == FOLDER or (header.type == b"\0" and name.endswith("/"))
    if is_folder and header.size == 0:
        return path, None
    if is_folder or header.type not in REGULAR:
        kind = "a folder with contents" if is_folder else REFUSED.get(header.type, "a special file")
        raise UnsafePath(f"{name!r} is {kind}; expected regular files only")
    if not path or name.endswith("/"):
        raise UnsafePath(f"{name!r} is a file with the name of a folder")
    meter.check_file(header.size, path)
    meter.take(header.size, path)
    return path, keeper.keep(path, _pieces(header, stream))


def _pieces(header: _Header, stream: Metered) -> Iterator[bytes]:
    """The contents, piece by piece, to the end of their last block."""
    left = header.size
    while left and (piece := stream.read(min(left, CHUNK_BYTES))):
        left -= len(piece)
        yield piece
    padding = -header.size % BLOCK
    if left or len(stream.read(padding)) != padding:
        raise InvalidArchive(f"{_quoted(header.name)}: the archive is cut off in the middle of it")


def _quoted(name: bytes) -> str:
    return repr(name[:80].decode("utf-8", "backslashreplace"))
