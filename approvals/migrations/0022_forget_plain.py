"""Has the database give up the pages that still hold what was plain. Backups from before keep it.

Before that it encrypts the contents that a process of the version before has stored since 0020.
"""

from importlib import import_module

from django.core.files.storage import storages
from django.db import migrations

from approvals.encryption.envelope import HEAD_BYTES, key_id

TABLES = ("approvals_cluster", "approvals_chatdelivery", "approvals_drift", "approvals_report")


rows = import_module("approvals.migrations.0020_encrypt_rows")


def encrypt_new_contents(apps, schema_editor):
    """Of the others only the first bytes are read."""
    for digest in rows.digests(apps):
        storage, path = storages["content"], rows.path_of(digest)
        if not storage.exists(path):
            continue
        with storage.open(path, "rb") as file:
            is_plain = key_id(file.read(HEAD_BYTES)) is None
        if is_plain:
            rows.encrypt_content(digest)


def forget(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        elif connection.vendor == "postgresql":
            for table in TABLES:
                cursor.execute(f'VACUUM FULL "{table}"')


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0021_encrypt_only")]
    operations = [
        migrations.RunPython(encrypt_new_contents, migrations.RunPython.noop),
        migrations.RunPython(forget, migrations.RunPython.noop),
    ]
