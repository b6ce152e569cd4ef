"""Who asked, voted and wrote policies, also by issuer and subject; what nobody asked for at that moment.

SQLite makes tables anew for this, without their triggers.
"""

from django.db import migrations, models

from approvals.migrations._append_only import keep_append_only


def text() -> "models.CharField[str, str]":
    return models.CharField(max_length=255, blank=True, default="")


def record() -> models.JSONField:
    return models.JSONField(default=dict, blank=True)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0031_issuers")]
    operations = [
        migrations.RunPython(migrations.RunPython.noop, keep_append_only),
        migrations.AddField("policy", "author_known_as", record()),
        migrations.AddField("policy", "editor_known_as", record()),
        migrations.AddField(
            "request",
            "is_unattended",
            models.BooleanField(
                default=False, help_text="nobody asked at that moment: those who wrote the spec are its requesters"
            ),
        ),
        migrations.AddField("review", "issuer", text()),
        migrations.AddField("review", "subject", text()),
        migrations.AddField(
            "specwrite",
            "groups_at",
            models.DateTimeField(null=True, blank=True, help_text="when the groups were proved; null: nobody knows"),
        ),
        migrations.AddField("specwrite", "issuer", text()),
        migrations.AddField("specwrite", "subject", text()),
        migrations.RunPython(keep_append_only, migrations.RunPython.noop),
    ]
