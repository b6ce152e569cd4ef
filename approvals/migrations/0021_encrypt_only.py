"""The encrypted columns take the place of the plain ones.

A process of the version before may have written since 0020: rows that are plain only, and newer plain values beside
encrypted ones. Both are encrypted here, in the transaction that drops the plain columns, while nobody else may write.
Such a process that goes on fails at its next write, because its columns are gone.
"""

from importlib import import_module

from django.db import migrations

from approvals.encryption.fields import EncryptedJSONField, EncryptedTextField

JSON = (
    ("chatdelivery", "wish", EncryptedJSONField(place="wish of delivery", bound_to=("tool", "key"))),
    ("drift", "fields", EncryptedJSONField(place="fields of drift", bound_to=("item_id",))),
    ("report", "body", EncryptedJSONField(place="report of request", bound_to=("request_id", "round"))),
)
KUBECONFIG = EncryptedTextField(
    help_text="server, CA and inline credentials; empty: in-cluster",
    place="kubeconfig of cluster",
    bound_to=("name",),
)


LOCKED = ("approvals_cluster", "approvals_chatdelivery", "approvals_drift", "approvals_report")
rows = import_module("approvals.migrations.0020_encrypt_rows")


def encrypt_what_came_since(apps, schema_editor):
    """On SQLite the transaction of a migration holds the one lock there is; PostgreSQL is told which tables."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"LOCK TABLE {', '.join(LOCKED)} IN ACCESS EXCLUSIVE MODE")
    for name, column, what, bound_to, to_bytes, _ in rows.TABLES:
        table = apps.get_model("approvals", name).objects
        for pk in list(table.filter(**{f"{column}__isnull": False}).values_list("pk", flat=True)):
            row = table.get(pk=pk)
            envelope = rows.encrypt(to_bytes(getattr(row, column)), place=rows.place_of(row, what, bound_to))
            table.filter(pk=pk).update(encrypted=envelope)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0020_encrypt_rows")]
    operations = [
        migrations.RunPython(encrypt_what_came_since, migrations.RunPython.noop),
        migrations.RemoveField("cluster", "kubeconfig"),
        migrations.RenameField("cluster", "encrypted", "kubeconfig"),
        migrations.AlterField("cluster", "kubeconfig", KUBECONFIG),
        *(migrations.RemoveField(model, column) for model, column, _ in JSON),
        *(migrations.RenameField(model, "encrypted", column) for model, column, _ in JSON),
        *(migrations.AlterField(model, column, field) for model, column, field in JSON),
    ]
