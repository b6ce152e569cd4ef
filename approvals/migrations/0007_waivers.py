"""Waivers, who may have asked, and earlier labels. SQLite makes tables anew for this, without their triggers."""

from django.db import migrations, models

TABLE = "approvals_review"


def keep_append_only(apps, schema_editor):
    """Put back the triggers of 0002 on the remade table; PostgreSQL alters it in place and keeps them."""
    if schema_editor.connection.vendor != "sqlite":
        return
    for operation in ("UPDATE", "DELETE"):
        schema_editor.execute(
            f"CREATE TRIGGER IF NOT EXISTS {TABLE}_no_{operation.lower()} BEFORE {operation} ON {TABLE} "
            f"BEGIN SELECT RAISE(ABORT, '{TABLE} is append-only'); END"
        )


class Migration(migrations.Migration):
    dependencies = [("approvals", "0006_revision_health")]
    operations = [
        migrations.RunPython(migrations.RunPython.noop, keep_append_only),
        migrations.AddField("request", "earlier_labels", models.JSONField(default=list)),
        migrations.AddField(
            "review",
            "may_write",
            models.BooleanField(
                default=False, help_text="nobody knows who asked, and this reviewer may have written it (S05)"
            ),
        ),
        migrations.AddField("review", "waives", models.JSONField(default=list)),
        migrations.AddField(
            "review",
            "override_reason",
            models.TextField(blank=True, help_text="its words when it allowed to waive"),
        ),
        migrations.RunPython(keep_append_only, migrations.RunPython.noop),
    ]
