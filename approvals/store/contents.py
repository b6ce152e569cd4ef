"""Keeping contents and reading them back. What is read is hashed again (promise 1)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction

from approvals import models
from approvals.clock import database_now
from approvals.encryption.envelope import StoredPlace, decrypt_file, encrypted_parts
from approvals.encryption.files import ContentFiles, content_files
from approvals.errors import KeyMissing, StoreUnavailable
from provisioner import render
from provisioner.errors import DigestMismatch
from provisioner.values import (
    DELETING,
    Checksum,
    Content,
    Lookup,
    MadePlace,
    MadeSort,
    MadeUp,
    MadeValue,
    ObjectRef,
    PatchedObject,
    PatchResult,
    Pin,
    RepeatedKey,
    RepeatEffect,
    Requirement,
    RequirementKind,
    UnusedFiles,
)

# As `path_of` makes them.
PATH = re.compile(r"sha256/([0-9a-f]{2})/([0-9a-f]{64})")


def salted(content: Content, running: models.Content | None = None) -> Content:
    """`content` under a digest that tells nothing about its objects: keyed with a salt of its own.

    People see the digest who may not get the Secrets, or the other objects and spec.config. Unkeyed, they could try
    weak values on it, and the same salt for two requests would tell whether both have the same values (S09, S38). Only
    what is lost of the `running` content is found again by its digest.
    """
    place = {"install_namespace": content.install_namespace, "service_account": content.service_account}
    if running is not None and not _holds(running):
        salt = bytes(running.salt)
        if render.content_digest(content.everything, **place, salt=salt) == running.digest:
            return replace(content, salt=salt, digest=running.digest)
    salt = os.urandom(32)
    return replace(content, salt=salt, digest=render.content_digest(content.everything, **place, salt=salt))


def put(content: Content, *, format_name: str) -> models.Content:
    """Keep `content` under its digest and return its row. Keeping the same content twice is no error.

    The row says first that it is used, so that nothing that is stored here is removed as unneeded
    (approvals.retention), and no transaction waits for the store. Raises StoreUnavailable also where a deletion of the
    same bytes was asked for and may still happen: it would take the new ones.
    """
    data = render.serialise(content.everything)
    row, is_new = _row_of(content, format_name, len(data))
    if is_new or not _holds(row):
        parts = encrypted_parts(data, place=place_of(content.digest))
        content_files().replace(path_of(content.digest), parts)
    return row


@transaction.atomic
def _row_of(content: Content, format_name: str, byte_count: int) -> tuple[models.Content, bool]:
    """The row, used now, and whether it is new; waits for who is about to remove it."""
    now = database_now()
    described = {
        "install_namespace": content.install_namespace,
        "service_account": content.service_account,
        "salt": content.salt,
        "format": format_name,
        "object_count": len(content.everything),
        "byte_count": byte_count,
        "has_deletion_hooks": bool(content.hooks_at(DELETING)),
        "created_at": now,
    }
    row, is_new = models.Content.objects.get_or_create(digest=content.digest, defaults=described)
    settled = models.Content.objects.filter(pk=row.pk).exclude(deleting_until__gt=now)
    # It may be one of `retention.collect_unnamed`, which says nothing of the content.
    settled.exclude(removed_at=None).update(**described)
    is_settled = settled.update(used_at=now, removed_at=None, deleting_until=None)
    row.refresh_from_db()
    if not is_settled:
        raise StoreUnavailable(
            "the content store has not confirmed that it deleted an earlier copy of this very content, and may do so "
            f"until {row.deleting_until:%H:%M} UTC; it is stored again after that"
        )
    return row, is_new


def get(row: models.Content, *, fetched_by: models.Request | None = None) -> Content:
    """The content as it was stored, with what came with it, of the request that fetched it.

    Raises DigestMismatch where the bytes are no longer those that were named, or not encrypted (Undecipherable), and
    KeyMissing where this process cannot decrypt them.
    """
    if row.removed_at is not None:
        raise DigestMismatch(
            f"content {row.digest} was removed on {row.removed_at:%Y-%m-%d}, as nothing needed it (PRATIQUE_KEEP_DAYS)"
        )
    manifests = render.parse(read(row, content_files()))  # which takes nothing but what would be written for them again
    content = Content(
        tuple(manifest for manifest in manifests if manifest.hook is None),
        row.install_namespace,
        row.service_account,
        (),
        row.digest,
        hooks=tuple(manifest for manifest in manifests if manifest.hook),
        salt=bytes(row.salt),
    )
    if fetched_by is None:
        return content
    unused = fetched_by.unused_files or {"count": 0, "readableCount": 0, "paths": ()}
    return replace(
        content,
        pins=tuple(
            Pin(pin["kind"], pin["reference"], pin["digest"], pin.get("destination", "")) for pin in fetched_by.pins
        ),
        unused=UnusedFiles(unused["count"], unused["readableCount"], tuple(unused["paths"])),
        requirements=tuple(
            Requirement(**{"constraint": "", **record, "kind": RequirementKind(record["kind"])})
            for record in fetched_by.requirements
        ),
        values=fetched_by.chart_values,
        spec_values=frozenset(fetched_by.spec_values),
        repeated=tuple(
            RepeatedKey(**{**record, "effect": RepeatEffect(record["effect"])}) for record in fetched_by.repeated_keys
        ),
        version=fetched_by.bundle_version,
        engine=fetched_by.engine,
        helm_3_differs=(
            None
            if fetched_by.helm_3_differs is None
            else tuple(ObjectRef(**record) for record in fetched_by.helm_3_differs)
        ),
        lookups=tuple(
            Lookup(
                ObjectRef(**record["object"]),
                record["digest"],
                tuple(record["copies"]),
                tuple(record["keys"]),
                # Records of an earlier version do not say it.
                compared=tuple(record.get("compared", ())),
            )
            for record in fetched_by.lookups
        ),
        patches=tuple(
            PatchResult(
                record["entry"],
                record["count"],
                tuple(
                    PatchedObject(ObjectRef(**patched["ref"]), tuple(patched["paths"]), patched["is_deleted"])
                    for patched in record["objects"]
                ),
                tuple(record.get("near", ())),
            )
            for record in fetched_by.patches
        ),
        made_up=_made_up(fetched_by.made_values),
    )


def _made_up(record: Mapping[str, Any]) -> MadeUp:
    """What a chart made up, by the record of its request, without the values."""
    values = (
        MadeValue(
            MadePlace(**one["place"]),
            "",
            MadeSort(one["sort"]),
            tuple(MadePlace(**copy) for copy in one["copies"]),
            one["isNew"],
            one.get("isRotated", False),
            one["generation"],
        )
        for one in record.get("values", ())
    )
    checksums = (Checksum(MadePlace(**one["place"]), one["isKnown"]) for one in record.get("checksums", ()))
    return MadeUp(tuple(values), tuple(checksums))


def read(row: models.Content, files: ContentFiles) -> bytes:
    """The serialised manifests of a content as `files` hold them, hashed again; raises as `get` does."""
    path = path_of(row.digest)
    try:
        with files.open(path, "rb") as file:
            stored = decrypt_file(file, place=place_of(row.digest))
    except FileNotFoundError:
        raise DigestMismatch(f"content {row.digest} is not in the content store (expected at {path})") from None
    if digest_of_bytes(row, stored) != row.digest:
        raise DigestMismatch(f"content {row.digest} was changed in the content store: its bytes have another digest")
    return stored


def digest_of_bytes(row: models.Content, stored: bytes) -> str:
    """The digest that these bytes have in the place of a content."""
    return render.stored_digest(
        stored, install_namespace=row.install_namespace, service_account=row.service_account, salt=bytes(row.salt)
    )


def is_same(row: models.Content, other: models.Content) -> bool:
    """Whether two contents are the same bytes in the same place, though each digest is keyed on its own. Only `row` is
    read; raises as `get`."""
    return row == other or digest_of_bytes(other, read(row, content_files())) == other.digest


def _holds(row: models.Content) -> bool:
    try:
        get(row)
    except (DigestMismatch, KeyMissing):
        # Of a key that is lost: the same bytes were fetched again, and their digest says that they are the same.
        return False
    return True


def path_of(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}/{value[:2]}/{value}"


def digest_of(path: str) -> str | None:
    """The digest whose path this is; None where it is none of ours."""
    found = PATH.fullmatch(path)
    return f"sha256:{found[2]}" if found and found[2].startswith(found[1]) else None


def is_ours(name: str) -> bool:
    """Whether a file of the store is a content by its name: what has another one is somebody else's."""
    return digest_of(name) is not None


def place_of(digest: str) -> StoredPlace:
    return StoredPlace("content", (digest,))
