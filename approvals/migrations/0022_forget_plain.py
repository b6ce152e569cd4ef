"""Has the database give up the pages that still hold what was plain. Backups from before keep it."""

from django.db import migrations

TABLES = ("approvals_cluster", "approvals_chatdelivery", "approvals_drift", "approvals_report")


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
    operations = [migrations.RunPython(forget, migrations.RunPython.noop)]
