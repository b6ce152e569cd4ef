"""The form of everything encrypted: a header, then chunks, so that a content of 100 MB is never in memory twice.

Header: magic, id of the key, salt. Each envelope has a data key of its own (HKDF over key and salt), so that the nonces
may count: AES-256-GCM, nonce = number of the chunk and whether it is the last, as in STREAM. A chunk that is missing,
doubled, moved or from elsewhere does not decrypt. Neither does an envelope in another place: every chunk authenticates
the header and the place, such as ("kubeconfig of cluster", "prod").
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from approvals.encryption.keys import ID_BYTES, Key, key_named, keyring
from approvals.errors import Undecipherable

MAGIC = b"PRQ1"
SALT_BYTES = 32
HEADER_BYTES = len(MAGIC) + ID_BYTES + SALT_BYTES
# Enough of an envelope for `key_id`.
HEAD_BYTES = len(MAGIC) + ID_BYTES
CHUNK_BYTES = 1024 * 1024
_TAG_BYTES = 16


class ReadableContent(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """Where an envelope belongs: `what` it is, and of which row or file."""

    what: str
    of: tuple[str, ...]

    def __str__(self) -> str:
        return f"the {self.what} {'/'.join(self.of)}"

    @property
    def encoded(self) -> bytes:
        """No other place encodes alike: every part comes with its length."""
        parts = [part.encode() for part in (self.what, *self.of)]
        return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def encrypt(data: bytes, *, place: StoredPlace) -> bytes:
    return b"".join(encrypted_parts(data, place=place))


def encrypted_parts(data: bytes, *, place: StoredPlace) -> Iterator[bytes]:
    """The envelope in parts of at most CHUNK_BYTES and a tag, by the first key."""
    key = keyring()[0]
    header = MAGIC + key.id + os.urandom(SALT_BYTES)
    cipher, about = _opened(key, header, place)
    yield header
    view, count = memoryview(data), max(1, -(-len(data) // CHUNK_BYTES))
    for number in range(count):
        chunk = view[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]
        yield cipher.encrypt(_nonce(number, is_last=number == count - 1), chunk, about)


def decrypt(envelope: bytes, *, place: StoredPlace) -> bytes:
    return decrypt_file(BytesIO(envelope), place=place)


def decrypt_file(file: ReadableContent, *, place: StoredPlace) -> bytes:
    """What was encrypted for this place.

    Raises KeyMissing where its key is not here, and Undecipherable where it is no envelope, was changed, cut short, or
    belongs to another place.
    """
    header = file.read(HEADER_BYTES)
    identifier = key_id(header)
    if identifier is None or len(header) < HEADER_BYTES:
        raise Undecipherable(f"{place} is not encrypted: it was replaced, or restored from another installation")
    cipher, about = _opened(key_named(identifier, what=str(place)), header, place)
    whole = BytesIO()  # b"".join would hold the chunks as well
    try:
        for number, (chunk, is_last) in enumerate(_chunks(file)):
            whole.write(cipher.decrypt(_nonce(number, is_last=is_last), chunk, about))
    except InvalidTag:
        raise Undecipherable(
            f"{place} cannot be decrypted: it was changed or truncated, or it belongs to another record;"
            " restore it from a backup"
        ) from None
    return whole.getvalue()


def key_id(head: bytes) -> bytes | None:
    """The id of the key from the first HEAD_BYTES or more; None where they do not begin an envelope."""
    return head[len(MAGIC) : HEAD_BYTES] if head.startswith(MAGIC) and len(head) >= HEAD_BYTES else None


def _opened(key: Key, header: bytes, place: StoredPlace) -> tuple[AESGCM, bytes]:
    """The cipher of one envelope, and what each of its chunks is bound to."""
    salt = header[-SALT_BYTES:]
    secret = HKDF(hashes.SHA256(), 32, salt, b"pratique: data key of an envelope").derive(key.secret)
    return AESGCM(secret), hashlib.sha256(header + place.encoded).digest()


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def _chunks(file: ReadableContent) -> Iterator[tuple[bytes, bool]]:
    """Every chunk, and whether it is the last. An empty rest is a chunk that nobody could have encrypted."""
    chunk = _read_whole(file)
    while following := _read_whole(file):
        yield chunk, False
        chunk = following
    yield chunk, True


def _read_whole(file: ReadableContent) -> bytes:
    """One chunk: a file may give fewer bytes than it is asked for before it ends."""
    size, parts = CHUNK_BYTES + _TAG_BYTES, BytesIO()
    while size and (part := file.read(size)):
        parts.write(part)
        size -= len(part)
    return parts.getvalue()
