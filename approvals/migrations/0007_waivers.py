"""Waivers, who may have asked, and earlier labels. SQLite makes tables anew for this, without their triggers."""

from django.db import migrations, models

from approvals.migrations._append_only import keep_append_only


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
