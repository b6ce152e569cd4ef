"""Encrypts what is stored. It may be killed and run again: what is encrypted already is left as it is."""

import sys

from django.core.files.storage import storages
from django.db import migrations, transaction

from approvals.encryption import files
from approvals.encryption.envelope import HEAD_BYTES, StoredPlace, decrypt, decrypt_file, encrypt, encrypted_parts, key_id
from approvals.packed import pack, unpack

# model, plain column, what the places of its rows are called, the columns that tell the row; how it becomes bytes, and back
TABLES = (
    ("Cluster", "kubeconfig", "kubeconfig of cluster", ("name",), str.encode, bytes.decode),
    ("ChatDelivery", "wish", "wish of delivery", ("tool", "key"), pack, unpack),
    ("Drift", "fields", "fields of drift", ("item_id",), pack, unpack),
    ("Report", "body", "report of request", ("request_id", "round"), pack, unpack),
)


def encrypt_all(apps, schema_editor):
    for table in TABLES:
        encrypt_table(apps, *table)
    missing = sum(not encrypt_content(digest) for digest in digests(apps))
    if missing:
        sys.stderr.write(
            f"\n  {missing} contents are not in PRATIQUE_CONTENT_DIR here. Run `pratique-manage rotate_encryption_keys` where"
            " that folder is: until then they cannot be read.\n"
        )


def decrypt_all(apps, schema_editor):
    for table in TABLES:
        decrypt_table(apps, *table)
    for digest in digests(apps):
        decrypt_content(digest)


def encrypt_table(apps, name, column, what, bound_to, to_bytes, _):
    """One by one: a single report may be as large as a bundle."""
    rows = apps.get_model("approvals", name).objects
    for pk in list(rows.filter(encrypted=None).values_list("pk", flat=True)):
        with transaction.atomic():
            row = rows.get(pk=pk)
            envelope = encrypt(to_bytes(getattr(row, column)), place=place_of(row, what, bound_to))
            rows.filter(pk=pk).update(**{"encrypted": envelope, column: None})


def decrypt_table(apps, name, column, what, bound_to, _, from_bytes):
    rows = apps.get_model("approvals", name).objects
    for pk in list(rows.exclude(encrypted=None).values_list("pk", flat=True)):
        with transaction.atomic():
            row = rows.get(pk=pk)
            plain = from_bytes(decrypt(bytes(row.encrypted), place=place_of(row, what, bound_to)))
            rows.filter(pk=pk).update(**{"encrypted": None, column: plain})


def place_of(row, what, bound_to):
    return StoredPlace(what, tuple(str(getattr(row, name)) for name in bound_to))


def digests(apps):
    return list(apps.get_model("approvals", "Content").objects.values_list("digest", flat=True))


def path_of(digest):
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}/{value[:2]}/{value}"


def encrypt_content(digest):
    """Whether the content is there, and now encrypted."""
    storage, path = storages["content"], path_of(digest)
    if not storage.exists(path):
        return False
    with storage.open(path, "rb") as file:
        plain = file.read()
    if key_id(plain[:HEAD_BYTES]) is None:
        storage.replace(path, encrypted_parts(plain, place=StoredPlace("content", (digest,))))
    if isinstance(storage, files.PrivateFiles):
        storage.make_private(path)
    return True


def decrypt_content(digest):
    storage, path = storages["content"], path_of(digest)
    if storage.exists(path):
        with storage.open(path, "rb") as file:
            plain = decrypt_file(file, place=StoredPlace("content", (digest,)))
        storage.replace(path, [plain])


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0019_encrypt")]
    operations = [migrations.RunPython(encrypt_all, decrypt_all)]
