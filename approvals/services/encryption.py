"""Changing the keys that encrypt what is stored (security-rules.md S30)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.apps import apps
from django.db import models, transaction
from django.db.models.functions import Substr

from approvals import audit, retention, store
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.encryption.envelope import HEAD_BYTES, decrypt, decrypt_file, encrypt, encrypted_parts, key_id
from approvals.encryption.fields import Encrypted, EncryptedField
from approvals.encryption.files import UNFINISHED_AGE, PrivateFiles, StoredFile, content_files
from approvals.encryption.keys import keyring
from approvals.locks import for_change
from approvals.models import Content
from provisioner.errors import PratiqueError

PROGRESS_EVERY = 100


@dataclass
class Rotation:
    """What became of everything that is stored. `used` counts by the id of the key that encrypts it now."""

    changed: int = 0
    used: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def spare_keys(self) -> list[str]:
        """Keys of this process that nothing needs any more, if all could be read."""
        others = [key.name for key in keyring()[1:]]
        return [] if self.problems else [name for name in others if not self.used[name]]


def rotate_keys(*, by: Actor, tell: Callable[[str], None], is_trial: bool = False) -> Rotation:
    """Have the first key encrypt everything; `is_trial` only counts.

    Safe beside running processes, and to be run again after it was killed: what the first key encrypts already is left
    alone, and every row and file is replaced whole. `tell` hears of the progress. What cannot be decrypted is left as
    it is and stands in `problems`.
    """
    done = Rotation()
    for model, column in encrypted_columns():
        tell(f"{column.place}:")
        for count, pk in enumerate(_keys_of_rows(model, column, done, is_trial=is_trial), start=1):
            _note(done, partial(_renew_row, model, column, pk))
            _tell_sometimes(tell, count)
    tell("content:")
    for count, file in enumerate(_stale_contents(done, is_trial=is_trial), start=1):
        _note(done, partial(_renew_content, file))
        _tell_sometimes(tell, count)
    if not is_trial:
        facts = {"key": keyring()[0].name, "changed": done.changed, "problems": len(done.problems)}
        with transaction.atomic():
            audit.record(verb="keys.rotated", actor=by, facts=facts)
    return done


def encrypted_columns() -> Iterator[tuple[type[models.Model], EncryptedField]]:
    for model in apps.get_app_config("approvals").get_models():
        for column in model._meta.concrete_fields:
            if isinstance(column, EncryptedField):
                yield model, column


def _keys_of_rows(
    model: type[models.Model], column: EncryptedField, done: Rotation, *, is_trial: bool
) -> Iterator[int]:
    """The rows that another key encrypts. Only the beginning of a value is read: a report may be large."""
    heads: Any = model._base_manager.exclude(**{f"{column.attname}__isnull": True}).annotate(
        head=Substr(column.attname, 1, HEAD_BYTES, output_field=models.BinaryField())
    )
    for pk, head in heads.order_by("pk").values_list("pk", "head"):
        identifier = key_id(head.encode() if isinstance(head, str) else bytes(head or b""))
        if identifier == keyring()[0].id or (is_trial and identifier):
            done.used[identifier.hex()] += 1
        elif is_trial:
            done.problems.append(f"{column.place} (row {pk}) is not encrypted")
        else:
            yield pk


def _renew_row(model: type[models.Model], column: EncryptedField, pk: int) -> bool:
    """Whether the row was there, and is now encrypted by the first key."""
    with transaction.atomic():
        rows = model._base_manager.filter(pk=pk)
        found = for_change(rows).values_list(column.attname, *column.bound_to).first()
        if found is None:
            return False
        value, *bound = found
        place = column.place_of(*bound)
        envelope = encrypt(decrypt(value.envelope, place=place), place=place)
        rows.update(**{column.attname: Encrypted(envelope)})
        return True


def _stale_contents(done: Rotation, *, is_trial: bool) -> Iterator[StoredFile]:
    """Contents that another key encrypts. What has another form of name is not ours."""
    storage, now = content_files(), database_now()
    if not is_trial:
        storage.collect_unfinished(now - UNFINISHED_AGE, store.is_ours)
    for one in storage.stored():
        if store.digest_of(one.name) is None or (head := _head_of(one.name)) is None:
            continue
        if not is_trial and isinstance(storage, PrivateFiles):
            storage.make_private(one.name)
        identifier = key_id(head)
        if identifier == keyring()[0].id or (is_trial and identifier):
            done.used[identifier.hex()] += 1
        elif is_trial:
            done.problems.append(f"{one.name} in the content store is not encrypted")
        else:
            yield one


def _head_of(name: str) -> bytes | None:
    """Its beginning; None where it was deleted since it was listed."""
    try:
        with content_files().open(name, "rb") as file:
            head: bytes = file.read(HEAD_BYTES)
    except FileNotFoundError:
        return None
    return head


def _renew_content(one: StoredFile) -> bool:
    """Whether the file was needed, and is now encrypted by the first key.

    One that is still plain was stored before there were keys: it is taken if its bytes are those of its digest.
    """
    digest = store.digest_of(one.name)
    row = Content.objects.filter(pk=digest, removed_at=None).first()
    if digest is None or row is None:
        retention.collect_unnamed(one, database_now())
        return False
    is_plain = key_id(_head_of(one.name) or b"") is None
    with content_files().open(one.name, "rb") as file:
        stored = file.read() if is_plain else decrypt_file(file, place=store.place_of(digest))
    if store.digest_of_bytes(row, stored) != digest:
        raise PratiqueError(f"the content {digest} was changed in the content store: its bytes have another digest")
    content_files().replace(one.name, encrypted_parts(stored, place=store.place_of(digest)))
    return True


def _note(done: Rotation, renew: Callable[[], bool]) -> None:
    try:
        if renew():
            done.changed += 1
            done.used[keyring()[0].name] += 1
    except (PratiqueError, FileNotFoundError) as exc:
        done.problems.append(str(exc))


def _tell_sometimes(tell: Callable[[str], None], count: int) -> None:
    if count % PROGRESS_EVERY == 0:
        tell(f"  {count} re-encrypted")
