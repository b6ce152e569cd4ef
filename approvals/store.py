"""The content store: rendered manifests by digest, on Django's storage, encrypted (security-rules.md S30).

What is read is hashed again (promise 1).
"""

from __future__ import annotations

from django.core.files.storage import storages
from django.utils import timezone

from approvals import models
from approvals.encryption import files
from approvals.encryption.envelope import StoredPlace, decrypt_file, encrypted_parts
from provisioner import render
from provisioner.errors import DigestMismatch
from provisioner.values import Content, Pin, SourceKind


def put(content: Content, *, format_name: str) -> models.Content:
    """Keep `content` under its digest and return its row. Keeping the same content twice is no error."""
    data = render.serialise(content.manifests)
    if not _holds(content.digest):
        parts = encrypted_parts(data, place=place_of(content.digest))
        files.replace(storages["content"], path_of(content.digest), parts)
    row, _ = models.Content.objects.get_or_create(
        digest=content.digest,
        defaults={
            "install_namespace": content.install_namespace,
            "service_account": content.service_account,
            "format": format_name,
            "object_count": len(content.manifests),
            "byte_count": len(data),
            "created_at": timezone.now(),
        },
    )
    return row


def get(row: models.Content, *, pins: tuple[Pin, ...] = ()) -> Content:
    """The content as it was stored.

    Raises DigestMismatch where the bytes are no longer those that were named, or not encrypted (Undecipherable), and
    KeyMissing where this process cannot decrypt them.
    """
    stored = _read(row.digest)
    manifests = render.parse(stored)  # which takes nothing but what would be written for them again
    found = render.stored_digest(stored, install_namespace=row.install_namespace, service_account=row.service_account)
    if found != row.digest:
        raise DigestMismatch(f"content {row.digest} was changed in the content store: its bytes have digest {found}")
    return Content(manifests, row.install_namespace, row.service_account, pins, row.digest)


def pins_of(records: list[dict[str, str]]) -> tuple[Pin, ...]:
    return tuple(
        Pin(SourceKind(record["kind"]), record["reference"], record["digest"], record.get("destination", ""))
        for record in records
    )


def _holds(digest: str) -> bool:
    row = models.Content.objects.filter(digest=digest).first()
    if row is None:
        return False
    try:
        get(row)
    except DigestMismatch:
        return False
    return True


def path_of(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}/{value[:2]}/{value}"


def place_of(digest: str) -> StoredPlace:
    return StoredPlace("content", (digest,))


def _read(digest: str) -> bytes:
    storage, path = storages["content"], path_of(digest)
    try:
        with storage.open(path, "rb") as file:
            return decrypt_file(file, place=place_of(digest))
    except FileNotFoundError:
        raise DigestMismatch(f"content {digest} is not in the content store (expected at {path})") from None
