"""The keys of the environment. The first one encrypts; all of them decrypt."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from dataclasses import dataclass

from django.conf import settings

from approvals.errors import KeyMissing

KEY_BYTES = 32
ID_BYTES = 8
# Random bytes repeat a value now and then; what people type or count up has far fewer different ones.
_FEWEST_VALUES = 16


@dataclass(frozen=True, slots=True)
class Key:
    """`id` tells which key it is and nothing about its bytes; neither is shown by `repr`, logs or error pages."""

    id: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.name})"

    @property
    def name(self) -> str:
        return self.id.hex()


def key_of(secret: bytes) -> Key:
    return Key(hmac.digest(secret, b"pratique: which key", hashlib.sha256)[:ID_BYTES], secret)


def new_key() -> str:
    """A new key as the setting takes it."""
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()


def parse_keys(text: str) -> tuple[Key, ...]:
    """The keys of a comma-separated text, each 32 random bytes in base64 of either alphabet.

    Raises ValueError naming the position of a bad one, never its text.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    keys = tuple(_parsed(word, position) for position, word in enumerate(words, start=1))
    if len({key.id for key in keys}) < len(keys):
        raise ValueError("a key is listed twice: remove one of the two")
    return keys


def keyring() -> tuple[Key, ...]:
    """The keys of this process, the one that encrypts first; never empty."""
    keys: tuple[Key, ...] = settings.PRATIQUE["ENCRYPTION_KEYS"]
    return keys


def key_named(identifier: bytes, *, what: str) -> Key:
    """Raises KeyMissing where this process does not have the key that encrypted `what`."""
    for key in keyring():
        if key.id == identifier:
            return key
    raise KeyMissing(
        f"{what} is encrypted with the key {identifier.hex()}, which PRATIQUE_ENCRYPTION_KEYS does not have;"
        " nothing is lost: add that key and restart"
    )


def _parsed(word: str, position: int) -> Key:
    wanted = "expected 32 random bytes in base64, as `pratique-manage new_encryption_key` prints them"
    try:
        secret = base64.b64decode(word.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"key {position} is not base64; {wanted}") from None
    if len(secret) != KEY_BYTES:
        raise ValueError(f"key {position} has {len(secret)} bytes; {wanted}")
    if len(set(secret)) < _FEWEST_VALUES:
        raise ValueError(f"key {position} is not random; {wanted}")
    return key_of(secret)
