"""Archives by hand: well made ones from files, and broken ones from headers that no tool would write."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping

from backports.zstd import compress as zstd

BLOCK = 512
END = bytes(2 * BLOCK)


def tar(files: Mapping[str, bytes], *, form: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar of members as they are, links and devices included."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def member(
    name: str, kind: bytes = tarfile.REGTYPE, target: str = "", data: bytes = b""
) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type = kind
    made.linkname = target
    return made, data


def header(name: bytes = b"a.yaml", *, size: bytes = b"00000000000\0", kind: bytes = b"0") -> bytes:
    """One ustar header block with a right checksum; `size` is the raw field of 12 bytes."""
    block = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size + b"00000000000\0" + b" " * 8 + kind
    block = (block.ljust(257, b"\0") + b"ustar\x0000").ljust(BLOCK, b"\0")
    return block[:148] + f"{sum(block):06o}\0 ".encode() + block[156:]


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def octal(size: int) -> bytes:
    return f"{size:011o}\0".encode()


def pax(records: bytes, *, kind: bytes = b"x", claimed: int | None = None) -> bytes:
    """An extended header whose size field says `claimed` bytes, and that holds `records`."""
    size = len(records) if claimed is None else claimed
    return header(b"pax", size=octal(size), kind=kind) + padded(records)


def record(key: str, value: bytes) -> bytes:
    rest = b" " + key.encode() + b"=" + value + b"\n"
    length = len(rest) + 1
    while len(str(length)) + len(rest) != length:
        length += 1
    return str(length).encode() + rest


def tar_gz(files: Mapping[str, bytes]) -> bytes:
    return gzip.compress(tar(files), mtime=0)


def tar_zst(files: Mapping[str, bytes]) -> bytes:
    return zstd(tar(files))


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


PACKERS: dict[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "tar": tar,
    "tar, ustar": lambda files: tar(files, form=tarfile.USTAR_FORMAT),
    "tar, gnu": lambda files: tar(files, form=tarfile.GNU_FORMAT),
    "tar.gz": tar_gz,
    "tar.gz of two members": lambda files: _two_members(tar(files)),
    "tar.zst": tar_zst,
    "zip": zipped,
    "zip, stored": lambda files: zipped(files, zipfile.ZIP_STORED),
}


def _two_members(data: bytes) -> bytes:
    return gzip.compress(data[:700], mtime=0) + gzip.compress(data[700:], mtime=0)


class RawZip:
    """A zip whose fields are what the test says, not what is true."""

    def __init__(self) -> None:
        self._local = b""
        self._directory = b""
        self._count = 0

    def add(
        self,
        name: bytes,
        data: bytes,
        *,
        method: int = 8,
        flags: int = 0,
        size: int | None = None,
        at: int | None = None,
        local_name: bytes | None = None,
        crc: int | None = None,
        mode: int = 0o100644,
    ) -> RawZip:
        """One entry; `size` is the claimed unpacked size, `at` the claimed place of its local header."""
        body = _deflated(data) if method == 8 else data
        told = len(data) if size is None else size
        checksum = zlib.crc32(data) if crc is None else crc
        fields = struct.pack("<HHHHHIII", 20, flags, method, 0, 0, checksum, len(body), told)
        place = len(self._local) if at is None else at
        if at is None:
            inner = name if local_name is None else local_name
            self._local += b"PK\x03\x04" + fields + struct.pack("<HH", len(inner), 0) + inner + body
        self._directory += b"PK\x01\x02" + struct.pack("<H", 3 << 8 | 20) + fields
        self._directory += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, mode << 16, place) + name
        self._count += 1
        return self

    def done(self, *, count: int | None = None, tail: bytes = b"") -> bytes:
        told = self._count if count is None else count
        end = struct.pack("<HHHHIIH", 0, 0, told, told, len(self._directory), len(self._local), 0)
        return self._local + self._directory + b"PK\x05\x06" + end + tail


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()
