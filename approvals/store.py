"""The content store: rendered manifests by digest, on Django's storage. What is read is hashed again (promise 1)."""

from __future__ import annotations

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.utils import timezone

from approvals import models
from provisioner import render
from provisioner.errors import DigestMismatch
from provisioner.values import Content, Pin, SourceKind


def put(content: Content, *, format_name: str) -> models.Content:
    """Keep `content` under its digest and return its row. Keeping the same content twice is no error."""
    data = render.serialise(content.manifests)
    storage, path = storages["content"], _path(content.digest)
    if not _holds(content.digest):
        storage.delete(path)
        storage.save(path, ContentFile(data))
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
    """The content as it was stored; raises DigestMismatch where the bytes are no longer those that were named."""
    storage, path = storages["content"], _path(row.digest)
    if not storage.exists(path):
        raise DigestMismatch(f"content {row.digest} is not in the content store (expected at {path})")
    with storage.open(path, "rb") as file:
        stored = file.read()
    manifests = render.parse(stored)  # which takes nothing but what would be written for them again
    found = render.stored_digest(stored, install_namespace=row.install_namespace, service_account=row.service_account)
    if found != row.digest:
        raise DigestMismatch(f"content {row.digest} was changed in the content store: its bytes hash to {found}")
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


def _path(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}/{value[:2]}/{value}"
