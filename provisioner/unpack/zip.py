"""Zip archives: their directory is checked before the standard library reads them."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator
from typing import TypeVar

from provisioner.errors import BundleTooLarge, InvalidArchive, UnsafePath
from provisioner.unpack.meter import CHUNK_BYTES, FREE_BYTES, Keeper, ReadableLayer, UnpackMeter

T = TypeVar("T")
MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
END, ENTRY = b"PK\x05\x06", b"PK\x01\x02"
END_BYTES, LOCAL_BYTES = 22, 30
LONGEST_COMMENT = 65_535
METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
ENCRYPTED, UTF8 = 0x1 | 0x40 | 0x2000, 0x800
UNIX = 3


def zip_entries(data: bytes, meter: UnpackMeter, keeper: Keeper[T]) -> Iterator[tuple[str, T | None]]:
    """(path, what was kept) of every file and (path, None) of every folder, in the order of the archive's directory.

    What the keeper does not want is passed over.
    Raises UnsafePath, InvalidArchive and BundleTooLarge, naming the entry, and the errors of zipfile and zlib.
    """
    _check_directory(data, meter)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        # Two entries that share bytes: how a small archive unpacks to a huge one.
        by_place = sorted(members, key=lambda member: member.header_offset)
        starts = [*(member.header_offset for member in by_place[1:]), archive.start_dir]
        for member, following in zip(by_place, starts, strict=False):
            name_bytes = len(member.orig_filename.encode("utf-8" if member.flag_bits & UTF8 else "cp437"))
            if member.header_offset + LOCAL_BYTES + name_bytes + member.compress_size > following:
                raise InvalidArchive(f"{member.filename[:80]!r}: overlaps with another entry of the zip archive")
        seen = 0
        for member in members:
            if not keeper.wants(member.orig_filename.removeprefix("./").strip("/")):
                continue
            path, is_folder = _path(member, meter)
            if is_folder:
                yield path, None
                continue
            most = max(FREE_BYTES, meter.limits.max_ratio * len(data)) - seen
            with archive.open(member) as file:
                kept = keeper.keep(path, _pieces(file, path, meter, most=most, told=member.file_size))
            seen += member.file_size
            yield path, kept


def _check_directory(data: bytes, meter: UnpackMeter) -> None:
    """Refuse a directory that is larger than any bundle's may be, before one object per entry is made of it."""
    end = data.rfind(END, max(0, len(data) - END_BYTES - LONGEST_COMMENT))
    if end < 0 or len(data) - end < END_BYTES:
        raise InvalidArchive("it is cut off: there is no zip directory at its end")
    comment = int.from_bytes(data[end + 20 : end + 22], "little")
    if end + END_BYTES + comment != len(data):
        raise InvalidArchive("something follows the end of the zip archive")
    size = int.from_bytes(data[end + 12 : end + 16], "little")
    start = int.from_bytes(data[end + 16 : end + 20], "little")
    if 0xFFFFFFFF in (size, start) or data[end - 20 : end - 16] == b"PK\x06\x07":
        raise InvalidArchive("it has a zip64 directory, which only archives far larger than a bundle need")
    if start + size != end:
        raise InvalidArchive("it is damaged: its zip directory is not where it should be")
    if data.count(ENTRY, start, end) > meter.limits.max_entries:
        raise BundleTooLarge(f"the zip archive has more than {meter.limits.max_entries} entries (max_entries)")


def _path(member: zipfile.ZipInfo, meter: UnpackMeter) -> tuple[str, bool]:
    """The member's path, and whether it is a folder; raises what is wrong with it."""
    name = member.orig_filename  # zipfile's own is cut at a NUL
    if not member.flag_bits & UTF8:  # UTF-8 without its flag was taken for the code page
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeDecodeError:
            raise UnsafePath(f"{name!r}: its name is not UTF-8") from None
    path = meter.path_of(name)
    meter.count(path)
    is_folder = name.endswith("/")
    kind = stat.S_IFMT(member.external_attr >> 16) if member.create_system == UNIX else 0
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        what = "a symbolic link" if kind == stat.S_IFLNK else "a special file"
        raise UnsafePath(f"{name!r} is {what}; expected regular files only")
    if not path and not is_folder:
        raise UnsafePath(f"{name!r} is a file without a name")
    if is_folder and member.file_size:
        raise UnsafePath(f"{name!r} is a folder with contents")
    if member.flag_bits & ENCRYPTED:
        raise InvalidArchive(f"{path} is encrypted")
    if member.compress_type not in METHODS:
        raise InvalidArchive(f"{path} is packed with zip's method {member.compress_type}; expected stored or deflated")
    meter.check_file(member.file_size, path)
    return path, is_folder


def _pieces(file: ReadableLayer, path: str, meter: UnpackMeter, *, most: int, told: int) -> Iterator[bytes]:
    """What an entry really holds, piece by piece; InvalidArchive where that is not as much as its header has `told`."""
    size = 0
    while chunk := file.read(CHUNK_BYTES):
        size += len(chunk)
        meter.take(len(chunk), path)
        meter.check_file(size, path)
        if size > most:
            raise BundleTooLarge(
                f"{path}: the archive unpacks to more than {meter.limits.max_ratio} times its size (max_ratio)"
            )
        yield chunk
    if size != told:
        raise InvalidArchive(f"{path}: has {size} bytes; its header says {told}")
