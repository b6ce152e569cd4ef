"""Columns that are encrypted in the database and plain in Python.

A value is decrypted when it is first looked at, not when its row is loaded: pages that list clusters need no key for
it, and a key that is missing stops only what needs it. It is bound to its row by the columns in `bound_to`, which
never change; a value copied to another row does not decrypt.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.query_utils import DeferredAttribute

from approvals.encryption.envelope import StoredPlace, decrypt, encrypt, key_id
from approvals.encryption.keys import key_named
from approvals.json_packing import pack, unpack

if TYPE_CHECKING:
    Base = models.BinaryField[Any, Any]
else:
    Base = models.BinaryField


@dataclass(frozen=True, slots=True)
class Encrypted:
    """A value as the database holds it."""

    envelope: bytes


class _Decrypting(DeferredAttribute):
    """The attribute of the row; assigning takes plain values as well as what the database gave."""

    field: EncryptedField

    def __get__(self, instance: models.Model | None, cls: Any = None) -> Any:
        if instance is None:
            return self
        value = super().__get__(instance, cls)
        if isinstance(value, Encrypted):
            value = instance.__dict__[self.field.attname] = self.field.decrypted(value, instance)
        return value

    def __set__(self, instance: models.Model, value: Any) -> None:
        instance.__dict__[self.field.attname] = value


class EncryptedField(Base):
    """`place` says what it is, such as "kubeconfig of cluster": part of what is authenticated, so it never changes."""

    descriptor_class = _Decrypting

    def __init__(self, *args: Any, place: str = "", bound_to: Sequence[str] = (), **kwargs: Any):
        self.place, self.bound_to = place, tuple(bound_to)
        super().__init__(*args, **kwargs)

    def get_default(self) -> Any:
        return None

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "place": self.place, "bound_to": self.bound_to}

    def to_bytes(self, value: Any) -> bytes:
        raise NotImplementedError

    def from_bytes(self, data: bytes) -> Any:
        raise NotImplementedError

    def place_of(self, *values: object) -> StoredPlace:
        """Of the row whose `bound_to` columns hold these values."""
        return StoredPlace(self.place, tuple(map(str, values)))

    def decrypted(self, value: Encrypted, instance: models.Model) -> Any:
        return self.from_bytes(decrypt(value.envelope, place=self._place_in(instance)))

    def check_key(self, instance: models.Model) -> None:
        """Raises KeyMissing as `decrypted` does, without decrypting; what was read already is readable."""
        value = instance.__dict__.get(self.attname)
        identifier = key_id(value.envelope) if isinstance(value, Encrypted) else None
        if identifier is not None:
            key_named(identifier, what=str(self._place_in(instance)))

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = model_instance.__dict__.get(self.attname)
        if value is None or isinstance(value, Encrypted):
            return value
        return Encrypted(encrypt(self.to_bytes(value), place=self._place_in(model_instance)))

    def get_prep_value(self, value: Any) -> bytes | None:
        if value is None or isinstance(value, Encrypted):
            return value.envelope if value else None
        raise TypeError(f"{self.name} is encrypted for its row: save the row, and never look a value up")

    def from_db_value(self, value: bytes | memoryview | str | None, *_: object) -> Encrypted | None:
        if value is None:
            return None
        return Encrypted(value.encode() if isinstance(value, str) else bytes(value))

    def value_to_string(self, obj: models.Model) -> str:
        """Encrypted in a fixture, too."""
        value = self.pre_save(obj, False)
        return base64.b64encode(value.envelope).decode() if value else ""

    def _place_in(self, instance: models.Model) -> StoredPlace:
        return self.place_of(*(getattr(instance, name) for name in self.bound_to))


class EncryptedTextField(EncryptedField):
    description = "Text, encrypted"

    def get_default(self) -> str:
        return ""

    def to_bytes(self, value: Any) -> bytes:
        return str(value).encode()

    def from_bytes(self, data: bytes) -> str:
        return data.decode()


class EncryptedJSONField(EncryptedField):
    """A JSON value that is only read and written as a whole, packed before it is encrypted."""

    description = "JSON, packed and encrypted"

    def to_bytes(self, value: Any) -> bytes:
        return pack(value)

    def from_bytes(self, data: bytes) -> Any:
        return unpack(data)
